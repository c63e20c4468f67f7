"""The text of the kernel's log, from files or the system call that dmesg uses; opens no device."""

from __future__ import annotations

from probe_core.machine import open_regular
from probe_core.model.ids import pci_model
from probe_core.readiness.chain import broken
from probe_core.readiness.unbound import is_signed_by_owner, module_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.doctor.check import Request
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, StepDoc

MAX_LINE = 160
"""Characters of a line that a finding quotes."""

FILES = ("/var/log/dmesg", "/var/log/kern.log", "/var/log/messages")

_TAIL = 1 << 20
"""Bytes of a log that are read, from its end: several boots of a busy server."""

_BOOT = "Linux version "
"""The first line that a kernel logs: what stands before it is an earlier boot's."""

_READ_ALL, _SIZE = 3, 10  # SYSLOG_ACTION_READ_ALL, SYSLOG_ACTION_SIZE_BUFFER of syslog(2)


class KernelLog:
    """The log since the machine started; `text` is None where it cannot be read, for `reason`."""

    def __init__(self, text: str | None, reason: str = "") -> None:
        self.text = text
        self.reason = reason


def kernel_log(request: Request) -> KernelLog:
    """Return the log, read once for all checks."""
    return request.once("kernel log", lambda: _read(request))


def _lines(request: Request) -> list[str]:
    return (kernel_log(request).text or "").splitlines()


def _read(request: Request) -> KernelLog:
    machine = request.machine
    text = _by_call() if machine.live and machine.os == "linux" else None
    if text is None:
        texts = (_tail(machine, path) for path in FILES)
        text = next((text for text in texts if text), None)
    if text is not None:
        return KernelLog(text[max(0, text.rfind(_BOOT)) :])
    if not machine.live:
        return KernelLog(None, "the recording has no kernel log")
    if request.scene.container is not None:  # its root lacks CAP_SYSLOG, too
        return KernelLog(None, "the kernel's log cannot be read in this container")
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


# Why a driver did not start a device: its own words, where a report has no more than that it did
# not.

FIRMWARE, _NOT_FOUND = ": Direct firmware load for ", " failed with error -2"
"""_request_firmware of drivers/base/firmware_loader/main.c; -2 is ENOENT."""

_NPU_FIRMWARE = ": [drm] *ERROR* ivpu_fw_request(): Failed to request firmware: -2"
"""intel_vpu (ivpu_fw.c), after it tried each name of its firmware: the device is not started."""

ADAPTER = ": RmInitAdapter failed!"
"""NVIDIA's driver, as each start of the GPU fails: the node is there, and opening it is EIO."""

_CABLES = ": GPU does not have the necessary power cables connected"
"""NVIDIA's driver (osinit.c of open-gpu-kernel-modules), before the line above."""

_BAR = "NVRM: BAR"
"""NVIDIA's driver (nv-pci.c) of a region without an address: "BAR1 is 0M @ 0x0 (PCI:0000:01:00.0)".
"""

LOADED_ANEW = "NVRM: loading NVIDIA UNIX"
"""NVIDIA's driver, as its module is loaded: what it said before was of an earlier attempt."""

Failures = dict[str, tuple[str, str]]
"""Id of a device, or name of a module, to the code of the cause, and the line."""


def failures_to_start(request: Request) -> Failures:
    """Return why drivers did not start devices, by the kernel's log; nothing where it is closed."""
    return request.once("failures to start", lambda: _failures(_lines(request)))


def _failures(lines: Iterable[str]) -> Failures:
    result: Failures = {}
    for line in lines:
        if LOADED_ANEW in line:
            result = {name: entry for name, entry in result.items() if "NVRM" not in entry[1]}
        elif FIRMWARE in line and _NOT_FOUND in line:
            name, text = _named(line, FIRMWARE)
            code = "gsp-firmware-missing" if "/gsp_" in line else "firmware-missing"
            result[name] = code, text
        elif _NPU_FIRMWARE in line:
            name, text = _named(line, _NPU_FIRMWARE)
            result[name] = "firmware-missing", text
        elif _CABLES in line:
            result[_named(line, _CABLES)[0]] = "gpu-init-failed", _cut(line, "NVRM: ")
        elif _BAR in line and "(PCI:" in line:
            address = line.partition("(PCI:")[2].partition(")")[0]
            result[f"pci:{address.lower()}"] = "bar-unassigned", _cut(line, _BAR)
        elif ADAPTER in line:
            # What is missing was logged before: firmware, or power.
            result.setdefault(_named(line, ADAPTER)[0], ("gpu-init-failed", _cut(line, "NVRM: ")))
    return result


# Why a driver gave a device up: the first error that it logged between its start and the end.

_BEGUN = ": enabling device ("
"""pci_enable_device (drivers/pci/setup-res.c), with which a driver's attempt begins."""

_GIVEN_UP = " failed with error -"
"""drivers/base/dd.c: "amdgpu: probe of 0000:03:00.0 failed with error -12"; since Linux 6.9 "amdgpu
0000:03:00.0: probe with driver amdgpu failed with error -12"."""

