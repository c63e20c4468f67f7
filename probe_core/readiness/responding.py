"""Step `responding`: whether the device answers its driver, as far as its probers learnt."""

from __future__ import annotations

from probe_core.model.kinds import ACCELERATORS
from probe_core.readiness.steps import broken, ok, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, OutcomeDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["responding"]

_STEP = "responding"

# Not the device's: the core gives it what the system or chipdb have.
_NO_ANSWERS = ("bus", "node", "chipdb", "derived")

_BY_STATUS = {"timeout": "driver-hangs", "crashed": "driver-crashes"}
"""What an outcome says of the device itself; all else is the plugin's own fault."""


def responding(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    if device["power_state"] in ("suspended", "suspending"):
        return unknown(_STEP, f"its power state is {device['power_state']}", "asleep")
    confirmed = [name for name in device["seen_by"] if name not in ("bus", *scene.unavailable)]
    if not confirmed:
        return _unconfirmed(device, scene)
    source = device["sources"].get("memory.total")
    if source in confirmed and source not in _NO_ANSWERS:
        return ok(_STEP, f"{source} reads its memory")
    silent = device["power_state"] == "unknown" and not device["backends"]
    if silent and device["kind"] in ACCELERATORS and source is None:
        text = f"{confirmed[0]} reads neither memory nor runtimes; its power state is unknown"
        return broken(_STEP, "not-responding", text)
    return unknown(_STEP, f"{confirmed[0]} asked nothing of the device itself")


def _unconfirmed(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Judge a device that no prober but the bus confirms, by how its vendor's own prober ended."""
    vendor = (device["pci"] or {}).get("id", "").partition(":")[0]
    own = (scene.unavailable.get(name) for name in device["seen_by"])
    outcome = scene.failures.get(vendor) or next(filter(None, own), None)
    if outcome is None:
        return unknown(_STEP, "no plugin queried it")
    evidence = f"prober {outcome['prober']}: {outcome['status']}, {outcome['reason']}"
    if code := _BY_STATUS.get(outcome["status"]):
        return broken(_STEP, code, evidence)
    return _unavailable(outcome, evidence)


def _unavailable(outcome: OutcomeDoc, evidence: str) -> StepDoc:
    if outcome["status"] != "unavailable" or outcome.get("code") == "client-missing":
        return unknown(_STEP, evidence)
    from probe_core.model.causes import CAUSES

    cause = CAUSES.get(outcome.get("code") or "")
    # A cause of another step would stand here as a break of this one.
    code = cause.code if cause and cause.step == _STEP else "query-fails"
    return broken(_STEP, code, evidence)
