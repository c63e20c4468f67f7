"""Devices that work below what they could: by their equals, their link and their memory."""

from __future__ import annotations

from probe_core import proc
from probe_core.doctor.causes import fixed, of_cause
from probe_core.doctor.check import REPORT, check, failed, not_applicable, passed, unknown
from probe_core.model.fix import filled, run
from probe_core.model.ids import ACCELERATORS, pci_address
from probe_core.readiness.node import CONTROL, KFD, UVM, required
from probe_core.readiness.scene import folder_of
from probe_core.readiness.siblings import differences, lone_links, nvlinks
from probe_core.sizes import gib
from probe_core.wording import clean_text, counted, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.doctor.check import CheckFindingDoc, Request, ResultDoc
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc
    from probe_core.model.fix import Fix
    from probe_core.readiness.scene import Scene
    from probe_core.readiness.siblings import Difference


# Equal devices compared: the one that has less than the others, and NVLinks that are down.


@check("unlike-siblings", step="hardware", needs=(REPORT,))
def siblings(request: Request) -> ResultDoc:
    """Whether a device has less than most of its equals."""
    devices = request.report["devices"]
    if sum(device["kind"] in ACCELERATORS for device in devices) < 3:
        return not_applicable("fewer than three accelerators are here to compare")
    found = [_finding(request, difference) for difference in differences(devices)]
    return failed(*found) if found else passed()


def _finding(request: Request, difference: Difference) -> CheckFindingDoc:
    evidence, device = difference.sentence, difference.device
    result = of_cause(request, "unlike-siblings", evidence, [device])
    fixed(result, _fix(difference), request)
    return result


# nvidia-smi(1), which takes a PCI address for -i.
_BY_NVIDIA = {
    "power limit": (run("sudo nvidia-smi -i {address} -pl {norm}"),),
    "ECC": (
        run("sudo nvidia-smi -i {address} -e 1"),
        ", then reset the GPU when it is idle, or reboot",
    ),
}
_BY_FACT = {
    "NVLinks active": "reset the device when it is idle, then check its bridge or baseboard",
    "PCIe generation": "set it in the firmware setup as for its siblings; check riser and cable",
    "PCIe": "check slot, riser and bifurcation against those of its siblings",
    "memory": "compare ECC, partitions and firmware with those of a sibling",
    "power limit": "set the power limit of its siblings",
    # NVIDIA, "GPU Memory Error Management": replaced rows are no fault while spare ones are there.
    "replaced memory rows": "watch its memory errors; have the card replaced when rows run out",
    "ECC": "switch ECC on as its siblings have it",
}


def _fix(difference: Difference) -> Fix:
    name, device = difference.fact.name, difference.device
    address = pci_address(device)
    if device["vendor"] == "nvidia" and address and name in _BY_NVIDIA:
        names = {"address": address, "norm": f"{difference.norm:g}"}
        return filled(_BY_NVIDIA[name], names)
    return _BY_FACT.get(name, "compare firmware and settings with those of a sibling")


@check("nvlink-inactive", step="hardware", needs=(REPORT,))
def links(request: Request) -> ResultDoc:
    """Whether a part of a GPU's NVLinks is down, where no siblings tell what is meant."""
    devices = request.report["devices"]
    if not any(nvlinks(device) for device in devices):
        return not_applicable("no NVLink of a GPU was read")
    found = [
        of_cause(request, "nvlink-inactive", f"{active} of {count} NVLinks are active", [device])
        for device, active, count in lone_links(devices)
    ]
    return failed(*found) if found else passed()


# The PCIe link under load: its speed, which falls by design while a device idles.

_BUSY = 50
"""Percent of amdgpu's busy counter above which its link is not left at a low speed. A judgement:
power management raises the speed within milliseconds of any load."""


@check("link-slow", step="hardware", needs=("gpu_busy_percent",))
def link_speed(request: Request) -> ResultDoc:
    """Whether a link stays slow while its device works."""
    slow = [device for device in request.report["devices"] if _speeds(device) is not None]
    if not slow:
        links = [d for d in request.report["devices"] if d["kind"] == "gpu" and d["links"]]
        return passed() if links else not_applicable("no PCIe link of a GPU can be read")
    busy = [device for device in slow if (_load(device, request) or 0) >= _BUSY]
    findings = [of_cause(request, "link-slow", _slow(d, request), [d]) for d in busy]
    if findings:
        return failed(*findings)
    if any(_load(device, request) is None for device in slow):
        return unknown("a link is slow, and whether its GPU idles is not known")
    return passed()


