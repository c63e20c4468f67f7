"""A table of whole lines: Textual's DataTable with one column.

A device that hangs has a sentence where the others have their figures, and a DataTable has no cell
that spans several columns. So a line is one cell, and the head is its column's label.
"""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding
from textual.widgets import DataTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, ClassVar, Self

    from textual.geometry import Region

    Line = tuple[str, Text]
    """What a line is about, which is unique in its table, and its text."""

_COLUMN = "line"


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
