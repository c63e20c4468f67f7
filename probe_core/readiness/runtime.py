"""Step `runtime`: whether the user-space runtime of the vendor can start on the device."""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.model.ids import driver_version
from probe_core.model.verdict import native_runtime
from probe_core.readiness.chain import broken, not_applicable, ok, unknown
from probe_core.readiness.library import library_version, major_of, unloadable, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene


_STEP = "runtime"
CUDA, NVML, ZE = "libcuda.so.1", "libnvidia-ml.so.1", "libze_intel_gpu.so.1"


ZE_LEGACY = "libze_intel_gpu_legacy1.so.1"
LEGACY_ICD = "/etc/OpenCL/vendors/intel_legacy1.icd"
HAILO, HAILORT = "/sys/module/hailo_pci/version", "libhailort.so"
"""The version of Hailo's driver, and its library, which is for that version alone."""

LEGACY = ("gen8", "gen9", "gen11")
"""Architectures with packages of their own (compute-runtime, LEGACY_PLATFORMS.md)."""


def runtime(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    judge = _JUDGES.get(scene.driver(device) or "")
    on_bus = scene.linux and "bus" in device["seen_by"]
    if not on_bus or device["kind"] not in ("gpu", "npu") or judge is None:
        return unknown(_STEP, "which runtime it needs is not known")
    return judge(device, scene)


def _cuda(device: DeviceDoc, scene: Scene) -> StepDoc:
    paths = scene.libraries.find(CUDA)
    if not paths:
        evidence = f"{CUDA} is in no folder of the loader"
        # Only the driver brings it, of its own version, so nothing else can stand in. The driver
        # puts both of its libraries into one folder: where NVML is not, nothing is known of CUDA's.
        if scene.libraries.installed(NVML) and scene.libraries.surely_absent(CUDA):
            return broken(_STEP, "libcuda-missing", evidence)
        return unknown(_STEP, f"{evidence}; other folders may have it")
    if stub := scene.libraries.stub(paths[0]):
        return broken(_STEP, "libcuda-missing", f"{stub} is a stub of the CUDA toolkit")
    return (
        _broken(paths[0], scene)
        or other_version(device, scene, paths[0])
        or older_than_toolkit(device, scene)
        or ok(_STEP, f"{paths[0]}: there")
    )


def _broken(path: str, scene: Scene) -> StepDoc | None:
    """Judge a libcuda that the loader refuses, which is one of the driver's libraries."""
    reason = unloadable(path, scene)
    return None if reason is None else broken(_STEP, "library-broken", reason)


def _rocm(device: DeviceDoc, scene: Scene) -> StepDoc:
    scene.load("amd")
    from probe_core.readiness.rocm import rocm

    return rocm(device, scene)


def _level_zero(device: DeviceDoc, scene: Scene) -> StepDoc:
    paths = scene.libraries.find(ZE)
    if not paths and device["arch"] in LEGACY:
        paths = scene.libraries.find(ZE_LEGACY)
    if paths:
        return ok(_STEP, f"{paths[0]}: there")
    evidence = f"{ZE} is in no folder of the loader"
    if scene.libraries.surely_absent(ZE):
        return broken(_STEP, "level-zero-missing", evidence)
    return unknown(_STEP, f"{evidence}; other folders may have it")


# The user driver of an NPU: what OpenVINO's Level Zero, and XRT, load for it. Intel renamed its own
# (linux-npu-driver 1.13); AMD's lies where XRT is installed (xdna-driver).
NPU_LIBRARIES = {
    "intel_vpu": ("libze_intel_npu.so.1", "libze_intel_vpu.so.1"),
    "amdxdna": ("libxrt_driver_xdna.so.2",),
}
XRT = "/opt/xilinx/xrt/lib"


XDNA_SIZES = tuple(
    f"/sys/module/amdxdna/parameters/{name}_size" for name in ("carvedout", "carveout")
)
"""Bytes that were set aside for AMD's NPU (amd/xdna-driver#460, later #1247)."""


def _has_own_memory(scene: Scene) -> bool:
    """Return whether the NPU may have memory set aside, with which it needs no IOMMU (#492)."""
    machine = scene.machine
    return any(machine.exists(path) and machine.read(path, 32) != "0" for path in XDNA_SIZES)


def _npu(device: DeviceDoc, scene: Scene) -> StepDoc:
    driver = scene.driver(device) or ""
    names, libraries = NPU_LIBRARIES[driver], scene.libraries
    parameter = scene.modules.iommu_off if driver == "amdxdna" else ""
    if parameter and not _has_own_memory(scene):
        return broken(_STEP, "npu-without-iommu", f"/proc/cmdline: {parameter}")
    path = libraries.find_any(*names) or f"{XRT}/{names[0]}"
    if libraries.exists(path):
        return ok(_STEP, f"{path}: there")
    evidence = f"{names[0]} is in no folder of the loader"
    if libraries.surely_absent(*names):
        code = "xrt-missing" if driver == "amdxdna" else "level-zero-npu-missing"
        return broken(_STEP, code, evidence)
    return unknown(_STEP, f"{evidence}; other folders may have it")


_JUDGES = {
    **{"nvidia": _cuda, "amdgpu": _rocm, "i915": _level_zero, "xe": _level_zero},
    **dict.fromkeys(NPU_LIBRARIES, _npu),
}


# Step `visible`: whether the device's own runtime shows it under this environment.

_VISIBLE = "visible"


def visible(device: DeviceDoc) -> StepDoc:
    """Return the step; `visibility` must be there."""
    runtime = native_runtime(device)
    entry = device["visibility"].get(runtime)
    if entry is None:
        return not_applicable(_VISIBLE, "no variable hides such a device")
    if entry["visible"]:
        index = "" if entry["index"] is None else f" as {entry['index']}"
        return ok(_VISIBLE, f"{runtime} shows it{index}")
    if (step := entry.get("step") or _VISIBLE) != _VISIBLE:
        return unknown(_VISIBLE, f"not judged: {step} keeps it from {runtime}")
    reason = entry["reason"] or f"{runtime} does not show it"
    if entry["visible"] is None:
        return unknown(_VISIBLE, reason)
    if any(step["code"] == "mig-without-instances" for step in device["readiness"]["steps"]):
        return unknown(_VISIBLE, f"not judged: granted keeps it from {runtime}")
    code = "hidden-by-variable" if entry.get("variable") else "hidden-by-runtime"
    return broken(_VISIBLE, entry.get("code") or code, reason)


# Compares versions of CUDA: the image's with the driver's, and libcuda's with the kernel driver's.
#
# A libcuda.so.1 that is newer than the kernel driver is forward compatibility (the package
# cuda-compat, which images bring): data centre GPUs and Jetson have it, GeForce does not.

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
    own = library_version(scene.libraries.real(path))
    if kernel is None or own is None or own == kernel:
        return None
    evidence = f"/proc/driver/nvidia/version: {kernel}; {path} leads to {own}"
    if _numbers(own) < _numbers(kernel):
        return broken(_STEP, "cuda-library-mismatch", evidence)
    if _is_geforce(device):
        return broken(_STEP, "cuda-compat-unsupported", f"{evidence}, and this is a GeForce")
    return None


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
    branch = major_of(version_of(scene.nvidia_version) or driver_version(device))
    least = dict(_LEAST_BRANCH).get(toolkit or 0)
    if least is None or branch is None or branch >= least:
        return None
    if scene.libraries.exists(_COMPAT) and not _is_geforce(device):
        return None
    text = f"CUDA_VERSION={scene.environ['CUDA_VERSION']} needs driver {least}; it is {branch}"
    return broken(_STEP, "driver-older-than-cuda", text)
