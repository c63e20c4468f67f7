"""Which device nodes a program must open to use a device: its prober's list, else what /sys tells.

So a device that only the bus shows is judged, too. What needs a node of its own kind is asked of
the device's folder; a node that cannot be derived is not guessed.
"""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.readiness.scene import address_of, folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc
    from probe_core.readiness.scene import Scene

__all__ = ["CONTROL", "KFD", "NVIDIA_CAPS", "UVM", "opened_by_nvml", "required"]

KFD = "/dev/kfd"
UVM = "/dev/nvidia-uvm"
CONTROL = "/dev/nvidiactl"
NVIDIA_CAPS = "/dev/nvidia-caps/"

# The card node is for displays: programs that compute open none.
_RENDER, _ACCEL, _MALI = "/dev/dri/renderD{}", "/dev/accel/accel{}", "/dev/mali{}"

_RENDER_DRIVERS = frozenset(
    "i915 xe panfrost panthor lima msm v3d etnaviv powervr asahi nouveau radeon nvidia-drm"
    " msm_dpu adreno".split()
)
"""Drivers whose programs open the render node and nothing else."""

# Drivers of the GPU in a Jetson module: CUDA takes its memory from nvmap.
_TEGRA = ("gk20a", "nvgpu")
NVMAP = "/dev/nvmap"

# Folder below a device in /sys to where its node lies: drivers outside DRM and accel.
_CLASSES = {
    "hailo_chardev": "/dev/",  # hailort-drivers, linux/pcie
    "apex": "/dev/",  # gasket: Coral Edge TPU
    "tenstorrent": "/dev/",  # tt-kmd: the name is tenstorrent!0, which stands for a folder
    "neuron_device": "/dev/",
}


def required(device: DeviceDoc, scene: Scene) -> list[str]:
    """Return the nodes that must be open to this process; empty where they are not known."""
    reported = device.get("nodes")
    if reported:
        return [path for path in reported if path.startswith("/dev/")]
    # What the bus does not show (WSL, a host's own prober) has nodes that only its prober knows.
    if not scene.linux or device["parent"] or "bus" not in device["seen_by"]:
        return []
    driver, index = scene.driver(device), device.get("node_index") or {}
    if driver == "nvidia":
        return _nvidia(device, scene)
    if driver in _TEGRA:
        # An older recording says nothing of it.
        return [NVMAP] if scene.machine.live or NVMAP in scene.machine.access else []
    paths = [
        form.format(index[label])
        for label, form in (("drm_render", _RENDER), ("accel", _ACCEL), ("mali", _MALI))
        if label in index
    ]
    if driver == "amdgpu" and device["kind"] == "gpu":
        # Without the interface in the kernel there is no such node: see the step `node`.
        return [KFD, *paths] if paths else []
    if driver in _RENDER_DRIVERS or paths:
        return paths
    return _of_classes(device, scene)


def _nvidia(device: DeviceDoc, scene: Scene) -> list[str]:
    """Return what CUDA opens. Its node's number is a minor of the driver, not the GPU's index."""
    address = address_of(device)
    if address is None or scene.wsl:  # Jetson and WSL have other nodes
        return []
    minor = decimal(scene.nvidia_card(device).get("Device Minor", ""))
    own = [] if minor is None else [f"/dev/nvidia{minor}"]
    return [CONTROL, *own, UVM]


def _of_classes(device: DeviceDoc, scene: Scene) -> list[str]:
    folder = folder_of(device)
    if folder is None or scene.driver(device) is None:
        return []
    return [
        root + name.replace("!", "/")
        for kind, root in _CLASSES.items()
        for name in scene.machine.listdir(f"{folder}/{kind}")[:1]
        if ".." not in name
    ]


def opened_by_nvml(path: str) -> bool:
    """Return whether NVML opens the node: what it answers about a GPU proves that it could."""
    return (path.startswith("/dev/nvidia") and path[len("/dev/nvidia") :].isdecimal()) or (
        path == CONTROL
    )
