"""One frame as lines of the terminal: rich paints and measures, nothing here writes."""

from __future__ import annotations

from io import StringIO

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.text import Text

from probe_watch.alerts import Edge
from probe_watch.cells import STYLES, cells, fitted, sentence
from probe_watch.figures import NODE
from probe_watch.history import ASCII_LEVELS, LEVELS
from probe_watch.layout import GAP, fit
from probe_watch.lines import alert_sentence, timestamp
from probe_watch.panel import hints
from probe_watch.panel_lines import help_texts, history, processes, thresholds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from probe_watch.layout import Layout
    from probe_watch.view import Row, View

__all__ = ["Painter"]

_LEFT = frozenset({"ID", "DEVICE", "BUSY", "MEMORY"})
_LEAST_PROCESSES = 4
"""Rows of a table of processes that are worth its head."""


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
        text.truncate(columns, overflow="ellipsis")
        parts = text.render(self._console, end="")
        return "".join(
            part.style.render(part.text, color_system=self._colours) if part.style else part.text
            for part in parts
        )

    def _texts(self, view: View, columns: int, rows: int, keys: bool) -> Iterator[Text]:
        devices = view.rows()
        yield _title(view, devices)
        if view.panel.name == "help":
            yield from list(help_texts())[: max(0, rows - 2)]
            yield _bottom(view, columns, keys)
            return
        layout = _layout(devices, columns)
        yield _heads(layout)
        footer = [*_network(view, devices), *_recent(view), _bottom(view, columns, keys)]
        panel = self._panel(view, devices, columns)
        room = rows - 2 - len(footer) - len(panel)
        for row in devices[: room if len(devices) <= room else max(0, room - 1)]:
            yield self._device(row, layout, columns)
        room -= len(devices)
        if room < 0:
            hidden = len(devices) - max(0, room + len(devices) - 1)
            yield Text(f"… {hidden} more devices: the screen has too few rows", style="dim")
        elif room > _LEAST_PROCESSES and view.panel.name == "processes":
            yield from processes(view, devices, columns, room)
        yield from panel
        yield from footer

    def _panel(self, view: View, devices: Sequence[Row], columns: int) -> list[Text]:
        """Return the lines that the devices make room for."""
        if view.panel.name == "thresholds":
            return list(thresholds(view, devices))
        if view.panel.name == "history":
            return list(history(view, devices, columns, self._levels))
        return []

    def _device(self, row: Row, layout: Layout, columns: int) -> Text:
        widths = layout.widths()
        style = STYLES[row.state]
        number = "" if row.number is None else str(row.number)
        text = Text(number.rjust(widths["#"]), style="dim" if row.state == "asleep" else "")
        name = row.name or row.short if "ID" not in widths else row.name
        for column, value in (("ID", row.short), ("DEVICE", name)):
            if column in widths:
                text.append(" " * GAP)
                text.append(fitted(value, widths[column]), style=style)
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
    """Return the layout: names are a column only where they tell accelerators apart."""
    listed = [row for row in devices if row.number is not None]
    models = [row.name for row in listed if row.kind != "cpu"]
    names = [row.name for row in listed]
    widest = max(map(cell_len, names), default=0)
    shorts = max((cell_len(row.short) for row in devices), default=0)
    is_one_model = len(models) > 1 and len(set(models)) == 1
    distinct = all(names) and len(set(names)) == len(names) == len(listed)
    return fit(columns, 0 if is_one_model else min(widest, 30), shorts, distinct=distinct)


def _title(view: View, devices: Sequence[Row]) -> Text:
    # In the order of the report, whatever the lines below are sorted by.
    listed = sorted((row for row in devices if row.number is not None), key=_number)
    names = [row.name for row in listed if row.kind != "cpu"]
    counts = {name: names.count(name) for name in dict.fromkeys(names) if name}
    parts = [f"{count} × {name}" if count > 1 else name for name, count in counts.items()]
    text = Text(" + ".join(parts) or "no accelerator", style="bold")
    state = "   paused" if view.paused else ""
    clock = f"   {timestamp(view.time)[11:19]}Z" if view.rounds else ""
    text.append(f"   every {view.interval:g} s{clock}", style="dim")
    text.append(state, style="bold reverse" if state else "")
    return text


def _number(row: Row) -> int:
    return row.number or 0


def _heads(layout: Layout) -> Text:
    heads = []
    for name, width in layout.widths().items():
        heads.append(name.ljust(width) if name in _LEFT else name.rjust(width))
    return Text((" " * GAP).join(heads), style="bold")


def _network(view: View, devices: Sequence[Row]) -> Iterator[Text]:
    """Yield what the node's links carry and what its tasks wait for, where that is known."""
    for row in devices:
        if row.sample["device"] != NODE:
            continue
        parts = [view.latency] if view.latency else []
        for link in row.sample["links"]:
            if link["received"] is not None and link["sent"] is not None:
                rates = f"in {_rate(link['received'])}, out {_rate(link['sent'])}"
                parts.append(f"{link['name'] or link['kind']} {rates}")
        pressure = row.sample["pressure"]
        shares = (pressure["cpu"], pressure["memory"], pressure["io"]) if pressure else ()
        names = ("cpu", "memory", "io")
        waits = [f"{n} {s:.0%}" for n, s in zip(names, shares, strict=False) if s is not None]
        if waits:
            parts.append("waiting for " + ", ".join(waits))
        if parts:
            yield Text("    " + "   ".join(parts), style="dim")


def _rate(count: float) -> str:
    return f"{count / 1e6:.1f} MB/s" if count < 1e9 else f"{count / 1e9:.1f} GB/s"


def _recent(view: View) -> Iterator[Text]:
    for time, happened in reversed(view.recent[:2]):
        clock = timestamp(time)[11:19] + "Z"
        if isinstance(happened, Edge):
            mark = "!" if happened.state == "on" else " "
            style = STYLES[happened.severity] if happened.state == "on" else "dim"
            about = f"{view.short(happened.device)}  {happened.rule.name}"
            about += f"  {alert_sentence(happened)}"
            yield Text(f"{mark} {clock}  {about}", style=style)
        else:
            event = f"{happened['event']}: {happened['change']}"
            yield Text(f"  {clock}  {view.short(happened['device'])}  {event}", style="cyan")


def _bottom(view: View, columns: int, keys: bool) -> Text:
    if keys:
        return Text(hints(view.order, view.last_number, columns, view.note), style="dim")
    line = "Ctrl-C ends"
    return Text(f"{line}   {view.note}" if view.note else line, style="dim")
