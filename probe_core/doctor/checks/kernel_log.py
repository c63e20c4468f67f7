"""The text of the kernel's log, from files or the system call that dmesg uses; opens no device."""

from __future__ import annotations

from probe_core.doctor.causes import concerned, of_cause
from probe_core.doctor.check import check, failed, not_applicable, passed, unknown
from probe_core.machine import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from probe_core.doctor.check import Request, ResultDoc
    from probe_core.doctor.document import ShownFindingDoc
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc

    Lines = dict[str, str]
    """Id of a device, "" where the line names none, to the last line about it."""


_FILES = ("/var/log/dmesg", "/var/log/kern.log", "/var/log/messages")
_RESTRICT = "/proc/sys/kernel/dmesg_restrict"
NEEDS = (*_FILES, _RESTRICT)

_TAIL = 1 << 20
"""Bytes of a log that are read, from its end: several boots of a busy server."""

_BOOT = "Linux version "
"""The first line that a kernel logs: what stands before it is an earlier boot's."""

_READ_ALL, _SIZE = 3, 10  # SYSLOG_ACTION_READ_ALL, SYSLOG_ACTION_SIZE_BUFFER of syslog(2)


class KernelLog:
    """The log since the machine started; `text` is None where it cannot be read, for `reason`."""

    __slots__ = ("reason", "text")

    def __init__(self, text: str | None, reason: str = "") -> None:
        self.text = text
        self.reason = reason


def kernel_log(request: Request) -> KernelLog:
    """Return the log, read once for all checks."""
    return request.once("kernel log", lambda: _read(request.machine))


def _read(machine: Machine) -> KernelLog:
    text = _by_call() if machine.live and machine.os == "linux" else None
    if text is None:
        texts = (_tail(machine, path) for path in _FILES)
        text = next((text for text in texts if text), None)
    if text is not None:
        return KernelLog(text[max(0, text.rfind(_BOOT)) :])
    if not machine.live:
        return KernelLog(None, "the recording has no kernel log")
    return KernelLog(None, "the kernel's log may be read by root alone here")


def _tail(machine: Machine, path: str) -> str | None:
    try:
        with open_regular(machine.path(path)) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL))
            return file.read(_TAIL).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


def _by_call() -> str | None:
    """Return the kernel's ring buffer by syslog(2), which changes nothing in it."""
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        size = min(libc.klogctl(_SIZE, None, 0), _TAIL)
        if size <= 0:
            return None
        buffer = ctypes.create_string_buffer(size)
        length = libc.klogctl(_READ_ALL, buffer, size)
        return buffer.raw[:length].decode("utf-8", "replace") if length > 0 else None
    except (ImportError, OSError, AttributeError, ValueError):
        return None


# What the kernel logged of GPUs since the machine started: past errors that no file of /sys keeps.
#
# The log is often closed to users (kernel.dmesg_restrict): then nothing is known, and the command
# that shows it is named.

# Xid numbers of the program's own fault, which say nothing of the GPU's health (NVIDIA, "Xid
# Errors"; leptonai/gpud has them as "user application").
_OF_PROGRAMS = frozenset({13, 31, 43, 45, 94})
# After these the GPU needs a reset (the same catalogue).
_RESET = frozenset({46, 48, 62, 64, 74, 79, 95, 109, 119, 120, 140, 143})
_LIMIT = 160
"""Characters of a line that a finding quotes."""


def _judged(code: str, request: Request, read: Callable[[Iterable[str]], Lines]) -> ResultDoc:
    devices = concerned(code, request.report["devices"])
    if not devices:
        return not_applicable("no device that it could be about is here")
    log = kernel_log(request)
    if log.text is None:
        fix = f"sudo probe doctor --only {code}" if request.machine.live else ""
        return unknown(log.reason, fix)
    lines = read(log.text.splitlines())
    return failed(*_findings(code, request, lines, devices)) if lines else passed()


