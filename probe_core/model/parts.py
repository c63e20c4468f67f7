"""Tables and list items inside a report that stay plain data in a view too: links, power, steps.

Each is a table of fields of its own, which a field of a class in `device` or `report` names: a
probe of a computer without accelerators asks for none of them, and does not import this.
"""

from __future__ import annotations

from probe_core.model.device import Peak
from probe_core.model.field import (
    FLAG,
    MAX_ITEMS,
    TEXT,
    Choice,
    DeviceId,
    Free,
    FreeTable,
    Items,
    Number,
    Rejected,
    TableOf,
    Text,
    Word,
    by_name,
    fields_of,
    free_value,
)
from probe_core.model.field import Field as F
from probe_core.model.ids import SEVERITIES, STEP_STATUSES, STEPS
from probe_core.wording import INVALID, clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import Json


def typed(value: object, fields: dict[str, F], noun: str) -> dict[str, Json]:
    """Check the fields that are declared, keep what a prober adds; raises `Rejected`."""
    try:
        if not isinstance(value, dict) or INVALID in value or len(value) > MAX_ITEMS:
            raise Rejected
        table: dict[str, Json] = {}
        for name, item in value.items():
            field = fields.get(name)
            if field is None:
                table[clean_text(name, 80)] = free_value(item, 1)
            else:
                table[name] = None if item is None else field.value.check(item)
        return table
    except Rejected:
        return _typed_in_turn(value, fields, noun)


def _typed_in_turn(value: object, fields: dict[str, F], noun: str) -> dict[str, Json]:
    """Do the same, so that the sentence names what is no plain data, then the first wrong field."""
    table = FreeTable().check(value)
    for name in filter(table.__contains__, fields):
        if table[name] is None:
            continue
        try:
            table[name] = fields[name].value.check(table[name])
        except Rejected as error:
            raise Rejected(f"a {noun}'s {name}: {error}") from None
    return table


COUNT = Number(0, 1 << 63, whole=True)

PCI = by_name(
    {
        "id": F(Word(pattern="^[0-9a-f]{4}:[0-9a-f]{4}$"), "vendor:device, as `10de:2684`"),
        "subsystem": F(Word(), "vendor:device of the board, as `1043:889a`"),
        "revision": F(Word(), "two digits"),
        "class": F(Word(), "six digits, as `030000`"),
    }
)


GTS = "gigatransfers per second"

LINK = by_name(
    {
        "kind": F(TEXT, "pcie, nvlink, xgmi …", always=True, nullable=False),
        "peer": F(
            DeviceId(),
            "Id of the device at the other end; null for the host or when unknown",
        ),
        "to": F(TEXT, "What is at the other end of an NVLink: gpu, cpu or switch"),
        "count": F(
            COUNT, "How many links go there; 0: it is reached through other devices", unit="count"
        ),
        "width": F(
            COUNT,
            "Lanes in use now; of PCIe those of the slowest hop between device and host",
            unit="count",
        ),
        "max_width": F(COUNT, "Lanes at most, of the same hop", unit="count"),
        "gts": F(Number(), "Speed of each lane now, of the same hop", unit=GTS),
        "max_gts": F(Number(), "Speed of each lane at most, of the same hop", unit=GTS),
        "generation": F(COUNT, "PCIe generation now, of the same hop", unit="number"),
        "bandwidth": F(
            Number(),
            "Data rate in one direction; of PCIe the slowest hop's between device and host",
            unit="bytes per second",
        ),
        "local_width": F(
            COUNT,
            "Lanes in use now on the device's own PCIe hop, to the bridge above it",
            unit="count",
        ),
        "local_max_width": F(COUNT, "Lanes at most, of the device's own hop", unit="count"),
        "local_gts": F(Number(), "Speed of each lane now, of the device's own hop", unit=GTS),
        "local_max_gts": F(
            Number(),
            "Speed of each lane at most, of the device's own hop",
            unit=GTS,
        ),
        "local_generation": F(
            COUNT,
            "PCIe generation now, of the device's own hop",
            unit="number",
        ),
        "local_bandwidth": F(
            Number(),
            "Data rate in one direction, of the device's own hop",
            unit="bytes per second",
        ),
        "limited_by": F(
            TEXT,
            "PCI address of the bridge whose link is the slowest, where it is not the device's own",
        ),
    }
)

SHARE = by_name(
    {
        "units": F(Number(1, 1e6, whole=True), "How many units it has", unit="count"),
        "of": F(Number(1, 1e6, whole=True), "How many units its parent has", unit="count"),
    }
)

