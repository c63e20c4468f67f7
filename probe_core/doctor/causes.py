"""The checks of the causes that readiness knows: they read its steps, and look further where asked.

One source: what the report says of a device and what the doctor says are the same steps.
"""

from __future__ import annotations

from probe_core.doctor.check import REPORT, not_applicable, passed, unknown
from probe_core.model.causes import CAUSES
from probe_core.model.findings import CODES
from probe_core.model.kinds import ACCELERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.doctor.check import Check, Request, ResultDoc
    from probe_core.model.cause import Cause
    from probe_core.model.document import DeviceDoc, StepDoc

__all__ = ["READS", "SCOPES", "CauseCheck", "ReportCheck", "builtin_checks", "concerned"]

SCOPES: dict[str, str] = {
    "nvidia": (
        "nouveau-bound nova-bound vgpu-host-driver open-module-unsupported"
        " closed-module-unsupported legacy-branch driver-too-old-for-gpu gsp-firmware-missing"
        " jetson-no-nvgpu uvm-missing"
        " hidden-by-container cdi-spec-stale library-missing nvml-missing library-broken"
        " version-mismatch gpu-lost gpu-reset-required row-remap-pending row-remap-failed"
        " uvm-stale slow-init vgpu-unlicensed gpu-excluded compute-prohibited mps-daemon-gone"
        " mig-without-instances mig-cap-denied mig-mode libcuda-missing driver-older-than-cuda"
        " cuda-compat-unsupported cuda-library-mismatch"
        " fabric-not-ready thermal-slowdown xid-seen"
    ),
    "amd": (
        "radeon-bound amdgpu-refused kfd-missing kfd-node-closed partition-mode kfd-no-gpu"
        " gfx-not-supported hsa-override-bad hsa-override-foreign rocm-missing"
        " rocm-kernel-skew amdgpu-reset-seen"
    ),
    "intel": ("guc-failed level-zero-missing gaudi-not-operational compute-runtime-too-old"),
}
"""Vendor to the causes that only its devices have."""

READS: dict[str, tuple[str, ...]] = {
    "hardware": ("/sys/bus/pci/devices",),
    "driver": (
        "/sys/bus/pci/devices",
        "/proc/modules",
        "/proc/cmdline",
        "/lib/modules",
        "/etc/modprobe.d",
        "/lib/firmware",
        "/proc/driver/nvidia",
    ),
    "node": ("/dev", "/proc/devices", "/proc/self/cgroup"),
    "permission": ("/dev", "/proc/self/status", "/proc/self/uid_map", "/etc/group"),
    "library": ("/proc/driver/nvidia/version", "/etc/ld.so.conf", "/usr/lib"),
    "granted": ("/dev", "/proc/driver/nvidia/gpus", "/sys/fs/cgroup/devices"),
    "runtime": ("/etc/ld.so.conf", "/usr/lib", "/opt", "/sys/class/kfd"),
}
"""Step of readiness to what the report reads to judge it; the other steps rest on plugins' answers
and variables."""

# Causes that are another system's: elsewhere they cannot be.
_SYSTEMS = {
    "darwin": ("mac-guest", "wired-limit"),
    "windows": ("basic-display", "tdr"),
}
_NAMES = {"darwin": "macOS", "windows": "Windows"}
_VENDOR_OF = {code: vendor for vendor, codes in SCOPES.items() for code in codes.split()}
_SYSTEM_OF = {code: system for system, codes in _SYSTEMS.items() for code in codes}
_TITLES = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}


class CauseCheck:
    """The check of one cause of `model.causes`.

    `further` looks at what readiness does not judge: it costs more, or concerns no single device.
    """

    __slots__ = ("_cause", "_further", "code", "needs", "step", "summary")

    def __init__(self, cause: Cause, further: Check | None = None) -> None:
        self._cause = cause
        self._further = further
        self.code = cause.code
        self.step = cause.step
        own = further.needs if further else READS.get(cause.step, ())
        self.needs = (REPORT, *own)
        self.summary = f"Whether {_plain(cause.meaning)}."

    def run(self, request: Request) -> ResultDoc:
        """Return the answer where no step of readiness is broken by this cause."""
        system = _SYSTEM_OF.get(self.code)
        if system is not None and request.machine.os != system:
            return not_applicable(f"this is not {_NAMES[system]}")
        devices = concerned(self.code, request.report["devices"])
        if self._further is not None:
            return self._further.run(request)
        if not devices:
            vendor = _TITLES.get(_VENDOR_OF.get(self.code, ""), "")
            return not_applicable(f"no {vendor} accelerator is here".replace("  ", " "))
        return _of_steps(self.step, devices)


def _plain(meaning: str) -> str:
    """Return a meaning without the names that are filled in for a device."""
    return meaning.replace("{", "").replace("}", "")


def concerned(code: str, devices: Iterable[DeviceDoc]) -> list[DeviceDoc]:
    """Return the accelerators that could have a cause."""
    vendor = _VENDOR_OF.get(code)
    return [
        device
        for device in devices
        if device["kind"] in ACCELERATORS and vendor in (None, device["vendor"])
    ]


def _of_steps(step: str, devices: Sequence[DeviceDoc]) -> ResultDoc:
    """Return `passed`, unless the step of every device is unknown or not there."""
    steps = [entry for device in devices if (entry := _step(device, step)) is not None]
    judged = [entry for entry in steps if entry["status"] in ("ok", "broken")]
    if judged or not steps:
        return passed()
    reasons = [entry["evidence"] or "nothing is known" for entry in steps]
    if all(entry["status"] == "not_applicable" for entry in steps):
        return not_applicable(reasons[0])
    return unknown(reasons[0])


def _step(device: DeviceDoc, name: str) -> StepDoc | None:
    readiness = device.get("readiness")
    steps = readiness["steps"] if readiness else []
    return next((step for step in steps if step["step"] == name), None)


class ReportCheck:
    """The check of a finding that the report itself makes: settings, plugins, chips, memory."""

    __slots__ = ("code", "needs", "step", "summary")

    def __init__(self, code: str) -> None:
        self.code = code
        self.step = ""
        self.needs = (REPORT,)
        self.summary = f"Whether {CODES[code]}."

    def run(self, request: Request) -> ResultDoc:
        """Return `passed`: a finding of the report is counted before checks run."""
        return passed()


def builtin_checks(further: Iterable[Check]) -> list[Check]:
    """Return the core's checks in the order of the chain; `further` are those of `checks`."""
    by_code = {check.code: check for check in further}
    checks: list[Check] = [CauseCheck(cause, by_code.get(code)) for code, cause in CAUSES.items()]
    checks += [ReportCheck(code) for code in CODES if code not in CAUSES]
    return checks
