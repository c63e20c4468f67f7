"""Types of plain data: of a device as a prober reports it, of a report, of samples and recordings.

For type checkers alone: no module imports this while it runs, so that `typing` costs nobody its
start. The keys of the classes that `docs/typed.py` names are made from the tables of fields:
`python docs/generate.py`. Every key of a report is written down here; what a newer core wrote
passes through unread.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Required, TypeAlias, TypedDict

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""Free data: whatever JSON can hold."""

Kind: TypeAlias = Literal["gpu", "npu", "accelerator", "cpu", "coprocessor", "display"]


PciDoc = TypedDict(
    "PciDoc", {"id": str, "subsystem": str, "revision": str, "class": str}, total=False
)
"""What the PCI bus says of a device, in lower-case hexadecimal digits (`class` is a keyword)."""


class SightingMemory(TypedDict, total=False):
    """A device's memory as one prober reports it, in bytes."""

    kind: str
    total: int
    free: int
    usable: int
    used: int
    limited_by: str
    parts: dict[str, int]


class MemoryDoc(TypedDict, total=False):
    """A device's memory in a report, in bytes; None where nobody knows."""

    kind: Required[str | None]
    total: Required[int | None]
    free: Required[int | None]
    usable: Required[int | None]
    used: int | None
    limited_by: str | None
    parts: Required[dict[str, int]]


class PeakDoc(TypedDict, total=False):
    """One theoretical peak, in TFLOPS (TOPS for integers)."""

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
    condition: str | None
    published: float | None
    confirmed_by: str | None
    bound: str | None
    high: float | None


class MeasuredDoc(TypedDict, total=False):
    """One figure that `probe bench` achieved."""

    figure: Required[str]
    kind: Required[str]
    dtype: Required[str | None]
    accumulate: str | None
    unit: Required[str | None]
    best: Required[float | None]
    median: Required[float | None]
    cold: float | None
    runs: Required[int | None]
    warm_s: float | None
    by: Required[str | None]
    size: int | None
    threads: int | None
    clock_mhz: float | None
    clock_reasons: list[str] | None
    power_w: float | None
    power_cap_w: float | None
    temperature_c: float | None
    driver: Required[str | None]
    date: Required[str | None]
    disturbed: Required[list[str]]
    stale: Required[str | None]
    repeated: bool | None
    fraction: float | None
    fraction_at_clock: float | None
    unknown: dict[str, str] | None


class ChipDoc(TypedDict, total=False):
    """Which chip of chipdb a device is, and how sure that is."""

    id: Required[str | None]
    name: str | None
    by: Required[str | None]
    confidence: Required[str | None]
    candidates: Required[list[str]]
    conflicts: list[str]
    nominal: dict[str, Json] | None


class LinkDoc(TypedDict, total=False):
    """One link to another device or to the host."""

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


class VisibilityDoc(TypedDict, total=False):
    """Whether one runtime shows the device to this process; None where only the driver knows."""

    visible: Required[bool | None]
    index: Required[int | None]
    reason: Required[str | None]
    variable: str | None
    step: str
    code: str
    one_of: list[int]
    settled_by: str


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
    reserve: int | None
    proven: bool


class StepDoc(TypedDict, total=False):
    """One step of a device's readiness."""

    step: Required[str]
    status: Required[str]
    evidence: Required[str | None]
    code: Required[str | None]
    prober: str | None
    severity: Severity
    opened: list[str] | None
    blocks: bool


class ReadinessDoc(TypedDict, total=False):
    """Whether this process can use a device, and the step that is broken."""

    state: Required[str]
    broken: Required[str | None]
    steps: Required[list[StepDoc]]


class PowerDoc(TypedDict, total=False):
    """A device's power limits, in watts, and what holds its clocks down."""

    limit_watts: float | None
    default_watts: float | None
    max_watts: float | None
    reasons: list[str] | None


class EccDoc(TypedDict, total=False):
    """Error correction of a device's memory."""

    enabled: bool | None
    pending: bool | None
    remapped: int | None
    remap_pending: bool | None
    remap_failed: bool | None


class OtherDoc(TypedDict, total=False):
    """What another prober reports for a field, and was not used."""

    prober: Required[str]
    value: Required[Json]


class Sighting(TypedDict, total=False):
    """One device as one prober saw it, every field checked."""

    ids: Required[list[str]]
    kind: Required[str]
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
    power: PowerDoc
    ecc: EccDoc
    compute_mode: str
    persistence: bool
    numa_node: int
    numa_nodes: list[int]
    parent: str
    profile: str
    share: dict[str, float]
    links: list[LinkDoc]
    bridges: list[str]
    node_index: dict[str, int]
    processes: int
    cpu: dict[str, Json]
    allowed: dict[str, Json]
    nodes: list[str]
    step_facts: list[StepDoc]
    unknown: dict[str, str]
    extra: dict[str, Json]