SIGHT = by_name(
    {
        "visible": F(
            FLAG,
            "Whether it shows the device; null where only its driver knows",
            always=True,
        ),
        "index": F(COUNT, "The index under which it shows the device", unit="ordinal", always=True),
        "reason": F(TEXT, "Why it does not, or why that is not known", always=True),
        "variable": F(TEXT, "The environment variable that decided"),
        "step": F(Choice(*STEPS), "The step of readiness that takes it away", nullable=False),
        "code": F(TEXT, "Word for the cause, as in its readiness", nullable=False),
        "one_of": F(
            Items(COUNT, limit=1 << 16),
            "The possible indexes, where the order is not known",
            unit="ordinal",
            always=False,
            empty=[],
        ),
        "settled_by": F(
            TEXT,
            "The environment variable that would settle it, where only the driver knows",
            nullable=False,
        ),
    }
)

OTHER = by_name(
    {
        "prober": F(TEXT, "The prober that reported it", always=True, nullable=False),
        "value": F(Free(), "The value that was not used", always=True, nullable=False),
    }
)


class Link(FreeTable):
    """One link: a kind, the fields of `LINK` with their types, and what a prober adds."""

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
    {
        "limit_watts": F(WATTS, "Power limit in effect now", unit="watts", volatile=True),
        "default_watts": F(WATTS, "Limit that the driver sets when it starts", unit="watts"),
        "max_watts": F(WATTS, "Highest limit that may be set", unit="watts"),
        "reasons": F(
            Items(Word()),
            "What holds the clocks below their maximum now: idle, sw-power-cap, sw-thermal …",
            volatile=True,
        ),
    }
)

ECC = by_name(
    {
        "enabled": F(FLAG, "Whether memory errors are corrected"),
        "pending": F(FLAG, "The same after the next reset, as it was set"),
        "remapped": F(
            Number(0, 1e6, whole=True),
            "Rows of memory that were replaced after an uncorrectable error",
            unit="rows",
        ),
        "remap_pending": F(FLAG, "Whether faulty rows of memory wait for a reset", volatile=True),
        "remap_failed": F(FLAG, "Whether a faulty row could not be replaced"),
    }
)


# What `probe bench` achieved on a device: one table per figure, beside the derived peaks.

MEMORY_FIGURES = ("read", "write", "copy")
"""Directions in which a memory is measured; a copy counts what it reads and what it writes."""

LINK_FIGURES = ("upload", "download")
"""Directions of the link between host and device."""

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
    {
        "figure": F(
            Choice("compute", *MEMORY_FIGURES, *LINK_FIGURES),
            "compute (arithmetic), the direction of a memory (read, write, copy) or of the link to"
            " the host (upload, download)",
            required=True,
        ),
        "kind": F(
            Choice("alu", "matmul", "memory", "link"),
            "alu (a loop that stays in registers), matmul (a library's), memory or link",
            required=True,
        ),
        "dtype": F(Word(), "Type of the numbers; null of a memory", always=True),
        "accumulate": F(Word(), "Type that sums are kept in"),
        "unit": F(Choice("TFLOPS", "TOPS", "B/s"), "Of the figures", always=True),
        "best": F(
            MEASURED_RATE,
            "The best run",
            unit="TFLOPS, TOPS or bytes per second",
            always=True,
        ),
        "median": F(
            MEASURED_RATE,
            "The middle run",
            unit="TFLOPS, TOPS or bytes per second",
            always=True,
        ),
        "cold": F(
            MEASURED_RATE,
            "The first run, unwarmed",
            unit="TFLOPS, TOPS or bytes per second",
        ),
        "runs": F(MEASURED_COUNT, "Runs that were counted", unit="count", always=True),
        "warm_s": F(SPAN, "Time of the runs before them", unit="seconds"),
        "by": F(TEXT, "What achieved it: library or compiler, with version", always=True),
        "size": F(
            MEASURED_COUNT,
            "Edge of the matrices, or bytes of the buffer",
            unit="count or bytes",
        ),
        "threads": F(MEASURED_COUNT, "Threads of the CPU that took part", unit="count"),
        "clock_mhz": F(Number(1, 100_000), "Clock during or right after the run", unit="MHz"),
        "clock_reasons": F(Items(Word()), "What held the clock down, as the driver names it"),
        "power_w": F(WATTS, "Power at most during the run", unit="watts"),
        "power_cap_w": F(WATTS, "Limit of the power", unit="watts"),
        "temperature_c": F(Number(-100, 300), "Temperature at most", unit="degrees Celsius"),
        "driver": F(TEXT, "Driver with its version; null where none takes part", always=True),
        "date": F(TEXT, "When, in UTC: 2026-11-22T09:30:00Z", always=True),
        "disturbed": F(
            Items(Choice(*DISTURBANCES)),
            "What shows that others used it meanwhile: median, cpu-time, other-load, processes",
            empty=[],
        ),
        "stale": F(TEXT, "Why it no longer counts; null where it does", always=True),
        "repeated": F(FLAG, "An earlier undisturbed run, of the same driver, had the same result"),
        "fraction": F(MEASURED_SHARE, "Part of the derived peak, or of the bandwidth", unit="1"),
        "fraction_at_clock": F(MEASURED_SHARE, "The same at the measured clock", unit="1"),
        "unknown": F(TableOf(Text(least=1)), "Field to the reason why it is not known"),
    }
)


