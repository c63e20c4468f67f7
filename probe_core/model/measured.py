"""What `probe bench` achieved on a device: one table per figure, beside the derived peaks."""

from __future__ import annotations

from probe_core.model.field import Field as F
from probe_core.model.field import by_name
from probe_core.model.health import WATTS
from probe_core.model.values import (
    Choice,
    FreeTable,
    Items,
    Number,
    Rejected,
    TableOf,
    Text,
    Word,
    typed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import Json

__all__ = ["DISTURBANCES", "MEASURED", "MEMORY_FIGURES", "Measurement"]

MEMORY_FIGURES = ("read", "write", "copy")
"""Directions in which a memory is measured; a copy counts what it reads and what it writes."""

DISTURBANCES = {
    "median": "the median is below 0.9 of the best run",
    "cpu-time": "the measuring threads got less than 0.95 of the time",
    "other-load": "other processes used more than 5 % of the CPUs",
    "processes": "other processes used the device",
}
"""What shows that others used the device meanwhile: such a figure is not for planning."""

RATE = Number(0, 1e18)
MOST_TERA = 1e6
"""TFLOPS or TOPS: fifty times the sparse fp4 peak of a B300."""

SPAN = Number(0, 86_400)
COUNT = Number(1, 1e18, whole=True)
SHARE = Number(0, 1e9)

MEASURED = by_name(
    (
        F(
            "figure",
            Choice("compute", *MEMORY_FIGURES),
            "compute (arithmetic), or the direction of a memory: read, write, copy",
            always=True,
            nullable=False,
            required=True,
        ),
        F(
            "kind",
            Choice("alu", "matmul", "memory"),
            "alu (a loop that stays in registers), matmul (a library's) or memory",
            always=True,
            nullable=False,
            required=True,
        ),
        F("dtype", Word(), "Type of the numbers; null of a memory", always=True),
        F("accumulate", Word(), "Type that sums are kept in"),
        F("unit", Choice("TFLOPS", "TOPS", "B/s"), "Of the figures", always=True),
        F("best", RATE, "The best run", unit="TFLOPS, TOPS or bytes per second", always=True),
        F("median", RATE, "The middle run", unit="TFLOPS, TOPS or bytes per second", always=True),
        F("cold", RATE, "The first run, unwarmed", unit="TFLOPS, TOPS or bytes per second"),
        F("runs", COUNT, "Runs that were counted", unit="count", always=True),
        F("warm_s", SPAN, "Time of the runs before them", unit="seconds"),
        F("by", Text(), "What achieved it: library or compiler, with version", always=True),
        F("size", COUNT, "Edge of the matrices, or bytes of the buffer", unit="count or bytes"),
        F("threads", COUNT, "Threads of the CPU that took part", unit="count"),
        F("clock_mhz", Number(1, 100_000), "Clock during or right after the run", unit="MHz"),
        F("clock_reasons", Items(Word()), "What held the clock down, as the driver names it"),
        F("power_w", WATTS, "Power at most during the run", unit="watts"),
        F("power_cap_w", WATTS, "Limit of the power", unit="watts"),
        F("temperature_c", Number(-100, 300), "Temperature at most", unit="degrees Celsius"),
        F("driver", Text(), "Driver with its version; null where none takes part", always=True),
        F("date", Text(), "When, in UTC: 2026-11-22T09:30:00Z", always=True),
        F(
            "disturbed",
            Items(Choice(*DISTURBANCES)),
            "What shows that others used it meanwhile: median, cpu-time, other-load, processes",
            always=True,
            nullable=False,
            empty=[],
        ),
        F("stale", Text(), "Why it no longer counts; null where it does", always=True),
        F("fraction", SHARE, "Part of the derived peak, or of the bandwidth", unit="1"),
        F("fraction_at_clock", SHARE, "The same at the measured clock", unit="1"),
        F("unknown", TableOf(Text(least=1)), "Field to the reason why it is not known"),
    )
)


class Measurement(FreeTable):
    """One measured figure, with all that a report needs of it."""

    __slots__ = ()
    noun = "a measurement"

    def check(self, value: object) -> dict[str, Json]:
        """Return the measurement, every field checked; raises `Rejected`."""
        entry = typed(value, MEASURED, "measurement")
        for name in ("figure", "kind", "unit", "best", "median", "runs", "by", "date"):
            if entry.get(name) is None:
                raise Rejected(f"a measurement needs {name}")
        _check_together(entry)
        # A file that somebody edited may lack a key that each reader of a report relies on.
        for name, field in MEASURED.items():
            if field.always and entry.get(name) is None:
                entry[name] = field.absent()  # type: ignore[assignment]  # None or a list
        return entry


def _check_together(entry: dict[str, Json]) -> None:
    """Raise `Rejected` for fields that contradict each other."""
    is_compute, best, median = entry["figure"] == "compute", entry["best"], entry["median"]
    if (entry["kind"] == "memory") == is_compute:
        raise Rejected(f"a measurement of {entry['figure']} cannot be of kind {entry['kind']}")
    if (entry["unit"] == "B/s") == is_compute:
        raise Rejected(f"a measurement of {entry['figure']} cannot be in {entry['unit']}")
    if is_compute and entry.get("dtype") is None:
        raise Rejected("a measurement of compute needs dtype")
    # Both are numbers: the table has checked it.
    if is_compute and best > MOST_TERA:  # type: ignore[operator]
        raise Rejected(f"a measurement's best: {best:g} {entry['unit']} is beyond any device")
    if median > best:  # type: ignore[operator]
        raise Rejected(f"a measurement's median, {median:g}, exceeds its best, {best:g}")
