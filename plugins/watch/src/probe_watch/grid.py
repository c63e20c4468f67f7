"""The tables of the screen: their lines, and what shows them, Textual's DataTable with one column.

A device that hangs has a sentence where the others have their figures, and a DataTable has no cell
that spans several columns. So a line is one cell, and the head is its column's label.
"""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.binding import Binding
from textual.widgets import DataTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from typing import Any, ClassVar, Self

    from textual.geometry import Region

    Line = tuple[str, Text]
    """What a line is about, which is unique in its table, and its text."""

    Cell = str | tuple[str, str]
    """A text, and its style where it has one of its own."""

    Entry = tuple[str, Sequence[Cell], str]
    """What a line is about, its cells, and its style."""

_COLUMN = "line"

GAP = 2
"""Columns of the terminal between two of a table."""

_WIDEST = 30
"""Columns of a cell at most, the last of a line excepted."""

_LEAST_LAST = 24
"""Columns that the last cell has, if it fills them, before one in the middle is shown."""


def table(
    heads: Sequence[str],
    entries: Sequence[Entry],
    width: int,
    right: Container[str] = (),
    widths: Sequence[int] = (),
) -> tuple[Text, list[Line]]:
    """Return the head and the lines of a table.

    Without `widths` a column without any value is left out, as is one of which `width` has room for
    a part alone, but the last: half a number is another number. The last, such as a command line,
    has some room of its own before. An entry with fewer cells than
    heads has a sentence as its last one, for the rest of the line.
    """
    widths = widths or _widths(heads, entries, width)

    def line(cells: Sequence[Cell], style: str = "") -> Text:
        text, last = Text(no_wrap=True), len(cells) - 1
        for at, cell in enumerate(cells):
            plain, own = (cell, style) if isinstance(cell, str) else cell
            if heads[at] in right:
                plain = plain.rjust(widths[at])
            if at == last:
                text.append(plain, own)
            elif widths[at]:
                text.append(fitted(plain, widths[at]), own).append(" " * GAP)
        return text

    return line(heads), [(key, line(cells, style)) for key, cells, style in entries]


def _widths(heads: Sequence[str], entries: Sequence[Entry], width: int) -> list[int]:
    """Return the width of each column, 0 of those that are left out."""
    whole = [cells for _, cells, _ in entries if len(cells) == len(heads)]
    widths, end = [], -GAP
    least = min(_LEAST_LAST, max((cell_len(str(cells[-1])) for cells in whole), default=0))
    for at, head in enumerate(heads):
        rows = [cells for _, cells, _ in entries] if at == 0 else whole
        texts = (cells[at] for cells in rows)
        widest = max((cell_len(text) for text in texts if isinstance(text, str)), default=0)
        room = min(_WIDEST, max(widest, len(head))) if widest or not whole else 0
        if end + GAP + room + GAP + least > width and 0 < at < len(heads) - 1:
            room = 0
        end += room + GAP if room else 0
        widths.append(room)
    return widths


def fitted(text: str, width: int) -> str:
    """Return a text of exactly so many columns of the terminal, with ``…`` where it is cut."""
    if cell_len(text) > width:
        text = set_cell_size(text, max(0, width - 1)) + "…"
    return set_cell_size(text, width)


class Grid(DataTable[Text]):
    """Lines below a head, with a cursor. `text` is all of it, as plain text."""

    DEFAULT_CSS = """
    Grid { height: 1fr; scrollbar-size-horizontal: 0; scrollbar-size-vertical: 1;
           background: $background; }
    Grid:focus { background-tint: $background 0%; }
    Grid > .datatable--odd-row, Grid > .datatable--even-row { background: $background; }
    Grid > .datatable--header { background: $background; color: $foreground; text-style: bold; }
    Grid > .datatable--cursor { background: $surface; color: $foreground; }
    Grid:focus > .datatable--cursor { background: $primary-muted; text-style: bold; }
    Grid:nocolor:focus > .datatable--cursor { text-style: reverse; }
    """

    BINDINGS: ClassVar[list[Any]] = [
        Binding("enter", "select_cursor", "info", key_display="enter"),
        Binding("home", "scroll_top", "first", show=False),
        Binding("end", "scroll_bottom", "last", show=False),
    ]

    _by_line = False

    def __init__(self, identity: str) -> None:
        super().__init__(id=identity, cursor_type="row", cell_padding=0)
        self._head = Text()
        self._lines: Sequence[Line] = ()
        self._last = ""

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self._lines]

    @property
    def key(self) -> str:
        """Return what the line under the cursor is about; "" without lines."""
        return self.keys[self.cursor_row] if self._lines else ""

    @property
    def line(self) -> Text | None:
        """Return the line under the cursor; None without lines."""
        return self._lines[self.cursor_row][1] if self._lines else None

    @property
    def text(self) -> str:
        return "\n".join([self._head.plain, *(text.plain for _, text in self._lines)])

    def show(self, head: Text, lines: Sequence[Line] = ()) -> None:
        """Show these lines. The cursor stays on what it was on, else in its place."""
        before, keys = self._lines, [key for key, _ in lines]
        if head != self._head or keys != self.keys or not self.columns:
            self._last = self.key or self._last  # a filter that nothing passes changes no choice
            at = keys.index(self._last) if self._last in keys else self.cursor_row
            self._head, self._lines = head, lines
            self.clear(columns=True)
            self.add_column(head, key=_COLUMN)
            for key, text in lines:
                self.add_row(text, key=key)
            self.move_cursor(row=min(at, len(keys) - 1))
            return
        self._lines = lines
        for number, ((key, old), (_, new)) in enumerate(zip(before, lines, strict=True)):
            if old != new:
                is_wider = cell_len(new.plain) > cell_len(old.plain)
                self._by_line = True
                self.update_cell(key, _COLUMN, new, update_width=is_wider)
                self._by_line = False
                self.refresh_row(number)

    def refresh(self, *regions: Region, **named: Any) -> Self:
        """Draw again; not all lines for one that changes, which a slow terminal would wait for."""
        return self if self._by_line else super().refresh(*regions, **named)
