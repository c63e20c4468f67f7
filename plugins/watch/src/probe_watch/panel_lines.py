"""What a panel shows, as texts of rich: processes, thresholds, a device's history, the help."""

from __future__ import annotations

from rich.text import Text

from probe_core.commands import size
from probe_watch.cells import STYLES, fitted, shared_mark
from probe_watch.figures import FIGURES, MEMORY_FIELDS, NODE, PEAK_FIELDS, reason_of
from probe_watch.history import spark
from probe_watch.panel import help_lines
from probe_watch.rules import DEFAULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_core.model.document import ProcessDoc
    from probe_watch.programs import Programs
    from probe_watch.rules import Rule
    from probe_watch.view import Row, View

__all__ = ["help_texts", "history", "processes", "thresholds"]

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
