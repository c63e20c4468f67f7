"""What the kernel logged of GPUs since the machine started: past errors that no file of /sys keeps.

The log is often closed to users (kernel.dmesg_restrict): then nothing is known, and the command
that shows it is named.
"""

from __future__ import annotations

from probe_core.doctor.causes import concerned, fixed, of_cause
from probe_core.doctor.check import check, failed, not_applicable, passed, unknown
from probe_core.doctor.installation import as_root
from probe_core.doctor.log import FILES, MAX_LINE, failures_to_start, kernel_log
from probe_core.model.causes import CAUSES
from probe_core.model.fix import at, by_hand, otherwise, reboot, run
from probe_core.readiness.actions import HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from probe_core.doctor.check import CheckFindingDoc, Request, ResultDoc
    from probe_core.doctor.document import ShownFindingDoc
    from probe_core.model.document import DeviceDoc

    Lines = dict[str, str]
    """Id of a device, "" where the line names none, to the last line about it."""


# Xid numbers of the program's own fault, which say nothing of the GPU's health (NVIDIA, "Xid
# Errors"; leptonai/gpud has them as "user application").
_OF_PROGRAMS = frozenset({13, 31, 43, 45, 94})
# After these the GPU needs a reset (the same catalogue).
_RESET = frozenset({46, 48, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 156, 158})
# After these the program that used it does, and the GPU goes on (the same, "RESTART_APP").
_RESTART = frozenset(
    {8, 11, 25, 32, *range(39, 42), 60, *range(68, 73), *range(75, 78), 80, *range(82, 87), 88, 89}
    | {*range(96, 106), *range(126, 136), 139}
)
_ANEW = "start the program anew that used it; if it comes back, NVIDIA's Xid catalogue says more"
_OFF_THE_BUS = 79
# R550 and later say with it what the GPU needs: "154, GPU recovery action changed from 0x0 (None)
# to 0x2 (Node Reboot Required)"; to None once it needs nothing any more.
_ACTION, _NO_ACTION = 154, "(None)"


def _judged(code: str, request: Request, read: Callable[[Iterable[str]], Lines]) -> ResultDoc:
    devices = concerned(code, request.report["devices"])
    if not devices:
        return not_applicable("no device that it could be about is here")
    log = kernel_log(request)
    if log.text is None:
        return unknown(log.reason, _where_it_can_be_read(request, code))
    lines = read(log.text.splitlines())
    return failed(*_findings(code, request, lines, devices)) if lines else passed()


def _where_it_can_be_read(request: Request, code: str) -> str:
    if not request.machine.live:
        return ""
    if request.scene.container is not None:
        return f"on the host: sudo probe doctor --only {code}"
    return as_root("doctor", "--only", code)


def _findings(
    code: str, request: Request, lines: Lines, devices: list[DeviceDoc]
) -> list[ShownFindingDoc]:
    """Return a finding for each line; one about a GPU that is gone from the bus names no device."""
    findings = []
    for name, line in lines.items():
        own = [device for device in devices if name in device["ids"]]
        findings.append(of_cause(request, code, line.strip()[:MAX_LINE], own))
    return findings


def _only(result: ResultDoc, counts: Callable[[CheckFindingDoc], bool]) -> ResultDoc:
    """Return a result with those of its findings that count; passed where none of them does."""
    own = [entry for entry in result["findings"] if counts(entry)]
    return {**result, "findings": own} if own or not result["findings"] else passed()


def _address(text: str) -> str:
    """Return the id of the PCI address in "0000:01:00.0" or in NVIDIA's "PCI:0000:01:00"."""
    address = text.removeprefix("PCI:").lower()
    return f"pci:{address}" if "." in address else f"pci:{address}.0"


@check("xid-seen", step="responding", needs=FILES)
def xids(request: Request) -> ResultDoc:
    """Whether NVIDIA's driver logged an error of a GPU."""
    result = _judged("xid-seen", request, _xids)
    for finding in result["findings"]:
        number = _xid_number(finding["evidence"] or "")
        needs_action = number in _RESET or number == _ACTION
        finding["severity"] = "warning" if needs_action else "info"
        if needs_action:
            fixed(finding, _of_xid(number, finding["device"], request), request)
        elif number in _RESTART:
            fixed(finding, _ANEW, request)
    # A GPU that is on the bus no more is the check device-lost's.
    return _only(result, lambda entry: not _is_gone(entry))


def _is_gone(finding: CheckFindingDoc) -> bool:
    return finding["device"] is None and _xid_number(finding["evidence"] or "") == _OFF_THE_BUS


def _of_xid(number: int | None, device: str | None, request: Request) -> tuple[str, ...]:
    """Return what ends the state after an Xid; of one GPU, because others may be in use."""
    place = (at(HOST, "on the host: "),) if request.scene.container is not None else ()
    if number == _OFF_THE_BUS:  # nothing reaches it, so that nothing resets it
        return (*place, *CAUSES["off-the-bus"].parts)
    if device is None:
        return (*place, "drain the node, then reset the GPU or reboot")
    reset = run(f"sudo nvidia-smi --gpu-reset -i {device.removeprefix('pci:')}")
    return (*place, "drain the node, then ", reset, otherwise(", or "), "reboot")


