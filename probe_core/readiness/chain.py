"""From single steps to a device's readiness: the first broken step, and the state that follows."""

from __future__ import annotations

from probe_core.model.readiness import STEPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import ReadinessDoc, StepDoc

__all__ = ["result"]

# Causes with which a device can be used, but with less than it has.
LIMITING = ("power-capped", "link-narrow", "mig-without-instances")


def result(steps: Sequence[StepDoc]) -> ReadinessDoc:
    """Return the readiness that `steps` amount to; of two about one step the first counts."""
    first = {step["step"]: step for step in reversed(steps)}
    ordered = [first[name] for name in STEPS if name in first]
    broken = [step for step in ordered if step["status"] == "broken"]
    blocking = [step for step in broken if step["code"] not in LIMITING]
    state = "blocked" if blocking else "limited" if broken else "ready" if ordered else "unknown"
    cause = (blocking or broken)[0]["step"] if broken else None
    return {"state": state, "broken": cause, "steps": ordered}
