"""A value has its source, and a null its reason, field by field."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from probe_core.model.document import DeviceDoc

    TextField = Literal["name", "arch", "vendor"]
    CountField = Literal["units", "cores"]

__all__ = ["DISPLAY", "EXPLAINED", "explain_nulls", "fill_count", "fill_text", "from_chipdb"]

EXPLAINED = {
    "name": "no prober names it, and its chip is not certain",
    "vendor": "no prober reports who makes it",
    "arch": "its chip is not certain",
    "units": "no prober counted them, and chipdb has no count",
    "bandwidth": "no prober reports it, and chipdb has none of its chip",
}
"""Fields that have a reason in `unknown` whenever they are null, and the reason of last resort."""

DISPLAY = "a display adapter that cannot compute"


def explain_nulls(device: DeviceDoc) -> None:
    """Add the reason for each field of `EXPLAINED` that is unknown and has none yet, in place."""
    display = device["kind"] == "display"
    for field, reason in EXPLAINED.items():
        if device.get(field) is None:
            device["unknown"].setdefault(field, DISPLAY if display else reason)


def fill_text(device: DeviceDoc, field: TextField, value: str | None) -> None:
    """Set a field to what chipdb has, where no prober reported it."""
    if value and not device.get(field):
        device[field] = value
        from_chipdb(device, field)


def fill_count(device: DeviceDoc, field: CountField, value: int | None) -> None:
    """Set a count to what chipdb has, where no prober reported it."""
    if value is not None and device.get(field) is None:
        device[field] = value
        from_chipdb(device, field)


def from_chipdb(device: DeviceDoc, field: str) -> None:
    """Note that the value of a field comes from chipdb."""
    device["sources"][field] = "chipdb"
    device["unknown"].pop(field, None)
