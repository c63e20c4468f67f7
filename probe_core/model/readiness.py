"""The chain that a device must hold for this process to use it: its steps, states and words.

What judges the steps is `probe_core.readiness`; what only reads the result needs this module.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc

__all__ = ["STATES", "STATUSES", "STEPS", "blocked", "broken_step", "state_of"]

STEPS = (
    "hardware",
    "driver",
    "node",
    "permission",
    "library",
    "responding",
    "granted",
    "visible",
    "runtime",
)
"""From the bus to the program, in the order in which a break hides what comes after it."""

STATES = ("ready", "limited", "blocked", "unknown")
"""`limited`: usable with less than the device has. `unknown` never keeps a device from use."""

STATUSES = ("ok", "broken", "unknown", "not_applicable")
"""What may be said of a step; unknown comes with the reason as its evidence."""


def state_of(device: DeviceDoc) -> str:
    """Return the device's state; of a report that an older core wrote, "unknown"."""
    readiness = device.get("readiness")
    return readiness["state"] if readiness else "unknown"


def blocked(device: DeviceDoc) -> bool:
    """Return whether this process surely cannot use the device."""
    return state_of(device) == "blocked"


def broken_step(device: DeviceDoc) -> StepDoc | None:
    """Return the first step that is broken, with its code and evidence; None where none is."""
    readiness = device.get("readiness")
    if not readiness or readiness["broken"] is None:
        return None
    return next((s for s in readiness["steps"] if s["step"] == readiness["broken"]), None)
