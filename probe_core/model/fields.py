"""THE table of a device's fields.

Validation of what probers report, the order in the report, merging, filling of static reports,
the JSON Schema, the reference pages, the TypedDicts in `document` and the classes in `device` all
follow from it, or are tested equal to it. To add a field is to add an entry here, and to run
``python docs/generate.py``.
"""

from __future__ import annotations

from probe_core.model.chain import READINESS, STEP, StepFact
from probe_core.model.field import FACTS, LINKS, TABLE, UNION, by_name
from probe_core.model.field import Field as F
from probe_core.model.health import ECC, POWER
from probe_core.model.kinds import KINDS
from probe_core.model.measured import MEASURED, Measurement
from probe_core.model.parts import (
    ALLOWED,
    CHIP,
    LINK,
    MEMORY,
    OTHER,
    PCI,
    PEAK,
    SHARE,
    SIGHT,
    Link,
    Peak,
)
from probe_core.model.values import (
    Choice,
    DeviceId,
    Flag,
    FreeTable,
    Ids,
    Items,
    Number,
    TableOf,
    Text,
    Word,
)

__all__ = ["FIELDS"]

COUNT = Number(1, 1_000_000, whole=True)
MHZ = Number(1, 100_000)
"""A clock above 100 GHz is one in kHz or Hz that was not converted."""

RATE = Number(0, 1e7)
ORDINAL = Number(0, 1_000_000, whole=True)

