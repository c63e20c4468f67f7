"""What `probe bench` achieved, read from a device: shown beside the derived figures, never mixed.

A measurement is foreign data here: a report of a newer core may have more kinds of them.
"""

from __future__ import annotations

from probe_core.commands import bandwidth
from probe_report.figures import CELL, cut, percent, spaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_core.model.document import DeviceDoc

__all__ = ["Measured", "best_of", "measured_of"]

_MOST = 24
"""Measurements of one device that the page shows: eight types and three directions, twice."""

_SAME = 0.02
"""Two fractions that differ by less are of the same figure: reports round them."""


class Measured:
    """One measurement: what was measured, the figure, who achieved it, and what speaks against it.

    `share` is its part of the derived figure in percent, None where that is not known.
    """

    __slots__ = ("_fraction", "by", "date", "doubt", "figure", "label", "shown", "value")

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.label = _label(entry)
        self.figure = "bandwidth" if entry.get("unit") == "B/s" else str(entry.get("dtype"))
        self.value = float(entry["best"])
        unit = cut(str(entry.get("unit") or ""), 8)
        rate = bandwidth(self.value) if unit == "B/s" else f"{spaced(self.value)} {unit}"
        self.shown = rate
        self.by = cut(str(entry.get("by") or ""), CELL)
        self.date = cut(str(entry.get("date") or "")[:10])
        self.doubt = _doubt(entry)
        self._fraction = entry.get("fraction")

    def share(self, derived: float | None) -> float | None:
        """Return its part of a derived figure, in percent and at most 100.

        None where unknown, and where it was measured of something else: a loop on the vector
        units, where the derived figure is that of the matrix units.
        """
        return percent(self.value, derived) if self.compares(derived) else None

    def compares(self, derived: float | None) -> bool:
        """Return whether its own fraction is that of this derived figure, as far as it has one."""
        if not derived or not isinstance(self._fraction, int | float):
            return bool(derived)
        return abs(self.value / derived - self._fraction) <= _SAME * self._fraction


def _label(entry: Mapping[str, Any]) -> str:
    kind = cut(str(entry.get("kind") or ""), 24)
    if entry.get("unit") == "B/s":
        return f"memory {cut(str(entry.get('figure') or ''), 24)}".strip()
    return " ".join(filter(None, [cut(str(entry.get("dtype") or ""), 24), kind]))


def _doubt(entry: Mapping[str, Any]) -> str:
    """Return why the figure is not for planning; "" where nothing speaks against it."""
    if entry.get("stale"):
        return f"stale: {cut(str(entry['stale']), 80)}"
    disturbed = entry.get("disturbed")
    if isinstance(disturbed, list) and disturbed:
        return f"disturbed: {cut(', '.join(map(str, disturbed)), 80)}"
    return ""


def measured_of(device: DeviceDoc) -> list[Measured]:
    """Return the measurements of a device; those without a figure are left out."""
    table: Mapping[str, Any] = device
    entries = table.get("measured")
    if not isinstance(entries, list | tuple):
        return []
    return [Measured(entry) for entry in entries[:_MOST] if _is_figure(entry)]


def _is_figure(entry: object) -> bool:
    best = entry.get("best") if isinstance(entry, dict) else None
    return type(best) in (int, float) and 0 < best < 1e18  # type: ignore[operator]


def best_of(device: DeviceDoc, figure: str) -> Measured | None:
    """Return the best measurement of a figure: those that nothing speaks against come first."""
    fits = [entry for entry in measured_of(device) if entry.figure == figure]
    return max(fits, key=lambda entry: (not entry.doubt, entry.value), default=None)
