"""The table of `probe`: a row a device, or two lines where the terminal is narrow, then notes.

A model's name is never cut: columns leave first, then each device takes two lines, then its name
wraps at a space. A cut name misleads, see fastfetch#224 ("RX 470/480/").
"""

from __future__ import annotations

from probe_core.cli.notes import head_lines, notes
from probe_core.cli.rows import FIGURES, UNKNOWN, Row, rows_of
from probe_core.commands import text
from probe_core.model.kinds import ACCELERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.commands import Context
    from probe_core.model.document import ReportDoc

__all__ = ["lines"]

_UNITS = {
    "DEVICE": "",
    "STATE": "",
    "MEMORY": "GiB",
    "FREE": "GiB",
    "FP32": "TFLOPS",
    "FP16": "TFLOPS",
    "INT8": "TOPS",
    "BANDW.": "GB/s",
    "ID": "",
}
"""Columns in their order, and the units below their heads."""

_LEAVING = ("BANDW.", "INT8", "FP32", "FREE")
"""Columns in the order in which they leave where the terminal is narrow."""

_GAP = "  "
_TWO_LINES_BELOW = 72
"""Columns of a terminal on which each device takes two lines: a head, five columns and an id take
about as many with a short name (mockups)."""


def lines(report: ReportDoc, context: Context) -> list[str]:
    """Return the head line, the table of devices, the notes and the findings."""
    from probe_core.cli.findings import summary_lines

    findings = summary_lines(report, context)
    all_devices = bool(getattr(context.args, "all", False))
    rows = rows_of(report, all_devices=all_devices, show=context.encodable)
    if not rows:  # of a static report that somebody wrote
        return [*head_lines(report, context), "", "no device", *findings]
    columns = _columns(rows, context.width)
    if columns is None:
        table = _two_lines_each(rows, context)
    else:
        table = _one_line_each(rows, columns, context)
    below = notes(report, rows, context, narrow=columns is None)
    return [*head_lines(report, context), "", *table, "", *below, *findings]


def _columns(rows: Sequence[Row], width: int) -> list[str] | None:
    """Return the columns that fit; None where each device takes two lines."""
    if width < _TWO_LINES_BELOW:
        return None
    columns = [name for name in _UNITS if name == "DEVICE" or _has_value(rows, name)]
    for name in ("", *_LEAVING):
        if name in columns and _may_leave(name, rows, columns):
            columns.remove(name)
        if sum(_width(rows, column) for column in columns) + len(_GAP) * len(columns[1:]) <= width:
            return columns
    return None


def _has_value(rows: Sequence[Row], column: str) -> bool:
    return any(row.cells[column] not in ("", UNKNOWN, "-") for row in rows)


def _may_leave(column: str, rows: Sequence[Row], columns: Sequence[str]) -> bool:
    """Return whether no accelerator loses its only peak with a column."""
    if column not in FIGURES:
        return True
    others = [name for name in columns if name in FIGURES and name != column]
    for row in rows:
        is_alone = _has_value([row], column) and not any(_has_value([row], o) for o in others)
        if is_alone and (row.devices[0]["kind"] in ACCELERATORS or not others):
            return False
    return True


def _width(rows: Sequence[Row], column: str) -> int:
    cells = [_head(column), _UNITS[column], *(_cell(row, column) for row in rows)]
    return max(map(text.width_of, cells))


def _head(column: str) -> str:
    return "  DEVICE" if column == "DEVICE" else column  # above the names, not the mark


def _cell(row: Row, column: str) -> str:
    return _marked(row) if column == "DEVICE" else row.cells[column]


def _marked(row: Row) -> str:
    return f"{'*' if row.is_primary else ' '} {_branch(row)}{row.name}"


def _branch(row: Row) -> str:
    return "└ " if row.is_part else ""


def _one_line_each(rows: Sequence[Row], columns: Sequence[str], context: Context) -> list[str]:
    widths = {column: _width(rows, column) for column in columns}
    heads = {column: _head(column) for column in columns}
    output = [
        text.paint(_line(cells, widths), "dim", context.colour)
        for cells in (heads, {column: _UNITS[column] for column in columns})
        if any(cells.values())
    ]
    for row in rows:
        cells = {column: _cell(row, column) for column in columns}
        output.append(_painted(row, cells, widths, context))
    return output


def _line(cells: dict[str, str], widths: dict[str, int]) -> str:
    return _GAP.join(_padded(cells[name], name, widths[name]) for name in cells).rstrip()


def _padded(cell: str, column: str, width: int) -> str:
    space = " " * (width - text.width_of(cell))
    return space + cell if _UNITS[column] else cell + space


def _painted(row: Row, cells: dict[str, str], widths: dict[str, int], context: Context) -> str:
    """Return a row's line in its colours, which take no columns."""
    line = _line(cells, widths)
    if not context.colour:
        return line
    if row.is_dim:
        return text.paint(line, "dim", True)
    name, state = cells["DEVICE"], cells.get("STATE", "")
    # The state stands behind the name's column, so the name is painted last.
    start = widths["DEVICE"] + len(_GAP) - (text.width_of(name) - len(name))
    line = line[:start] + line[start:].replace(state, text.paint(state, row.state_style, True), 1)
    return text.paint(name, "bold", True) + line[len(name) :] if row.is_primary else line


def _two_lines_each(rows: Sequence[Row], context: Context) -> list[str]:
    longest = max(text.width_of(_marked(row)) for row in rows)
    state = max(text.width_of(row.cells["STATE"]) for row in rows)
    edge = min(context.width, max(_TWO_LINES_BELOW, longest + len(_GAP) + state))
    output = []
    for row in rows:
        shown = [*_name_lines(row, edge, context)]
        shown += text.listed(_details(row), context.width, " " * 4)
        is_dim = row.is_dim and context.colour
        output += [text.paint(line, "dim", True) for line in shown] if is_dim else shown
    return output


def _name_lines(row: Row, edge: int, context: Context) -> list[str]:
    """Return the name, wrapped at spaces, with the state at the end of its first line."""
    state = row.cells["STATE"]
    room = edge - len(_GAP) - text.width_of(state)
    first, *others = text.folded(row.name, room, _marked(row)[: 2 + len(_branch(row))], " " * 4)
    space = " " * (edge - text.width_of(first) - text.width_of(state))
    colour = context.colour and not row.is_dim
    style = "bold" if row.is_primary else None
    line = text.paint(first, style, colour) + space + text.paint(state, row.state_style, colour)
    return [line.rstrip(), *(text.paint(other, style, colour) for other in others)]


def _details(row: Row) -> list[str]:
    """Return memory, the peak that tells most, and the id: what a narrow terminal shows."""
    memory, free = row.cells["MEMORY"], row.cells["FREE"]
    details = []
    if memory == "shared":
        details.append("shared memory")
    elif _has_value([row], "MEMORY"):
        details.append(f"{memory} GiB" + (f", {free} free" if _has_value([row], "FREE") else ""))
    for column, (field, unit) in FIGURES.items():
        if _has_value([row], column):
            details.append(f"{field} {row.cells[column]} {unit}")
            break
    return [*details, row.cells["ID"]]
