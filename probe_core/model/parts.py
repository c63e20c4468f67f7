"""The tables and list items inside a device: memory, chip, peaks, links, visibility.

Each is a table of fields of its own, which the device's table in `fields` points at.
"""

from __future__ import annotations

from probe_core.model.field import PARTS, by_name
from probe_core.model.field import Field as F
from probe_core.model.readiness import STEPS
from probe_core.model.values import (
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
    typed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import Json

__all__ = [
    "ALLOWED",
    "BYTES",
    "CHIP",
    "LINK",
    "MEMORY",
    "OTHER",
    "PCI",
    "PEAK",
    "SHARE",
    "SIGHT",
    "Link",
    "Peak",
]

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
