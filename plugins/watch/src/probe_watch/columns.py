"""The columns of the screen: which it has room for, how wide they are, and each device's cells.

Widths are constants and not those of the values, so that nothing moves when 9 % becomes 10 %.
"""

from __future__ import annotations

from rich.text import Text

from probe_watch.figures import memory_fraction, peak_fraction, spark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_watch.view import Row

    Cell = tuple[str, str]
    """A text and a style of rich; "" is none."""


GAP = 2
_LEAST_NAME = 12
"""Enough of a name to tell two apart, as in the table of `probe`."""


class Layout:
    """The columns and their details. Widths are in columns of the terminal; 0 is no column."""

    __slots__ = (
        "bar",
        "busy",
        "cap",
        "clock",
        "distinct",
        "link",
        "name",
        "peak",
        "power",
        "processes",
        "short",
        "spark",
        "total",
    )

    def __init__(self, name: int, short: int, distinct: bool) -> None:
        self.name = name
        self.short = short
        self.distinct = distinct
        self.busy = 5
        self.spark = 20
        self.peak = 6
        self.total = True
        self.bar = 8
        self.power = True
        self.cap = True
        self.clock = 8
        self.link = 5
        self.processes = 4

    def widths(self) -> dict[str, int]:
        """Return the width of each column that is shown, in their order."""
        columns = {
            "#": 2,
            "ID": self.short,
            "DEVICE": self.name,
            "BUSY": self.busy + (self.spark + 1 if self.spark else 0),
            "PEAK": self.peak,
            # Behind peak, memory and temperature a place for the mark of an alert.
            "MEMORY": (16 if self.total else 9) + (self.bar + 1 if self.bar else 0) + 1,
            "TEMP": 7,
            "POWER": (11 if self.cap else 6) if self.power else 0,
            "CLOCK": self.clock,
            "LINK": self.link,
            "PROC": self.processes,
        }
        return {name: width for name, width in columns.items() if width}

    def needed(self) -> int:
        """Return the columns of the whole line."""
        widths = self.widths()
        return sum(widths.values()) + GAP * (len(widths) - 1)


def _set(**values: int) -> Callable[[Layout], None]:
    def change(layout: Layout) -> None:
        for name, value in values.items():
            setattr(layout, name, value)

    return change


def _shorter_name(layout: Layout) -> None:
    layout.name = min(layout.name, _LEAST_NAME)


def _single_identity(layout: Layout) -> None:
    """Leave out the id where the names tell the devices apart, else the names."""
    if layout.distinct:
        layout.short = 0
    else:
        layout.name = 0


_STEPS: tuple[Callable[[Layout], None], ...] = (
    _set(link=0),
    _set(peak=0),
    _set(clock=0),
    _set(cap=False),
    _set(spark=12),
    _set(bar=4),
    _single_identity,
    _set(spark=8),
    _set(bar=0),
    _shorter_name,
    _set(processes=0),
    _set(total=False),
    _set(power=0),
    _set(spark=4),
    _set(spark=0),
)
"""What a narrower screen goes without, in this order."""


def fit(width: int, names: int, shorts: int, *, distinct: bool) -> Layout:
    """Return the layout for a screen; `names` and `shorts` are the widest name and short id.

    A width of 0 is no column. `distinct` says whether no two devices have the same name. Of a name
    at least twelve columns stay; an id is never cut.
    """
    layout = Layout(names, shorts, distinct)
    for step in _STEPS:
        if layout.needed() <= width:
            break
        step(layout)
    return layout


UNKNOWN = "–"
MARK = "!"
SHARED = "*"
"""Behind memory that is the CPU's as well."""

STYLES = {
    "ok": "",
    "warning": "yellow",
    "error": "bold red",
    "unresponsive": "red",
    "unavailable": "magenta",
    "asleep": "dim",
    "pending": "dim",
}
"""State of a device to the style of its line. Marks and words tell the same without colours."""

_FULL = "█"
_EIGHTHS = " ▏▎▍▌▋▊▉"


