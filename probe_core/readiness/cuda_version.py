"""Compares versions of CUDA: the image's with the driver's, and libcuda's with the kernel driver's.

A libcuda.so.1 that is newer than the kernel driver is forward compatibility (the package
cuda-compat, which images bring): data centre GPUs and Jetson have it, GeForce does not.
"""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.readiness.nvidia_driver import major_of, version_of
from probe_core.readiness.steps import broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["driver_of", "older_than_toolkit", "other_version"]

_STEP = "runtime"

# Least driver branch of each major version of CUDA; minor versions are compatible within it (CUDA
# Toolkit release notes, "CUDA Toolkit and Minimum Required Driver Version").
_LEAST_BRANCH = ((13, 580), (12, 525), (11, 450))

# The package cuda-compat, with which data centre GPUs run newer majors.
_COMPAT = "/usr/local/cuda/compat/libcuda.so.1"


def other_version(device: DeviceDoc, scene: Scene, path: str) -> StepDoc | None:
    """Return the step when the libcuda that the loader takes does not fit the kernel driver.

    CUDA answers 804 for a newer one on a GPU without forward compatibility (GTX 1650 in a container
    with cuda-compat: nvidia-container-toolkit#291), and 803 for an older one.
    """
    kernel = version_of(scene.nvidia_version)
    real = scene.machine.realpath(path)
    own = driver_of(real)
    if kernel is None or own is None or own == kernel:
        return None
    evidence = f"/proc/driver/nvidia/version: {kernel}; {path} leads to {own}"
    if _numbers(own) < _numbers(kernel):
        return broken(_STEP, "cuda-library-mismatch", evidence)
    if _is_geforce(device):
        return broken(_STEP, "cuda-compat-unsupported", f"{evidence}, and this is a GeForce")
    return None


def driver_of(real: str) -> str | None:
    """Return "580.65.06" of a resolved path whose name ends so; None of a name without version."""
    version = real.rpartition(".so.")[2]
    parts = version.split(".")
    is_version = len(parts) in (2, 3) and all(decimal(part) is not None for part in parts)
    return version if is_version else None


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _is_geforce(device: DeviceDoc) -> bool:
    """Return whether it surely is one: NVIDIA names data centre GPUs, some RTX cards and Jetson."""
    chip = device["chip"]
    chips = [chip["id"]] if chip["id"] else chip["candidates"]
    if chips:
        return all(name.startswith("nvidia/geforce-") for name in chips)
    return "geforce" in (device["name"] or "").lower()


def older_than_toolkit(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Return the step when the image was built for a major version that the driver lacks.

    Images from nvidia/cuda set CUDA_VERSION. A toolkit that lies on a host says nothing of what
    programs use: wheels bring their own.
    """
    if scene.container is None:
        return None
    toolkit = decimal(scene.environ.get("CUDA_VERSION", "").partition(".")[0])
    branch = major_of(version_of(scene.nvidia_version) or (device["driver"] or {}).get("version"))
    least = dict(_LEAST_BRANCH).get(toolkit or 0)
    if least is None or branch is None or branch >= least:
        return None
    if scene.libraries.exists(_COMPAT) and not _is_geforce(device):
        return None
    text = f"CUDA_VERSION={scene.environ['CUDA_VERSION']} needs driver {least}; it is {branch}"
    return broken(_STEP, "driver-older-than-cuda", text)
