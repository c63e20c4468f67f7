"""A device of the report and its parts: each field of them is declared here, and nowhere else.

Validation of what probers report, the order in the report, merging, filling of static reports, the
JSON Schema, the reference pages and the TypedDicts in `document` follow from these classes. To add
a field is to add an entry here, and to run ``python docs/generate.py``.
"""

from __future__ import annotations

from probe_core.model.field import (
    FACTS,
    FLAG,
    LINKS,
    PARTS,
    TABLE,
    TEXT,
    UNION,
    Choice,
    DeviceId,
    FreeTable,
    Ids,
    Items,
    Nested,
    Number,
    TableOf,
    Text,
    View,
    Word,
    by_name,
    field,
    fields_of,
    part,
)
from probe_core.model.field import Field as F
from probe_core.model.ids import KINDS, STATES, STEPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import (
        EccDoc,
        Json,
        LinkDoc,
        MeasuredDoc,
        OtherDoc,
        PciDoc,
        PowerDoc,
        StepDoc,
        VisibilityDoc,
    )

MIB = 1 << 20
MAX_MEMORY = 64 << 40
"""Bytes: 64 TiB. A judgement: beyond any one machine, so that more is a wrong unit."""

BYTES = Number(0, MAX_MEMORY, whole=True)
TOTAL = Number(MIB, MAX_MEMORY, whole=True)
"""A memory below 1 MiB is a count of GiB or MiB that was not converted to bytes."""

PEAK_RATE = Number(1e-6, 1e7)
"""10^12 operations per second. A judgement: what lies outside was given in another unit."""

RATE = Number(0, 1e7)
COUNT = Number(1, 1_000_000, whole=True)
ORDINAL = Number(0, 1_000_000, whole=True)
MHZ = Number(1, 100_000)
"""A clock above 100 GHz is one in kHz or Hz that was not converted."""

# Not in `parts`: computers without accelerators have processors with limits, too.
ALLOWED = by_name(
    {
        "threads": F(Number(whole=True), "Hardware threads that it may run on", unit="count"),
        "cores": F(Number(whole=True), "Cores with at least one such thread", unit="count"),
        "quota": F(
            Number(0, 1e6),
            "CPU time at most, in CPUs: cpu.max; of several packages each has its part",
            unit="CPUs",
        ),
        "by": F(Items(TEXT), "Where the limits are written: control groups, or the affinity"),
    }
)


@part
class Memory(View):
    """A device's memory, in bytes."""

    kind: str | None = field(
        Choice("dedicated", "unified", "shared"),
        "dedicated, unified (shared with the CPU) or shared (the system's own)",
        always=True,
    )
    total: int | None = field(
        TOTAL, "All of it, with what the driver reserves", unit="bytes", always=True
    )
    free: int | None = field(
        BYTES, "What the driver reports as free now", unit="bytes", always=True, volatile=True
    )
    usable: int | None = field(
        BYTES, "What a program could take", unit="bytes", always=True, volatile=True
    )
    used: int | None = field(
        BYTES, "What the driver reports as in use now", unit="bytes", volatile=True
    )
    limited_by: str | None = field(
        TEXT,
        "What keeps usable below total: used (by programs), cgroup, system (its available"
        " memory), or a prober's word for a limit of the driver",
        volatile=True,
        added=True,
    )
    parts: Mapping[str, int] = field(
        TableOf(BYTES, limit=16),
        "Parts with their own sources: vram, gtt, system, limit, reserved",
        unit="bytes",
        empty={},
        merge=PARTS,
    )


