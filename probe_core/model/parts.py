"""The tables and list items inside a device: memory, chip, peaks, links, visibility.

Each is a table of fields of its own, which the device's table in `fields` points at.
"""

from __future__ import annotations

from probe_core.model.field import (
    Choice,
    DeviceId,
    Flag,
    Free,
    FreeTable,
    Items,
    Number,
    Rejected,
    TableOf,
    Text,
    Word,
    by_name,
    typed,
)
from probe_core.model.field import Field as F
from probe_core.model.readiness import STATUSES, STEPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import Json


COUNT = Number(0, 1 << 63, whole=True)
PART = Number(0, 1e7)

PCI = by_name(
    (
        F("id", Word(pattern="^[0-9a-f]{4}:[0-9a-f]{4}$"), "vendor:device, as `10de:2684`"),
        F("subsystem", Word(), "vendor:device of the board, as `1043:889a`"),
        F("revision", Word(), "two digits"),
        F("class", Word(), "six digits, as `030000`"),
    )
)


ALLOWED = by_name(
    (
        F("threads", COUNT, "Hardware threads that it may run on", unit="count"),
        F("cores", COUNT, "Cores with at least one such thread", unit="count"),
        F("quota", Number(0, 1e6), "CPU time at most, in CPUs: cpu.max", unit="CPUs"),
        F("by", Items(Text()), "Where the limits are written: control groups, or the affinity"),
        F("fp32", PART, "fp32 of the allowed part", unit="TFLOPS", reported=False),
        F("fp16", PART, "fp16 of the allowed part", unit="TFLOPS", reported=False),
        F("int8", PART, "int8 of the allowed part", unit="TOPS", reported=False),
    )
)

GTS = "gigatransfers per second"

LINK = by_name(
    (
        F("kind", Text(), "pcie, nvlink, xgmi …", always=True, nullable=False),
        F(
            "peer",
            DeviceId(),
            "Id of the device at the other end; null for the host or when unknown",
        ),
        F("to", Text(), "What is at the other end of an NVLink: gpu, cpu or switch"),
        F("count", COUNT, "How many links go there", unit="count"),
        F(
            "width",
            COUNT,
            "Lanes in use now; of PCIe those of the slowest hop between device and host",
            unit="count",
        ),
        F("max_width", COUNT, "Lanes at most, of the same hop", unit="count"),
        F("gts", Number(), "Speed of each lane now, of the same hop", unit=GTS),
        F("max_gts", Number(), "Speed of each lane at most, of the same hop", unit=GTS),
        F("generation", COUNT, "PCIe generation now, of the same hop", unit="number"),
        F(
            "bandwidth",
            Number(),
            "Data rate in one direction; of PCIe the slowest hop's between device and host",
            unit="bytes per second",
        ),
        F(
            "local_width",
            COUNT,
            "Lanes in use now on the device's own PCIe hop, to the bridge above it",
            unit="count",
        ),
        F("local_max_width", COUNT, "Lanes at most, of the device's own hop", unit="count"),
        F("local_gts", Number(), "Speed of each lane now, of the device's own hop", unit=GTS),
        F(
            "local_max_gts",
            Number(),
            "Speed of each lane at most, of the device's own hop",
            unit=GTS,
        ),
        F(
            "local_generation",
            COUNT,
            "PCIe generation now, of the device's own hop",
            unit="number",
        ),
        F(
            "local_bandwidth",
            Number(),
            "Data rate in one direction, of the device's own hop",
            unit="bytes per second",
        ),
        F(
            "limited_by",
            Text(),
            "PCI address of the bridge whose link is the slowest, where it is not the device's own",
        ),
    )
)

SHARE = by_name(
    (
        F("units", Number(1, 1e6, whole=True), "How many units it has", unit="count"),
        F("of", Number(1, 1e6, whole=True), "How many units its parent has", unit="count"),
    )
)

SIGHT = by_name(
    (
        F(
            "visible",
            Flag(),
            "Whether it shows the device; null where only its driver knows",
            always=True,
        ),
        F("index", COUNT, "The index under which it shows the device", unit="ordinal", always=True),
        F("reason", Text(), "Why it does not, or why that is not known", always=True),
        F("variable", Text(), "The environment variable that decided"),
        F("step", Choice(*STEPS), "The step of readiness that takes it away", nullable=False),
        F("code", Text(), "Word for the cause, as in its readiness", nullable=False),
        F(
            "one_of",
            Items(COUNT, limit=1 << 16),
            "The possible indexes, where the order is not known",
            unit="ordinal",
            nullable=False,
            empty=[],
        ),
        F(
            "settled_by",
            Text(),
            "The environment variable that would settle it, where only the driver knows",
            nullable=False,
        ),
    )
)

OTHER = by_name(
    (
        F("prober", Text(), "The prober that reported it", always=True, nullable=False),
        F("value", Free(), "The value that was not used", always=True, nullable=False),
    )
)


