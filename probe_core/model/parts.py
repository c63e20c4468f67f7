"""The tables and list items inside a device: memory, chip, peaks, links, visibility.

Each is a table of fields of its own, which the device's table in `fields` points at.
"""

from __future__ import annotations

from probe_core.model.field import (
    PARTS,
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
from probe_core.model.readiness import STATES, STATUSES, STEPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import Json


MIB = 1 << 20
MAX_MEMORY = 64 << 40
"""Bytes: 64 TiB. A judgement: beyond any one machine, so that more is a wrong unit."""

BYTES = Number(0, MAX_MEMORY, whole=True)
TOTAL = Number(MIB, MAX_MEMORY, whole=True)
"""A memory below 1 MiB is a count of GiB or MiB that was not converted to bytes."""

COUNT = Number(0, 1 << 63, whole=True)
PART = Number(0, 1e7)
RATE = Number(1e-6, 1e7)
"""10^12 operations per second. A judgement: what lies outside was given in another unit."""

PCI = by_name(
    (
        F("id", Word(pattern="^[0-9a-f]{4}:[0-9a-f]{4}$"), "vendor:device, as `10de:2684`"),
        F("subsystem", Word(), "vendor:device of the board, as `1043:889a`"),
        F("revision", Word(), "two digits"),
        F("class", Word(), "six digits, as `030000`"),
    )
)

MEMORY = by_name(
    (
        F(
            "kind",
            Choice("dedicated", "unified", "shared"),
            "dedicated, unified (shared with the CPU) or shared (the system's own)",
            always=True,
        ),
        F("total", TOTAL, "All of it, with what the driver reserves", unit="bytes", always=True),
        F(
            "free",
            BYTES,
            "What the driver reports as free now",
            unit="bytes",
            always=True,
            volatile=True,
        ),
        F("usable", BYTES, "What a program could take", unit="bytes", always=True, volatile=True),
        F("used", BYTES, "What the driver reports as in use now", unit="bytes", volatile=True),
        F(
            "limited_by",
            Text(),
            "What keeps usable below total: used (by programs), cgroup, system (its available"
            " memory), or a prober's word for a limit of the driver",
            volatile=True,
            added=True,
        ),
        F(
            "parts",
            TableOf(BYTES, limit=16),
            "Parts with their own sources: vram, gtt, system, limit, reserved",
            unit="bytes",
            always=True,
            nullable=False,
            empty={},
            merge=PARTS,
        ),
    )
)

CHIP = by_name(
    (
        F("id", Text(), "The chip's id in chipdb (nvidia/geforce-rtx-4090)", always=True),
        F("name", Text(), "The chip's name in chipdb"),
        F(
            "by",
            Text(),
            "Which key matched: pci-subsystem, pci-revision, pci, gpu-id, dt, name, parent, host …",
            always=True,
        ),
        F("confidence", Choice("high", "medium", "low"), "high, medium or low", always=True),
        F(
            "candidates",
            Items(Text()),
            "Ids of the chips it may be, when nothing distinguishes them",
            always=True,
            nullable=False,
            empty=[],
        ),
        F(
            "conflicts",
            Items(Text()),
            "Sentences about keys that name other chips",
            nullable=False,
            empty=[],
        ),
        F(
            "nominal",
            FreeTable(),
            "Units and peaks (TFLOPS, TOPS) of the full chip, where the device has fewer units",
        ),
    )
)

PEAK = by_name(
    (
        F(
            "dtype",
            Text(),
            "What is multiplied: fp64, fp32, tf32, bf16, fp16, fp8, fp6, fp4, int8, int4 …",
            always=True,
            nullable=False,
            empty="",
        ),
        F(
            "path",
            Choice("vector", "matrix"),
            "Which units: vector or matrix",
            always=True,
            nullable=False,
            empty="",
        ),
        F(
            "accumulate",
            Text(),
            "What products are summed in",
            always=True,
            nullable=False,
            empty="",
        ),
        F(
            "sparsity",
            Choice("dense", "sparse"),
            "dense, or sparse where hardware skips zeros",
            always=True,
            nullable=False,
            empty="",
        ),
        F(
            "clock",
            Text(),
            "Which clock: boost, matrix, base, max (an upper bound), current, published …",
            always=True,
            nullable=False,
            empty="",
        ),
        F(
            "tflops",
            RATE,
            "10^12 operations per second, an FMA counting as two; TOPS for integers",
            unit="TFLOPS or TOPS",
            always=True,
            nullable=False,
            required=True,
        ),
        F(
            "source",
            Text(least=1),
            "How the number came about, and from which documents",
            always=True,
            nullable=False,
            empty="",
        ),
        F(
            "confidence",
            Text(),
            "vendor, derived, measured, community, or reported by a prober",
            always=True,
            nullable=False,
            empty="derived",
        ),
        F("variant", Text(), "single (no dual issue) or packed, where a chip has both"),
        F("mhz", Number(0, 1e5), "The clock's frequency", unit="MHz"),
        F(
            "low",
            RATE,
            "The figure at the bottom of the range that the part is sold with",
            unit="TFLOPS or TOPS",
        ),
        F("condition", Text(), "What decides within the range: the laptop, the power mode …"),
        F(
            "published",
            RATE,
            "The vendor's own figure for the same key",
            unit="TFLOPS or TOPS",
        ),
        F(
            "bound",
            Choice("lower"),
            "lower: the true peak may be higher, as clock, core or kinds of cores are not known",
            added=True,
        ),
        F(
            "high",
            RATE,
            "The figure if all cores were its fastest, where their kinds are not known",
            unit="TFLOPS or TOPS",
            added=True,
        ),
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


class Peak(FreeTable):
    """One peak that a prober itself knows, with all of its keys."""

    __slots__ = ()
    noun = "a peak"

    def check(self, value: object) -> dict[str, Json]:
        """Return the peak; its confidence is ``reported`` unless the prober says otherwise."""
        peak = typed(value, PEAK, "peak")
        missing = [name for name, field in PEAK.items() if field.always and peak.get(name) is None]
        if missing not in ([], ["confidence"]):
            raise Rejected(f"a peak needs {', '.join(missing)}")
        return {**peak, "confidence": peak.get("confidence") or "reported"}


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

READINESS = by_name(
    (
        F(
            "state",
            Choice(*STATES),
            "ready, limited (usable, but with less than it has), blocked or unknown",
            always=True,
            nullable=False,
            empty="unknown",
        ),
        F(
            "broken",
            Choice(*STEPS),
            "The first step that is broken; null where none is",
            always=True,
        ),
        F(
            "steps",
            Items(FreeTable()),
            "Every step, in order",
            always=True,
            nullable=False,
            empty=[],
            fields=STEP,
            shape="step",
        ),
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
