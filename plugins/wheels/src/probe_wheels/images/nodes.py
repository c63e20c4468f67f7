"""A node that an image might run on: a recorded machine, a report, or this one."""

from __future__ import annotations

import os

from probe_core.commands import CommandError, parse_json, parse_report, read_report_text
from probe_core.commands.recorded import opened
from probe_core.commands.reports import probe_document
from probe_core.machine.engines import TOOLKIT, mode_of_toolkit
from probe_core.model.ids import ACCELERATORS
from probe_core.model.rocm import release_of_driver
from probe_wheels.devices import TEGRA, gpus_of, module_driver
from probe_wheels.images.nvidia import CDI, CSV, LEGACY
from probe_wheels.rules import ARCHES, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, ReportDoc, StepDoc
    from probe_wheels.devices import Gpu

_WSL = "/dev/dxg"
_GROUPS = ("render", "video")
_MODES = {"legacy": LEGACY, "cdi": CDI, "jit-cdi": CDI, "csv": CSV}

# What a container brings itself, or gets by its options, is not held against a node.
_OF_HOST = {"nvidia": ("hardware", "driver", "node", "library", "responding", "runtime")}
_OF_KERNEL = ("hardware", "driver", "node", "responding")


# A recording has no driver: what hangs or crashes over it is a prober of this computer.
_OF_PROBER = ("driver-hangs", "driver-crashes")


class Node:
    """What counts of a node.

    `arch` is as ``uname -m`` says it, "unknown" where nobody knows, and `flags` what its processors
    can, as Linux names it; () where nobody knows. `broken` has the step that
    keeps a device from every container, by the device's id, and `unread` why a recorded device
    could not be read here. `group` is the number of the group
    of AMD's and Intel's device nodes, `rocm` the ROCm that AMD's own kernel driver came with; None
    where nobody knows. `glibc` is the version of its C library, () where nobody knows. `hidden` is
    why it may have GPUs that nothing shows, "" for no reason. `mode` is how containers get
    NVIDIA's GPUs, "" where the node may do either.
    """

    def __init__(self, name: str, arch: str, os: str, gpus: list[Gpu]) -> None:
        self.name = name
        self.arch = arch
        self.os = os
        self.gpus = gpus
        self.flags: tuple[str, ...] = ()
        self.broken: dict[str, StepDoc] = {}
        self.unread: dict[str, str] = {}
        self.others: list[str] = []
        self.group: int | None = None
        self.rocm: str | None = None
        self.glibc: tuple[int, ...] = ()
        self.hidden = ""
        self.mode = ""


def _broken(device: DeviceDoc) -> StepDoc | None:
    readiness = device.get("readiness")
    steps = _OF_HOST.get(device["vendor"] or "", _OF_KERNEL)
    listed = readiness["steps"] if readiness else ()
    return next((s for s in listed if s["status"] == "broken" and s["step"] in steps), None)


def node_of(name: str, machine: Machine | None, report: ReportDoc) -> Node:
    """Return what counts of a machine and its report; without a machine less is known."""
    arch = report["node"]["arch"]
    arch = ARCHES.get(arch, arch)
    node = Node(name, arch, report["node"]["os"], gpus_of(report, {}))
    # Gaudi is no GPU: it takes neither Level Zero nor OpenCL.
    kinds = {device["id"]: device["kind"] for device in report["devices"]}
    node.gpus = [g for g in node.gpus if g.vendor != "intel" or kinds[g.id] == "gpu"]
    node.broken = {d["id"]: step for d in report["devices"] if (step := _broken(d))}
    if machine is not None and not machine.live:
        for id_ in [id_ for id_, step in node.broken.items() if step["code"] in _OF_PROBER]:
            node.unread[id_] = node.broken.pop(id_)["evidence"] or "its prober did not answer"
    listed = {gpu.id for gpu in node.gpus}
    node.others = [
        device["name"] or device["id"]
        for device in report["devices"]
        if device["kind"] in ACCELERATORS and device["id"] not in listed
    ]
    node.flags = _flags(report)
    node.rocm = _rocm(report)
    if machine is not None:
        _add_driver(node, machine)
        version = machine.read("/sys/module/amdgpu/version", 64)
        node.rocm = release_of_driver(version) if version else node.rocm
        node.group = _own_group() if machine.live else _group(machine.read("/etc/group") or "")
        # "auto" is left open: which mode it takes depends on the version of the toolkit.
        node.mode = _MODES.get(mode_of_toolkit(machine.read(TOOLKIT) or ""), "")
        node.glibc = _own_glibc() if machine.live else ()
        if machine.exists(_WSL):
            node.hidden = f"Windows gives its GPUs by {_WSL}, which does not tell what they are"
    return node


def read_node(path: str) -> Node:
    """Return the node that a file describes: a recorded machine, or what `probe --json` wrote.

    Raises `CommandError` with one sentence for anything else.
    """
    report = _report(path)
    name = os.path.basename(path.rstrip("/")).removesuffix(".json")
    if report is not None:
        return node_of(name, None, report)
    with opened(path) as machine:
        return node_of(name, machine, probe_document(machine))


def _report(path: str) -> ReportDoc | None:
    """Return the report in a file; None for what may be a recorded machine."""
    if not os.path.isfile(path):
        return None
    try:
        text = read_report_text(path)
        table = parse_json(text) if text.lstrip()[:1] == b"{" else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(table, dict) or "devices" not in table or "files" in table:
        return None
    try:
        return parse_report(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path} is no report: {error}") from None


def _add_driver(node: Node, machine: Machine) -> None:
    """Give NVIDIA's GPUs the version of the module, where no prober told it.

    Tegra's has numbers of its own.
    """
    driver = module_driver(machine)
    for gpu in node.gpus:
        if gpu.vendor == "nvidia" and not gpu.driver and not set(gpu.capabilities) & TEGRA:
            gpu.driver = driver


def _flags(report: ReportDoc) -> tuple[str, ...]:
    """Return the flags that all processors have; () where nobody knows them."""
    facts = [device.get("cpu") or {} for device in report["devices"] if device["kind"] == "cpu"]
    listed = [fact.get("flags") for fact in facts]
    sets = [{str(flag) for flag in flags} for flags in listed if isinstance(flags, list)]
    return tuple(sorted(set.intersection(*sets))) if sets else ()


def _rocm(report: ReportDoc) -> str | None:
    """Return the ROCm of AMD's own driver, where the report has its version and no kernel's."""
    for device in report["devices"]:
        driver = device["driver"] or {}
        if driver.get("name") == "amdgpu" and driver.get("version_of") != "kernel":
            return release_of_driver(driver.get("version", ""))
    return None


def _own_group() -> int | None:
    """Return the number of the group of this computer's device nodes; they are not opened."""
    for path in ("/dev/kfd", "/dev/dri/renderD128"):
        try:
            return os.stat(path).st_gid
        except OSError:
            continue
    return None


def _group(text: str) -> int | None:
    """Return the number of the group that /dev/kfd and /dev/dri belong to, by its usual names."""
    numbers = {}
    for line in text.splitlines():
        parts = line.split(":")
        if len(parts) > 2 and parts[2].isdecimal() and len(parts[2]) < 11:
            numbers[parts[0]] = int(parts[2])
    return next((numbers[name] for name in _GROUPS if name in numbers), None)


def _own_glibc() -> tuple[int, ...]:
    """Return the version of this computer's glibc: ``glibc 2.36``."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (AttributeError, ValueError, OSError):  # another C library
        return ()
    return version_of(version) if name == "glibc" else ()