class DeviceDoc(TypedDict, total=False):
    """One device of a report; a key that is not required is left out where nothing is known."""

    id: Required[str]
    ids: Required[list[str]]
    kind: Required[str]
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
    measured: list[MeasuredDoc]
    bus_width_bits: int | None
    driver: Required[dict[str, str] | None]
    backends: Required[list[str]]
    power_state: Required[str | None]
    power: PowerDoc | None
    ecc: EccDoc | None
    compute_mode: str | None
    persistence: bool | None
    numa_node: int | None
    numa_nodes: list[int]
    parent: Required[str | None]
    profile: str | None
    share: dict[str, float] | None
    links: Required[list[LinkDoc]]
    bridges: list[str]
    node_index: dict[str, int] | None
    processes: int | None
    cpu: dict[str, Json] | None
    allowed: dict[str, Json] | None
    visibility: Required[dict[str, VisibilityDoc]]
    nodes: list[str]
    readiness: Required[ReadinessDoc]
    unknown: Required[dict[str, str]]
    sources: Required[dict[str, str]]
    others: Required[dict[str, list[OtherDoc]]]
    seen_by: Required[list[str]]
    extra: dict[str, Json] | None


# Types of the plain data that the steps of a probe hand on, and of the report that they end in.

Severity: TypeAlias = Literal["info", "warning", "error"]
Fallback: TypeAlias = Literal["no-accelerator", "degraded"]


class NodeMemoryDoc(TypedDict, total=False):
    """The system's memory, in bytes."""

    total: Required[int | None]
    available: Required[int | None]
    limit: Required[int | None]
    limited_by: str | None
    devices: int | None


class NetworkDoc(TypedDict, total=False):
    """One link of the machine to others."""

    name: Required[str]
    kind: Required[str]
    state: Required[str | None]
    bandwidth: Required[float | None]
    reason: Required[str | None]
    mtu: int | None
    driver: str | None
    device: str | None
    numa_node: int | None
    bridges: list[str] | None
    layer: str | None
    interface: str | None
    id: str | None
    peer: str | None


class NodeDoc(TypedDict, total=False):
    """The machine itself."""

    os: Required[str]
    kernel: Required[str | None]
    arch: Required[str]
    model: Required[str | None]
    id: Required[str | None]
    host: Required[str | None]
    time: Required[str | None]
    container: Required[str | None]
    vm: Required[str | None]
    cgroup: Required[str | None]
    memory: Required[NodeMemoryDoc]
    network: list[NetworkDoc]


class OutcomeFacts(TypedDict, total=False):
    """What is known of how a run ended, beside its reason; only what is known is there."""

    code: str
    fix: str
    phase: str
    signal: str
    exit_status: int
    stuck_at: str
    avoided: list[str]
    replayed: bool


class OutcomeDoc(TypedDict, total=False):
    """How one prober's run ended."""

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
    avoided: list[str] | None
    replayed: bool | None
    stderr: list[str]


class DecisionDoc(TypedDict, total=False):
    """Whether a prober was run."""

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


class FindingDoc(TypedDict, total=False):
    """What a person should know. Code reads the facts; the sentences are for people."""

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


class AnswerDoc(TypedDict):
    """What a runtime answered when it was queried itself (an active probe).

    `devices` are the ids that it shows, in its order; None when it could not be queried. `expected`
    are the lists that the rules allow, more than one where only the driver knows. `agrees` is
    whether the answer is one of them, None without an answer. `status` is the outcome's, `reason` a
    sentence for people.
    """

    devices: list[str] | None
    expected: list[list[str]]
    agrees: bool | None
    status: str
    reason: str
    code: NotRequired[str]


class AbsentDoc(TypedDict):
    """Accelerators that should be here: `device` and `place` where a baseline knew them.

    `port` is the address of the bridge above the place, `sign` the first sign of why: of the bus,
    and in the doctor of the kernel's log. None is unknown.
    """

    name: str
    count: int
    device: str | None
    place: str | None
    port: str | None
    sign: str | None


class UnlikeDoc(TypedDict):
    """A fact of which a device has less than expected; both values are for people."""

    device: str
    fact: str
    expected: str
    found: str


