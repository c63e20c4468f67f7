"""The report's own JSON, whole where the page has room: it is valid JSON in any case."""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, ReportDoc

__all__ = ["Raw", "raw_of"]

ROOM = 160_000
"""Characters: eight H100 have 85,000; the page as a whole may have 600 kB."""


class Raw(NamedTuple):
    """The text, and how many of the devices it holds."""

    text: str
    shown: int
    devices: int


def raw_of(report: ReportDoc, room: int = ROOM) -> Raw:
    """Return as many devices of the report as there is room for, one line each, and all else.

    Where even that has no room the text is empty.
    """
    rest = _lines({**report, "devices": []})
    texts: list[str] = []
    used = len(rest)
    for device in report["devices"]:
        text = _line(device)
        used += len(text) + 4
        if used > room:
            break
        texts.append(text)
    if used > room and not texts:
        return Raw("", 0, len(report["devices"]))
    devices = ",\n  ".join(texts)
    text = rest.replace('"devices": []', f'"devices": [\n  {devices}\n ]', 1)
    return Raw(text, len(texts), len(report["devices"]))


def _line(device: DeviceDoc) -> str:
    return write_json(device)


def _lines(table: dict[str, object]) -> str:
    """Return a table with a line for each key: Python's C encoder indents nothing."""
    parts = [f" {write_json(name)}: {write_json(value)}" for name, value in table.items()]
    return "{\n" + ",\n".join(parts) + "\n}"
