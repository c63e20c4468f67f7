"""Compares the CUDA version of a container's image with the one that the driver supports."""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.readiness.nvidia_driver import major_of, version_of
from probe_core.readiness.steps import broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["older_than_toolkit"]

# Least driver branch of each major version of CUDA; minor versions are compatible within it (CUDA
# Toolkit release notes, "CUDA Toolkit and Minimum Required Driver Version").
_LEAST_BRANCH = ((13, 580), (12, 525), (11, 450))

# The package cuda-compat, with which data centre GPUs run newer majors.
_COMPAT = "/usr/local/cuda/compat/libcuda.so.1"


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
    if least is None or branch is None or branch >= least or scene.libraries.exists(_COMPAT):
        return None
    text = f"CUDA_VERSION={scene.environ['CUDA_VERSION']} needs driver {least}; it is {branch}"
    return broken("runtime", "driver-older-than-cuda", text)
