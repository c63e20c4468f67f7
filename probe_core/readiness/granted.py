"""Step `granted`: whether a rule keeps a working device from this process.

Device cgroups (Slurm, systemd, containers), the driver's list of excluded GPUs, MIG's capability
nodes, MPS. What a library lists for this process, its prober reports.
"""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.machine.access import MISSING, OK
from probe_core.model.ids import pci_address
from probe_core.readiness.chain import broken, not_applicable, ok, unknown
from probe_core.readiness.node import (
    KFD,
    NVIDIA_CAPS,
    UVM,
    despite,
    required,
    set_aside,
)
from probe_core.readiness.scene import ADDRESS_SPACE, LIMITS, Scene

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc


_STEP = "granted"
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
_NVIDIA, _DRM, _CONTROL = 195, 226, 255


def granted(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    if not scene.linux:
        return not_applicable(_STEP, f"{scene.machine.os} has no device cgroups")
    paths = required(device, scene)
    states = {path: scene.access(path) for path in paths}
    judged = {path: state for path, state in states.items() if path not in scene.opened}
    for path, state in judged.items():
        if path.startswith(NVIDIA_CAPS) and state in _CAP_REFUSED:
            return broken(_STEP, "mig-cap-denied", f"{path}: {state}")
        if state == "EPERM":
            return _denied(scene, f"access(2) of {path}: EPERM, the device cgroup's refusal")
    if broken_rule := _by_rules([*judged], scene) or _by_nvidia(device, scene):
        return broken_rule
    if closed := set_aside(states, ("EPERM",), scene):
        return despite(_STEP, closed, scene)
    if states and all(state == OK or path not in judged for path, state in states.items()):
        return ok(_STEP, f"access(2) allows {', '.join(states)}")
    return unknown(_STEP, "nothing tells what this process was given")


def _denied(scene: Scene, evidence: str) -> StepDoc:
    if scene.slurm:
        return broken(_STEP, "slurm-slice", f"{evidence}; this is a Slurm job")
    return broken(_STEP, "cgroup-denied", evidence)


def _by_rules(paths: list[str], scene: Scene) -> StepDoc | None:
    """Judge by the file of cgroup version 1, where access(2) has no answer (a recording)."""
    for path in paths:
        if scene.access(path) in (OK, MISSING):
            continue
        number = _number(path, scene)
        if number and scene.rules.refuses(*number):
            text = f"{scene.rules.path} does not list {number[0]}:{number[1]} ({path})"
            return _denied(scene, text)
    return None


def _number(path: str, scene: Scene) -> tuple[int, int] | None:
    """Return the (major, minor) that a node has, as /proc and /sys give them."""
    stem = path.rstrip("0123456789")
    minor = int(path[len(stem) :][:6] or -1)
    if stem == "/dev/nvidia" and minor >= 0:
        return _NVIDIA, minor
    if path == "/dev/nvidiactl":
        return _NVIDIA, _CONTROL
    if stem == "/dev/dri/renderD" and minor >= 0:
        return _DRM, minor
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
        return broken(_STEP, "gpu-excluded", f"{place}: GPU Excluded: Yes")
    return _exclusive(device, scene) or _mps(scene) or _addresses(scene)


def _addresses(scene: Scene) -> StepDoc | None:
    """Judge a limit of address space (`ulimit -v`), which batch systems set from a job's memory."""
    soft = scene.address_space
    if soft is None or soft >= _ADDRESSES:
        return None
    return broken(_STEP, "address-space-limited", f"{LIMITS}: {ADDRESS_SPACE} {soft} bytes")


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
    return broken(_STEP, "exclusive-taken", f"compute mode {mode}; compute processes: {count}")


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
        return unknown(_STEP, f"{_PIPES}={folder} has no `control`: is the MPS daemon to run?")
    daemon = decimal(scene.machine.read(f"{folder}/nvidia-cuda-mps-control.pid", 32) or "")
    # In a container the number is one of another PID namespace.
    if daemon is None or scene.container or not scene.machine.exists("/proc/self"):
        return None
    if scene.machine.exists(f"/proc/{daemon}"):
        return None
    return broken(_STEP, "mps-daemon-gone", f"{folder}: process {daemon} of the daemon is gone")
