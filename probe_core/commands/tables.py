"""Tables that fit every terminal and cut no cell: columns leave, a long cell wraps, rows stack."""

from __future__ import annotations

from probe_core.commands import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Rows = Sequence[Sequence[str]]

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
) -> list[str]:
    """Return a table as lines of at most `width`, none of whose cells is cut.

    The first row holds the heads. `right` names columns that are set flush right, `wrap` the one
    whose cells may take several lines. Where not all fits, first the columns `leaving` are left
    out, in that order; then `wrap` stands below its row; then each row's cells follow each other,
    and the heads are left out. A column without any value is left out at any width.
    """
    lines = grid_rows(rows, width, right=right, wrap=wrap, leaving=leaving, indent=indent)
    return [line for row in lines for line in row]


def grid_rows(
    rows: Rows,
    width: int,
    *,
    right: Iterable[str] = (),
    wrap: str | None = None,
    leaving: Iterable[str] = (),
    indent: str = "",
) -> list[list[str]]:
    """Return what `grid` returns, the lines of each row together: the first are the heads."""
    rows = _with_values(rows)
    flush = frozenset(right)
    room = width - text.width_of(indent)
    for name in leaving:
        if _needed(rows, wrap) <= room:
            break
        rows = _without(rows, name)
    if _needed(rows, wrap) <= room:
        wrapping = wrap if wrap in rows[0] else None
        return _beside(rows, room, flush, wrapping, indent)
    if wrap is None or wrap not in rows[0]:
        return _stacked(rows, [""] * len(rows), width, indent)
    place = list(rows[0]).index(wrap)
    long_cells = ["", *(row[place] for row in rows[1:])]  # the head is another column's below
    rows = _without(rows, wrap)
    if _needed(rows, None) > room:
        return _stacked(rows, long_cells, width, indent)
    lines = _beside(rows, room, flush, None, indent)
    below = indent + " " * 4
    pairs = zip(lines, long_cells, strict=True)
    return [[*row, *text.folded(cell, width, below)] for row, cell in pairs]


def _beside(
    rows: Rows, room: int, flush: frozenset[str], wrap: str | None, indent: str
) -> list[list[str]]:
    """Return aligned rows; the cells of `wrap` take what the other columns leave."""
    widths = text.widths_of(rows)
    place = -1
    if wrap is not None:
        place = list(rows[0]).index(wrap)
        others = sum(widths) - widths[place] + len(text.GAP) * (len(widths) - 1)
        widths[place] = min(widths[place], room - others)
    right = [at for at, name in enumerate(rows[0]) if name in flush]
    return [
        [
            (indent + text.aligned(cells, widths, right)).rstrip()
            for cells in _lines_of(row, place, widths)
        ]
        for row in rows
    ]


def _lines_of(row: Sequence[str], place: int, widths: Sequence[int]) -> list[list[str]]:
    """Return a row's cells line by line: only the one at `place` has more than one."""
    if place < 0 or text.width_of(row[place]) <= widths[place]:
        return [list(row)]
    pieces = text.folded(row[place], widths[place])
    blank = [""] * len(row)
    cells = [[*row] if at == 0 else [*blank] for at in range(len(pieces))]
    for line, piece in zip(cells, pieces, strict=True):
        line[place] = piece
    return cells


def _stacked(rows: Rows, cells: Sequence[str], width: int, indent: str) -> list[list[str]]:
    hanging = indent + " " * 4
    stacked: list[list[str]] = [[]]
    for row, cell in list(zip(rows, cells, strict=True))[1:]:
        first = text.listed(row, width, indent, hanging, separator=text.GAP)
        stacked.append([*first, *text.folded(cell, width, hanging)])
    return stacked


def _needed(rows: Rows, wrap: str | None) -> int:
    """Return the columns that the rows take, with as little of `wrap` as may be."""
    needed = -len(text.GAP)
    for column in zip(*rows, strict=True):
        widest = max(map(text.width_of, column))
        needed += len(text.GAP) + (min(widest, _LEAST_WRAPPED) if column[0] == wrap else widest)
    return needed


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
