"""Types of the plain data of one device: as a prober reports it, and as a report holds it.

For type checkers alone, as `document` is, which offers all of these names.
"""

from __future__ import annotations

from typing import Literal, NotRequired, Required, TypeAlias, TypedDict

__all__ = [
    "ChipDoc",
    "DeviceDoc",
    "EccDoc",
    "Json",
    "Kind",
    "LeaseDoc",
    "LinkDoc",
    "MeasuredDoc",
    "MemoryDoc",
    "OtherDoc",
    "PciDoc",
    "PeakDoc",
    "PowerDoc",
    "ReadinessDoc",
    "Sighting",
    "SightingMemory",
    "StepDoc",
    "ViewDoc",
    "VisibilityDoc",
]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""Free data: whatever JSON can hold."""

Kind: TypeAlias = Literal["gpu", "npu", "accelerator", "cpu", "coprocessor", "display"]


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
    limited_by: str
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
    limited_by: str | None
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
    condition: str | None
    published: float | None
    bound: str | None
    high: float | None

    # end generated


class MeasuredDoc(TypedDict, total=False):
    """One figure that `probe bench` achieved."""

    # begin generated: MeasuredDoc
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
    fraction: float | None
    fraction_at_clock: float | None
    unknown: dict[str, str] | None

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
    step: str
    code: str
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
    reserve: int | None


class StepDoc(TypedDict, total=False):
    """One step of a device's readiness."""

    # begin generated: StepDoc
    step: Required[str]
    status: Required[str]
    evidence: Required[str | None]
    code: Required[str | None]
    prober: str | None

    # end generated


class ReadinessDoc(TypedDict, total=False):
    """Whether this process can use a device, and the step that is broken."""

    # begin generated: ReadinessDoc
    state: Required[str]
    broken: Required[str | None]
    steps: Required[list[StepDoc]]

    # end generated


class PowerDoc(TypedDict, total=False):
    """A device's power limits, in watts, and what holds its clocks down."""

    # begin generated: PowerDoc
    limit_watts: float | None
    default_watts: float | None
    max_watts: float | None
    reasons: list[str] | None

    # end generated


class EccDoc(TypedDict, total=False):
    """Error correction of a device's memory."""

    # begin generated: EccDoc
    enabled: bool | None
    pending: bool | None
    remap_pending: bool | None
    remap_failed: bool | None

    # end generated


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
    node_index: dict[str, int]
    processes: int
    cpu: dict[str, Json]
    allowed: dict[str, Json]
    nodes: list[str]
    step_facts: list[StepDoc]
    unknown: dict[str, str]
    extra: dict[str, Json]

    # end generated


class DeviceDoc(TypedDict, total=False):
    """One device of a report; a key that is not required is left out where nothing is known."""

    # begin generated: DeviceDoc
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

    # end generated
