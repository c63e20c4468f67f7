"""The report's own JSON, whole where the page has room: it is valid JSON in any case."""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.model.document import ReportDoc

__all__ = ["Raw", "raw_of"]

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
