"""Types of the plain data that the steps of a probe hand on, and of the report that they end in.

For type checkers alone: no module imports this while it runs, so that `typing` costs nobody its
start. What stands between the marks is made from the tables of fields: `python docs/generate.py`.

Every key of a report is written down here. What a newer core wrote passes through unread.
"""

from __future__ import annotations

from typing import Literal, NotRequired, Required, TypeAlias, TypedDict

__all__ = [
    "AnswerDoc",
    "ChipDoc",
    "DecisionDoc",
    "DeviceDoc",
    "FindingDoc",
    "Json",
    "LeaseDoc",
    "LinkDoc",
    "MemoryDoc",
    "NodeDoc",
    "NodeMemoryDoc",
    "OtherDoc",
    "OutcomeDoc",
    "OutcomeFacts",
    "PciDoc",
    "PeakDoc",
    "ReportDoc",
    "Sighting",
    "SightingMemory",
    "ViewDoc",
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

    # begin generated: SightingMemory
    kind: str
    total: int
    free: int
    usable: int
    used: int
    parts: dict[str, int]

    # end generated


class MemoryDoc(TypedDict, total=False):
    """A device's memory in a report, in bytes; None where nobody knows."""

    # begin generated: MemoryDoc
    kind: Required[str | None]
    total: Required[int | None]
    free: Required[int | None]
    usable: Required[int | None]
    used: int | None
    parts: Required[dict[str, int]]

    # end generated


class PeakDoc(TypedDict, total=False):
    """One theoretical peak, in TFLOPS (TOPS for integers)."""

    # begin generated: PeakDoc
    dtype: Required[str]
    path: Required[str]
    accumulate: Required[str]
    sparsity: Required[str]
    clock: Required[str]
    tflops: Required[float]
    source: Required[str]
    confidence: Required[str]
    variant: str | None
    mhz: float | None
    low: float | None
    published: float | None

    # end generated


class ChipDoc(TypedDict, total=False):
    """Which chip of chipdb a device is, and how sure that is."""

    # begin generated: ChipDoc
    id: Required[str | None]
    name: str | None
    by: Required[str | None]
    confidence: Required[str | None]
    candidates: Required[list[str]]
    conflicts: list[str]
    nominal: dict[str, Json] | None

    # end generated


class LinkDoc(TypedDict, total=False):
    """One link to another device or to the host."""

    # begin generated: LinkDoc
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

    # end generated


class VisibilityDoc(TypedDict, total=False):
    """Whether one runtime shows the device to this process; None where only the driver knows."""

    # begin generated: VisibilityDoc
    visible: Required[bool | None]
    index: Required[int | None]
    reason: Required[str | None]
    variable: str | None
    one_of: list[int]
    settled_by: str

    # end generated


class ViewDoc(TypedDict):
    """What one runtime shows: ids in its order, and what decided; see `probe visible --json`."""

    visible: list[str]
    hidden: dict[str, str | None]
    variable: str | None
    value: str | None
    certain: bool
    uncertain: NotRequired[str | None]
    possible: NotRequired[list[str]]
    one_of: NotRequired[list[list[str]]]


class LeaseDoc(TypedDict):
    """One owner of one leased device, as `probe leases --json` lists it; None where unknown."""

    device: str
    state: str
    pid: int | None
    uid: int | None
    since: float | None
    share: bool
    command: str
    kept_by: list[int]


class OtherDoc(TypedDict, total=False):
    """What another prober reports for a field, and was not used."""

    # begin generated: OtherDoc
    prober: Required[str]
    value: Required[Json]

    # end generated


class Sighting(TypedDict, total=False):
    """One device as one prober saw it, every field checked."""

    # begin generated: Sighting
    ids: Required[list[str]]
    kind: Required[Kind]
    vendor: str
    name: str
    arch: str
    units: int
    cores: int
    threads: int
    pci: PciDoc
    dt: list[str]
    gpu_id: str
    gfx: str
    compute_capability: str
    clocks: dict[str, float]
    memory: SightingMemory
    peaks: list[PeakDoc]
    bandwidth: float
    bus_width_bits: int
    driver: dict[str, str]
    backends: list[str]
    power_state: str
    numa_node: int
    parent: str
    share: dict[str, float]
    links: list[LinkDoc]
    node_index: dict[str, int]
    processes: int
    cpu: dict[str, Json]
    unknown: dict[str, str]
    extra: dict[str, Json]

    # end generated


class DeviceDoc(TypedDict, total=False):
    """One device of a report; a key that is not required is left out where nothing is known."""

    # begin generated: DeviceDoc
    id: Required[str]
    ids: Required[list[str]]
    kind: Required[Kind]
    vendor: Required[str | None]
    name: Required[str | None]
    chip: Required[ChipDoc]
    arch: Required[str | None]
    units: Required[int | None]
    cores: int | None
    threads: int | None
    pci: Required[PciDoc | None]
    dt: list[str]
    gpu_id: str | None
    gfx: str | None
    compute_capability: str | None
    clocks: dict[str, float] | None
    memory: Required[MemoryDoc]
    peaks: Required[list[PeakDoc]]
    fp32: Required[float | None]
    fp16: Required[float | None]
    int8: Required[float | None]
    bandwidth: Required[float | None]
    bus_width_bits: int | None
    driver: Required[dict[str, str] | None]
    backends: Required[list[str]]
    power_state: Required[str | None]
    numa_node: int | None
    parent: Required[str | None]
    share: dict[str, float] | None
    links: Required[list[LinkDoc]]
    node_index: dict[str, int] | None
    processes: int | None
    cpu: dict[str, Json] | None
    visibility: Required[dict[str, VisibilityDoc]]
    unknown: Required[dict[str, str]]
    sources: Required[dict[str, str]]
    others: Required[dict[str, list[OtherDoc]]]
    seen_by: Required[list[str]]
    extra: dict[str, Json] | None

    # end generated


class NodeMemoryDoc(TypedDict, total=False):
    """The system's memory, in bytes."""

    # begin generated: NodeMemoryDoc
    total: Required[int | None]
    available: Required[int | None]
    limit: Required[int | None]

    # end generated


class NodeDoc(TypedDict, total=False):
    """The machine itself."""

    # begin generated: NodeDoc
    os: Required[str]
    kernel: Required[str | None]
    arch: Required[str]
    model: Required[str | None]
    memory: Required[NodeMemoryDoc]

    # end generated


class OutcomeFacts(TypedDict, total=False):
    """What is known of how a run ended, beside its reason; only what is known is there."""

    # begin generated: OutcomeFacts
    code: str
    fix: str
    phase: str
    signal: str
    exit_status: int
    stuck_at: str

    # end generated


class OutcomeDoc(TypedDict, total=False):
    """How one prober's run ended."""

    # begin generated: OutcomeDoc
    prober: Required[str]
    distribution: Required[str]
    status: Required[str]
    reason: Required[str | None]
    partial: Required[bool]
    devices: Required[int]
    elapsed_ms: Required[float]
    code: str | None
    fix: str | None
    phase: str | None
    signal: str | None
    exit_status: int | None
    stuck_at: str | None
    stderr: list[str]

    # end generated


class DecisionDoc(TypedDict, total=False):
    """Whether a prober was run."""

    # begin generated: DecisionDoc
    prober: Required[str]
    distribution: Required[str]
    selected: Required[bool]
    cause: str | None
    reason: Required[str | None]
    priority: int
    deadline_s: float
    active: bool
    setting: str | None
    variable: str | None

    # end generated


class FindingDoc(TypedDict, total=False):
    """What a person should know. Code reads the facts; the sentences are for people."""

    # begin generated: FindingDoc
    code: Required[str]
    severity: Required[Severity]
    what: Required[str]
    why: Required[str]
    fix: Required[str]
    device: Required[str | None]
    prober: Required[str | None]
    setting: Required[str | None]
    variable: Required[str | None]
    step: Required[str | None]
    evidence: Required[str | None]

    # end generated


class AnswerDoc(TypedDict):
    """What a runtime answered when it was queried itself (an active probe).

    `devices` are the ids that it shows, in its order; None when it could not be queried. `expected`
    are the lists that the rules allow, more than one where only the driver knows. `agrees` is
    whether the answer is one of them, None without an answer. `status` is the outcome's, `said` a
    sentence for people.
    """

    devices: list[str] | None
    expected: list[list[str]]
    agrees: bool | None
    status: str
    said: str


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
    asked: NotRequired[dict[str, AnswerDoc]]
