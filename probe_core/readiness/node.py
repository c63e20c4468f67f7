"""Which device nodes a program must open to use a device: its prober's list, else what /sys tells.

So a device that only the bus shows is judged, too. What needs a node of its own kind is asked of
the device's folder; a node that cannot be derived is not guessed.
"""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.machine.access import MISSING, OK, UNKNOWN, number, status
from probe_core.model.ids import NODE_UNKNOWN, pci_address
from probe_core.readiness.chain import (
    NODE_UNRECORDED,
    broken,
    not_applicable,
    ok,
    unknown,
)
from probe_core.readiness.scene import ADDRESS_SPACE, LIMITS, folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

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

# Drivers whose node is the one of the class accel: what their rows in `driver_nodes` say, without
# importing those for every laptop.
_ACCEL_DRIVERS = frozenset("amdxdna intel_vpu qaic rocket ethosu".split())

_OLD_RECORDING = f"an older recording of a Jetson says nothing of {NVMAP}"

DXG = "/dev/dxg"
"""What libcuda, libnvidia-ml and Mesa open in WSL, in place of all nodes of a GPU."""


def required(device: DeviceDoc, scene: Scene) -> list[str]:
    """Return the nodes that must be open to this process; empty where they are not known.

    `scene.required` keeps them, with why not all of them are known: "" where they are,
    `NODE_UNKNOWN` where nobody knows which nodes such a driver has.
    """
    identity = device["id"]
    if identity not in scene.required:
        reported = device.get("nodes")
        paths = [path for path in reported or () if path.startswith("/dev/")]
        scene.required[identity] = (paths, "") if paths else _derived(device, scene)
    return scene.required[identity][0]


def _derived(device: DeviceDoc, scene: Scene) -> tuple[list[str], str]:
    # What the bus does not show (a host's own prober) has nodes that only its prober knows.
    if not scene.linux or device["parent"] or "bus" not in device["seen_by"]:
        is_wsl = scene.linux and device["kind"] == "gpu" and not device["parent"] and scene.wsl
        return ([DXG], "") if is_wsl else ([], NODE_UNKNOWN)
    driver, index = scene.driver(device), device.get("node_index") or {}
    if driver == "nvidia":
        paths = _nvidia(device, scene)
        return paths, "" if paths else NODE_UNKNOWN
    if driver in _TEGRA:
        is_known = scene.machine.live or NVMAP in scene.machine.access
        return ([NVMAP], "") if is_known else ([], _OLD_RECORDING)
    paths = [
        form.format(index[label])
        for label, form in (("drm_render", _RENDER), ("accel", _ACCEL), ("mali", _MALI))
        if label in index
    ]
    if driver == "amdgpu" and device["kind"] == "gpu":
        # Without the interface in the kernel there is no such node: see the step `node`.
        return _named([KFD, *paths] if paths else [])
    if driver in _RENDER_DRIVERS or (paths and driver in _ACCEL_DRIVERS):
        return _named(paths)
    return _of_rows(device, paths, scene)


def _named(paths: list[str]) -> tuple[list[str], str]:
    """Return the nodes of a driver whose nodes /sys or /proc names."""
    return paths, "" if paths else "nothing in /sys or /proc names its node"


def _nvidia(device: DeviceDoc, scene: Scene) -> list[str]:
    """Return what CUDA opens. Its node's number is a minor of the driver, not the GPU's index."""
    address = pci_address(device)
    if address is None or scene.wsl:  # Jetson and WSL have other nodes
        return []
    minor = decimal(scene.nvidia_card(device).get("Device Minor", ""))
    own = [] if minor is None else [f"/dev/nvidia{minor}"]
    return [CONTROL, *own, UVM]


def _of_rows(device: DeviceDoc, paths: list[str], scene: Scene) -> tuple[list[str], str]:
    """Return the nodes of a driver that is not one of GPUs, from the table of drivers."""
    driver = scene.driver(device)
    if driver is None:
        return paths, "" if paths else NODE_UNKNOWN
    scene.load("driver nodes")
    from probe_core.readiness.driver_nodes import linked, nodes_of, row_of

    row = row_of(driver, device["vendor"])
    if row is not None:
        return nodes_of(row, device, scene)
    paths = paths or linked(device, scene)
    return paths, "" if paths else NODE_UNKNOWN


def proven(device: DeviceDoc, scene: Scene) -> dict[str, str]:
    """Return the nodes that a library must have opened to answer about the device.

    NVML opens /dev/nvidiactl and the node of each GPU that it is asked about, and neither
    /dev/nvidia-uvm nor MIG's capabilities (llama.cpp#7218: all well but for cuInit). Of no other
    answer it is known which library gave it: a prober that read files opened nothing.
    """
    if device["vendor"] != "nvidia" or scene.driver(device) not in ("nvidia", None):
        return {}
    paths = required(device, scene)
    if DXG in paths:
        return {DXG: "NVML"}
    own = [path for path in paths if path.removeprefix("/dev/nvidia").isdecimal()]
    return dict.fromkeys([CONTROL, *own], "NVML")


