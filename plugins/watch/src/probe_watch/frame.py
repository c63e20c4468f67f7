"""One frame as lines of the terminal: rich paints and measures, nothing here writes."""

from __future__ import annotations

from io import StringIO

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.text import Text

from probe_core.commands import size
from probe_watch.alerts import DEFAULTS, Edge
from probe_watch.columns import GAP, STYLES, cells, fit, fitted, sentence, shared_mark
from probe_watch.figures import (
    ASCII_LEVELS,
    FIGURES,
    LEVELS,
    MEMORY_FIELDS,
    NODE,
    PEAK_FIELDS,
    reason_of,
    spark,
)
from probe_watch.lines import alert_sentence, timestamp
from probe_watch.view import help_lines, hints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from probe_core.model.document import ProcessDoc
    from probe_watch.alerts import Rule
    from probe_watch.columns import Layout
    from probe_watch.view import Programs, Row, View


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


# What a panel shows: processes, thresholds, a device's history, the help.

_INDENT = "    "

_UNITS = {"temperature": "°C", "power": "W"}
"""Unit of a figure of the history; the others are ratios."""

_REASONS = {
    "peak": PEAK_FIELDS,
    "memory": MEMORY_FIELDS,
    "temperature": ("temperature_c",),
    "power": ("power_w",),
}
"""Figure of the history to the keys that its reason stands under, where that is not its own."""


def help_texts() -> Iterator[Text]:
    """Yield what columns, marks and keys mean."""
    for head, about in help_lines():
        text = Text(f"{head:14}  " if head else "", style="bold")
        yield text.append(about, style="not bold")


def processes(view: View, devices: Sequence[Row], columns: int, room: int) -> Iterator[Text]:
    """Yield at most `room` lines with the processes; nothing where none is known."""
    pairs = [
        (row, process)
        for row in devices
        for process in row.sample["processes"] or ()
        if row.number is not None
    ]
    if not pairs:
        return
    pairs.sort(key=lambda pair: -(pair[1]["memory"] or 0))
    if view.panel.process_order == "device":
        pairs.sort(key=lambda pair: pair[0].number or 0)
    yield _process_heads(columns)
    room -= 1
    for row, process in pairs[: room - 1 if len(pairs) > room else room]:
        yield _process(row, process, view.programs)
    if len(pairs) > room:
        yield Text(f"{_INDENT}… {len(pairs) - room + 1} more", style="dim")


_PROCESS_HINT = "m: by memory  g: by GPU"


def _process_heads(columns: int) -> Text:
    heads = (
        f"{'':2}  {'DEVICE':12}  {'PID':>8}  {'USER':12}  {'MEMORY':>10}   {'SINCE':>9}  COMMAND"
    )
    text = Text(heads, style="bold")
    space = columns - len(heads) - len(_PROCESS_HINT)
    return text.append(" " * space + _PROCESS_HINT, style="not bold dim") if space > 1 else text


def _process(row: Row, process: ProcessDoc, programs: Programs) -> Text:
    pid, user = process["pid"], process["user"]
    # Without a user the number may be that of another process here: a container counts its own.
    program = programs.of(pid) if pid and user else None
    since = _clock(program.seconds) if program else "–"
    memory = f"{size(process['memory']):>10}{shared_mark(row) or ' '}"
    start = f"{'':2}  {fitted(row.short, 12)}  {pid or '–':>8}  {fitted(user or '–', 12)}  {memory}"
    return Text(f"{start}  {since:>9}  {program.name if program else '–'}")


def _clock(seconds: float | None) -> str:
    """Return ``03:11:40``, and from a hundred hours on ``4 d``."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest:02}" if hours < 100 else f"{hours // 24} d"


def thresholds(view: View, devices: Sequence[Row]) -> Iterator[Text]:
    """Yield each alert: its threshold, how long it must be exceeded, and what it says now."""
    yield Text(f"{_INDENT}{'ALERT':12} {'ABOVE':>8} {'FOR':>6} {'ENDS AT':>8}   NOW", style="bold")
    for name in DEFAULTS:
        rule = view.alerts.rules.get(name)
        if rule is None:
            yield Text(f"{_INDENT}{name:12} off in the file of settings", style="dim")
            continue
        bounds = f"{rule.text(rule.above):>8} {f'{rule.seconds:g} s':>6} {rule.text(rule.clear):>8}"
        now, style = _state(rule, view, devices)
        yield Text(f"{_INDENT}{name:12} {bounds}   ").append(now, style=style)
    yield Text(f"{_INDENT}the file of settings changes them: [command.watch.alerts]", style="dim")


def _state(rule: Rule, view: View, devices: Sequence[Row]) -> tuple[str, str]:
    """Return what an alert says now, and its style."""
    severities = {row.short: row.alerts[rule.name] for row in devices if rule.name in row.alerts}
    if severities:
        severity = "error" if "error" in severities.values() else "warning"
        return f"! {', '.join(severities)}", STYLES[severity]
    if rule.name in FIGURES:
        figures = [FIGURES[rule.name](row.sample) for row in devices]
    else:
        figures = [view.alerts.latency]
    reasons = [figure.reason for figure in figures if figure.reason]
    if len(reasons) == len(figures):
        return f"– {reasons[0] if reasons else 'no device'}", "dim"
    return "no alert", ""


def history(view: View, devices: Sequence[Row], columns: int, levels: str) -> Iterator[Text]:
    """Yield the figures of the chosen device: now, the last samples, and their range."""
    row = next((row for row in devices if row.number == view.panel.number), None)
    if row is None:
        yield Text(f"{_INDENT}device {view.panel.number} is in no sample", style="dim")
        return
    about = f"  {row.name}" if row.name else ""
    yield Text(f"{_INDENT}history of {row.number}  {row.short}{about}", style="bold")
    width = max(8, min(60, columns - 44))
    for name, values in row.history.items():
        reason = "" if row.sample["device"] == NODE else _reason(row, name)
        yield Text(f"{_INDENT}{name:12}").append(_figure(name, values, width, levels, reason))


def _figure(name: str, values: Sequence[float | None], width: int, levels: str, reason: str) -> str:
    numbers = [value for value in values if value is not None]
    now = values[-1] if values else None
    if not numbers:
        return f"{'–':>7}  {reason}"
    least, most = min(numbers), max(numbers)
    span = f"{_amount(name, least).strip()} to {_amount(name, most).strip()}"
    bars = spark(_scaled(name, values, least, most), width, levels)
    return f"{'–' if now is None else _amount(name, now):>7}  {bars}  {span}"


def _scaled(
    name: str, values: Sequence[float | None], least: float, most: float
) -> list[float | None]:
    """Return values as parts of what is drawn: ratios as they are, others of their own range."""
    if name not in _UNITS:
        return [None if value is None else min(1.0, value) for value in values]
    extent = most - least or 1.0
    return [None if value is None else (value - least) / extent for value in values]


def _amount(name: str, value: float) -> str:
    return f"{value:.0f} {_UNITS[name]}" if name in _UNITS else f"{value * 100:.0f} %"


def _reason(row: Row, name: str) -> str:
    return reason_of(row.sample, *_REASONS.get(name, (name,)))
