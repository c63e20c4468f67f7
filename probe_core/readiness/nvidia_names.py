"""The names in sentences of causes that are about NVIDIA's driver: branch, library, nodes' mode."""

from __future__ import annotations

from probe_core.machine import decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

    Maker = Callable[[DeviceDoc, StepDoc, Scene], str]

__all__ = ["MAKERS"]

# Causes that a branch for the GPU repairs, whatever is loaded for another one.
_OF_GPU = (
    "no-driver",
    "driver-not-installed",
    "nouveau-bound",
    "nova-bound",
    "legacy-branch",
    "driver-too-old-for-gpu",
    "open-module-unsupported",
)


def _branch(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the branch of NVIDIA's driver: that which the GPU needs, else the loaded one."""
    from probe_core.readiness.nvidia_driver import branch_for, major_of, version_of

    if step["code"] in _OF_GPU:
        return branch_for(device)
    if step["code"] == "module-missing-for-kernel" and (flavour := _signed(device, step, scene)):
        return flavour
    return str(major_of(version_of(scene.nvidia_version)) or branch_for(device))


def _version(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.nvidia_driver import version_of

    return version_of(scene.nvidia_version) or ""


def _cuda_library(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    return next(iter(scene.libraries.find("libcuda.so.1")), "libcuda.so.1")


def _cuda_branch(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.cuda_version import driver_of
    from probe_core.readiness.nvidia_driver import major_of

    real = scene.machine.realpath(_cuda_library(device, step, scene))
    return str(major_of(driver_of(real)) or "of its version")


def _cuda_folder(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what brings the library into the image: a folder, or the package itself."""
    folder = _cuda_library(device, step, scene).rpartition("/")[0]
    return f"{folder} in LD_LIBRARY_PATH" if "/compat" in folder else "cuda-compat"


def _cuda_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    folder = _cuda_library(device, step, scene).rpartition("/")[0]
    if folder in scene.environ.get("LD_LIBRARY_PATH", "").split(":"):
        return f"take {folder} out of LD_LIBRARY_PATH: the driver has a newer libcuda.so.1"
    if scene.container is not None:
        return "take libcuda.so.1 out of the image: the host's is mounted"
    return "install libcuda.so.1 of the driver's version"


def _libcuda_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    if scene.container is not None:
        return "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    return "install libcuda.so.1 of the driver's version"


def _nvidia_group(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the group to which NVIDIA's module gives its nodes (NVreg_DeviceFileGID); "" if none.

    Mode 0660 is 432, as /proc/driver/nvidia/params writes it.
    """
    if device["vendor"] != "nvidia":
        return ""
    group = decimal(scene.nvidia_params.get("DeviceFileGID", ""))
    mode = decimal(scene.nvidia_params.get("DeviceFileMode", "432"))
    if not group or not mode or mode >> 3 & 6 != 6:
        return ""
    names = (n for n, (number, _) in scene.process.listed_groups().items() if number == group)
    return next(names, str(group))


def _nvidia_mode(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the mode that closes NVIDIA's nodes to all but root, as "0600"; "" of another."""
    mode = decimal(scene.nvidia_params.get("DeviceFileMode", ""))
    is_open = mode is None or mode & 6 == 6 or _nvidia_group(device, step, scene)
    return "" if is_open or device["vendor"] != "nvidia" else f"{mode:04o}"


def _signed(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return which of Ubuntu's signed modules another kernel has: "580-server-open"; "" if none.

    The folder of linux-modules-nvidia-580-server-open-RELEASE is kernel/nvidia-580srv-open.
    """
    folder = scene.modules.for_other_kernel("nvidia")
    file = scene.modules.on_disk("nvidia", folder) if folder else None
    flavour = (file or "").partition("/kernel/nvidia-")[2].partition("/")[0]
    return flavour.replace("srv", "-server")


MAKERS: dict[str, Maker] = {
    "branch": _branch,
    "cuda_branch": _cuda_branch,
    "cuda_fix": _cuda_fix,
    "cuda_folder": _cuda_folder,
    "cuda_library": _cuda_library,
    "libcuda_fix": _libcuda_fix,
    "nvidia_group": _nvidia_group,
    "nvidia_mode": _nvidia_mode,
    "signed": _signed,
    "version": _version,
}
"""Name in a sentence's braces to what makes its text."""
