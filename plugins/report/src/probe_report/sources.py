"""Where every figure comes from: how each peak is derived, which prober gave each other field."""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import rate
from probe_report.figures import SENTENCE, UNKNOWN, cut, short
from probe_report.groups import Names, alike, model_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from probe_core.model.document import DeviceDoc, PeakDoc, ReportDoc

__all__ = ["Line", "Source", "Sources", "sources_of"]

_MOST_LINES = 320
"""Lines of all devices together, at some 400 bytes of the page each."""

_MOST_OF_ONE = 64


class Line(NamedTuple):
    """One figure: its name, value, how it came about, and how sure that is."""

    name: str
    value: str
    how: str
    confidence: str


class Source(NamedTuple):
    """Equal devices with their lines; `hidden` counts the lines beyond the bound."""

    title: str
    ids: str
    chip: str
    lines: tuple[Line, ...]
    hidden: int


class Sources(NamedTuple):
    """All of them, and how many groups of devices are not shown."""

    groups: tuple[Source, ...]
    hidden: int


def sources_of(report: ReportDoc, names: Names) -> Sources:
    """Return the sources of a report's figures; the bound is shared by all devices."""
    groups = alike(report["devices"], _key)
    shown: list[Source] = []
    room = _MOST_LINES
    for group in groups:
        if room <= 0:
            break
        source = _source(group, names, min(room, _MOST_OF_ONE))
        room -= max(1, len(source.lines))
        shown.append(source)
    return Sources(tuple(shown), len(groups) - len(shown))


def _key(device: DeviceDoc) -> Hashable:
    peaks = tuple((peak["dtype"], peak["path"], peak["tflops"]) for peak in device["peaks"])
    unknown = tuple(device["unknown"].items())
    return device["name"], device["kind"], device["chip"]["id"], peaks, unknown


def _source(group: Sequence[DeviceDoc], names: Names, room: int) -> Source:
    device = group[0]
    lines = [
        *map(_peak, device["peaks"]),
        *(Line(cut(field, 80), UNKNOWN, cut(reason, SENTENCE), "unknown")
          for field, reason in device["unknown"].items()),
        *_fields(device),
    ]  # fmt: skip
    count = f"{len(group)} × " if len(group) > 1 else ""
    return Source(
        title=f"{count}{model_of(device)}",
        ids=short([names.address(member["id"]) for member in group], 16),
        chip=_chip(device),
        lines=tuple(lines[:room]),
        hidden=max(0, len(lines) - room),
    )


def _chip(device: DeviceDoc) -> str:
    chip = device["chip"]
    if chip["id"]:
        return cut(f"chip {chip['id']} by {chip['by']}, {chip['confidence']} confidence")
    if chip["candidates"]:
        return cut(f"ambiguous: {short(chip['candidates'], 4)}")
    return ""


def _peak(peak: PeakDoc) -> Line:
    name = f"{peak['dtype']} {peak['path']}"
    if peak.get("variant"):
        name += f", {peak['variant']}"
    if peak["sparsity"] != "dense":
        name += f", {peak['sparsity']}"
    unit = "TOPS" if "int" in peak["dtype"] else "TFLOPS"
    least = "≥ " if peak.get("bound") == "lower" else ""
    return Line(
        name=cut(name, 80),
        value=f"{least}{rate(peak['tflops'])} {unit}",
        how=cut(peak["source"], SENTENCE),
        confidence=cut(peak["confidence"], 24),
    )


def _fields(device: DeviceDoc) -> list[Line]:
    """Return the other fields by their source: those of one source are one line."""
    fields: dict[str, list[str]] = {}
    for field, source in device["sources"].items():
        if field != "peaks":
            fields.setdefault(source, []).append(field)
    return [
        Line("fields", "", cut(", ".join(sorted(names)), SENTENCE), cut(source, 24))
        for source, names in fields.items()
    ]
