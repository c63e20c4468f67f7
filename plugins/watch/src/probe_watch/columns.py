"""The columns of devices: which a screen has room for, how wide they are, and their cells.

Widths are constants and not those of the values, so that nothing moves when 9 % becomes 10 %.
"""

from __future__ import annotations

from typing import NamedTuple

from rich.cells import cell_len

from probe_watch.figures import memory_fraction, peak_fraction, spark
from probe_watch.grid import GAP, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.text import Text

    from probe_watch.grid import Cell, Line
    from probe_watch.node import Row

_RIGHT = frozenset(("#", "BUSY", "PEAK", "TEMP", "POWER", "CLOCK", "LINK", "PROC"))

UNKNOWN, MARK, SHARED = "–", "!", "*"
"""Not known; above its threshold; memory that is the CPU's as well."""

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


class Column(NamedTuple):
    """A column: its head, the widths that it may have, the widest first, and what makes a cell.

    `alert` is the alert whose colour a cell has; None where it has that of the state.
    """

    head: str
    about: str
    widths: Sequence[int]
    cell: Callable[[Row, int], str]
    alert: str | None = None


def _percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value * 100:.0f} %"


def _unit(value: float | None, unit: str) -> str:
    return UNKNOWN if value is None else f"{value:.0f} {unit}"


def _mark(row: Row, alert: str) -> str:
    return MARK if alert in row.alerts else " "


def _amount(count: int | None, unit: int) -> str:
    """Return bytes in a unit of 2^`unit` bytes: one digit behind the point up to 99.9."""
    if count is None:
        return UNKNOWN
    value = count / (1 << unit)
    return f"{value:.1f}" if value < 999.95 else f"{value:.0f}"


def _memory(row: Row, width: int) -> str:
    memory = row.sample["memory"]
    used, total = (memory["used"], memory["total"]) if memory else (None, None)
    is_large = max(used or 0, total or 0) >= 10_000 << 30
    unit, name = (40, "TiB") if is_large else (30, "GiB")
    if used is None and total is None:
        return f"{UNKNOWN:>{width - 1}} "
    text = f"{_amount(used, unit):>5}"
    text += f" / {_amount(total, unit)} {name}" if width > 10 else f" {name}"
    mark = MARK if "memory" in row.alerts else SHARED if row.is_shared else " "
    return text.ljust(width - 1)[: width - 1] + mark


_EIGHTHS = " ▏▎▍▌▋▊▉"


def _bar(row: Row, width: int) -> str:
    fraction = memory_fraction(row.sample)
    if fraction is None:
        return ""
    whole, eighths = divmod(round(min(1.0, fraction) * width * 8), 8)
    return "█" * whole + _EIGHTHS[eighths].strip()


def _power(row: Row, width: int) -> str:
    power, cap = row.sample["power_w"], row.sample["power_cap_w"]
    if width > 6 and power is not None and cap is not None:
        return f"{power:.0f} / {cap:.0f} W"
    return _unit(power, "W")


def _clock(row: Row, width: int) -> str:
    clocks = row.sample["clocks_mhz"]
    return _unit(clocks["sm"] if clocks else None, "MHz")


def _link(row: Row, width: int) -> str:
    for link in row.sample["links"]:
        if link["kind"] == "pcie" and link["generation"] and link["width"]:
            return f"{link['generation']}×{link['width']}"
    return UNKNOWN


def _count(row: Row, width: int) -> str:
    processes = row.sample["processes"]
    return UNKNOWN if processes is None else str(len(processes))