_OF_NVIDIA = ("nvidia", "NVRM:")
_ERRORS = ("*ERROR*", "rror", "ailed", "nable to", "invalid", "not supported", "requires")
_MAX_ERRORS = 64
"""Lines of one attempt that are kept. A judgement: the first ones have the reason."""


def reasons_to_give_up(request: Request) -> dict[str, str]:
    """Return the id of each device that a driver gave up to the error that it logged first."""
    return request.once("reasons to give up", lambda: _reasons(_lines(request)))


def _reasons(lines: Iterable[str]) -> dict[str, str]:
    result: dict[str, str] = {}
    errors: list[str] = []
    for line in lines:
        if _BEGUN in line or LOADED_ANEW in line:
            errors = []
        elif (named := _given_up(line)) is not None:
            driver, address = named
            own = (text for text in errors if _is_about(text, driver, address))
            result[f"pci:{address}"] = _cut_words(next(own, line), driver)
            errors = []
        elif any(mark in line for mark in _ERRORS) and len(errors) < _MAX_ERRORS:
            errors.append(line)
    return result


def _given_up(line: str) -> tuple[str, str] | None:
    """Return (driver, PCI address) of a line that ends a driver's attempt; None of others."""
    head, mark, _ = line.partition(_GIVEN_UP)
    words = head.lower().split() if mark else []
    for at, word in enumerate(words):
        if word == "probe" and 0 < at < len(words) - 2:
            is_new = words[at + 1] == "with"
            driver, address = (words[-1], words[at - 1]) if is_new else (words[at - 1], words[-1])
            address = address.rstrip(":")
            return (driver.rstrip(":"), address) if address.count(":") == 2 else None
    return None


def _is_about(line: str, driver: str, address: str) -> bool:
    """Return whether a driver logged a line, and of no other device."""
    words = _OF_NVIDIA if driver == "nvidia" else (driver,)
    places = (word.strip(":,").lower() for word in line.split())
    return any(word in line for word in words) and all(
        place == address for place in places if _is_address(place)
    )


def _is_address(word: str) -> bool:
    """Return whether a word has the form of 0000:03:00.0, which no time has."""
    domain, _, rest = word.partition(":")
    bus, _, slot = rest.partition(":")
    return len(domain) >= 4 and len(bus) == 2 and len(slot) == 4 and slot[2] == "."


def _cut_words(line: str, driver: str) -> str:
    """Return a line without what stands before the driver's words: time and host."""
    words = _OF_NVIDIA if driver == "nvidia" else ("[drm:", driver)
    starts = [line.find(word) for word in words if word in line]
    return line[min(starts, default=0) :].strip()[:MAX_LINE]


# The kernel of a module that was built for another one (kernel/module/main.c and version.c).
_OF_ANOTHER = (": version magic '", ": disagrees about version of symbol ", ": Unknown symbol ")


def refused_modules(request: Request) -> Failures:
    """Return which modules the kernel refused, by its log; nothing where it is closed."""
    return request.once("refused modules", lambda: _refused(_lines(request)))


def _refused(lines: Iterable[str]) -> Failures:
    result: Failures = {}
    for line in lines:
        mark = next((mark for mark in _OF_ANOTHER if mark in line), None)
        words = line.partition(mark)[0].split() if mark else []
        if words:
            result.setdefault(words[-1], ("module-refused", _cut(line, words[-1])))
    return result


# The kernel, of a module whose signature no key of its own made (kernel/module/signing.c); it names
# no module.
_UNSIGNED, _REJECTED = "Loading of ", " is rejected"


def _unsigned(request: Request) -> str | None:
    lines = (line for line in _lines(request) if _UNSIGNED in line and _REJECTED in line)
    return next((_cut(line, _UNSIGNED) for line in lines), None)


# AMD's compute interface, of GPUs that it leaves out (kfd_device.c): by PCI id, or by the name of
# the generation: "kfd kfd: amdgpu: skipped device 1002:67df, PCI rejects atomics 730<0", "kfd kfd:
# amdgpu: PITCAIRN  not supported in kfd".
_SKIPPED, _NO_ATOMICS = "skipped device ", ", PCI rejects atomics"
_NOT_IN_KFD = " not supported in kfd"

_NEVER_IN_KFD = frozenset(
    "TAHITI PITCAIRN VERDE OLAND HAINAN BONAIRE KABINI MULLINS TOPAZ STONEY".split()
)
"""Names of amdgpu_asic_name that kgd2kfd_probe of no Linux has. Later chips stand there as "GC IP
0b0004" until a kernel has their part: that one has since Linux 6.2."""


def _left_out(request: Request, device: DeviceDoc) -> tuple[str, str] | None:
    """Return the code of why the compute interface has no node of a GPU, and the line."""
    for line in _lines(request):
        if f"{_SKIPPED}{pci_model(device)}{_NO_ATOMICS}" in line:
            return "kfd-no-atomics", _cut(line, "kfd")
        if _NOT_IN_KFD in line and _is_only_one(request):
            return _of_generation(line), _cut(line, "kfd")
    return None


