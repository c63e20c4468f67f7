"""The fix for this situation: the distribution's package, the container's option, the group.

The sentences stand in `model.causes`; here the names in their braces are filled in.
"""

from __future__ import annotations

from probe_core.model.causes import CAUSES
from probe_core.model.findings import NO_FIX
from probe_core.readiness.scene import address_of, folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["fix_of", "is_exact", "meaning_of"]

_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "intel": "gpu.intel.com/xe"}

# What a module's package is where the distribution's own command is not known.
_PACKAGES = {
    "nvidia": "NVIDIA's driver",
    "hailo_pci": "hailort-pcie-driver",
    "apex": "gasket-dkms",
    "amdxdna": "Linux 6.14 or later, which has amdxdna",
    "intel_vpu": "a kernel with intel_vpu",
    "rknpu": "the board vendor's kernel, and the NPU's device-tree overlay",
}


class _Names(dict[str, str]):
    """The names that a sentence may use, each worked out when it is used.

    What is not known reads as its own name.
    """

    def __init__(self, device: DeviceDoc, step: StepDoc, scene: Scene) -> None:
        super().__init__()
        self._of = (device, step, scene)

    def __missing__(self, key: str) -> str:
        make = _MAKERS.get(key)
        value = self[key] = key if make is None else make(*self._of)
        return value


def fix_of(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what helps against a broken step of a device."""
    cause = CAUSES.get(step["code"] or "")
    if cause is None:
        return NO_FIX if step["status"] != "broken" else f"see `probe explain {device['id']}`"
    from probe_core.readiness.exact import exact_fix

    names = _Names(device, step, scene)
    return exact_fix(cause.code, scene, names) or cause.fix.format_map(names)


def is_exact(device: DeviceDoc, step: StepDoc, scene: Scene) -> bool:
    """Return whether `fix_of` is this machine's own command, not the cause's general sentence."""
    from probe_core.readiness.exact import exact_fix

    return exact_fix(step["code"] or "", scene, _Names(device, step, scene)) is not None


def meaning_of(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what a broken step means, as the end of a sentence."""
    cause = CAUSES.get(step["code"] or "")
    if cause is None:
        return f"the step {step['step']} is broken"
    return cause.meaning.format_map(_Names(device, step, scene))


def _load(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.unbound import module_of

    module = module_of(device, scene)
    if module is None:
        return f"install or load the driver of {device['vendor'] or 'its vendor'}"
    place = "on the host " if scene.container is not None else ""
    package = _package(device, step, scene)
    return f"{place}`sudo modprobe {module}`; where that fails, install {package}"


def _module(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.unbound import module_of

    return scene.driver(device) or module_of(device, scene) or "of its vendor"


def _node(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the first of the device's nodes that is not well, else the first."""
    from probe_core.readiness.needs import required

    paths = required(device, scene)
    bad = [path for path in paths if scene.access(path) not in ("ok", "unknown")]
    return (bad or paths or ["its device node"])[0]


def _group(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the groups to join: those of all nodes that refuse this process."""
    from probe_core.machine.access import status
    from probe_core.readiness.needs import required
    from probe_core.readiness.refused import groups_of

    refused = [path for path in required(device, scene) if scene.access(path) == "EACCES"]
    if not any(status(scene.machine, path) for path in refused):
        return "render,video"  # a recording has no owners: the groups that AMD and Intel document
    groups = dict.fromkeys(groups_of(path, scene) for path in refused)
    return ",".join(groups) or "render"


def _option(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.exact import option

    text = option(device["vendor"] or "", scene.container or "")
    return text.replace("{node}", _node(device, step, scene))


def _resource(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    vendor = device["vendor"] or ""
    return _RESOURCES.get(vendor, f"{vendor}.com/gpu")


def _branch(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the branch of NVIDIA's driver: that which the GPU needs, else the loaded one."""
    from probe_core.readiness.nvidia_driver import branch_for, major_of, version_of

    if step["code"] in ("legacy-branch", "driver-too-old-for-gpu", "open-module-unsupported"):
        return branch_for(device)
    return str(major_of(version_of(scene.nvidia_version)) or branch_for(device))


def _version(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.nvidia_driver import version_of

    return version_of(scene.nvidia_version) or ""


def _kfd_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    if scene.container is not None:
        return "start the container with `--device=/dev/kfd`"
    return "load amdgpu of a kernel with CONFIG_HSA_AMD, or use Vulkan"


def _libcuda_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    if scene.container is not None:
        return "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    return "install libcuda.so.1 of the driver's version"


def _package(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    module = _module(device, step, scene)
    if step["code"] == "firmware-missing":
        return "linux-firmware"
    if step["code"] == "library-missing":
        inside = scene.container is not None
        return "nvidia-container-toolkit on the host, which adds them" if inside else "nvidia-utils"
    return _PACKAGES.get(module, f"the driver {module}")


def _si_or_cik(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the parameters that give a card of GCN 1 (SI) or GCN 2 (CIK) to amdgpu."""
    arch = device["arch"] or ""
    part = {"gcn1": ("si",), "gcn2": ("cik",)}.get(arch[:4], ("si", "cik"))
    return " ".join(f"amdgpu.{name}_support=1 radeon.{name}_support=0" for name in part)


_MAKERS: dict[str, Callable[[DeviceDoc, StepDoc, Scene], str]] = {
    "address": lambda device, step, scene: address_of(device) or device["id"],
    "app": lambda device, step, scene: scene.environ.get("SNAP_NAME", "APP"),
    "branch": _branch,
    "device_id": lambda device, step, scene: (device["pci"] or {}).get("id", "")[5:9] or "ID",
    "folder": lambda device, step, scene: folder_of(device) or device["id"],
    "gfx": lambda device, step, scene: device.get("gfx") or "this GPU",
    "group": _group,
    "kfd_fix": _kfd_fix,
    "libcuda_fix": _libcuda_fix,
    "load": _load,
    "library": lambda device, step, scene: "libnvidia-ml.so.1",
    "module": _module,
    "node": _node,
    "option": _option,
    "package": _package,
    "release": lambda device, step, scene: scene.release or "$(uname -r)",
    "resource": _resource,
    "si_or_cik": _si_or_cik,
    "vendor": lambda device, step, scene: device["vendor"] or "its vendor",
    "version": _version,
}
"""Name in a sentence's braces to what makes its text."""
