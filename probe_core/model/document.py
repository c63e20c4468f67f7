"""Types of the plain data that the steps of a probe hand on, and of the report that they end in.

For type checkers alone: no module imports this while it runs, so that `typing` costs nobody its
start. A device's fields are those of the table in `fields`; a test holds the two equal.

Every key of a report is written down here. What a newer core wrote passes through unread.
"""

from __future__ import annotations

from typing import Literal, NotRequired, Required, TypeAlias, TypedDict

__all__ = [
    "ChipDoc",
    "DecisionDoc",
    "DeviceDoc",
    "FindingDoc",
    "Json",
    "LinkDoc",
    "MemoryDoc",
    "NodeDoc",
    "NodeMemoryDoc",
    "OtherDoc",
    "OutcomeDoc",
    "PciDoc",
    "PeakDoc",
    "ReportDoc",
    "Sighting",
    "SightingMemory",
    "VisibilityDoc",
]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""Free data: whatever JSON can hold."""

Kind: TypeAlias = Literal["gpu", "npu", "accelerator", "cpu", "display"]
Severity: TypeAlias = Literal["info", "warning", "error"]
Fallback: TypeAlias = Literal["no-accelerator", "degraded"]


PciDoc = TypedDict(
    "PciDoc", {"id": str, "subsystem": str, "revision": str, "class": str}, total=False
)
"""What the PCI bus says of a device, in lower-case hexadecimal digits (`class` is a keyword)."""


class SightingMemory(TypedDict, total=False):
    """A device's memory as one prober reports it, in bytes."""

    kind: Literal["dedicated", "shared", "unified"]
    total: int
    free: int
    used: int
    usable: int
    parts: dict[str, int]


class MemoryDoc(TypedDict):
    """A device's memory in a report, in bytes; None where nobody knows."""

    kind: str | None
    total: int | None
    free: int | None
    usable: int | None
    used: NotRequired[int]
    parts: dict[str, int]


class PeakDoc(TypedDict):
    """One theoretical peak, in TFLOPS (TOPS for integers)."""

    dtype: str
    path: str
    accumulate: str
    sparsity: str
    clock: str
    tflops: float
    source: str
    confidence: str
    variant: NotRequired[str]
    mhz: NotRequired[float | None]
    low: NotRequired[float | None]
    published: NotRequired[float | None]


class ChipDoc(TypedDict, total=False):
    """Which chip of chipdb a device is, and how sure that is."""

    id: Required[str | None]
    by: Required[str | None]
    confidence: Required[str | None]
    candidates: Required[list[str]]
    name: str | None
    conflicts: list[str]
    nominal: dict[str, Json] | None


class LinkDoc(TypedDict, total=False):
    """One link of a device; `gts` are gigatransfers per second, `bandwidth` bytes per second.

    Of PCIe they are the slowest hop's between device and host, and `local_…` the device's own.
    """

    kind: Required[str]
    peer: str | None
    to: str | None
    count: int | None
    width: int | None
    max_width: int | None
    gts: float | None
    max_gts: float | None
    generation: int | None
    bandwidth: float | None
    local_width: int | None
    local_max_width: int | None
    local_gts: float | None
    local_max_gts: float | None
    local_generation: int | None
    local_bandwidth: float | None
    limited_by: str | None


class VisibilityDoc(TypedDict):
    """Whether one runtime shows the device to this process; None where only the driver knows."""

    visible: bool | None
    index: int | None
    reason: str | None
    variable: NotRequired[str | None]
    one_of: NotRequired[list[int]]


class OtherDoc(TypedDict):
    """What another prober reported for a field, and was not used."""

    prober: str
    value: Json


class Sighting(TypedDict, total=False):
    """One device as one prober saw it, every field checked."""

    ids: Required[list[str]]
    kind: Required[Kind]
    vendor: str
    name: str
    pci: PciDoc
    dt: list[str]
    gpu_id: str
    compute_capability: str
    gfx: str
    arch: str
    units: int
    cores: int
    threads: int
    clocks: dict[str, float]
    bus_width_bits: int
    bandwidth: float
    memory: SightingMemory
    driver: dict[str, str]
    backends: list[str]
    power_state: str
    numa_node: int
    parent: str
    share: dict[str, float]
    links: list[LinkDoc]
    node_index: dict[str, int]
    processes: int
    peaks: list[PeakDoc]
    cpu: dict[str, Json]
    extra: dict[str, Json]
    unknown: dict[str, str]


class DeviceDoc(TypedDict, total=False):
    """One device of a report. Keys that are not required are left out where nothing is known."""

    id: Required[str]
    ids: Required[list[str]]
    kind: Required[Kind]
    vendor: Required[str | None]
    name: Required[str | None]
    chip: Required[ChipDoc]
    arch: Required[str | None]
    units: Required[int | None]
    cores: int
    threads: int
    pci: Required[PciDoc | None]
    dt: list[str]
    gpu_id: str
    gfx: str
    compute_capability: str
    clocks: dict[str, float]
    memory: Required[MemoryDoc]
    peaks: Required[list[PeakDoc]]
    fp32: Required[float | None]
    fp16: Required[float | None]
    int8: Required[float | None]
    bandwidth: Required[float | None]
    bus_width_bits: int
    driver: Required[dict[str, str] | None]
    backends: Required[list[str]]
    power_state: Required[str | None]
    numa_node: int
    parent: Required[str | None]
    share: dict[str, float]
    links: Required[list[LinkDoc]]
    node_index: dict[str, int]
    processes: int
    cpu: dict[str, Json]
    visibility: Required[dict[str, VisibilityDoc]]
    unknown: Required[dict[str, str]]
    sources: Required[dict[str, str]]
    others: Required[dict[str, list[OtherDoc]]]
    seen_by: Required[list[str]]
    extra: dict[str, Json]


class NodeMemoryDoc(TypedDict):
    """The system's memory, in bytes."""

    total: int | None
    available: int | None
    limit: int | None


class NodeDoc(TypedDict):
    """The machine itself."""

    os: str
    kernel: str | None
    arch: str
    model: str | None
    memory: NodeMemoryDoc


class OutcomeDoc(TypedDict):
    """How one prober's run ended."""

    prober: str
    distribution: str
    status: str
    reason: str | None
    partial: bool
    devices: int
    elapsed_ms: float
    code: NotRequired[str | None]
    fix: NotRequired[str | None]
    stderr: NotRequired[list[str]]


class DecisionDoc(TypedDict):
    """Whether a prober was run; `cause` is a word for scripts, `reason` a sentence."""

    prober: str
    distribution: str
    selected: bool
    cause: str | None
    reason: str | None
    priority: int
    deadline_s: float
    active: bool


class FindingDoc(TypedDict):
    """What a person should know. Code reads the facts; the three sentences are for people."""

    code: str
    severity: Severity
    what: str
    why: str
    fix: str
    device: str | None
    prober: str | None
    setting: str | None
    variable: str | None
    step: str | None
    evidence: str | None


class ReportDoc(TypedDict):
    """The whole answer."""

    schema: int
    probe_core: str
    chipdb: str | None
    node: NodeDoc
    primary: str | None
    devices: list[DeviceDoc]
    outcomes: list[OutcomeDoc]
    decisions: list[DecisionDoc]
    fallback: Fallback | None
    findings: list[FindingDoc]
    timings_ms: dict[str, float]
