"""The table of devices: equal ones in one row, derived figures with the measured ones beneath.

What `probe bench` achieved is shown beside the derived figures, never mixed. A measurement is
foreign data here: a report of a newer core may have more kinds of them.
"""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import bandwidth, size
from probe_core.model.ids import ACCELERATORS, driver_text
from probe_report.figures import (
    CELL,
    UNKNOWN,
    Names,
    alike,
    cut,
    dense,
    model_of,
    percent,
    short,
    spaced,
    style_of,
    word_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from typing import Any

    from probe_core.model.document import DeviceDoc, ReportDoc


_MOST_ROWS = 64
"""Rows; a row takes 1.2 kB of the page."""

_NAMED = 4
"""Devices that a sentence names; of more it gives the number."""

_FIGURES = {"fp32": "TFLOPS", "fp16": "TFLOPS", "int8": "TOPS"}


class Figure(NamedTuple):
    """One derived figure, its reason where it is not known, and what was measured of it.

    `share` is the measured part of the derived figure in percent, None where there is no bar.
    """

    label: str
    derived: str
    reason: str
    measured: str
    share: float | None
    doubt: str


class Row(NamedTuple):
    """Equal devices: their model, state, memory, figures and where they are."""

    number: int
    name: str
    ids: str
    status: str
    style: str
    memory: str
    memory_kind: str
    figures: tuple[Figure, ...]
    link: str
    power: str
    driver: str
    source: str
    is_part: bool


class Devices(NamedTuple):
    """The rows, how many devices are in none of them, and sentences about what was measured."""

    rows: tuple[Row, ...]
    hidden: int
    measured: tuple[str, ...]


def devices_of(report: ReportDoc, names: Names) -> Devices:
    """Return the table of a report's devices, accelerators first."""
    ordered = sorted(report["devices"], key=lambda device: _rank(device))
    groups = alike(ordered, _key)
    rows = tuple(_row(group, names) for group in groups[:_MOST_ROWS])
    hidden = sum(len(group) for group in groups[_MOST_ROWS:])
    return Devices(rows, hidden, _measured(report["devices"], names))


def _rank(device: DeviceDoc) -> int:
    return (device["kind"] not in ACCELERATORS) + (device["kind"] == "display")


def _key(device: DeviceDoc) -> Hashable:
    figures = tuple(dense(device, field) for field in _FIGURES)
    memory = device["memory"]
    measured = tuple((entry.label, entry.value) for entry in measured_of(device))
    return (
        device["name"],
        device["kind"],
        device["vendor"],
        device.get("profile"),
        word_of(device),
        memory["kind"],
        memory["total"],
        device["bandwidth"],
        figures,
        driver_text(device),
        _link(device),
        measured,
    )


def _row(group: Sequence[DeviceDoc], names: Names) -> Row:
    device = group[0]
    status = word_of(device)
    memory = device["memory"]
    is_shared = memory["kind"] in ("shared", "unified")
    return Row(
        number=len(group),
        name=model_of(device),
        ids=short([names.address(member["id"]) for member in group], 16),
        status=status or UNKNOWN,
        style=style_of(status) if device["kind"] != "display" else "none",
        memory=size(memory["total"]) if device["kind"] != "display" else "",
        memory_kind="shared" if is_shared else memory["kind"] or "",
        figures=() if device["kind"] == "display" else _figures(device),
        link=_link(device),
        power=_power(device),
        driver=cut(driver_text(device) or ""),
        source=cut(", ".join(device.get("seen_by") or ())),
        is_part=bool(device.get("parent")),
    )


def _figures(device: DeviceDoc) -> tuple[Figure, ...]:
    figures = [
        _figure(device, field, dense(device, field), spaced(dense(device, field)))
        for field in _FIGURES
    ]
    rate = device["bandwidth"]
    shown = UNKNOWN if rate is None else bandwidth(rate).partition(" ")[0]
    return (*figures, _figure(device, "bandwidth", rate, shown))


def _figure(device: DeviceDoc, field: str, derived: float | None, shown: str) -> Figure:
    entry = best_of(device, field)
    bound = derived is not None and field in _FIGURES and _is_bound(device)
    part = entry.share(derived) if entry is not None else None
    return Figure(
        label=field,
        derived=f"≥ {shown}" if bound else shown,
        reason="" if derived is not None else cut(_reason(device, field)),
        measured="" if entry is None else _beneath(entry, derived),
        share=part,
        doubt="" if entry is None else entry.doubt,
    )


def _beneath(entry: Measured, derived: float | None) -> str:
    """Return ``794 measured · 80 %``; above the derived figure the true part, not a full bar."""
    part = ""
    if derived and entry.compares(derived):
        part = f" · {100 * entry.value / derived:.0f}\N{NO-BREAK SPACE}%"
    return f"{entry.shown.partition(' ')[0]} measured{part}"


def _is_bound(device: DeviceDoc) -> bool:
    return any(peak.get("bound") == "lower" for peak in device["peaks"])


def _reason(device: DeviceDoc, field: str) -> str:
    unknown = device["unknown"]
    return unknown.get(field) or unknown.get("peaks") or unknown.get("chip") or "not known"


def _link(device: DeviceDoc) -> str:
    for link in device["links"]:
        if link["kind"] == "pcie" and link.get("width") and link.get("generation"):
            return f"PCIe {link['generation']} ×{link['width']}"
    return ""


def _power(device: DeviceDoc) -> str:
    limit = (device.get("power") or {}).get("limit_watts")
    return f"limit {limit:g} W" if limit else ""


def _measured(devices: Sequence[DeviceDoc], names: Names) -> tuple[str, ...]:
    """Return a sentence for each measurement: who achieved what on which device, and when.

    Devices of which the same was measured share a sentence.
    """
    labels: dict[str, list[str]] = {}
    for device in devices:
        for entry in measured_of(device):
            date = f" on {entry.date}" if entry.date else ""
            doubt = f" ({entry.doubt})" if entry.doubt else ""
            by = f"achieved by {entry.by or 'an unknown program'}"
            sentence = cut(f"{entry.label} {entry.shown}, {by}{date}{doubt}", 2 * CELL)
            labels.setdefault(sentence, []).append(names.label(device))
    sentences = [
        f"{', '.join(own) if len(own) <= _NAMED else f'{len(own)} devices'}: {sentence}"
        for sentence, own in labels.items()
    ]
    beyond = len(sentences) - _MOST_ROWS
    return (*sentences[:_MOST_ROWS], f"and {beyond} more") if beyond > 0 else tuple(sentences)


# What `probe bench` achieved, as the report has it.

_MOST_MEASURED = 24
"""Measurements of one device that the page shows: eight types and three directions, twice."""

_SAME_FRACTION = 0.02
"""Two fractions that differ by less are of the same figure: reports round them."""


class Measured:
    """One measurement: what was measured, the figure, who achieved it, and what speaks against it.

    `share` is its part of the derived figure in percent, None where that is not known.
    """

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
        return abs(self.value / derived - self._fraction) <= _SAME_FRACTION * self._fraction


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
    return [Measured(entry) for entry in entries[:_MOST_MEASURED] if _is_figure(entry)]


def _is_figure(entry: object) -> bool:
    best = entry.get("best") if isinstance(entry, dict) else None
    return type(best) in (int, float) and 0 < best < 1e18  # type: ignore[operator]


def best_of(device: DeviceDoc, figure: str) -> Measured | None:
    """Return the best measurement of a figure: those that nothing speaks against come first."""
    fits = [entry for entry in measured_of(device) if entry.figure == figure]
    return max(fits, key=lambda entry: (not entry.doubt, entry.value), default=None)