class Measurement(FreeTable):
    """One measured figure, with all that a report needs of it."""

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


_FIGURES_OF = {"memory": MEMORY_FIGURES, "link": LINK_FIGURES}
"""Kind to the figures that it can be of; of any other kind it is compute."""


def _check_together(entry: dict[str, Json]) -> None:
    """Raise `Rejected` for fields that contradict each other."""
    is_compute, best, median = entry["figure"] == "compute", entry["best"], entry["median"]
    if entry["figure"] not in _FIGURES_OF.get(str(entry["kind"]), ("compute",)):
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
    {
        "step": F(
            Choice(*STEPS),
            "Which link of the chain: hardware, driver, node, permission, library, responding,"
            " granted, visible or runtime",
            required=True,
        ),
        "status": F(
            Choice(*STEP_STATUSES),
            "ok, broken, unknown (with the reason as evidence) or not_applicable",
            empty="unknown",
        ),
        "evidence": F(
            TEXT,
            "The fact that it rests on, with its place: a file and its content, an error code, an"
            " answer of a library",
            always=True,
        ),
        "code": F(TEXT, "Word for the cause, as findings have it", always=True),
        "prober": F(TEXT, "The prober that reported it; absent where the core read it itself"),
        "severity": F(
            Choice(*SEVERITIES),
            "How bad it is that a broken step is; info where somebody wants it so or hardly anybody"
            " misses the device; absent where the step is not broken",
            nullable=False,
        ),
        "opened": F(
            Items(Text(least=2)),
            "Device nodes that were opened for this answer, which it proves to be open; a refusal"
            " of any other node stands",
        ),
        "blocks": F(
            FLAG,
            "True where its cause, which limits other devices, keeps this one from the only purpose"
            " that it has; else absent",
            nullable=False,
        ),
    }
)


class StepFact(FreeTable):
    """What a prober learnt of one step of a device's readiness."""

    def check(self, value: object) -> dict[str, Json]:
        """Return the step, its status and evidence; a step without either is no fact."""
        fact = typed(value, STEP, "step")
        missing = [name for name in ("step", "status", "evidence") if fact.get(name) is None]
        if missing:
            raise Rejected(f"a step needs {', '.join(missing)}")
        known = {name: fact.get(name) for name in ("step", "status", "evidence", "code")}
        return known | {"opened": fact["opened"]} if fact.get("opened") is not None else known


class ReportedPeak(FreeTable):
    """One peak that a prober itself knows, with all of its keys."""

    noun = "a peak"

    def check(self, value: object) -> dict[str, Json]:
        """Return the peak; its confidence is ``reported`` unless the prober says otherwise."""
        peak = typed(value, fields_of(Peak), "peak")
        missing = [
            name
            for name, field in fields_of(Peak).items()
            if field.always and peak.get(name) is None
        ]
        if missing not in ([], ["confidence"]):
            raise Rejected(f"a peak needs {', '.join(missing)}")
        return {**peak, "confidence": peak.get("confidence") or "reported"}


# The links of a node to others.

NETWORK = by_name(
    {
        "name": F(
            TEXT,
            "Name of the interface, the RDMA port (mlx5_0/1) or the Thunderbolt connection (0-1)",
            empty="",
        ),
        "kind": F(
            TEXT,
            "ethernet, wifi, wwan, infiniband, thunderbolt-net or other of interfaces; rdma;"
            " thunderbolt of a connection to another host",
            empty="other",
        ),
        "state": F(
            TEXT,
            "up, down, or another state as the kernel reports it",
            always=True,
            volatile=True,
        ),
        "bandwidth": F(
            Number(),
            "Speed of the link in one direction, as negotiated",
            unit="bytes per second",
            always=True,
            volatile=True,
        ),
        "reason": F(TEXT, "Why the bandwidth is not known", always=True, volatile=True),
        "mtu": F(COUNT, "Bytes of its largest packet", unit="bytes"),
        "driver": F(TEXT, "The kernel driver that is bound to it"),
        "device": F(TEXT, "PCI id of its hardware: pci:dddd:bb:dd.f"),
        "numa_node": F(COUNT, "The NUMA node it is attached to", unit="ordinal"),
        "bridges": F(
            Items(TEXT, limit=32),
            "PCI addresses of the bridges above its hardware, the root port last; absent on the"
            " root bus",
        ),
        "layer": F(TEXT, "Link layer of an RDMA port: infiniband, ethernet (RoCE) or another"),
        "interface": F(TEXT, "The interface of the same hardware as an RDMA port"),
        "id": F(
            TEXT,
            "This host's id on the Thunderbolt bus; absent with the setting anonymous",
        ),
        "peer": F(
            TEXT,
            "The id of the host at the other end; absent with the setting anonymous",
        ),
    }
)
