"""The cells of one device's line: texts of constant width, and the style of each."""

from __future__ import annotations

from rich.text import Text

from probe_watch.figures import memory_fraction, peak_fraction
from probe_watch.history import spark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_watch.layout import Layout
    from probe_watch.view import Row

    Cell = tuple[str, str]
    """A text and a style of rich; "" is none."""

__all__ = ["STYLES", "amount", "cells", "fitted", "sentence", "shared_mark"]

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
