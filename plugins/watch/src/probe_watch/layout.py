"""Which columns a screen has room for, and how wide they are.

Widths are constants and not those of the values, so that nothing moves when 9 % becomes 10 %.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GAP", "Layout", "fit"]

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
