"""What NVIDIA's kernel driver says of itself, and which GPUs a version of it supports."""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.readiness.steps import broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["branch_for", "is_open", "major_of", "problem", "refusal", "version_of"]

_STEP = "driver"

# Architecture to the last driver branch that supports it (NVIDIA, "Legacy GPUs", and release notes:
# 580 is the last of Maxwell, Pascal and Volta).
_LAST_BRANCH = {
    "tesla": 340,
    "fermi": 390,
    "kepler": 470,
    "maxwell": 580,
    "pascal": 580,
    "volta": 580,
}

# Architecture to the first production branch that supports it.
_FIRST_BRANCH = {
    "pascal": 367,
    "volta": 384,
    "turing": 410,
    "ampere": 450,
    "hopper": 520,
    "ada": 520,
    "blackwell": 570,
}

_OLDEST_OFFERED = 535
"""The oldest branch that distributions still have (Ubuntu 22.04 to 24.04, Debian 12)."""

# The open module needs a GSP, which came with Turing (open-gpu-kernel-modules, README).
_WITHOUT_GSP = ("tesla", "fermi", "kepler", "maxwell", "pascal", "volta")

# Only the open module supports these and Grace Hopper (NVIDIA, "Transitions Fully Towards
# Open-Source GPU Kernel Modules").
_OPEN_ALONE = ("blackwell", "rubin")
_GRACE_HOPPER = "nvidia/gh200"


def version_of(text: str) -> str | None:
    """Return "580.95.05" of /proc/driver/nvidia/version; None when it has no version."""
    for field in text.partition("\n")[0].split():
        parts = field.split(".")
        if len(parts) in (2, 3) and all(decimal(part) is not None for part in parts):
            return field
    return None


def major_of(version: str | None) -> int | None:
    """Return the branch's number: 580 of "580.95.05"."""
    return decimal((version or "").partition(".")[0])


def is_open(text: str) -> bool:
    """Return whether the loaded module is the open one."""
    return "Open Kernel Module" in text


def branch_for(device: DeviceDoc) -> str:
    """Return the branch to install for a GPU that the installed one does not support."""
    arch = device["arch"] or ""
    first = _FIRST_BRANCH.get(arch)
    branch = _LAST_BRANCH.get(arch) or (first and max(first, _OLDEST_OFFERED))
    return str(branch) if branch else "its release notes name"


def refusal(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Return why the loaded module does not take the GPU; None where that is not known."""
    text, arch = scene.nvidia_version, device["arch"] or ""
    major = major_of(version_of(text))
    if major is None:
        return None
    evidence = f"/proc/driver/nvidia/version: {version_of(text)}; the GPU's architecture is {arch}"
    if arch in _LAST_BRANCH and major > _LAST_BRANCH[arch]:
        return broken(_STEP, "legacy-branch", evidence)
    if is_open(text) and arch in _WITHOUT_GSP:
        return broken(_STEP, "open-module-unsupported", f"{evidence}, Open Kernel Module")
    if arch in _FIRST_BRANCH and major < _FIRST_BRANCH[arch]:
        return broken(_STEP, "driver-too-old-for-gpu", evidence)
    if _needs_open(device, arch) and not is_open(text):
        return broken(_STEP, "closed-module-unsupported", f"{evidence}, not the open module")
    return None


def _needs_open(device: DeviceDoc, arch: str) -> bool:
    chip = device["chip"]
    chips = [chip["id"]] if chip["id"] else chip["candidates"]
    is_grace = bool(chips) and all(name.startswith(_GRACE_HOPPER) for name in chips)
    return arch in _OPEN_ALONE or is_grace


def problem(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Return what is wrong with the driver that holds a GPU, though it holds it."""
    if "nvidia_vgpu_vfio" in scene.modules.loaded:
        return broken(_STEP, "vgpu-host-driver", "/proc/modules: nvidia_vgpu_vfio")
    return _without_firmware(device, scene)


def _without_firmware(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Judge the GSP's firmware, which the open module always loads.

    A container has no firmware and needs none: the kernel reads the host's.
    """
    version = version_of(scene.nvidia_version)
    if version is None or not is_open(scene.nvidia_version) or scene.container is not None:
        return None
    machine, folder = scene.machine, f"/lib/firmware/nvidia/{version}"
    if device["arch"] in _WITHOUT_GSP or not machine.listdir("/lib/firmware"):
        return None
    names = machine.listdir(folder)
    if any(name.startswith("gsp_") for name in names):
        return None
    return broken(_STEP, "gsp-firmware-missing", f"{folder} has no gsp_*.bin")
