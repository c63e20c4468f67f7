"""Tables that fit every terminal and cut no cell: columns leave, long cells wrap, rows stack."""

from __future__ import annotations

from probe_core.commands import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Rows = Sequence[Sequence[str]]

__all__ = ["grid"]

GAP = "  "

# Columns of a wrapped cell at least: below this a sentence is one word a line. A judgement.
_LEAST_WRAPPED = 24


def grid(
    rows: Rows,
    width: int,
    *,
    right: Iterable[str] = (),
    wrap: str | None = None,
    leaving: Iterable[str] = (),
    indent: str = "",
) -> list[list[str]]:
    """Return the lines of each row, none wider than `width`; the first row holds the heads.

    `right` names columns that are set flush right, `wrap` the last column, whose cells may take
    several lines. Where not all fits, first the columns `leaving` are left out, in that order; then
    `wrap` stands below its row; then each row's cells follow each other, and the heads are left
    out. A column without any value is left out at any width.
    """
    rows = _with_values(rows)
    room = width - text.width_of(indent)
    for name in leaving:
        if _needed(rows, wrap) <= room:
            break
        rows = _without(rows, name)
    if wrap is not None and wrap in rows[0]:
        return _wrapping(rows, room, right, wrap, indent)
    if _needed(rows, None) <= room:
        return [[line] for line in _aligned(rows, right, indent)]
    return _stacked(rows, [""] * len(rows), width, indent)


def _wrapping(
    rows: Rows, room: int, right: Iterable[str], wrap: str, indent: str
) -> list[list[str]]:
    """Return the lines of rows with a column whose cells may wrap: beside the others, or below."""
    place = list(rows[0]).index(wrap)
    long_cells = [row[place] for row in rows]
    others = _without(rows, wrap)
    widths = [max(map(text.width_of, column)) for column in zip(*others, strict=True)]
    used = sum(widths) + len(GAP) * len(widths)
    longest = max(map(text.width_of, long_cells))
    if used + min(longest, _LEAST_WRAPPED) <= room:
        start = " " * (text.width_of(indent) + used)
        lines = _aligned(others, right, indent, whole=True)
        return [
            _beside(line, cell, room + text.width_of(indent), start)
            for line, cell in zip(lines, long_cells, strict=True)
        ]
    if used - len(GAP) > room:
        return _stacked(others, long_cells, room + text.width_of(indent), indent)
    below = indent + " " * 4
    lines = _aligned(others, right, indent)
    cells = ["", *long_cells[1:]]  # its head would stand above another column
    return [
        [line, *text.folded(cell, room + text.width_of(indent), below)]
        for line, cell in zip(lines, cells, strict=True)
    ]


def _beside(line: str, cell: str, width: int, start: str) -> list[str]:
    first, *others = text.folded(cell, width, start) or [""]
    return [(line + GAP + first[len(start) :]).rstrip(), *others]


def _stacked(rows: Rows, cells: Sequence[str], width: int, indent: str) -> list[list[str]]:
    hanging = indent + " " * 4
    stacked: list[list[str]] = [[]]
    for row, cell in list(zip(rows, cells, strict=True))[1:]:
        shown = GAP.join(value for value in row if value)
        stacked.append(
            [*text.folded(shown, width, indent, hanging), *text.folded(cell, width, hanging)]
        )
    return stacked


def _needed(rows: Rows, wrap: str | None) -> int:
    """Return the columns that the rows take, with as little of `wrap` as may be."""
    needed = -len(GAP)
    for column in zip(*rows, strict=True):
        widest = max(map(text.width_of, column))
        needed += len(GAP) + (min(widest, _LEAST_WRAPPED) if column[0] == wrap else widest)
    return needed


def _aligned(rows: Rows, right: Iterable[str], indent: str, *, whole: bool = False) -> list[str]:
    """Return one line a row; `whole`: also blanks at its end."""
    flush = set(right)
    columns = [_padded(column, is_right=column[0] in flush) for column in zip(*rows, strict=True)]
    lines = [indent + GAP.join(cells) for cells in zip(*columns, strict=True)]
    return lines if whole else [line.rstrip() for line in lines]


def _padded(column: Sequence[str], *, is_right: bool) -> list[str]:
    widest = max(map(text.width_of, column))
    spaces = [" " * (widest - text.width_of(cell)) for cell in column]
    pairs = zip(spaces, column, strict=True)
    return [space + cell if is_right else cell + space for space, cell in pairs]


def _with_values(rows: Rows) -> Rows:
    heads, *body = rows
    empty = [name for at, name in enumerate(heads) if body and not any(row[at] for row in body)]
    for name in empty:
        rows = _without(rows, name)
    return rows


def _without(rows: Rows, name: str) -> Rows:
    if name not in rows[0]:
        return rows
    place = list(rows[0]).index(name)
    return [[*row[:place], *row[place + 1 :]] for row in rows]
