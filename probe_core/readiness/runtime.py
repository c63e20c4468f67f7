"""Step `runtime`: whether the user-space runtime of the vendor can start on the device."""

from __future__ import annotations

from probe_core.readiness.steps import broken, ok, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["CUDA", "NVML", "ZE", "runtime"]

_STEP = "runtime"
CUDA, NVML, ZE = "libcuda.so.1", "libnvidia-ml.so.1", "libze_intel_gpu.so.1"


def runtime(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    judge = _JUDGES.get(scene.driver(device) or "")
    on_bus = scene.linux and "bus" in device["seen_by"]
    if not on_bus or device["kind"] != "gpu" or judge is None:
        return unknown(_STEP, "which runtime it needs is not known")
    return judge(device, scene)


def _cuda(device: DeviceDoc, scene: Scene) -> StepDoc:
    paths = scene.libraries.find(CUDA)
    if not paths:
        evidence = f"{CUDA} is in no folder of the loader"
        # Only the driver brings it, of its own version, so nothing else can stand in. The driver
        # puts both of its libraries into one folder: where NVML is not, nothing is known of CUDA's.
        if scene.libraries.surely_absent(CUDA) and scene.libraries.installed(NVML):
            return broken(_STEP, "libcuda-missing", evidence)
        return unknown(_STEP, f"{evidence}; other folders may have it")
    if "/stubs/" in paths[0]:
        return broken(_STEP, "libcuda-missing", f"{paths[0]} is a stub of the CUDA toolkit")
    from probe_core.readiness.cuda_version import older_than_toolkit, other_version

    return (
        other_version(device, scene, paths[0])
        or older_than_toolkit(device, scene)
        or ok(_STEP, f"{paths[0]}: there")
    )


def _rocm(device: DeviceDoc, scene: Scene) -> StepDoc:
    from probe_core.readiness.rocm import rocm

    return rocm(device, scene)


def _level_zero(device: DeviceDoc, scene: Scene) -> StepDoc:
    paths = scene.libraries.find(ZE)
    if paths:
        return ok(_STEP, f"{paths[0]}: there")
    evidence = f"{ZE} is in no folder of the loader"
    if scene.libraries.surely_absent(ZE):
        return broken(_STEP, "level-zero-missing", evidence)
    return unknown(_STEP, f"{evidence}; other folders may have it")


_JUDGES = {"nvidia": _cuda, "amdgpu": _rocm, "i915": _level_zero, "xe": _level_zero}