class Link(FreeTable):
    """One link: a kind, the fields of `LINK` with their types, and what a prober adds."""

    __slots__ = ()
    noun = "a link"

    def check(self, value: object) -> dict[str, Json]:
        """Return the link with safe text, and its peer's id in its one form."""
        link = typed(value, LINK, "link")
        if link.get("kind") is None:
            raise Rejected("a link needs a kind")
        return link


# Tables inside a device about its limits and its health: power, error correction.

WATTS = Number(1, 100_000)
"""A judgement: below a watt or above 100 kW, a limit was given in another unit."""

POWER = by_name(
    (
        F("limit_watts", WATTS, "Power limit in effect now", unit="watts", volatile=True),
        F("default_watts", WATTS, "Limit that the driver sets when it starts", unit="watts"),
        F("max_watts", WATTS, "Highest limit that may be set", unit="watts"),
        F(
            "reasons",
            Items(Word()),
            "What holds the clocks below their maximum now: idle, sw-power-cap, sw-thermal …",
            volatile=True,
        ),
    )
)

ECC = by_name(
    (
        F("enabled", Flag(), "Whether memory errors are corrected"),
        F("pending", Flag(), "The same after the next reset, as it was set"),
        F("remap_pending", Flag(), "Whether faulty rows of memory wait for a reset", volatile=True),
        F("remap_failed", Flag(), "Whether a faulty row could not be replaced"),
    )
)


# What `probe bench` achieved on a device: one table per figure, beside the derived peaks.

MEMORY_FIGURES = ("read", "write", "copy")
"""Directions in which a memory is measured; a copy counts what it reads and what it writes."""

DISTURBANCES = {
    "median": "the median is below 0.9 of the best run",
    "cpu-time": "the measuring threads got less than 0.95 of the time",
    "other-load": "other processes used more than 5 % of the CPUs",
    "processes": "other processes used the device",
}
"""What shows that others used the device meanwhile: such a figure is not for planning."""

MEASURED_RATE = Number(0, 1e18)
MOST_TERA = 1e6
"""TFLOPS or TOPS: fifty times the sparse fp4 peak of a B300."""

SPAN = Number(0, 86_400)
MEASURED_COUNT = Number(1, 1e18, whole=True)
MEASURED_SHARE = Number(0, 1e9)

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
        F(
            "best",
            MEASURED_RATE,
            "The best run",
            unit="TFLOPS, TOPS or bytes per second",
            always=True,
        ),
        F(
            "median",
            MEASURED_RATE,
            "The middle run",
            unit="TFLOPS, TOPS or bytes per second",
            always=True,
        ),
        F(
            "cold",
            MEASURED_RATE,
            "The first run, unwarmed",
            unit="TFLOPS, TOPS or bytes per second",
        ),
        F("runs", MEASURED_COUNT, "Runs that were counted", unit="count", always=True),
        F("warm_s", SPAN, "Time of the runs before them", unit="seconds"),
        F("by", Text(), "What achieved it: library or compiler, with version", always=True),
        F(
            "size",
            MEASURED_COUNT,
            "Edge of the matrices, or bytes of the buffer",
            unit="count or bytes",
        ),
        F("threads", MEASURED_COUNT, "Threads of the CPU that took part", unit="count"),
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
        F("fraction", MEASURED_SHARE, "Part of the derived peak, or of the bandwidth", unit="1"),
        F("fraction_at_clock", MEASURED_SHARE, "The same at the measured clock", unit="1"),
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


# The tables of a device's readiness: its steps, and what probers report of them.

STEP = by_name(
    (
        F(
            "step",
            Choice(*STEPS),
            "Which link of the chain: hardware, driver, node, permission, library, responding,"
            " granted, visible or runtime",
            always=True,
            nullable=False,
            required=True,
        ),
        F(
            "status",
            Choice(*STATUSES),
            "ok, broken, unknown (with the reason as evidence) or not_applicable",
            always=True,
            nullable=False,
            empty="unknown",
        ),
        F(
            "evidence",
            Text(),
            "The fact that it rests on, with its place: a file and its content, an error code, an"
            " answer of a library",
            always=True,
        ),
        F("code", Text(), "Word for the cause, as findings have it", always=True),
        F("prober", Text(), "The prober that reported it; absent where the core read it itself"),
    )
)


class StepFact(FreeTable):
    """What a prober learnt of one step of a device's readiness."""

    __slots__ = ()
    noun = "a step"

    def check(self, value: object) -> dict[str, Json]:
        """Return the step, its status and evidence; a step without either is no fact."""
        fact = typed(value, STEP, "step")
        missing = [name for name in ("step", "status", "evidence") if fact.get(name) is None]
        if missing:
            raise Rejected(f"a step needs {', '.join(missing)}")
        return {name: fact.get(name) for name in ("step", "status", "evidence", "code")}
