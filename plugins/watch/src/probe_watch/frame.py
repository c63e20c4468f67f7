"""One frame as lines of the terminal: rich paints and measures, nothing here writes."""

from __future__ import annotations

from io import StringIO

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.text import Text

from probe_core.commands import size
from probe_watch.alerts import Edge
from probe_watch.cells import STYLES, cells, sentence
from probe_watch.history import ASCII_LEVELS, LEVELS
from probe_watch.layout import GAP, fit
from probe_watch.lines import alert_sentence, timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from probe_core.model.sample_document import EventDoc
    from probe_watch.layout import Layout
    from probe_watch.view import Row, View

__all__ = ["Painter"]

_LEFT = frozenset({"ID", "DEVICE", "BUSY", "MEMORY"})
_LEAST_PROCESSES = 4
"""Rows of a table of processes that are worth its head."""

KEYS = "q quit  p pause  s sort: {order}"


class Painter:
    """Paints frames for one terminal. `encodable` returns a text in the terminal's characters."""

    def __init__(self, colour: bool, encodable: Callable[[str], str]) -> None:
        self._encodable = encodable
        is_ascii = encodable(LEVELS) != LEVELS
        self._levels = ASCII_LEVELS if is_ascii else LEVELS
        # The sixteen colours that every terminal has, in the user's own shades.
        self._colours = ColorSystem.STANDARD if colour else None
        self._console = Console(file=StringIO(), force_terminal=True, color_system="standard")

    def lines(self, view: View, columns: int, rows: int, *, keys: bool = True) -> list[str]:
        """Return at most `rows` lines of at most `columns`, the newest state of the view."""
        shown = list(self._texts(view, columns, rows, keys))[:rows]
        return [self._painted(text, columns) for text in shown]

    def _painted(self, text: Text, columns: int) -> str:
        if not text.plain.isascii():
            plain = self._encodable(text.plain)
            if plain != text.plain:
                text = Text(plain, style=text.style)
        text.truncate(columns, overflow="crop")
        parts = text.render(self._console, end="")
        return "".join(
            part.style.render(part.text, color_system=self._colours) if part.style else part.text
            for part in parts
        )

    def _texts(self, view: View, columns: int, rows: int, keys: bool) -> Iterator[Text]:
        devices = view.rows()
        layout = _layout(devices, columns)
        yield _title(view, devices)
        yield _heads(layout)
        footer = [*_recent(view), _bottom(view, keys)]
        room = rows - 2 - len(footer)
        for row in devices[: room if len(devices) <= room else room - 1]:
            yield self._device(row, layout, columns)
        room -= len(devices)
        if room < 0:
            yield Text(f"… {1 - room} more devices: the screen has too few rows", style="dim")
        elif room > _LEAST_PROCESSES:
            yield from _processes(devices, room - 1)
        yield from footer

    def _device(self, row: Row, layout: Layout, columns: int) -> Text:
        widths = layout.widths()
        style = STYLES[row.state]
        number = "" if row.number is None else str(row.number)
        text = Text(number.rjust(widths["#"]), style="dim" if row.state == "asleep" else "")
        for column, value in (("ID", row.short), ("DEVICE", row.name)):
            if column in widths:
                text.append(" " * GAP)
                text.append(_fitted(value, widths[column]), style=style)
        if row.sample["status"] != "ok":
            text.append(" " * GAP)
            text.append(*sentence(row))
            return text
        parts = cells(row, layout, self._levels)
        for column, width in widths.items():
            if column in parts:
                content, style = parts[column]
                space = " " * (width - cell_len(content))
                text.append(" " * GAP)
                text.append(content + space if column in _LEFT else space + content, style=style)
        return text


def _layout(devices: Sequence[Row], columns: int) -> Layout:
    """Return the layout: the names are a column only where they tell devices apart."""
    names = [row.name for row in devices]
    numbered = [row.name for row in devices if row.number is not None]
    widest = max(map(cell_len, names), default=0)
    shorts = max((cell_len(row.short) for row in devices), default=0)
    is_one_model = len(set(numbered)) == 1 and len(numbered) > 1
    return fit(columns, 0 if is_one_model else min(widest, 30), shorts)


def _fitted(text: str, width: int) -> str:
    shown = Text(text)
    shown.truncate(width, overflow="ellipsis", pad=True)
    return shown.plain


def _title(view: View, devices: Sequence[Row]) -> Text:
    names = [row.name for row in devices if row.kind not in ("", "cpu")]
    counts = {name: names.count(name) for name in dict.fromkeys(names) if name}
    parts = [f"{count} × {name}" if count > 1 else name for name, count in counts.items()]
    text = Text(" + ".join(parts) or "no accelerator", style="bold")
    state = "   paused" if view.paused else ""
    text.append(f"   every {view.interval:g} s   {timestamp(view.time)[11:19]}Z", style="dim")
    text.append(state, style="bold reverse" if state else "")
    return text


def _heads(layout: Layout) -> Text:
    heads = []
    for name, width in layout.widths().items():
        heads.append(name.ljust(width) if name in _LEFT else name.rjust(width))
    return Text((" " * GAP).join(heads), style="bold")


def _processes(devices: Sequence[Row], room: int) -> Iterator[Text]:
    """Yield the processes with the most memory; nothing where none is known."""
    pairs = [
        (row, process)
        for row in devices
        for process in row.sample["processes"] or ()
        if row.number is not None
    ]
    if not pairs:
        return
    pairs.sort(key=lambda pair: -(pair[1]["memory"] or 0))
    yield Text(f"{'':2}  {'DEVICE':12}  {'PID':>8}  {'USER':12}  {'MEMORY':>10}", style="bold")
    for row, process in pairs[: room - 1 if len(pairs) > room else room]:
        pid, user = process["pid"], process["user"] or "–"
        memory = size(process["memory"])
        device, user = _fitted(row.short, 12), _fitted(user, 12)
        yield Text(f"{'':2}  {device}  {pid or '–':>8}  {user}  {memory:>10}")
    if len(pairs) > room:
        yield Text(f"    … {len(pairs) - room + 1} more", style="dim")


def _recent(view: View) -> Iterator[Text]:
    for time, happened in reversed(view.recent[:2]):
        clock = timestamp(time)[11:19] + "Z"
        if isinstance(happened, Edge):
            mark = "!" if happened.state == "on" else " "
            style = STYLES[happened.severity] if happened.state == "on" else "dim"
            about = f"{happened.device}  {happened.rule.name}  {alert_sentence(happened)}"
            yield Text(f"{mark} {clock}  {about}", style=style)
        else:
            yield Text(f"  {clock}  {_event(happened)}", style="cyan")


def _event(event: EventDoc) -> str:
    return f"{event['device']}  {event['event']}: {event['change']}"


def _bottom(view: View, keys: bool) -> Text:
    line = KEYS.format(order=view.order) if keys else "Ctrl-C ends"
    return Text(f"{line}   {view.note}" if view.note else line, style="dim")