def cells(row: Row, layout: Layout, levels: str) -> dict[str, Cell]:
    """Return the cells of a device that answered, by column; those behind the name."""
    style = STYLES[row.state]
    sample = row.sample
    clocks = sample["clocks_mhz"]
    busy = _percent(sample["busy"])
    if layout.spark:
        busy = f"{busy} {spark(row.history['busy'], layout.spark, levels)}"
    peak = _percent(peak_fraction(sample)) + _mark(row, "utilisation")
    return {
        "BUSY": (busy, style or "green"),
        "PEAK": (peak, _marked(row, "utilisation")),
        "MEMORY": (_memory(row, layout, levels), _marked(row, "memory")),
        "TEMP": (_temperature(row), _marked(row, "temperature")),
        "POWER": (_power(row, layout), style),
        "CLOCK": (_unit(clocks["sm"] if clocks else None, "MHz", 8), style),
        "LINK": (_link(row), style),
        "PROC": (_count(row), style),
    }


def _marked(row: Row, alert: str) -> str:
    return STYLES[row.alerts[alert]] if alert in row.alerts else ""


def _mark(row: Row, alert: str) -> str:
    return MARK if alert in row.alerts else " "


def shared_mark(row: Row) -> str:
    """Return the mark behind a size of memory that the CPU shares."""
    return SHARED if row.is_shared and row.sample["memory"] else ""


def fitted(text: str, width: int) -> str:
    """Return a text of exactly so many columns of the terminal."""
    shown = Text(text)
    shown.truncate(width, overflow="ellipsis", pad=True)
    return shown.plain


def _percent(value: float | None) -> str:
    return f"{UNKNOWN:>5}" if value is None else f"{value * 100:3.0f} %"


def _unit(value: float | None, unit: str, width: int) -> str:
    return f"{UNKNOWN if value is None else f'{value:.0f} {unit}':>{width}}"


def amount(count: int | None, unit: int) -> str:
    """Return bytes in a unit of 2^`unit` bytes: one digit behind the point up to 99.9."""
    if count is None:
        return UNKNOWN
    value = count / (1 << unit)
    return f"{value:.1f}" if value < 999.95 else f"{value:.0f}"


def _memory(row: Row, layout: Layout, levels: str) -> str:
    memory = row.sample["memory"] or {"used": None, "total": None}
    used, total = memory["used"], memory["total"]
    largest = max(used or 0, total or 0)
    unit, name = (40, "TiB") if largest >= 10_000 << 30 else (30, "GiB")
    if used is None and total is None:
        text = f"{UNKNOWN:>{16 if layout.total else 9}}"
    elif layout.total:
        text = f"{amount(used, unit):>5} / {amount(total, unit)} {name}"[:16].ljust(16)
    else:
        text = f"{amount(used, unit):>5} {name}"
    if not layout.bar:
        return text + (MARK if "memory" in row.alerts else shared_mark(row) or " ")
    bar = _bar(memory_fraction(row.sample), layout.bar, levels.isascii())
    return text + (shared_mark(row) or " ") + bar + _mark(row, "memory")


def _bar(fraction: float | None, width: int, is_ascii: bool) -> str:
    if fraction is None:
        return " " * width
    if is_ascii:
        return ("#" * round(fraction * width)).ljust(width)
    whole, eighths = divmod(round(fraction * width * 8), 8)
    bar = _FULL * whole + (_EIGHTHS[eighths] if eighths else "")
    return bar.ljust(width)


def _temperature(row: Row) -> str:
    return _unit(row.sample["temperature_c"], "°C", 6) + _mark(row, "temperature")


def _power(row: Row, layout: Layout) -> str:
    power, cap = row.sample["power_w"], row.sample["power_cap_w"]
    if layout.cap and power is not None and cap is not None:
        return f"{power:.0f} / {cap:.0f} W".rjust(11)
    return _unit(power, "W", 11 if layout.cap else 6)


def _link(row: Row) -> str:
    for link in row.sample["links"]:
        if link["kind"] == "pcie" and link["generation"] and link["width"]:
            return f"{link['generation']}×{link['width']}"
    return UNKNOWN


def _count(row: Row) -> str:
    processes = row.sample["processes"]
    return f"{UNKNOWN if processes is None else len(processes):>4}"


def sentence(row: Row) -> Cell:
    """Return what stands in the place of the cells of a device that was not asked or is silent."""
    status, reason = row.sample["status"], row.sample["reason"] or ""
    label = {"unresponsive": "no answer"}.get(status, status)
    return (f"{label}: {reason}" if reason else label), STYLES[status]