def _findings(
    code: str, request: Request, lines: Lines, devices: list[DeviceDoc]
) -> list[ShownFindingDoc]:
    """Return a finding for each line; one about a GPU that is gone from the bus names no device."""
    findings = []
    for name, line in lines.items():
        own = [device for device in devices if name in device["ids"]]
        findings.append(of_cause(request, code, line.strip()[:_LIMIT], own))
    return findings


def _address(text: str) -> str:
    """Return the id of the PCI address in "0000:01:00.0" or in NVIDIA's "PCI:0000:01:00"."""
    address = text.removeprefix("PCI:").lower()
    return f"pci:{address}" if "." in address else f"pci:{address}.0"


@check("xid-seen", step="responding", needs=NEEDS)
def xids(request: Request) -> ResultDoc:
    """Whether NVIDIA's driver logged an error of a GPU."""
    result = _judged("xid-seen", request, _xids)
    for finding in result["findings"]:
        number = _xid_number(finding["evidence"] or "")
        finding["severity"] = "warning" if number in _RESET else "info"
        if number in _RESET:
            finding["fix"] = "drain the node, then `sudo nvidia-smi -r`, or reboot"
    return result


def _xids(lines: Iterable[str]) -> Lines:
    """Take "NVRM: Xid (PCI:0000:01:00): 79, pid=…": of each GPU the last that is its own."""
    result: Lines = {}
    for line in lines:
        _, mark, text = line.partition("NVRM: Xid (")
        place, closing, _ = text.partition(")")
        number = _xid_number(line)
        if mark and closing and number is not None and number not in _OF_PROGRAMS:
            result[_address(place)] = line[line.index("NVRM:") :]
    return result


def _xid_number(line: str) -> int | None:
    text = line.partition("NVRM: Xid (")[2].partition("): ")[2].partition(",")[0].strip()
    return int(text) if text.isdecimal() and len(text) < 5 else None


@check("amdgpu-reset-seen", step="responding", needs=NEEDS)
def resets(request: Request) -> ResultDoc:
    """Whether amdgpu had to reset a GPU."""
    return _judged("amdgpu-reset-seen", request, _of_driver("amdgpu", ("GPU reset begin",)))


@check("iommu-faults", step="responding", needs=NEEDS)
def faults(request: Request) -> ResultDoc:
    """Whether the IOMMU refused a device's access to memory."""

    def read(lines: Iterable[str]) -> Lines:
        # "AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:03:00.0 …" and, of Intel's,
        # "DMAR: [DMA Read] Request device [03:00.0] fault addr …" (drivers/iommu).
        result: Lines = {}
        for line in lines:
            if "IO_PAGE_FAULT" in line or ("DMAR:" in line and "fault addr" in line):
                place = line.partition("device")[2].lstrip("= [").split("]")[0].split()[:1]
                name = (place or [""])[0]
                result[_address(name if name.count(":") > 1 else f"0000:{name}")] = line
        return result

    result = _judged("iommu-faults", request, read)
    # Other devices (network, sound) have faults of their own.
    own = [entry for entry in result["findings"] if entry["device"] is not None]
    return {**result, "findings": own} if own or not result["findings"] else passed()


@check("guc-failed", step="responding", needs=NEEDS)
def guc(request: Request) -> ResultDoc:
    """Whether the scheduler firmware of an Intel GPU failed."""
    marks = ("GuC initialization failed", "GuC load failed", "GuC: load failed", "wedged")
    return _judged("guc-failed", request, _of_driver(("i915", "xe"), marks))


def _of_driver(
    drivers: str | tuple[str, ...], marks: tuple[str, ...]
) -> Callable[[Iterable[str]], Lines]:
    """Return a reader of "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!"."""
    names = (drivers,) if isinstance(drivers, str) else drivers

    def read(lines: Iterable[str]) -> Lines:
        result: Lines = {}
        for line in lines:
            if any(mark in line for mark in marks):
                for name in names:
                    place = line.partition(f"{name} ")[2].partition(": ")[0]
                    if place.count(":") == 2:
                        result[_address(place)] = line[line.index(f"{name} ") :]
        return result

    return read


CHECKS = [xids, resets, faults, guc]