COLUMNS = (
    Column("#", "place in the report", (2,), lambda row, width:
           "" if row.number is None else str(row.number)),
    Column("ID", "id as every command takes it", (0,), lambda row, width: row.short),
    Column("DEVICE", "name, without the words that all share", (0,), lambda row, width: row.name),
    Column("BUSY", "share of time in which anything ran", (5,),
           lambda row, width: _percent(row.sample["busy"])),
    Column("HISTORY", "of BUSY, the newest sample at the right end", (20, 12, 8, 0),
           lambda row, width: spark(row.history["busy"], width)),
    Column("PEAK", "share of the matrix units' peak, where the hardware counts it", (6, 0),
           lambda row, width: _percent(peak_fraction(row.sample)) + _mark(row, "utilisation"),
           "utilisation"),
    Column("MEMORY", "used and total; * is memory that the CPU shares", (18, 10), _memory,
           "memory"),
    Column("USED", "share of the memory", (8, 4, 0), _bar, "memory"),
    Column("TEMP", "temperature of the chip", (7,), lambda row, width:
           _unit(row.sample["temperature_c"], "°C") + _mark(row, "temperature"), "temperature"),
    Column("POWER", "power drawn, and the cap of the driver", (11, 6, 0), _power),
    Column("CLOCK", "clock of the compute units", (8, 0), _clock),
    Column("LINK", "PCIe generation × lanes of now; 1 is usual when idle", (5, 0), _link),
    Column("PROC", "processes that use the device", (4, 0), _count),
)  # fmt: skip
"""What is shown of a device. The widths of ID and DEVICE are those of their texts."""

_LEAVING = ("DEVICE", "LINK", "PEAK", "CLOCK", "POWER", "HISTORY", "USED", "HISTORY", "USED",
            "PROC", "MEMORY", "POWER", "HISTORY", "DEVICE")  # fmt: skip
"""What a narrower screen goes without, in this order: each time the next width of a column."""

_LEAST_NAME, _MOST_NAME = 12, 30
"""Enough of a name to tell two apart, as in the table of `probe`; and columns of one at most."""


def _widest(names: Iterable[str]) -> int:
    width = max(map(cell_len, names), default=0)
    return min(_MOST_NAME, max(len("DEVICE"), width)) if width else 0


def fit(room: int, rows: Sequence[Row]) -> dict[str, int]:
    """Return the width of each column that is shown, in their order.

    An id is never cut. What is first cut are names of processors, to the width of accelerators';
    what room is left in the end is the names'.
    """
    levels = {column.head: list(column.widths) for column in COLUMNS}
    levels["ID"] = [max((cell_len(row.short) for row in rows), default=2)]
    models = [row.name for row in rows if row.group == 0]
    longest = _widest(row.name for row in rows)
    # One model says nothing in each line: the title has it.
    is_one = len(models) > 1 and len(set(models)) == 1
    levels["DEVICE"] = [0]
    if not is_one:
        widest = _widest(models) or longest
        levels["DEVICE"] = [longest, widest, min(widest, _LEAST_NAME), 0]
    for head in (*_LEAVING, "DEVICE", ""):
        widths = {name: width[0] for name, width in levels.items() if width[0]}
        spare = room - sum(widths.values()) - GAP * (len(widths) - 1)
        if spare >= 0:
            break
        if len(levels.get(head, ())) > 1:
            levels[head].pop(0)
    if "DEVICE" in widths:
        widths["DEVICE"] = max(widths["DEVICE"], min(longest, widths["DEVICE"] + spare))
    return widths


def device_table(rows: Sequence[Row], room: int) -> tuple[Text, list[Line]]:
    """Return the lines of devices: figures, or in their place why there are none."""
    widths = fit(room, rows)
    entries = [(row.sample["device"], _cells(row, widths), STYLES[row.state]) for row in rows]
    return table(list(widths), entries, room, _RIGHT, list(widths.values()))


def _cells(row: Row, widths: dict[str, int]) -> list[Cell]:
    cells: list[Cell] = []
    for column in COLUMNS:
        if column.head not in widths:
            continue
        if row.sample["status"] != "ok" and column.head not in ("#", "ID", "DEVICE"):
            return [*cells, sentence(row)]
        style = STYLES[row.state]
        if column.alert is not None:
            style = STYLES[row.alerts[column.alert]] if column.alert in row.alerts else ""
        elif column.head == "BUSY" and not style:
            style = "green"
        cells.append((column.cell(row, widths[column.head]), style))
    return cells


def sentence(row: Row) -> str:
    """Return what stands in the place of the cells of a device that was not asked or is silent."""
    status, reason = row.sample["status"], row.sample["reason"] or ""
    label = {"unresponsive": "no answer"}.get(status, status)
    return f"{label}: {reason}" if reason else label
