"""Where every figure comes from: how peaks are derived, how probers ran, the report itself."""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import rate, write_json
from probe_report.figures import SENTENCE, UNKNOWN, Names, alike, cut, model_of, percent, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from probe_core.model.document import DeviceDoc, OutcomeDoc, PeakDoc, ReportDoc


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
        hidden=len(lines[room:]),
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


# How each prober's run ended, and how long it took.

_MOST_RUNS = 48
"""Probers; an installation of all plugins has a dozen."""

_NORMAL = ("ok", "not_applicable", "skipped")


class Run(NamedTuple):
    """One prober: `spent` is its time, `share` that of the slowest one in percent."""

    name: str
    package: str
    status: str
    style: str
    spent: str
    share: float | None
    devices: str
    reason: str
    output: tuple[str, ...]


def runs_of(report: ReportDoc) -> tuple[tuple[Run, ...], tuple[Run, ...], int]:
    """Return the probers that ran, those that were not needed, and how many are not shown."""
    outcomes = report["outcomes"][:_MOST_RUNS]
    slowest = max((outcome["elapsed_ms"] for outcome in outcomes), default=0.0)
    ran = [outcome for outcome in outcomes if outcome["status"] != "skipped"]
    skipped = [outcome for outcome in outcomes if outcome["status"] == "skipped"]
    return (
        _runs(ran, slowest),
        _runs(skipped, slowest),
        len(report["outcomes"][_MOST_RUNS:]),
    )


def _runs(outcomes: Sequence[OutcomeDoc], slowest: float) -> tuple[Run, ...]:
    return tuple(_run(outcome, slowest) for outcome in outcomes)


def _run(outcome: OutcomeDoc, slowest: float) -> Run:
    status = cut(outcome["status"], 24).replace("_", " ")
    if outcome["partial"]:
        status += " (partial)"
    good = outcome["status"] == "ok"
    return Run(
        name=cut(outcome["prober"], 64),
        package=cut(outcome["distribution"], 64),
        status=status,
        style="good" if good else "none" if outcome["status"] in _NORMAL else "bad",
        spent=f"{outcome['elapsed_ms']:.1f} ms",
        share=percent(outcome["elapsed_ms"], slowest),
        devices=str(outcome["devices"]),
        reason=cut(outcome["reason"], SENTENCE),
        output=tuple(cut(line, SENTENCE) for line in outcome.get("stderr", ())[:8]),
    )


# The report's own JSON, whole where the page has room: it is valid JSON in any case.

ROOM = 160_000
"""Characters: eight H100 have 85,000; the page as a whole may have 600 kB."""


class Raw(NamedTuple):
    """The text, how many of the devices it holds, and how many of the findings."""

    text: str
    shown: int
    devices: int
    shown_findings: int
    findings: int


def raw_of(report: ReportDoc, room: int = ROOM) -> Raw:
    """Return as many findings and devices as there is room for, one line each, and all else.

    Findings may take half of the room. Where even the frame have none the text is empty.
    """
    counts = len(report["devices"]), len(report["findings"])
    frame = _lines({**report, "devices": [], "findings": []})
    room -= len(frame)
    if room <= 0:
        return Raw("", 0, counts[0], 0, counts[1])
    findings = _fitting(report["findings"], room // 2)
    devices = _fitting(report["devices"], room - sum(map(len, findings)))
    text = _filled(_filled(frame, "devices", devices), "findings", findings)
    return Raw(text, len(devices), counts[0], len(findings), counts[1])


def _fitting(entries: Iterable[object], room: int) -> list[str]:
    texts: list[str] = []
    for entry in entries:
        text = f"  {write_json(entry)},\n"
        room -= len(text)
        if room < 0:
            break
        texts.append(text)
    return texts


def _filled(table: str, name: str, lines: Sequence[str]) -> str:
    """Return a table's text with entries in one of its lists that is empty."""
    if not lines:
        return table
    entries = "".join(lines).removesuffix(",\n")
    return table.replace(f'\n "{name}": []', f'\n "{name}": [\n{entries}\n ]', 1)


def _lines(table: Mapping[str, object]) -> str:
    """Return a table with a line for each key: Python's C encoder indents nothing."""
    parts = [f" {write_json(name)}: {write_json(value)}" for name, value in table.items()]
    return "{\n" + ",\n".join(parts) + "\n}"
