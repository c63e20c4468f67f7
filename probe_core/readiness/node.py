"""Which device nodes a program must open to use a device: its prober's list, else what /sys tells.

So a device that only the bus shows is judged, too. What needs a node of its own kind is asked of
the device's folder; a node that cannot be derived is not guessed.
"""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.machine.access import MISSING, UNKNOWN, number, status
from probe_core.readiness.chain import broken, not_applicable, ok, unknown
from probe_core.readiness.scene import address_of, folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene


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


# Step `node`: whether the device nodes that a program opens are there.

_STEP = "node"

# Path to the name in /proc/devices, of drivers whose major number changes from start to start. A
# container that hard-codes it has a node of another driver after the host's next start.
_DYNAMIC = {UVM: "nvidia-uvm", "/dev/kfd": "kfd"}
_ALLOWED = ("ok", "EACCES", "EPERM", UNKNOWN)


def node(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    if not scene.linux:
        return not_applicable(_STEP, f"{scene.machine.os} has no device nodes")
    paths = [path for path in required(device, scene) if not path.startswith(NVIDIA_CAPS)]
    if not paths:
        return _without_paths(device, scene)
    states = {path: scene.access(path) for path in paths}
    if bad := contradicted(device, states, scene):
        return unknown(_STEP, f"{bad}, and yet NVML answers")
    if MISSING in states.values():
        return absent(device, scene, states)
    odd = [f"{path}: {state}" for path, state in states.items() if state not in _ALLOWED]
    if odd:
        return unknown(_STEP, "; ".join(odd))
    if UNKNOWN in states.values():
        return _recorded(paths, scene)
    return _numbers(paths, scene) or ok(_STEP, f"{', '.join(paths)}: there")


def contradicted(device: DeviceDoc, states: Mapping[str, str], scene: Scene) -> str:
    """Return the nodes, with their states, that NVML opened though they seem closed.

    What NVML answers about one GPU proves that the node of all was open, too.
    """
    if not scene.answered or device["vendor"] != "nvidia":
        return ""
    closed = (MISSING, "EACCES")
    own = device["id"] in scene.answered
    return ", ".join(
        f"{path}: {state}"
        for path, state in states.items()
        if state in closed and (path == CONTROL or (own and opened_by_nvml(path)))
    )


def _without_paths(device: DeviceDoc, scene: Scene) -> StepDoc:
    if scene.driver(device) == "amdgpu" and device["kind"] == "gpu" and not device["parent"]:
        return unknown(_STEP, "no render node of the device is in /sys/class/drm")
    return unknown(_STEP, "which node its programs open is not known")


def _recorded(paths: Sequence[str], scene: Scene) -> StepDoc:
    """Judge nodes of which nothing but their existence can be known."""
    if not all(scene.machine.exists(path) for path in paths):
        return unknown(_STEP, "the recording has no device nodes")
    if scene.machine.live:
        return unknown(_STEP, f"not all of {', '.join(paths)} are character devices")
    return _uvm_without_driver(paths, scene) or ok(_STEP, f"{', '.join(paths)}: there")


def _numbers(paths: Sequence[str], scene: Scene) -> StepDoc | None:
    """Return the step when a node's number is another driver's, or nobody's; else None."""
    if lacking := _uvm_without_driver(paths, scene):
        return lacking
    for path in paths:
        name = _DYNAMIC.get(path)
        major = scene.majors.get(name) if name else None
        stat = status(scene.machine, path) if major is not None else None
        if stat is not None and number(stat)[0] != major:
            text = f"{path} has the major number {number(stat)[0]}, /proc/devices gives {name}"
            return broken(_STEP, "node-number-stale", f"{text} {major}")
    return None


def _uvm_without_driver(paths: Sequence[str], scene: Scene) -> StepDoc | None:
    """Return the step when nvidia_uvm is surely not loaded, and cannot be from here."""
    loaded = scene.modules.loaded
    if UVM not in paths or "nvidia" not in loaded or "nvidia_uvm" in loaded:
        return None
    evidence = f"{UVM} is there, nvidia_uvm is not in /proc/modules"
    if created_on_demand(scene):
        return unknown(_STEP, f"{evidence}; nvidia-modprobe loads it at the first use")
    return broken(_STEP, "uvm-missing", evidence)


# Why a device node is not there: what the container lacks, or what the host has not made.

_BY_CONTAINER = {
    "flatpak": "flatpak",
    "snap": "snap",
    "kubernetes": "pod-without-gpu",
    "lxc": "lxc-device-missing",
}
_HIDING = ("none", "void")
_VARIABLE = "NVIDIA_VISIBLE_DEVICES"
_MOUNTS = "/proc/self/mounts"
_HELPER = "/usr/bin/nvidia-modprobe"


def absent(device: DeviceDoc, scene: Scene, states: Mapping[str, str]) -> StepDoc:
    """Return the step of a device of whose nodes at least one is missing."""
    missing = [path for path, state in states.items() if state == MISSING]
    evidence = f"{', '.join(missing)}: missing"
    if missing == [KFD]:
        return _without_kfd(scene, evidence)
    if scene.container is not None:
        code, reason = _container_cause(device, scene, missing == [UVM] and len(states) > 1)
        return broken(_STEP, code, f"{evidence}; {reason}")
    if _is_sandboxed(scene):
        text = f"{evidence}; /proc/self/mounts: /dev is a tmpfs; {scene.service} runs this"
        return broken(_STEP, "service-without-devices", text)
    if scene.driver(device) == "nvidia":
        return _nvidia_host(scene, missing, evidence)
    return broken(_STEP, "node-missing", evidence)


def _container_cause(device: DeviceDoc, scene: Scene, uvm_alone: bool) -> tuple[str, str]:
    kind = scene.container or ""
    reason = f"this is a container ({kind})"
    if kind in _BY_CONTAINER:
        return _BY_CONTAINER[kind], reason
    if uvm_alone:
        return "uvm-missing", reason
    # Every CDI specification sets "void": it is a cause only where no node is there.
    value = scene.environ.get(_VARIABLE)
    if device["vendor"] == "nvidia" and value in _HIDING:
        return "hidden-by-container", f"{_VARIABLE}={value}"
    return "container-without-gpus", reason


def _is_sandboxed(scene: Scene) -> bool:
    """Return whether systemd gave a service a /dev of its own (PrivateDevices=, systemd.exec(5)).

    The kernel's is a devtmpfs.
    """
    if scene.service is None:
        return False
    lines = (scene.machine.read(_MOUNTS) or "").splitlines()
    kinds = [
        fields[2] for line in lines if (fields := line.split())[1:2] == ["/dev"] and fields[2:]
    ]
    return kinds[-1:] == ["tmpfs"]


def _without_kfd(scene: Scene, evidence: str) -> StepDoc:
    """The render node is there: Vulkan works, ROCm does not."""
    if scene.machine.exists("/sys/class/kfd"):
        where = f"this is a container ({scene.container})" if scene.container else "/sys has it"
        return broken(_STEP, "kfd-missing", f"{evidence}; {where}")
    if not scene.machine.exists("/sys/class/drm"):
        return unknown(_STEP, f"{evidence}; /sys/class is not there")
    return broken(_STEP, "kfd-missing", f"{evidence}; /sys/class/kfd is absent")


def _nvidia_host(scene: Scene, missing: list[str], evidence: str) -> StepDoc:
    if created_on_demand(scene):
        return unknown(_STEP, f"{evidence}; the first program that uses the GPU makes them")
    return broken(_STEP, "uvm-missing" if missing == [UVM] else "node-missing", evidence)


def created_on_demand(scene: Scene) -> bool:
    """Return whether NVIDIA's nodes come with the first use: by root, or by its setuid helper.

    In a container neither can load a module of the host, nor pass a node in.
    """
    if scene.container is not None:
        return False
    return scene.machine.exists(_HELPER) or scene.process.user == 0
