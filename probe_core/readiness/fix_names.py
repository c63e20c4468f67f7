"""The names that sentences of causes may use in braces: each is made for a device and its step."""

from __future__ import annotations

from probe_core.readiness import nvidia_names
from probe_core.readiness.scene import address_of, folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["MAKERS"]

# (vendor, kind) to the resource of its Kubernetes device plugin: NVIDIA, AMD, Intel (one for each
# kernel driver), Habana, AWS Neuron, GKE, Qualcomm.
_RESOURCES = {
    ("nvidia", "gpu"): "nvidia.com/gpu",
    ("amd", "gpu"): "amd.com/gpu",
    ("intel", "gpu"): "gpu.intel.com/{driver}",
    ("intel", "npu"): "npu.intel.com/accel",
    ("intel", "accelerator"): "habana.ai/gaudi",
    ("amazon", "accelerator"): "aws.amazon.com/neuron",
    ("google", "accelerator"): "google.com/tpu",
    ("google", "npu"): "google.com/tpu",
    ("qualcomm", "accelerator"): "qualcomm.com/qaic",
}

# What a module's package is where the distribution's own command is not known.
_PACKAGES = {
    "nvidia": "NVIDIA's driver",
    "hailo_pci": "hailort-pcie-driver",
    "apex": "gasket-dkms",
    "amdxdna": "Linux 6.14 or later, which has amdxdna",
    "intel_vpu": "a kernel with intel_vpu",
    "rknpu": "the board vendor's kernel, and the NPU's device-tree overlay",
}


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

    text = option(_maker(device), scene.container or "")
    return text.replace("{node}", _node(device, step, scene))


def _maker(device: DeviceDoc) -> str:
    """Return the vendor, or the product line that containers are given in another way."""
    if device["vendor"] == "intel" and device["kind"] == "accelerator":
        return "gaudi"
    is_jetson = device["vendor"] == "nvidia" and device["id"].startswith("dt:")
    return "jetson" if is_jetson else device["vendor"] or ""


def _resource(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    text = _RESOURCES.get((device["vendor"] or "", device["kind"]), "the resource of its plugin")
    return text.format(driver=scene.driver(device) or "xe")


def _gfx_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.rocm import override_for

    value = override_for(device, scene)
    if value is None:
        return "install a ROCm version, or a build, with code for this GPU; or use Vulkan"
    return f"`export HSA_OVERRIDE_GFX_VERSION={value}`, for which it has code"


def _device_rules(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what a unit of systemd needs for the nodes that its cgroup refuses."""
    from probe_core.readiness.needs import required

    paths = [path for path in required(device, scene) if scene.access(path) == "EPERM"]
    return ", ".join(f"`DeviceAllow={path} rw`" for path in paths or ["its nodes"])


def _selinux_boolean(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the boolean of container-selinux for a node's label: NVIDIA's is xserver_misc."""
    is_nvidia = device["vendor"] == "nvidia"
    return "container_use_xserver_devices" if is_nvidia else "container_use_devices"


def _missing_nodes(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the options of `pct set` for all nodes that a container of Proxmox VE lacks."""
    from probe_core.readiness.needs import required

    paths = [path for path in required(device, scene) if scene.access(path) == "missing"]
    return " ".join(f"-dev{number} {path}" for number, path in enumerate(paths))


def _job_request(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the piece that requests a GPU of the batch system around this process; "" in none."""
    from probe_core.machine.surroundings import BATCH_SYSTEMS

    request = next((text for name, text in BATCH_SYSTEMS.items() if name in scene.environ), None)
    return f"=request a GPU for the job ({request}), then start it anew" if request else ""


def _first_kernel(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.kernels import too_old_for

    return too_old_for(device, scene, _module(device, step, scene)) or ""


def _kernel_package(release: str) -> str:
    """Return what Arch and Manjaro call the package of a running kernel.

    6.12.4-arch1-1 is linux, 6.12.4-zen1-1-zen linux-zen, 6.6.63-1-lts linux-lts; Manjaro's
    6.12.4-1-MANJARO is linux612.
    """
    end = release.rpartition("-")[2]
    if end == "MANJARO":
        return "linux" + "".join(release.split(".")[:2])
    return f"linux-{end}" if end.isalpha() else "linux"


def _kfd_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    if scene.container is not None:
        return "start the container with `--device=/dev/kfd`"
    return "load amdgpu of a kernel with CONFIG_HSA_AMD, or use Vulkan"


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


MAKERS: dict[str, Callable[[DeviceDoc, StepDoc, Scene], str]] = {
    **nvidia_names.MAKERS,
    "address": lambda device, step, scene: address_of(device) or device["id"],
    "app": lambda device, step, scene: scene.environ.get("SNAP_NAME", "APP"),
    "device_rules": _device_rules,
    "device_id": lambda device, step, scene: (device["pci"] or {}).get("id", "")[5:9] or "ID",
    "first_kernel": _first_kernel,
    "folder": lambda device, step, scene: folder_of(device) or device["id"],
    "gfx": lambda device, step, scene: device.get("gfx") or "this GPU",
    "gfx_fix": _gfx_fix,
    "group": _group,
    "groups": lambda device, step, scene: _group(device, step, scene).replace(",", " "),
    "job_request": _job_request,
    "kfd_fix": _kfd_fix,
    "kernel": lambda device, step, scene: _kernel_package(scene.release),
    "load": _load,
    "library": lambda device, step, scene: "libnvidia-ml.so.1",
    "missing_nodes": _missing_nodes,
    "module": _module,
    "node": _node,
    "option": _option,
    "package": _package,
    "release": lambda device, step, scene: scene.release or "$(uname -r)",
    "resource": _resource,
    "selinux_boolean": _selinux_boolean,
    "service": lambda device, step, scene: scene.service or "NAME.service",
    "si_or_cik": _si_or_cik,
    "vendor": lambda device, step, scene: device["vendor"] or "its vendor",
}
"""Name in a sentence's braces to what makes its text."""