def _of_generation(line: str) -> str:
    """Return the code of a line about a generation: no kernel has a part for it, or a later one."""
    words = line.partition(_NOT_IN_KFD)[0].split() or [""]
    if words[-1] in _NEVER_IN_KFD:
        return "kfd-unsupported"
    return "kfd-no-gpu" if words[-1] == "VF" else "kfd-too-old"


def _is_only_one(request: Request) -> bool:
    """Return whether one GPU alone is left out, so that a line without its address is about it."""
    steps = (step for device in request.report["devices"] for step in device["readiness"]["steps"])
    return sum(step["code"] == "kfd-no-gpu" for step in steps) == 1


def _named(line: str, mark: str) -> tuple[str, str]:
    """Return (id, text) of "… amdgpu 0000:03:00.0: Direct firmware load for …"."""
    words = line.partition(mark)[0].split()
    address = words[-1] if words else ""
    driver = words[-2] if len(words) > 1 else ""
    return f"pci:{address.lower()}", _cut(line, f"{driver} {address}")


def _cut(line: str, start: str) -> str:
    return line[max(0, line.find(start)) :].strip()[:MAX_LINE]


# Codes that say no more than that the driver left the device alone, or that nothing answers.
_UNEXPLAINED = {
    "driver": ("no-driver", "amdgpu-refused", "kernel-too-old", "module-not-loaded"),
    "responding": ("not-responding", "query-fails"),
    "runtime": ("kfd-no-gpu",),
}

_REFUSED = ("no-driver", "amdgpu-refused")
"""Those that name no reason: what the driver logged first is one."""


def explained(request: Request, device: DeviceDoc, step: StepDoc) -> StepDoc | None:
    """Return a step with the cause that the kernel gives for it; None where it gives none."""
    if step["code"] not in _UNEXPLAINED.get(step["step"], ()):
        return None
    failure = _failure(request, device, step["code"] or "")
    if failure is not None:
        code, line = failure
        return broken(step["step"], code, f"kernel log: {line}")
    reason = reasons_to_give_up(request).get(device["id"])
    if reason is None or step["code"] not in _REFUSED:
        return None
    return broken(step["step"], step["code"] or "", f"kernel log: {reason}")


def _failure(request: Request, device: DeviceDoc, code: str) -> tuple[str, str] | None:
    if code == "kfd-no-gpu":
        return _left_out(request, device)
    if code != "module-not-loaded":
        return failures_to_start(request).get(device["id"])
    module = module_of(device, request.scene) or ""
    file = request.scene.modules.on_disk(module)
    rejected = _unsigned(request) if file and is_signed_by_owner(file) else None
    refused = refused_modules(request).get(module)
    return refused or (("module-unsigned", rejected) if rejected else None)


def is_of_kernel(request: Request, device: DeviceDoc, step: StepDoc) -> bool:
    """Return whether the kernel gives a step's cause, too: it knows more than a plugin."""
    code, _ = failures_to_start(request).get(device["id"], (None, ""))
    return code is not None and code == step["code"]


# Why an accelerator is gone: the first line since the machine started that tells of it.

_LOSSES = (
    *("NVRM: Xid", "fallen off the bus", "device lost from bus", "non-zero usage count"),
    # drivers/pci: hotplug/pciehp_ctrl.c and pciehp_hpc.c, pcie/aer.c and dpc.c, pci.c.
    *("): Link Down", "): Card not present", "): Power fault", "due to button press"),
    *("AER: Uncorrectable", "AER: Multiple Uncorrectable", "containment event"),
    *("device inaccessible", "config space inaccessible", "does not have the necessary power"),
)
_HOT_REMOVALS = ("): Link Down", "): Card not present", "): Power fault", "due to button press")
"""What the driver of a port logs as its slot is emptied, unplugged or loses power."""

_RECOVERED = "ignored (recovered by"
"""pciehp, of a link that came back: "Link Down/Up ignored (recovered by DPC)"."""

_BUS = "/sys/bus/pci/devices"


def first_sign(request: Request, place: str | None, port: str | None) -> str | None:
    """Return the first line of the kernel's log of a loss; None where it has none, or is closed.

    `place` is the PCI address that the device had, `port` that of the bridge above it. Without a
    place it is the first of a port whose slot was emptied and that has nothing below it now.
    """
    for line in _lines(request):
        if _RECOVERED in line:
            continue
        if place is None:
            found = any(mark in line for mark in _HOT_REMOVALS) and _is_empty(request, line)
        else:
            found = any(mark in line for mark in _LOSSES) and _names(line.lower(), place, port)
        if found:
            return f"kernel log: {line.strip()[:MAX_LINE]}"
    return None


def _names(line: str, place: str, port: str | None) -> bool:
    own = (place, f"pci:{place.rpartition('.')[0]})", port)
    return any(name in line for name in own if name)


def _is_empty(request: Request, line: str) -> bool:
    """Return whether the port that logged "pcieport 0000:80:01.0: pciehp: …" has nothing below."""
    port = line.partition("pcieport ")[2].partition(": ")[0]
    folder = f"{_BUS}/{port}"
    if not port or "/" in port or not request.machine.exists(folder):
        return False
    return not any(name.count(":") == 2 for name in request.machine.listdir(folder))
