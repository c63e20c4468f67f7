"""Step `node`: whether the device nodes that a program opens are there."""

from __future__ import annotations

from probe_core.machine.access import MISSING, UNKNOWN, number, status
from probe_core.readiness.needs import CONTROL, NVIDIA_CAPS, UVM, opened_by_nvml, required
from probe_core.readiness.steps import broken, not_applicable, ok, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["contradicted", "node"]

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
        from probe_core.readiness.absent import absent

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
    from probe_core.readiness.absent import created_on_demand

    evidence = f"{UVM} is there, nvidia_uvm is not in /proc/modules"
    if created_on_demand(scene):
        return unknown(_STEP, f"{evidence}; nvidia-modprobe loads it at the first use")
    return broken(_STEP, "uvm-missing", evidence)
