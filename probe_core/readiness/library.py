"""Step `library`: whether the library through which the driver is used is there, and fits it.

Only NVIDIA's driver has one; what AMD's and Intel's runtimes need is judged by the step `runtime`.
"""

from __future__ import annotations

from probe_core.readiness.nvidia_driver import version_of
from probe_core.readiness.steps import broken, not_applicable, ok, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["CUDA", "NIXOS_VERSION", "NVML", "library"]

_STEP = "library"
NVML, CUDA = "libnvidia-ml.so.1", "libcuda.so.1"

NIXOS_VERSION = "/run/current-system/nixos-version"
"""Shows that /run is the system's own, not a container's."""

_NIXOS_DRIVERS = "/run/opengl-driver"

_ELF, _CLASS_64 = b"\x7fELF", 2


def library(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    if not scene.linux:
        return unknown(_STEP, f"libraries of {scene.machine.os} are not looked at")
    if device["vendor"] != "nvidia" or device["kind"] != "gpu":
        return not_applicable(_STEP, "no library belongs to its driver")
    if scene.driver(device) != "nvidia" or "bus" not in device["seen_by"]:
        return unknown(_STEP, "which library its driver brings is not known")
    # One library serves all GPUs: it is looked at once.
    if scene.nvml is None:
        scene.nvml = _judged(scene)
    return {**scene.nvml}


def _judged(scene: Scene) -> StepDoc:
    paths = scene.libraries.find(NVML)
    if not paths:
        return _absent(scene)
    return _misfit(paths, scene) or ok(_STEP, f"{paths[0]}: there")


def _absent(scene: Scene) -> StepDoc:
    evidence = f"{NVML} is in no folder of the loader"
    if _is_nixos_without_drivers(scene):
        return broken(_STEP, "library-missing", f"{evidence}; {_NIXOS_DRIVERS} is absent")
    if not scene.libraries.surely_absent(NVML):
        return unknown(_STEP, f"{evidence}; other folders may have it")
    if scene.libraries.find(CUDA):
        return broken(_STEP, "nvml-missing", f"{evidence}; {scene.libraries.find(CUDA)[0]}: there")
    return broken(_STEP, "library-missing", evidence)


def _is_nixos_without_drivers(scene: Scene) -> bool:
    """Return whether this is NixOS without the one folder that leads to drivers' libraries."""
    exists = scene.machine.exists
    return exists("/etc/NIXOS") and exists(NIXOS_VERSION) and not exists(_NIXOS_DRIVERS)


def _misfit(paths: list[str], scene: Scene) -> StepDoc | None:
    """Judge the library that the loader takes: the first of the `paths`."""
    machine, path = scene.machine, paths[0]
    if "/stubs/" in path:
        return broken(_STEP, "library-broken", f"{path} is a stub of the CUDA toolkit")
    if reason := _unloadable(path, scene):
        return broken(_STEP, "library-broken", reason)
    version = version_of(scene.nvidia_version)
    names = [machine.realpath(path).rpartition(".so.")[2] for path in paths]
    # Without a version in its name ("1") a file says nothing of it.
    versions = [name for name in names if "." in name]
    if version and versions and version not in versions:
        text = f"/proc/driver/nvidia/version: {version}; {path} leads to {versions[0]}"
        return broken(_STEP, "version-mismatch", text)
    return None


def _unloadable(path: str, scene: Scene) -> str | None:
    """Return why the loader refuses a file; None for what a recording replaced by a mark."""
    try:
        head = scene.machine.read_bytes(path, 20)
    except (OSError, ValueError):
        return None
    if head[:4] == _ELF and len(head) > 4 and head[4] != _CLASS_64 and _is_64_bit(scene):
        return f"{path} is a library for another word size (ELF class {head[4]})"
    # A recording may hold a file's name without its content: only where it has that of others.
    siblings = scene.libraries.find(CUDA)
    if not head and (scene.machine.live or any(_size(other, scene) for other in siblings)):
        return f"{path} is empty"
    return None


def _size(path: str, scene: Scene) -> int:
    try:
        return len(scene.machine.read_bytes(path, 20))
    except (OSError, ValueError):
        return 0


def _is_64_bit(scene: Scene) -> bool:
    return scene.machine.arch in ("x86_64", "aarch64", "ppc64le", "riscv64")
