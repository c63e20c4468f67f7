"""ROCm beside the kernel driver: two releases apart is what AMD tests."""

from __future__ import annotations

from probe_core.doctor.causes import concerned, fixed, of_cause
from probe_core.doctor.check import check, failed, not_applicable, passed, unknown
from probe_core.model.fix import REBOOT, by_hand
from probe_core.model.rocm import release_of_driver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Request, ResultDoc

ROCM, DRIVER = "/opt/rocm/.info/version", "/sys/module/amdgpu/version"

_RELEASES = ("5.5", "5.6", "5.7", "6.0", "6.1", "6.2", "6.3", "6.4", "7.0", "7.1", "7.2")
_APART = 2
"""Releases that may lie between them ("User and kernel-space support matrix", ROCm 6.3)."""


@check("rocm-kernel-skew", step="runtime", needs=(ROCM, DRIVER))
def skew(request: Request) -> ResultDoc:
    """Whether ROCm and amdgpu are more than two releases apart."""
    devices = concerned("rocm-kernel-skew", request.report["devices"])
    rocm = _release(request.machine.read(ROCM, 64))
    text = request.machine.read(DRIVER, 64)
    if not devices or rocm is None or text is None:
        return not_applicable("neither AMD's own kernel driver nor /opt/rocm is here")
    driver = release_of_driver(text)
    if driver is None or rocm not in _RELEASES:
        return unknown(f"which release of ROCm amdgpu {text} belongs to is not known")
    if abs(_RELEASES.index(rocm) - _RELEASES.index(driver)) <= _APART:
        return passed()
    evidence = f"{ROCM}: {rocm}; {DRIVER}: {text}, of ROCm {driver}"
    finding = of_cause(request, "rocm-kernel-skew", evidence, devices)
    text = f"install amdgpu-dkms of ROCm {rocm} (AMD's repository)"
    fixed(finding, (by_hand(text, changes=("package amdgpu-dkms",)), REBOOT), request)
    return failed(finding)


def _pair(text: str) -> tuple[int, int]:
    parts = text.split(".")[:2]
    numbers = [int(part) for part in parts if part.isdecimal() and len(part) < 6]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (-1, -1)


def _release(text: str | None) -> str | None:
    """Return "6.4" of "6.4.1-83"."""
    numbers = _pair((text or "").partition("-")[0])
    return f"{numbers[0]}.{numbers[1]}" if numbers[0] >= 0 else None


CHECKS = [skew]
