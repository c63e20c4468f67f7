"""Step `permission`: whether mode, access list and security module let this process open the nodes.

access(2) is asked, never names: in a user namespace a group that was kept reads 65534 and counts.
"""

from __future__ import annotations

from probe_core.machine.access import MISSING, OK
from probe_core.readiness.chain import broken, not_applicable, ok, unknown
from probe_core.readiness.node import NVIDIA_CAPS, despite, required, set_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene


_STEP = "permission"

# What the cgroup refuses has passed mode and access list: they are asked first.
_PASSED = (OK, "EPERM")


def permission(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    if not scene.linux:
        return not_applicable(_STEP, f"{scene.machine.os} has no device nodes")
    paths = [path for path in required(device, scene) if not path.startswith(NVIDIA_CAPS)]
    states = {path: scene.access(path) for path in paths}
    refused = [p for p, state in states.items() if state == "EACCES" and p not in scene.opened]
    if refused:
        scene.load("closed nodes")
        from probe_core.readiness.closed import cause

        code, evidence = cause(refused[0], scene)
        return broken(_STEP, code, evidence)
    if closed := set_aside(states, ("EACCES",), scene):
        return despite(_STEP, closed, scene)
    if not paths:
        return unknown(_STEP, "which node its programs open is not known")
    # Whether an absent node may be absent is the step before: this one is about those there are.
    there = [path for path, state in states.items() if state != MISSING]
    if not there:
        return not_applicable(_STEP, "no node is there yet")
    if all(states[path] in _PASSED or path in scene.opened for path in there):
        return ok(_STEP, f"access(2) allows {', '.join(there)}")
    return unknown(_STEP, "a recording does not say who may open a node")