def _speeds(device: DeviceDoc) -> tuple[float, float] | None:
    """Return (current, most) GT/s of an awake GPU's own link, where that is slow."""
    if device["kind"] != "gpu" or device["power_state"] not in ("active", None):
        return None
    for link in device["links"]:
        now, most = link.get("local_gts"), link.get("local_max_gts")
        if link["kind"] == "pcie" and now and most and now < most:
            return now, most
    return None


def _load(device: DeviceDoc, request: Request) -> int | None:
    """Return the percent that amdgpu counts; other drivers have no such file."""
    folder = folder_of(device)
    return request.machine.read_int(f"{folder}/gpu_busy_percent") if folder else None


def _slow(device: DeviceDoc, request: Request) -> str:
    now, most = _speeds(device) or (0, 0)
    load = _load(device, request)
    return f"{folder_of(device)}: {now:g} of {most:g} GT/s at gpu_busy_percent {load}"


# Memory of a device that other programs fill: what is started now fails for lack of it.

_LEAST_FREE = 0.1
"""Share of the memory below which it is taken. A judgement: servers of models take nine tenths."""

_SHOWN = 4
"""Processes that are named; the others are counted."""


@check("memory-taken", step="responding", needs=(REPORT,))
def memory(request: Request) -> ResultDoc:
    """Whether compute processes use most of a device's own memory.

    The report counts them; who they are the kernel tells, of those that this user may see.
    """
    devices = [device for device in request.report["devices"] if _is_counted(device)]
    if not devices:
        return not_applicable("no device tells its free memory and its processes")
    found = [
        of_cause(request, "memory-taken", evidence, [device])
        for device in devices
        if (evidence := _taken(device, request)) is not None
    ]
    return failed(*found) if found else passed()


def _is_counted(device: DeviceDoc) -> bool:
    memory = device["memory"]
    is_known = memory["total"] is not None and memory["free"] is not None
    is_own = device["kind"] in ACCELERATORS and memory["kind"] not in ("shared", "unified")
    return is_own and is_known and device.get("processes") is not None


def _taken(device: DeviceDoc, request: Request) -> str | None:
    free, total = device["memory"]["free"], device["memory"]["total"]
    count = device.get("processes")
    if not count or not total or free is None or free >= _LEAST_FREE * total:
        return None
    sizes = f"{gib(free)} of {gib(total)} are free"
    found = holders(device, request.report["devices"], request.scene)
    by = f": {joined(found[:_SHOWN], 'and')}" if found else ""
    others = found[_SHOWN:]
    more = f", {len(others)} more" if others else ""
    return f"{sizes}; {counted(count, 'compute process', 'compute processes')}{by}{more}"


# Which processes have a device's own node open; the kernel shows others' files to root alone.


def holders(device: DeviceDoc, devices: Sequence[DeviceDoc], scene: Scene) -> list[str]:
    """Return "NAME (pid N, user NAME)" of each process that has the device's own node open.

    Empty where the device shares all its nodes with others of `devices`, the report's, and where
    nobody may be seen.
    """
    others = [other for other in devices if other["id"] != device["id"]]
    shared = {path for other in others for path in required(other, scene)}
    own = {*required(device, scene)} - shared - {CONTROL, UVM, KFD}
    root = "" if scene.machine.live else scene.machine.root
    return [_described(scene.machine, pid, root) for pid in proc.openers(own, root)]


def _described(machine: Machine, pid: int, root: str) -> str:
    uid = proc.user(pid, root)
    name = clean_text(proc.program(pid, root) or "") or "a process"
    return f"{name} (pid {pid}{'' if uid is None else f', user {_name(machine, uid)}'})"


def _name(machine: Machine, uid: int) -> str:
    """Return the user's name of passwd(5); the number where it is not listed there."""
    for line in (machine.read("/etc/passwd", 1 << 20) or "").splitlines():
        fields = line.split(":")
        if fields[2:3] == [str(uid)]:
            return clean_text(fields[0]) or str(uid)
    return str(uid)


CHECKS = [siblings, links, link_speed, memory]
