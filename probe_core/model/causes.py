"""The causes that break a step of readiness, each declared once: step, effect, meaning, check, fix.

`readiness` writes the codes, findings take their severity and sentences from here, and the page
docs/explanation/readiness.md shows the table. Imported when a device is broken, not before.
"""

from __future__ import annotations

from probe_core.model.cause import Cause
from probe_core.model.causes_of_access import LIBRARY, NODE, PERMISSION
from probe_core.model.causes_of_device import DRIVER, HARDWARE
from probe_core.model.causes_of_use import GRANTED, RESPONDING, RUNTIME, VISIBLE

__all__ = ["CAUSES", "Cause", "limiting", "on_purpose"]

_BY_STEP: dict[str, tuple[Cause, ...]] = {
    "hardware": HARDWARE,
    "driver": DRIVER,
    "node": NODE,
    "permission": PERMISSION,
    "library": LIBRARY,
    "responding": RESPONDING,
    "granted": GRANTED,
    "visible": VISIBLE,
    "runtime": RUNTIME,
}


def _table() -> dict[str, Cause]:
    table = {}
    for step, causes in _BY_STEP.items():
        for cause in causes:
            cause.step = step
            table[cause.code] = cause
    return table


CAUSES = _table()
"""Code to cause, in the order of the chain."""


def limiting(code: str | None) -> bool:
    """Return whether a device with this cause can be used; False for codes of others."""
    cause = CAUSES.get(code or "")
    return cause is not None and cause.limits


def on_purpose(code: str | None) -> bool:
    """Return whether somebody set the cause on purpose; False for codes of others."""
    cause = CAUSES.get(code or "")
    return cause is not None and cause.intended
