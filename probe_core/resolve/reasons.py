"""No null without a reason: what neither a prober nor chipdb knew is explained, field by field."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["EXPLAINED", "explain_nulls"]

EXPLAINED = {
    "name": "no prober names it, and its chip is not certain",
    "vendor": "no prober says who makes it",
    "arch": "its chip is not certain",
    "units": "no prober counted them, and chipdb has no count",
    "bandwidth": "no prober and no chip says it",
}
"""Fields that have a reason in `unknown` whenever they are null, and the reason of last resort."""

_DISPLAY = "a display adapter that cannot compute"


def explain_nulls(device: dict[str, Any]) -> None:
    """Add the reason for each field of `EXPLAINED` that is unknown and has none yet, in place."""
    display = device["kind"] == "display"
    for field, reason in EXPLAINED.items():
        if device.get(field) is None:
            device["unknown"].setdefault(field, _DISPLAY if display else reason)
