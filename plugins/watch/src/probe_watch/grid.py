"""A table of lines with a cursor, of which only what changed is drawn again.

Textual's DataTable draws all of itself when a cell changes, each second, and has no cell that spans
several columns, where a device that hangs has a sentence in place of its figures.
"""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, ClassVar

    Line = tuple[str, Text]
    """What a line is about, which is unique in its table, and its text."""


class Grid(ScrollView, can_focus=True):
    """Lines below a head. `key` is what the line under the cursor is about, "" without one.

    One that is `still` has no cursor: a title, a panel.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"grid--line", "grid--head", "grid--cursor"}
    DEFAULT_CSS = """
    Grid { height: 1fr; scrollbar-size-horizontal: 0; scrollbar-size-vertical: 1;
           background: $background; }
    Grid.-still { height: 1; }
    Grid > .grid--head { text-style: bold; }
    Grid > .grid--cursor { background: $surface; }
    Grid:focus > .grid--cursor { background: $block-cursor-background 40%; text-style: bold; }
    Grid:nocolor:focus > .grid--cursor { text-style: reverse; }
    """
    BINDINGS: ClassVar[list[Any]] = [
        Binding("up", "move(-1)", "up", show=False),
        Binding("down", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home", "move(-1000000)", "first", show=False),
        Binding("end", "move(1000000)", "last", show=False),
        Binding("enter", "open", "details", show=False),
    ]

    class Moved(Message):
        """The cursor is on another line."""

        def __init__(self, grid: Grid) -> None:
            super().__init__()
            self.grid = grid

        @property
        def control(self) -> Grid:
            """Return the table, for selectors."""
            return self.grid

    class Opened(Moved):
        """Enter was pressed on a line."""

    def __init__(self, identity: str, *, still: bool = False) -> None:
        super().__init__(id=identity, classes="-still" if still else "")
        self.can_focus = not still
        self.key = ""
        self._head = Text()
        self._lines: Sequence[Line] = ()

    @property
    def keys(self) -> list[str]:
        """Return what the lines are about, in their order."""
        return [key for key, _ in self._lines]

    @property
    def text(self) -> str:
        """Return head and lines as plain text."""
        return "\n".join([self._head.plain, *(text.plain for _, text in self._lines)])

    def show(self, head: Text, lines: Sequence[Line] = ()) -> None:
        """Show these lines. The cursor stays on what it was on, else in its place."""
        before, at = self._lines, self._place()
        if len(lines) != len(before):
            self.virtual_size = Size(0, len(lines) + 1)
            self.refresh()
        if head != self._head:
            self._head = head
            self.refresh_line(self.scroll_offset.y)
        self._lines = lines
        for number, (old, new) in enumerate(zip(before, lines, strict=False)):
            if old != new:
                self._refresh_row(number)
        if not self.can_focus:
            return
        if lines and self._place() is None:
            self.key = lines[min(at or 0, len(lines) - 1)][0]
            self._moved(at)
        elif self._place() != at:
            self._moved(at)

    def _place(self) -> int | None:
        return next((at for at, (key, _) in enumerate(self._lines) if key == self.key), None)

    def _refresh_row(self, number: int | None) -> None:
        if number is not None:
            self.refresh_line(number + 1)  # which subtracts what is scrolled away

    def _moved(self, before: int | None) -> None:
        place = self._place()
        self._refresh_row(before)
        self._refresh_row(place)
        if place is not None and self.size.height > 1:
            top, rows = self.scroll_offset.y, self.size.height - 1
            if not top <= place < top + rows:
                self.scroll_to(y=place if place < top else place - rows + 1, animate=False)
        self.post_message(self.Moved(self))

    def action_move(self, count: int) -> None:
        """Move the cursor so many lines."""
        if self._lines:
            before = self._place() or 0
            self.key = self._lines[max(0, min(len(self._lines) - 1, before + count))][0]
            self._moved(before)

    def action_page(self, direction: int) -> None:
        """Move the cursor by a screen."""
        self.action_move(direction * max(1, self.size.height - 2))

    def action_open(self) -> None:
        """Say that a line was chosen."""
        if self._place() is not None:
            self.post_message(self.Opened(self))

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen; the first one is the head, wherever it is scrolled to."""
        width, number = self.size.width, y - 1 + self.scroll_offset.y
        name, text = "grid--line", None
        if y == 0:
            name, text = "grid--head", self._head
        elif number < len(self._lines):
            key, text = self._lines[number]
            name = "grid--cursor" if key == self.key else name
        style = self.get_component_rich_style(name)
        if text is None:
            return Strip.blank(width, style)
        return Strip(_segments(text, style)).extend_cell_length(width, style).crop(0, width)


def _segments(text: Text, base: Style) -> list[Segment]:
    """Return the parts of a text, each with its own style on that of the line."""
    parts, end = [], 0
    for span in text.spans:  # in order and apart: lines are made by appending
        if span.start > end:
            parts.append(Segment(text.plain[end : span.start], base))
        style = span.style if isinstance(span.style, Style) else Style.parse(span.style)
        parts.append(Segment(text.plain[span.start : span.end], base + style))
        end = span.end
    parts.append(Segment(text.plain[end:], base))
    return parts