class ExpectedDoc(TypedDict):
    """How the accelerators compare with what should be here.

    `source` is `--expect`, the variable or file that set it, or "baseline"; `count` how many should
    be here. `extra` are ids; `unknown` are names that no chip has, which count nowhere.
    """

    source: str
    text: str
    count: int
    absent: list[AbsentDoc]
    extra: list[str]
    unlike: list[UnlikeDoc]
    unknown: list[str]


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
    expected: NotRequired[ExpectedDoc]


# Types of live figures: what a sampler yields, and what a round of samples holds.
#
# `model.sample_fields` is the table that values are checked against; a test holds both equal.

SampleStatus: TypeAlias = Literal["ok", "asleep", "unresponsive", "unavailable", "pending"]


class LiveMemoryDoc(TypedDict):
    """Bytes of memory; `used` is what cannot be allocated now."""

    used: int | None
    total: int | None


class LiveClocksDoc(TypedDict):
    """Clocks of now in MHz, of the compute units and of the memory."""

    sm: float | None
    memory: float | None


class ActivityDoc(TypedDict):
    """Shares of the peak that units reach, 0 to 1: not `busy`, which one busy unit makes 1."""

    sm: float | None
    tensor: float | None
    memory: float | None


class PressureDoc(TypedDict):
    """Shares of the last ten seconds in which tasks waited for a resource, 0 to 1."""

    cpu: float | None
    memory: float | None
    io: float | None


class CountersDoc(TypedDict):
    """What is counted up: joules, errors, and seconds of a lowered clock."""

    energy_j: float | None
    ecc_corrected: int | None
    ecc_uncorrected: int | None
    pcie_replays: int | None
    pcie_correctable: int | None
    nvlink_crc: int | None
    nvlink_replays: int | None
    nvlink_recoveries: int | None
    throttled_power_s: float | None
    throttled_thermal_s: float | None


class XidDoc(TypedDict):
    """How often NVIDIA's driver reported an Xid error since the sampler began."""

    code: int | None
    count: int | None


class LiveLinkDoc(TypedDict):
    """One link of a device; `received` and `sent` are bytes per second."""

    kind: str | None
    name: str | None
    generation: int | None
    width: int | None
    received: float | None
    sent: float | None


class ProcessDoc(TypedDict):
    """One process that uses a device; `memory` are bytes of the device's memory."""

    pid: int | None
    user: str | None
    memory: int | None


class SampleDoc(TypedDict):
    """One device in one round: every key is always there.

    What is null has its reason in `unknown`, by field ("power_w", "clocks_mhz.memory"). A status
    other than "ok" has its reason in `reason`, and then all figures are null.
    """

    device: str
    prober: str | None
    status: SampleStatus
    reason: str | None
    busy: float | None
    activity: ActivityDoc | None
    memory: LiveMemoryDoc | None
    temperature_c: float | None
    power_w: float | None
    power_cap_w: float | None
    clocks_mhz: LiveClocksDoc | None
    throttled: list[str] | None
    links: list[LiveLinkDoc]
    processes: list[ProcessDoc] | None
    counters: CountersDoc | None
    xids: list[XidDoc] | None
    pressure: PressureDoc | None
    unknown: dict[str, str]


class RawSample(TypedDict, total=False):
    """What `sample_devices` yields of one device: `device` and whatever is known."""

    device: Required[str]
    status: str
    reason: str
    busy: float
    activity: dict[str, float]
    memory: dict[str, int]
    temperature_c: float
    power_w: float
    power_cap_w: float
    clocks_mhz: dict[str, float]
    throttled: list[str]
    links: list[dict[str, str | int | float]]
    processes: list[dict[str, str | int]]
    counters: dict[str, float]
    xids: list[dict[str, int]]
    pressure: dict[str, float]
    unknown: dict[str, str]


class EventDoc(TypedDict):
    """A device that came, went or changed between two rounds; `change` is a sentence."""

    event: Literal["added", "removed", "changed"]
    device: str
    change: str


# Types of what a recording keeps of the probers that asked more than files.
#
# What each key means is on the page about recordings, docs/reference/recording.md.


class Frame(TypedDict, total=False):
    """One part of an answer; which keys there are depends on `kind`."""

    kind: Required[Literal["device", "finding", "rejected", "unresponsive", "end"]]
    device: Any  # of a device: a sighting; of an unresponsive one: its id
    finding: Any  # checked when it is replayed, as a live one is
    ids: list[str]
    how: Literal["hangs", "crashes", "raises"]
    status: str
    reason: str | None
    stuck_at: str
    facts: OutcomeFacts
    abandoned: bool


class RecordedAnswer(TypedDict):
    """What one prober answered, and who it was."""

    distribution: str
    version: str
    api: str
    priority: int
    deadline_s: float
    elapsed_ms: float
    vendors: list[str]
    frames: list[Frame]