# Step `node`: whether the device nodes that a program opens are there.

_STEP = "node"

# Path to the name in /proc/devices, of drivers whose major number changes from start to start. A
# container that hard-codes it has a node of another driver after the host's next start.
_DYNAMIC = {UVM: "nvidia-uvm", "/dev/kfd": "kfd"}
# NVIDIA's own number is fixed, and a container may still be given another file by that name: with
# /dev/null in its place an H200's NVML counts no GPU.
_OF_NVIDIA = tuple(f"/dev/nvidia{end}" for end in ("ctl", *"0123456789"))
_NVIDIA = "nvidia"
_ALLOWED = ("ok", "EACCES", "EPERM", UNKNOWN)

# What open(2) says of a node behind which no driver is; a recording may hold it, access(2) does
# not tell it.
_WITHOUT_DRIVER = ("ENXIO", "ENODEV")


def node(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    if not scene.linux:
        return not_applicable(_STEP, f"{scene.machine.os} has no device nodes")
    if scene.driver(device) == "amdgpu" and (lacking := _without_drm(device, scene)):
        return lacking
    paths = [path for path in required(device, scene) if not path.startswith(NVIDIA_CAPS)]
    _, reason = scene.required[device["id"]]
    states = {path: scene.access(path) for path in paths}
    closed = set_aside(states, (MISSING, *_WITHOUT_DRIVER), scene)
    if bad := _bad(device, states, scene):
        return bad
    if closed:
        return despite(_STEP, closed, scene)
    if reason == NODE_UNKNOWN:
        return unknown(_STEP, "which node its programs open is not known", NODE_UNKNOWN)
    if reason:
        return (not_applicable if reason == _OLD_RECORDING else unknown)(_STEP, reason)
    return ok(_STEP, f"{', '.join(paths)}: there")


def _bad(device: DeviceDoc, needed: Mapping[str, str], scene: Scene) -> StepDoc | None:
    """Return what is wrong with nodes of which no answer proves that they are open."""
    states = {path: state for path, state in needed.items() if path not in scene.opened}
    dead = [f"{path}: {state}" for path, state in states.items() if state in _WITHOUT_DRIVER]
    if dead:
        is_uvm = dead[0].startswith(UVM)
        return broken(_STEP, "uvm-missing" if is_uvm else "node-without-driver", ", ".join(dead))
    if MISSING in states.values():
        scene.load("closed nodes")
        from probe_core.readiness.closed import absent

        return absent(device, scene, needed)
    odd = [f"{path}: {state}" for path, state in states.items() if state not in _ALLOWED]
    if odd:
        return unknown(_STEP, "; ".join(odd))
    if UNKNOWN in states.values():
        return _recorded([*states], scene)
    return _numbers([*states], scene)


def set_aside(states: Mapping[str, str], refusals: Collection[str], scene: Scene) -> list[str]:
    """Return the nodes, with their states, that were opened for an answer though they seem closed.

    A refusal of any other node stands: the answer says nothing of it.
    """
    return [
        f"{path}: {state}"
        for path, state in states.items()
        if state in refusals and path in scene.opened
    ]


def despite(step: str, closed: Sequence[str], scene: Scene) -> StepDoc:
    """Return a step that an answer proves against what access(2) says, with both sides."""
    paths = [text.partition(": ")[0] for text in closed]
    by = scene.opened[paths[0]]
    return {**unknown(step, f"{', '.join(closed)}, and yet {by} answers"), "opened": paths}


def _without_drm(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Judge a GPU that amdgpu holds and that has no node of the kernel's graphics at all.

    amdgpu registers them for every GPU that it brought up (amdgpu_drv.c): ROCm and Vulkan need one.
    """
    if device["kind"] != "gpu" or device["parent"]:
        return None
    index, folder = device.get("node_index") or {}, folder_of(device)
    if "bus" not in device["seen_by"] or "drm_render" in index or "drm_card" in index:
        return None
    if folder is None or scene.machine.exists(f"{folder}/drm"):
        return None
    evidence = f"{folder}/drm is absent, though amdgpu is bound"
    if scene.container is not None:
        return unknown(_STEP, evidence, NODE_UNKNOWN)
    return broken(_STEP, "node-missing", f"{evidence}: /dev/dri has no node of it")


def _recorded(paths: Sequence[str], scene: Scene) -> StepDoc | None:
    """Judge nodes of which nothing but their existence can be known."""
    if not all(scene.machine.exists(path) for path in paths):
        code = None if scene.shows_nodes else NODE_UNRECORDED
        return unknown(_STEP, "the recording has no device nodes", code)
    if scene.machine.live:
        return unknown(_STEP, f"not all of {', '.join(paths)} are character devices")
    return _uvm_without_driver(paths, scene)


def _numbers(paths: Sequence[str], scene: Scene) -> StepDoc | None:
    """Return the step when a node's number is another driver's, or nobody's; else None."""
    if lacking := _uvm_without_driver(paths, scene):
        return lacking
    for path in paths:
        name = _DYNAMIC.get(path) or (_NVIDIA if path.startswith(_OF_NVIDIA) else None)
        major = scene.majors.get(name) if name else None
        stat = status(scene.machine, path) if major is not None else None
        if stat is not None and number(stat)[0] != major:
            text = f"{path} has the major number {number(stat)[0]}, /proc/devices gives {name}"
            return broken(_STEP, "node-number-stale", f"{text} {major}")
    return None


def _uvm_without_driver(paths: Sequence[str], scene: Scene) -> StepDoc | None:
    """Return the step when nvidia_uvm is surely not loaded, and cannot be from here."""
    if UVM not in paths:
        return None
    loaded = scene.loaded
    if "nvidia" not in loaded or "nvidia_uvm" in loaded:
        return None
    evidence = f"{UVM} is there, nvidia_uvm is not in /proc/modules"
    scene.load("closed nodes")
    from probe_core.readiness.closed import created_on_demand

    if created_on_demand(scene):
        return ok(_STEP, f"{evidence}; nvidia-modprobe loads it at the first use")
    return broken(_STEP, "uvm-missing", evidence)


# Step `permission`: whether mode, access list and security module let this process open the nodes.
#
# access(2) is asked, never names: in a user namespace a group that was kept reads 65534 and counts.

_PERMISSION = "permission"

# What the cgroup refuses has passed mode and access list: they are asked first.
_PASSED = (OK, "EPERM")


def permission(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    if not scene.linux:
        return not_applicable(_PERMISSION, f"{scene.machine.os} has no device nodes")
    paths = [path for path in required(device, scene) if not path.startswith(NVIDIA_CAPS)]
    states = {path: scene.access(path) for path in paths}
    refused = [p for p, state in states.items() if state == "EACCES" and p not in scene.opened]
    if refused:
        scene.load("closed nodes")
        from probe_core.readiness.closed import cause

        code, evidence = cause(refused[0], scene)
        return broken(_PERMISSION, code, evidence)
    if closed := set_aside(states, ("EACCES",), scene):
        return despite(_PERMISSION, closed, scene)
    if not paths:
        return unknown(_PERMISSION, "which node its programs open is not known")
    # Whether an absent node may be absent is the step before: this one is about those there are.
    there = [path for path, state in states.items() if state != MISSING]
    if not there:
        return not_applicable(_PERMISSION, "no node is there yet")
    if all(states[path] in _PASSED or path in scene.opened for path in there):
        return ok(_PERMISSION, f"access(2) allows {', '.join(there)}")
    return unknown(_PERMISSION, "a recording does not say who may open a node")


# Step `granted`: whether a rule keeps a working device from this process.
#
# Device cgroups (Slurm, systemd, containers), the driver's list of excluded GPUs, MIG's capability
# nodes, MPS. What a library lists for this process, its prober reports.

_GRANTED = "granted"
_PIPES = "CUDA_MPS_PIPE_DIRECTORY"
_DEFAULT_PIPES = "/tmp/nvidia-mps"
_EXCLUSIVE = ("exclusive-process", "exclusive-thread")

# CUDA reserves addresses for what it may map: on an H200 (driver 580.159.04) 13.6 GB with one
# context. Under 8 GB cuInit returned 2, out of memory; under 16 GB nothing failed.
_ADDRESSES = 13_600_000_000

# A capability that cannot be opened is a part of the GPU that was not given to this process.
_CAP_REFUSED = ("EACCES", "EPERM", "ENXIO", MISSING)

# NVIDIA's number is fixed, as is that of DRM (Documentation/admin-guide/devices.txt); 255 is
# /dev/nvidiactl.
_NVIDIA_MAJOR, _DRM_MAJOR, _CONTROL_MINOR = 195, 226, 255


def granted(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    if not scene.linux:
        return not_applicable(_GRANTED, f"{scene.machine.os} has no device cgroups")
    paths = required(device, scene)
    states = {path: scene.access(path) for path in paths}
    judged = {path: state for path, state in states.items() if path not in scene.opened}
    for path, state in judged.items():
        if path.startswith(NVIDIA_CAPS) and state in _CAP_REFUSED:
            return broken(_GRANTED, "mig-cap-denied", f"{path}: {state}")
        if state == "EPERM":
            return _denied(scene, f"access(2) of {path}: EPERM, the device cgroup's refusal")
    unclear = [path for path, state in judged.items() if state not in (OK, MISSING)]
    if unclear and (refused := _by_rules(unclear, scene)):
        return refused
    if taken := _by_nvidia(device, scene):
        return taken
    if closed := set_aside(states, ("EPERM",), scene):
        return despite(_GRANTED, closed, scene)
    if states and all(state == OK or path not in judged for path, state in states.items()):
        return ok(_GRANTED, f"access(2) allows {', '.join(states)}")
    return unknown(_GRANTED, "nothing tells what this process was given")


def _denied(scene: Scene, evidence: str) -> StepDoc:
    if scene.slurm:
        return broken(_GRANTED, "slurm-slice", f"{evidence}; this is a Slurm job")
    return broken(_GRANTED, "cgroup-denied", evidence)


def _by_rules(paths: Sequence[str], scene: Scene) -> StepDoc | None:
    """Judge by the file of cgroup version 1, where access(2) has no answer (a recording)."""
    for path in paths:
        numbers = _numbers_of(path, scene)
        if numbers and scene.rules.refuses(*numbers):
            text = f"{scene.rules.path} does not list {numbers[0]}:{numbers[1]} ({path})"
            return _denied(scene, text)
    return None


def _numbers_of(path: str, scene: Scene) -> tuple[int, int] | None:
    """Return the (major, minor) that a node has, as /proc and /sys give them."""
    stem = path.rstrip("0123456789")
    minor = int(path[len(stem) :][:6] or -1)
    if stem == "/dev/nvidia" and minor >= 0:
        return _NVIDIA_MAJOR, minor
    if path == CONTROL:
        return _NVIDIA_MAJOR, _CONTROL_MINOR
    if stem == "/dev/dri/renderD" and minor >= 0:
        return _DRM_MAJOR, minor
    name = {UVM: "nvidia-uvm", KFD: "kfd"}.get(path)
    major = scene.majors.get(name) if name else None
    return None if major is None else (major, 0)


def _by_nvidia(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    if scene.driver(device) != "nvidia":
        return None
    # What the driver leaves out no library can open: a GPU that answered is none of those.
    address = None if device["id"] in scene.answered else pci_address(device)
    if address and scene.nvidia_card(device).get("GPU Excluded", "").lower() == "yes":
        place = f"/proc/driver/nvidia/gpus/{address}/information"
        return broken(_GRANTED, "gpu-excluded", f"{place}: GPU Excluded: Yes")
    if taken := _exclusive(device, scene) or _mps(scene):
        return taken
    # A limit of address space (`ulimit -v`), which batch systems set from a job's memory.
    soft = scene.address_space
    if soft is None or soft >= _ADDRESSES:
        return None
    return broken(_GRANTED, "address-space-limited", f"{LIMITS}: {ADDRESS_SPACE} {soft} bytes")


def _exclusive(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Judge a compute mode that admits one process while there is one.

    An MPS server is that process where its daemon runs, and has its clients share the GPU. A host
    that probes itself may be the process inside: what it holds it may use.
    """
    mode, count = device.get("compute_mode"), device.get("processes")
    if mode not in _EXCLUSIVE or not count:
        return None
    folder = scene.environ.get(_PIPES) or _DEFAULT_PIPES
    if scene.machine.exists(f"{folder}/control") or _is_ours(device, scene):
        return None
    return broken(_GRANTED, "exclusive-taken", f"compute mode {mode}; compute processes: {count}")


def _is_ours(device: DeviceDoc, scene: Scene) -> bool:
    """Return whether this process has one of the device's nodes open."""
    if not scene.machine.live:
        return False
    from os import getpid

    from probe_core.proc import descriptors

    nodes = {path for path in required(device, scene) if path.rpartition("/nvidia")[2].isdecimal()}
    return any(target in nodes for _, target in descriptors(getpid()))


def _mps(scene: Scene) -> StepDoc | None:
    """Judge MPS by the folder of its daemon that a variable names.

    Without the daemon's socket a program runs as it does without MPS (nvidia-cuda-mps-control(1)).
    A socket whose daemon is dead is what gives CUDA's error 805.
    """
    folder = scene.environ.get(_PIPES, "")
    if not folder.startswith("/") or not scene.machine.exists(folder):
        return None
    if not scene.machine.exists(f"{folder}/control"):
        return unknown(_GRANTED, f"{_PIPES}={folder} has no `control`: is the MPS daemon to run?")
    daemon = decimal(scene.machine.read(f"{folder}/nvidia-cuda-mps-control.pid", 32) or "")
    # In a container the number is one of another PID namespace.
    if daemon is None or scene.container or not scene.machine.exists("/proc/self"):
        return None
    if scene.machine.exists(f"/proc/{daemon}"):
        return None
    return broken(_GRANTED, "mps-daemon-gone", f"{folder}: process {daemon} of the daemon is gone")
