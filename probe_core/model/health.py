"""Tables inside a device about its limits and its health: power, error correction."""

from __future__ import annotations

from probe_core.model.field import Field as F
from probe_core.model.field import by_name
from probe_core.model.values import Flag, Items, Number, Word

__all__ = ["ECC", "POWER"]

WATTS = Number(1, 100_000)
"""A judgement: below a watt or above 100 kW, a limit was given in another unit."""

POWER = by_name(
    (
        F("limit_watts", WATTS, "Power limit in effect now", unit="watts", volatile=True),
        F("default_watts", WATTS, "Limit that the driver sets when it starts", unit="watts"),
        F("max_watts", WATTS, "Highest limit that may be set", unit="watts"),
        F(
            "reasons",
            Items(Word()),
            "What holds the clocks below their maximum now: idle, sw-power-cap, sw-thermal …",
            volatile=True,
        ),
    )
)

ECC = by_name(
    (
        F("enabled", Flag(), "Whether memory errors are corrected"),
        F("pending", Flag(), "The same after the next reset, as it was set"),
        F("remap_pending", Flag(), "Whether faulty rows of memory wait for a reset", volatile=True),
        F("remap_failed", Flag(), "Whether a faulty row could not be replaced"),
    )
)
