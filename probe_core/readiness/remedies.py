"""The fix for this situation: the distribution's package, the container's option, the group.

The sentences stand in `model.causes`; here the names in their braces are filled in.
"""

from __future__ import annotations

from probe_core.model.causes import CAUSES
from probe_core.model.findings import NO_FIX
from probe_core.readiness.scene import address_of, folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["fix_of", "meaning_of"]

# ID or ID_LIKE of /etc/os-release to the packages of NVIDIA's driver there.
_NVIDIA_PACKAGES = {
    "ubuntu": "it with `ubuntu-drivers install`",
    "debian": "nvidia-driver (section non-free)",
    "fedora": "akmod-nvidia (RPM Fusion)",
    "arch": "nvidia-open (nvidia-580xx-dkms before Turing)",
    "suse": "nvidia-open-driver-G06",
}
_FIRMWARE_PACKAGES = {
    "amdgpu": "firmware-amd-graphics (Debian) or linux-firmware",
    "xe": "firmware-misc-nonfree (Debian) or linux-firmware",
    "intel_vpu": "firmware-intel-misc (Debian) or linux-firmware",
    "panthor": "firmware-misc-nonfree (Debian) or linux-firmware",
}
_NPU_PACKAGES = {
    "hailo_pci": "hailort-pcie-driver",
    "apex": "gasket-dkms",
    "amdxdna": "Linux 6.14 or later, which has amdxdna",
    "intel_vpu": "a kernel with intel_vpu",
    "rknpu": "the board vendor's kernel, and the NPU's device-tree overlay",
}
_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "intel": "gpu.intel.com/xe"}
_OPTIONS = {
    "nvidia": "`--gpus all`, or CDI: `--device nvidia.com/gpu=all`",
    "amd": "`--device=/dev/kfd --device=/dev/dri`",
}
_OTHER_OPTION = "`--device=/dev/dri` (the device's own node)"


class _Names(dict[str, str]):
    """The names that a sentence may use; what is not known reads as its own name."""

    def __missing__(self, key: str) -> str:
        return key


def fix_of(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what helps against a broken step of a device."""
    cause = CAUSES.get(step["code"] or "")
    if cause is None:
        return NO_FIX if step["status"] != "broken" else f"see `probe explain {device['id']}`"
    return cause.fix.format_map(_names(device, step, scene))


def meaning_of(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what a broken step means, as the end of a sentence."""
    cause = CAUSES.get(step["code"] or "")
    if cause is None:
        return f"the step {step['step']} is broken"
    return cause.meaning.format_map(_names(device, step, scene))


def _names(device: DeviceDoc, step: StepDoc, scene: Scene) -> _Names:
    from probe_core.readiness.nvidia_driver import branch_for, version_of

    module = _module(device, scene)
    node = _node(device, step, scene)
    vendor = device["vendor"] or ""
    return _Names(
        address=address_of(device) or device["id"],
        branch=branch_for(device),
        folder=folder_of(device) or device["id"],
        gfx=device.get("gfx") or "this GPU",
        group=_group(node, scene),
        kfd_fix=_kfd_fix(scene),
        libcuda_fix=_libcuda_fix(scene),
        library="libnvidia-ml.so.1",
        module=module,
        node=node,
        option=_OPTIONS.get(vendor, _OTHER_OPTION),
        package=_package(device, step, module, scene),
        release=scene.release or "the running kernel",
        resource=_RESOURCES.get(vendor, f"{vendor}.com/gpu"),
        vendor=vendor or "its vendor",
        version=version_of(scene.nvidia_version) or "",
    )


def _module(device: DeviceDoc, scene: Scene) -> str:
    from probe_core.readiness.unbound import module_of

    return scene.driver(device) or module_of(device, scene) or "of its vendor"


def _node(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the first of the device's nodes that is not well, else the first."""
    from probe_core.readiness.needs import required

    paths = required(device, scene)
    bad = [path for path in paths if scene.access(path) not in ("ok", "unknown")]
    return (bad or paths or ["its device node"])[0]


def _group(node: str, scene: Scene) -> str:
    if not node.startswith("/dev/"):
        return "render"
    from probe_core.readiness.refused import groups_of

    return groups_of(node, scene)


def _kfd_fix(scene: Scene) -> str:
    if scene.container is not None:
        return "start the container with `--device=/dev/kfd`"
    return "load amdgpu of a kernel with CONFIG_HSA_AMD, or use Vulkan"


def _libcuda_fix(scene: Scene) -> str:
    if scene.container is not None:
        return "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    return "install libcuda1 (Debian), or libnvidia-compute of the driver's version (Ubuntu)"


def _package(device: DeviceDoc, step: StepDoc, module: str, scene: Scene) -> str:
    if step["code"] == "firmware-missing":
        return _FIRMWARE_PACKAGES.get(module, "linux-firmware")
    if step["code"] == "npu-no-module":
        return _NPU_PACKAGES.get(module, f"the driver {module}")
    if step["code"] == "library-missing":
        return _libraries_package(scene)
    if module == "nvidia":
        return _NVIDIA_PACKAGES.get(_distribution(scene), "NVIDIA's driver")
    return f"the driver {module}"


def _libraries_package(scene: Scene) -> str:
    from probe_core.readiness.nvidia_driver import major_of, version_of

    if scene.container is not None:
        return "nvidia-container-toolkit on the host, which adds them"
    major = major_of(version_of(scene.nvidia_version))
    kind = _distribution(scene)
    if kind == "ubuntu":
        return f"libnvidia-compute-{major}"
    return "libnvidia-ml1 and libcuda1" if kind == "debian" else "nvidia-utils"


def _distribution(scene: Scene) -> str:
    """Return the key of the distribution in the tables above; "" where it is none of them."""
    lines = (scene.machine.read("/etc/os-release", 16 << 10) or "").splitlines()
    pairs = {name: value.strip('"') for name, _, value in (line.partition("=") for line in lines)}
    names = [pairs.get("ID", ""), *pairs.get("ID_LIKE", "").split()]
    return next((name for name in names if name in _NVIDIA_PACKAGES), "")