def _xids(lines: Iterable[str]) -> Lines:
    """Take "NVRM: Xid (PCI:0000:01:00): 79, pid=…": of each GPU the last of the worst."""
    result: Lines = {}
    for line in lines:
        _, mark, text = line.partition("NVRM: Xid (")
        place, closing, _ = text.partition(")")
        number = _xid_number(line)
        if not (mark and closing) or number is None or number in _OF_PROGRAMS:
            continue
        name, own = _address(place), line[line.index("NVRM:") :]
        if number == _ACTION and own.rstrip().endswith(_NO_ACTION):
            result.pop(name, None)
        elif _gravity(number) >= _gravity(_xid_number(result.get(name, ""))):
            result[name] = own
    return result


def _gravity(number: int | None) -> tuple[bool, ...]:
    """Order errors by how bad they are: a GPU that is lost, to be reset, that says so, others."""
    return number == _OFF_THE_BUS, number in _RESET, number == _ACTION, number is not None


def _xid_number(line: str) -> int | None:
    text = line.partition("NVRM: Xid (")[2].partition("): ")[2].partition(",")[0].strip()
    return int(text) if text.isdecimal() and len(text) < 5 else None


@check("gpu-init-failed", step="responding", needs=FILES)
def adapters(request: Request) -> ResultDoc:
    """Whether NVIDIA's driver cannot start a GPU that it holds."""
    return _not_started("gpu-init-failed", request)


@check("gsp-firmware-missing", step="driver", needs=FILES)
def gsp_firmware(request: Request) -> ResultDoc:
    """Whether NVIDIA's driver asked for firmware that is not there."""
    return _not_started("gsp-firmware-missing", request)


def _not_started(code: str, request: Request) -> ResultDoc:
    """Judge the GPUs that the driver holds, and of which no library's answer says that they run."""

    def read(_: Iterable[str]) -> Lines:
        failures = failures_to_start(request)
        return {name: line for name, (own, line) in failures.items() if own == code}

    result = _judged(code, request, read)
    silent = {d["id"] for d in request.report["devices"] if _may_be_silent(d)}
    return _only(result, lambda entry: entry["device"] in silent)


def _may_be_silent(device: DeviceDoc) -> bool:
    steps = {step["step"]: step["status"] for step in device["readiness"]["steps"]}
    # What is broken there has a finding already, with the same line of the log.
    return steps.get("driver") == "ok" and steps.get("responding") == "unknown"


@check("amdgpu-reset-seen", step="responding", needs=FILES)
def resets(request: Request) -> ResultDoc:
    """Whether amdgpu had to reset a GPU."""
    result = _judged("amdgpu-reset-seen", request, _of_driver("amdgpu", _RESETS))
    for finding in result["findings"]:
        if any(mark in (finding["evidence"] or "") for mark in _RESET_FAILED):
            finding["severity"] = "error"
            place = (at(HOST, "on the host: "),) if request.scene.container is not None else ()
            power = by_hand("power it off and on")
            anew = (reboot("reboot"), otherwise("; where that does not help, "), power)
            fixed(finding, (*place, *anew), request)
    return result


# amdgpu_device.c and amdgpu_job.c: the last of them tells how the reset ended.
_RESET_FAILED = ("GPU Recovery Failed", "GPU reset end with ret = -")
_RESETS = ("GPU reset begin", " succeeded!", *_RESET_FAILED)


_FAULT = ": AMD-Vi: Event logged [IO_PAGE_FAULT"


@check("iommu-faults", step="responding", needs=FILES)
def faults(request: Request) -> ResultDoc:
    """Whether the IOMMU refused a device's access to memory."""

    def read(lines: Iterable[str]) -> Lines:
        # "AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:03:00.0 …", of a device with a driver
        # "amdgpu 0000:03:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=…", and of Intel's
        # "DMAR: [DMA Read] Request device [03:00.0] fault addr …" (drivers/iommu).
        result: Lines = {}
        for line in lines:
            if _FAULT in line and "device=" not in line:
                words = line.partition(_FAULT)[0].split()
                result[_address((words or [""])[-1])] = line
            elif "IO_PAGE_FAULT" in line or ("DMAR:" in line and "fault addr" in line):
                place = line.partition("device")[2].lstrip("= [").split("]")[0].split()[:1]
                name = (place or [""])[0]
                result[_address(name if name.count(":") > 1 else f"0000:{name}")] = line
        return result

    result = _judged("iommu-faults", request, read)
    # Other devices (network, sound) have faults of their own.
    return _only(result, lambda entry: entry["device"] is not None)


# drm_drv.c since Linux 6.15: "device wedged, but recovered through reset", of a GPU that works on.
_RECOVERED = "but recovered"
_LOAD = "load failed: status"


@check("guc-failed", step="responding", needs=FILES)
def guc(request: Request) -> ResultDoc:
    """Whether the scheduler firmware of an Intel GPU failed."""
    # xe_guc.c: "GT0: load failed: status: Reset = 0, BootROM = 0x76, …".
    marks = ("GuC initialization failed", "GuC load failed", "GuC: load failed", _LOAD, "wedged")
    return _judged("guc-failed", request, _of_driver(("i915", "xe"), marks))


def _of_driver(
    drivers: str | tuple[str, ...], marks: tuple[str, ...]
) -> Callable[[Iterable[str]], Lines]:
    """Return a reader of "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!"."""
    names = (drivers,) if isinstance(drivers, str) else drivers

    def read(lines: Iterable[str]) -> Lines:
        result: Lines = {}
        for line in lines:
            if any(mark in line for mark in marks) and _RECOVERED not in line:
                for name in names:
                    place = line.partition(f"{name} ")[2].partition(": ")[0]
                    if place.count(":") == 2:
                        result[_address(place)] = line[line.index(f"{name} ") :]
        return result

    return read


CHECKS = [xids, adapters, gsp_firmware, resets, faults, guc]