FIELDS = by_name(
    (
        F(
            "id",
            DeviceId(least=3),
            "The best of ids: pci:dddd:bb:dd.f, dt:/path, uuid:GPU-…, cpu:n",
            reported=False,
            always=True,
            nullable=False,
            required=True,
        ),
        F(
            "ids",
            Ids(),
            "Strong ids, best first: what joins the sightings of one device",
            always=True,
            nullable=False,
            empty=[],
        ),
        F(
            "kind",
            Choice(*KINDS),
            "gpu, npu, accelerator, cpu, coprocessor (its use is not known) or display (cannot"
            " compute)",
            always=True,
            nullable=False,
            required=True,
        ),
        F(
            "vendor",
            Word(),
            "Vendor in one lower-case word: nvidia, amd, intel, apple, arm …",
            always=True,
        ),
        F("name", Text(), "Marketing name as the driver, else chipdb, gives it", always=True),
        F(
            "chip",
            FreeTable(),
            "Which chip of chipdb it is",
            reported=False,
            always=True,
            nullable=False,
            empty={},
            fields=CHIP,
            shape="chip",
        ),
        F(
            "arch",
            Word(),
            "Architecture family: ada, cdna3, zen5 … (kinds of cores joined by +)",
            always=True,
        ),
        F("units", COUNT, "SMs, CUs, EUs or cores of this device", unit="count", always=True),
        F(
            "cores",
            COUNT,
            "CUDA cores, stream processors or other fp32 lanes of this device",
            unit="count",
        ),
        F("threads", COUNT, "Hardware threads of a CPU", unit="count"),
        F(
            "pci",
            FreeTable(),
            "id, subsystem, revision and class, in lower-case hexadecimal",
            always=True,
            fields=PCI,
            merge=TABLE,
        ),
        F(
            "dt",
            Items(Text()),
            "Device-tree compatibles, most specific first",
            nullable=False,
            empty=[],
            merge=UNION,
        ),
        F("gpu_id", Word(), "Value of the GPU's id register, as vendor:0xvalue"),
        F("gfx", Word(), "AMD's ISA target: gfx1100"),
        F("compute_capability", Text(), "NVIDIA's compute capability: 8.9"),
        F(
            "clocks",
            TableOf(MHZ),
            "Clocks, each by its kind: max_mhz, base_mhz, boost_mhz, memory_max_mhz, current_mhz",
            unit="MHz",
            empty={},
            merge=TABLE,
        ),
        F(
            "memory",
            FreeTable(),
            "Its memory",
            always=True,
            nullable=False,
            empty={},
            fields=MEMORY,
            shape="memory",
            merge=TABLE,
        ),
        F(
            "peaks",
            Items(Peak()),
            "Every known peak",
            always=True,
            nullable=False,
            empty=[],
            fields=PEAK,
            shape="peak",
        ),
        F("fp32", RATE, "Dense, vector", unit="TFLOPS", reported=False, always=True),
        F(
            "fp16",
            RATE,
            "Dense, the fastest path that accumulates in fp32, else the fp16 vector path",
            unit="TFLOPS",
            reported=False,
            always=True,
        ),
        F("int8", RATE, "Dense, the fastest path", unit="TOPS", reported=False, always=True),
        F(
            "bandwidth",
            Number(1e6, 1e15),
            "Memory bandwidth",
            unit="bytes per second",
            always=True,
        ),
        F(
            "measured",
            Items(Measurement()),
            "What `probe bench` achieved on it, and with what; never mixed with the derived peaks",
            reported=False,
            nullable=False,
            empty=[],
            fields=MEASURED,
            shape="measurement",
            added=True,
        ),
        F("bus_width_bits", COUNT, "Width of the memory bus", unit="bits"),
        F(
            "driver",
            TableOf(Text()),
            "name, version, and versions of the vendor's own (cuda, rocm)",
            always=True,
            merge=TABLE,
        ),
        F(
            "backends",
            Items(Word()),
            "Runtimes that can use it: cuda, hip, cpu …",
            always=True,
            nullable=False,
            empty=[],
            merge=UNION,
        ),
        F(
            "power_state",
            Word(),
            "active, suspended, off … as the kernel reports it",
            always=True,
            volatile=True,
        ),
        F(
            "power",
            FreeTable(),
            "Its power limits, and what holds its clocks down",
            fields=POWER,
            merge=TABLE,
        ),
        F("ecc", FreeTable(), "Error correction of its memory", fields=ECC, merge=TABLE),
        F(
            "compute_mode",
            Word(),
            "Which processes may compute on it: default, exclusive-process, exclusive-thread or"
            " prohibited",
        ),
        F(
            "persistence",
            Flag(),
            "Whether the driver keeps it initialised while no process uses it",
        ),
        F(
            "numa_node",
            Number(0, 4096, whole=True),
            "The NUMA node it is attached to; the first one of numa_nodes",
            unit="ordinal",
        ),
        F(
            "numa_nodes",
            Items(Number(0, 4096, whole=True), limit=4096),
            "The NUMA nodes of a CPU package that has several",
            unit="ordinal",
            nullable=False,
            empty=[],
            added=True,
        ),
        F("parent", DeviceId(), "Id of the device that this one is a part of", always=True),
        F("profile", Text(), "Profile of a partition, as its driver names it: 3g.40gb, cpx"),
        F(
            "share",
            TableOf(Number(0, 1e12)),
            "This part's share of the parent: units of how many",
            unit="count",
            fields=SHARE,
            merge=TABLE,
        ),
        F(
            "links",
            Items(Link(), limit=256),
            "PCIe, NVLink and XGMI links",
            always=True,
            nullable=False,
            empty=[],
            fields=LINK,
            shape="link",
            merge=LINKS,
        ),
        F(
            "bridges",
            Items(Text(), limit=32),
            "PCI addresses of the bridges above it, its own port first, the root port last; devices"
            " that share one lie behind the same switch or port",
            nullable=False,
            empty=[],
            added=True,
        ),
        F(
            "node_index",
            TableOf(ORDINAL),
            "Ordinals in the drivers' own lists (nvml, drm_card, drm_render, kfd): for people,"
            " never for matching",
            unit="ordinal",
            empty={},
            merge=TABLE,
        ),
        F(
            "processes",
            ORDINAL,
            "Compute processes that use it now",
            unit="count",
            volatile=True,
        ),
        F(
            "cpu",
            FreeTable(),
            "A CPU's identity (vendor_id, family, model, stepping, implementer, part, variant),"
            " flags that decide peaks, CPUs that are offline, and kinds of cores (clusters: name,"
            " cores, threads, clock, fp32 in TFLOPS)",
            volatile=True,
        ),
        F(
            "allowed",
            FreeTable(),
            "What of a CPU this process may use, where that is less than the whole",
            fields=ALLOWED,
            merge=TABLE,
            volatile=True,
            added=True,
        ),
        F(
            "visibility",
            TableOf(FreeTable()),
            "Runtime (cuda, hip, vulkan …) to what it shows of this device",
            reported=False,
            always=True,
            nullable=False,
            empty={},
            fields=SIGHT,
            shape="sight",
        ),
        F(
            "nodes",
            Items(Text(least=2)),
            "Device nodes that a program must open to use it, as /dev/nvidia0",
            nullable=False,
            empty=[],
            merge=UNION,
        ),
        F(
            "step_facts",
            Items(StepFact(), limit=64),
            "What its prober learnt of single steps of readiness; the report has them in readiness",
            nullable=False,
            empty=[],
            fields=STEP,
            shape="step",
            merge=FACTS,
            volatile=True,
            internal=True,
        ),
        F(
            "readiness",
            FreeTable(),
            "Whether this process can use it, and the step that is broken",
            reported=False,
            always=True,
            nullable=False,
            empty={},
            fields=READINESS,
            shape="readiness",
            volatile=True,
            added=True,
        ),
        F(
            "unknown",
            TableOf(Text(least=1)),
            "Field (memory.total) to the reason why it is not known",
            always=True,
            nullable=False,
            empty={},
        ),
        F(
            "sources",
            TableOf(Text()),
            "Field to its source: a prober, chipdb, node or derived",
            reported=False,
            always=True,
            nullable=False,
            empty={},
        ),
        F(
            "others",
            TableOf(Items(FreeTable())),
            "Field to what other probers report for it",
            reported=False,
            always=True,
            nullable=False,
            empty={},
            fields=OTHER,
            shape="other",
        ),
        F(
            "seen_by",
            Items(Text(), least=1),
            "Probers that detected it, best first",
            reported=False,
            always=True,
            nullable=False,
            empty=[],
        ),
        F(
            "extra",
            FreeTable(),
            "What a prober adds for people; no promise about its form",
            empty={},
            merge=TABLE,
        ),
    )
)
"""Name to field, in the report's order."""