@part
class Peak(View):
    """One theoretical peak; a number without these keys means nothing."""

    dtype: str = field(
        TEXT,
        "What is multiplied: fp64, fp32, tf32, bf16, fp16, fp8, fp6, fp4, int8, int4 …",
        empty="",
    )
    path: str = field(Choice("vector", "matrix"), "Which units: vector or matrix", empty="")
    accumulate: str = field(TEXT, "What products are summed in", empty="")
    sparsity: str = field(
        Choice("dense", "sparse"), "dense, or sparse where hardware skips zeros", empty=""
    )
    clock: str = field(
        TEXT,
        "Which clock: boost, matrix, base, max (an upper bound), current, published …",
        empty="",
    )
    tflops: float = field(
        PEAK_RATE,
        "10^12 operations per second, an FMA counting as two; TOPS for integers",
        unit="TFLOPS or TOPS",
        required=True,
    )
    source: str = field(
        Text(least=1), "How the number came about, and from which documents", empty=""
    )
    confidence: str = field(
        TEXT,
        "vendor (its words were read), third-party (a quotation was), recalled, derived, measured, "
        "community, or reported by a prober",
        empty="derived",
    )
    variant: str | None = field(TEXT, "single (no dual issue) or packed, where a chip has both")
    mhz: float | None = field(Number(0, 1e5), "The clock's frequency", unit="MHz")
    low: float | None = field(
        PEAK_RATE,
        "The figure at the bottom of the range that the part is sold with",
        unit="TFLOPS or TOPS",
    )
    condition: str | None = field(
        TEXT, "What decides within the range: the laptop, the power mode …"
    )
    published: float | None = field(
        PEAK_RATE, "The vendor's own figure for the same key", unit="TFLOPS or TOPS"
    )
    confirmed_by: str | None = field(
        Choice("vendor", "third-party", "recalled"),
        "The confidence of the vendor's figure within 3 % of which a derived one lies",
        added=True,
    )
    bound: str | None = field(
        Choice("lower"),
        "lower: the true peak may be higher, as clock, core or kinds of cores are not known",
        added=True,
    )
    high: float | None = field(
        PEAK_RATE,
        "The figure if all cores were its fastest, where their kinds are not known",
        unit="TFLOPS or TOPS",
        added=True,
    )


@part
class ChipRef(View):
    """Which chip of chipdb a device is, and how sure that is."""

    id: str | None = field(TEXT, "The chip's id in chipdb (nvidia/geforce-rtx-4090)", always=True)
    name: str | None = field(TEXT, "The chip's name in chipdb")
    by: str | None = field(
        TEXT,
        "Which key matched: pci-subsystem, pci-revision, pci, gpu-id, dt, name, parent, host …",
        always=True,
    )
    confidence: str | None = field(
        Choice("high", "medium", "low"), "high, medium or low", always=True
    )
    candidates: tuple[str, ...] = field(
        Items(TEXT), "Ids of the chips it may be, when nothing distinguishes them", empty=[]
    )
    conflicts: tuple[str, ...] = field(
        Items(TEXT), "Sentences about keys that name other chips", always=False, empty=[]
    )
    nominal: Mapping[str, Json] | None = field(
        FreeTable(),
        "Units and peaks (TFLOPS, TOPS) of the full chip, where the device has, or this process may"
        " use, fewer units",
    )


@part
class Readiness(View):
    """Whether this process can use a device, and the step that is broken."""

    state: str = field(
        Choice(*STATES),
        "ready, limited (usable, but with less than it has), blocked or unknown",
        empty="unknown",
    )
    broken: str | None = field(
        Choice(*STEPS), "The first step that is broken; null where none is", always=True
    )
    steps: tuple[StepDoc, ...] = field(
        Items(FreeTable()), "Every step, in order", empty=[], fields="STEP", shape="step"
    )


