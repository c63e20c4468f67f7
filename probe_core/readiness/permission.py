"""Step `permission`: whether mode, access list and security module let this process open the nodes.

access(2) is asked, never names: in a user namespace a group that was kept reads 65534 and counts.
"""

from __future__ import annotations

from probe_core.machine.access import OK
from probe_core.readiness.needs import NVIDIA_CAPS, required
from probe_core.readiness.node import contradicted
from probe_core.readiness.steps import broken, not_applicable, ok, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["permission"]

_STEP = "permission"

# What the cgroup refuses has passed mode and access list: they are asked first.
_PASSED = (OK, "EPERM")


def permission(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    if not scene.linux:
        return not_applicable(_STEP, f"{scene.machine.os} has no device nodes")
    paths = [path for path in required(device, scene) if not path.startswith(NVIDIA_CAPS)]
    states = {path: scene.access(path) for path in paths}
    if bad := contradicted(device, states, scene):
        return unknown(_STEP, f"{bad}, and yet NVML answers")
    refused = [path for path, state in states.items() if state == "EACCES"]
    if refused:
        from probe_core.readiness.refused import cause

        code, evidence = cause(refused[0], scene)
        return broken(_STEP, code, evidence)
    if paths and all(state in _PASSED for state in states.values()):
        return ok(_STEP, f"access(2) allows {', '.join(paths)}")
    if not paths:
        return unknown(_STEP, "which node its programs open is not known")
    return unknown(_STEP, "a recording does not say who may open a node")
