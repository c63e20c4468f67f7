"""Step `visible`: whether the device's own runtime shows it under this environment."""

from __future__ import annotations

from probe_core.model.runtimes import native_runtime
from probe_core.readiness.steps import broken, not_applicable, ok, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc

__all__ = ["visible"]

_STEP = "visible"


def visible(device: DeviceDoc) -> StepDoc:
    """Return the step; `visibility` must be there."""
    runtime = native_runtime(device)
    entry = device["visibility"].get(runtime)
    if entry is None:
        return not_applicable(_STEP, "no variable hides such a device")
    if entry["visible"]:
        index = "" if entry["index"] is None else f" as {entry['index']}"
        return ok(_STEP, f"{runtime} shows it{index}")
    if (step := entry.get("step") or _STEP) != _STEP:
        return unknown(_STEP, f"not judged: {step} keeps it from {runtime}")
    reason = entry["reason"] or f"{runtime} does not show it"
    if entry["visible"] is None:
        return unknown(_STEP, reason)
    if any(step["code"] == "mig-without-instances" for step in device["readiness"]["steps"]):
        return unknown(_STEP, f"not judged: granted keeps it from {runtime}")
    code = "hidden-by-variable" if entry.get("variable") else "hidden-by-runtime"
    return broken(_STEP, entry.get("code") or code, reason)