@part
class Device(View):
    """One physical device, or one partition of one."""

    id: str = field(
        DeviceId(least=3),
        "The best of ids: pci:dddd:bb:dd.f, dt:/path, uuid:GPU-…, cpu:n",
        reported=False,
        required=True,
    )
    kind: str = field(
        Choice(*KINDS),
        "gpu, npu, accelerator, cpu, coprocessor (its use is not known) or display (cannot"
        " compute)",
        required=True,
    )
    ids: tuple[str, ...] = field(
        Ids(),
        "Strong ids, best first: what joins the sightings of one device",
        empty=[],
        before="kind",
    )
    vendor: str | None = field(
        Word(), "Vendor in one lower-case word: nvidia, amd, intel, apple, arm …", always=True
    )
    name: str | None = field(
        TEXT, "Marketing name as the driver, else chipdb, gives it", always=True
    )
    chip: ChipRef = field(
        FreeTable(),
        "Which chip of chipdb it is",
        reported=False,
        empty={},
        part=ChipRef,
        shape="chip",
    )
    arch: str | None = field(
        Word(), "Architecture family: ada, cdna3, zen5 … (kinds of cores joined by +)", always=True
    )
    units: int | None = field(
        COUNT, "SMs, CUs, EUs or cores of this device", unit="count", always=True
    )
    cores: int | None = field(
        COUNT, "CUDA cores, stream processors or other fp32 lanes of this device", unit="count"
    )
    threads: int | None = field(COUNT, "Hardware threads of a CPU", unit="count")
    pci: PciDoc | None = field(
        FreeTable(),
        "id, subsystem, revision and class, in lower-case hexadecimal",
        always=True,
        fields="PCI",
        merge=TABLE,
    )
    dt: tuple[str, ...] = field(
        Items(TEXT),
        "Device-tree compatibles, most specific first",
        always=False,
        empty=[],
        merge=UNION,
    )
    gpu_id: str | None = field(Word(), "Value of the GPU's id register, as vendor:0xvalue")
    gfx: str | None = field(Word(), "AMD's ISA target: gfx1100")
    compute_capability: str | None = field(TEXT, "NVIDIA's compute capability: 8.9")
    clocks: Mapping[str, float] = field(
        TableOf(MHZ),
        "Clocks, each by its kind: max_mhz, base_mhz, boost_mhz, memory_max_mhz, current_mhz",
        unit="MHz",
        nullable=True,
        always=False,
        empty={},
        merge=TABLE,
    )
    memory: Memory = field(
        FreeTable(), "Its memory", empty={}, part=Memory, shape="memory", merge=TABLE
    )
    peaks: tuple[Peak, ...] = field(
        Items(Nested("ReportedPeak", "a peak")),
        "Every known peak",
        empty=[],
        part=Peak,
        shape="peak",
    )
    fp32: float | None = field(RATE, "Dense, vector", unit="TFLOPS", reported=False, always=True)
    fp16: float | None = field(
        RATE,
        "Dense, the fastest path that accumulates in fp32, else the fp16 vector path",
        unit="TFLOPS",
        reported=False,
        always=True,
    )
    int8: float | None = field(
        RATE, "Dense, the fastest path", unit="TOPS", reported=False, always=True
    )
    bandwidth: float | None = field(
        Number(1e6, 1e15), "Memory bandwidth", unit="bytes per second", always=True
    )
    measured: tuple[MeasuredDoc, ...] = field(
        Items(Nested("Measurement", "a measurement")),
        "What `probe bench` achieved on it, and with what; never mixed with the derived peaks",
        reported=False,
        always=False,
        empty=[],
        fields="MEASURED",
        shape="measurement",
        added=True,
    )
    bus_width_bits: int | None = field(COUNT, "Width of the memory bus", unit="bits")
    driver: Mapping[str, str] | None = field(
        TableOf(TEXT),
        "name, version, and versions of the vendor's own (cuda, rocm)",
        always=True,
        merge=TABLE,
    )
    backends: tuple[str, ...] = field(
        Items(Word()), "Runtimes that can use it: cuda, hip, cpu …", empty=[], merge=UNION
    )
    power_state: str | None = field(
        Word(), "active, suspended, off … as the kernel reports it", always=True, volatile=True
    )
    power: PowerDoc | None = field(
        FreeTable(), "Its power limits, and what holds its clocks down", fields="POWER", merge=TABLE
    )
    ecc: EccDoc | None = field(
        FreeTable(), "Error correction of its memory", fields="ECC", merge=TABLE
    )
    compute_mode: str | None = field(
        Word(),
        "Which processes may compute on it: default, exclusive-process, exclusive-thread or"
        " prohibited",
    )
    persistence: bool | None = field(
        FLAG, "Whether the driver keeps it initialised while no process uses it"
    )
    numa_node: int | None = field(
        Number(0, 4096, whole=True),
        "The NUMA node it is attached to; the first one of numa_nodes",
        unit="ordinal",
    )
    numa_nodes: tuple[int, ...] = field(
        Items(Number(0, 4096, whole=True), limit=4096),
        "The NUMA nodes of a CPU package that has several",
        unit="ordinal",
        always=False,
        empty=[],
        added=True,
    )
    parent: str | None = field(
        DeviceId(), "Id of the device that this one is a part of", always=True
    )
    profile: str | None = field(
        TEXT, "Profile of a partition, as its driver names it: 3g.40gb, cpx"
    )
    share: Mapping[str, float] | None = field(
        TableOf(Number(0, 1e12)),
        "This part's share of the parent: units of how many",
        unit="count",
        fields="SHARE",
        merge=TABLE,
    )
    links: tuple[LinkDoc, ...] = field(
        Items(Nested("Link", "a link"), limit=256),
        "PCIe, NVLink and XGMI links",
        empty=[],
        fields="LINK",
        shape="link",
        merge=LINKS,
    )
    bridges: tuple[str, ...] = field(
        Items(TEXT, limit=32),
        "PCI addresses of the bridges above it, its own port first, the root port last; devices"
        " that share one lie behind the same switch or port",
        always=False,
        empty=[],
        added=True,
    )
    node_index: Mapping[str, int] = field(
        TableOf(ORDINAL),
        "Ordinals in the drivers' own lists (nvml, drm_card, drm_render, kfd): for people,"
        " never for matching",
        unit="ordinal",
        nullable=True,
        always=False,
        empty={},
        merge=TABLE,
    )
    processes: int | None = field(
        ORDINAL, "Compute processes that use it now", unit="count", volatile=True
    )
    cpu: Mapping[str, Json] | None = field(
        FreeTable(),
        "A CPU's identity (vendor_id, family, model, stepping, implementer, part, variant),"
        " flags that decide peaks, CPUs that are offline, and kinds of cores (clusters: name,"
        " cores, threads, clock, fp32 in TFLOPS)",
        volatile=True,
    )
    allowed: Mapping[str, Json] | None = field(
        FreeTable(),
        "What of a CPU this process may use, where that is less than the whole",
        fields=ALLOWED,
        merge=TABLE,
        volatile=True,
        added=True,
    )
    visibility: Mapping[str, VisibilityDoc] = field(
        TableOf(FreeTable()),
        "Runtime (cuda, hip, vulkan …) to what it shows of this device",
        reported=False,
        empty={},
        fields="SIGHT",
        shape="sight",
    )
    nodes: tuple[str, ...] = field(
        Items(Text(least=2)),
        "Device nodes that a program must open to use it, as /dev/nvidia0",
        always=False,
        empty=[],
        merge=UNION,
    )
    step_facts = field(
        Items(Nested("StepFact", "a step"), limit=64),
        "What its prober learnt of single steps of readiness; the report has them in readiness",
        always=False,
        empty=[],
        fields="STEP",
        shape="step",
        merge=FACTS,
        volatile=True,
        internal=True,
    )
    readiness: Readiness = field(
        FreeTable(),
        "Whether this process can use it, and the step that is broken",
        reported=False,
        empty={},
        part=Readiness,
        shape="readiness",
        volatile=True,
        added=True,
    )
    unknown: Mapping[str, str] = field(
        TableOf(Text(least=1)), "Field (memory.total) to the reason why it is not known", empty={}
    )
    sources: Mapping[str, str] = field(
        TableOf(TEXT),
        "Field to its source: a prober, chipdb, node or derived",
        reported=False,
        empty={},
    )
    others: Mapping[str, Sequence[OtherDoc]] = field(
        TableOf(Items(FreeTable())),
        "Field to what other probers report for it",
        reported=False,
        empty={},
        fields="OTHER",
        shape="other",
    )
    seen_by: tuple[str, ...] = field(
        Items(TEXT, least=1), "Probers that detected it, best first", reported=False, empty=[]
    )
    extra: Mapping[str, Json] = field(
        FreeTable(),
        "What a prober adds for people; no promise about its form",
        nullable=True,
        always=False,
        empty={},
        merge=TABLE,
    )

    def peak(self, dtype: str, path: str = "matrix", accumulate: str | None = None) -> Peak | None:
        """Return the fastest dense peak of this kind, or None."""
        fitting = [
            peak
            for peak in self.peaks
            if (peak.dtype, peak.path, peak.sparsity) == (dtype, path, "dense")
            and accumulate in (None, peak.accumulate)
        ]
        return max(fitting, key=lambda peak: peak.tflops, default=None)


FIELDS = fields_of(Device)
"""Name to field of a device, in the report's order."""
