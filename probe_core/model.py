"""The report as typed, frozen values: a view of the document that the pipeline made.

Unknown is None, and `Device.unknown` gives the reason. Bytes are bytes, bandwidth is bytes per
second, peaks are TFLOPS (TOPS for integers), clocks are MHz.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

__all__ = [
    "ChipRef",
    "Decision",
    "Device",
    "Finding",
    "Memory",
    "Node",
    "NodeMemory",
    "Outcome",
    "Peak",
    "Report",
]

_EMPTY: Mapping[str, Any] = MappingProxyType({})


def _frozen(value: Any) -> Any:
    """Return plain JSON data with read-only mappings and tuples instead of lists."""
    if isinstance(value, dict):
        return MappingProxyType({key: _frozen(item) for key, item in value.items()})
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return value


def _thawed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _thawed(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_thawed(item) for item in value]
    return value


def _build(cls: type[Any], data: Any) -> Any:
    """Make `cls` of the keys of `data` that it has; what a newer core added is left out."""
    table = data if isinstance(data, Mapping) else {}
    names = [field.name for field in attrs.fields(cls)]
    return cls(**{name: _frozen(table[name]) for name in names if name in table})


@attrs.frozen
class NodeMemory:
    """The system's memory, in bytes."""

    total: int | None = None
    """All of the machine's memory."""
    available: int | None = None
    """What can be taken now without swapping, within `limit`."""
    limit: int | None = None
    """The smallest limit of the control groups this process is in; None without one."""


@attrs.frozen
class Node:
    """The machine itself."""

    os: str | None = None
    """``linux``, ``darwin`` or ``windows``."""
    kernel: str | None = None
    """Release of the kernel."""
    arch: str | None = None
    """Architecture as ``uname -m`` names it: ``x86_64``, ``aarch64``."""
    model: str | None = None
    """The board's or product's name, as firmware gives it."""
    memory: NodeMemory = NodeMemory()
    """The system's memory."""


@attrs.frozen
class Memory:
    """A device's memory, in bytes."""

    kind: str | None = None
    """``dedicated``, ``unified`` (shared with the CPU) or ``shared`` (the system's own)."""
    total: int | None = None
    """All of it, with what the driver reserves."""
    free: int | None = None
    """What the driver says is free now."""
    usable: int | None = None
    """What a program could take now."""
    used: int | None = None
    """What the driver says is in use now."""
    parts: Mapping[str, int] = _EMPTY
    """Parts with their own sources: ``vram``, ``gtt``, ``system``, ``limit``, ``reserved``."""


@attrs.frozen
class Peak:
    """One theoretical peak; a number without these keys means nothing."""

    dtype: str
    """``fp64``, ``fp32``, ``tf32``, ``bf16``, ``fp16``, ``fp8``, ``fp6``, ``fp4``, ``int8``, ``int4``."""
    path: str
    """``vector`` or ``matrix`` units."""
    accumulate: str
    """What products are summed in."""
    sparsity: str
    """``dense`` or ``sparse``."""
    clock: str
    """Which clock: ``boost``, ``matrix``, ``base``, ``max`` (an upper bound), ``current``."""
    tflops: float
    """10^12 operations per second, an FMA counting as two; TOPS for integers."""
    source: str
    """How the number came about, and from which documents."""
    confidence: str = "derived"
    """``vendor``, ``derived``, ``measured`` or ``community``; ``reported`` by a prober."""
    variant: str | None = None
    """``single`` (no dual issue) or ``packed`` where a chip has both."""
    mhz: float | None = None
    """The clock's frequency in MHz."""
    low: float | None = None
    """The figure at the lowest boost clock that the vendor allows in laptops."""
    published: float | None = None
    """The vendor's own figure for the same key."""


@attrs.frozen
class ChipRef:
    """Which chip of chipdb a device is, and how sure that is."""

    id: str | None = None
    """The chip's id in chipdb (``nvidia/geforce-rtx-4090``)."""
    name: str | None = None
    """The chip's name in chipdb."""
    by: str | None = None
    """Which key matched: ``pci``, ``pci-subsystem``, ``dt``, ``name``, ``parent``, ``host`` …"""
    confidence: str | None = None
    """``high``, ``medium`` or ``low``."""
    candidates: tuple[str, ...] = ()
    """Ids of the chips it may be, when nothing told them apart."""
    conflicts: tuple[str, ...] = ()
    """Sentences about keys that name other chips."""
    nominal: Mapping[str, Any] | None = None
    """Units and peaks of the full chip, where the device has fewer units."""


@attrs.frozen
class Device:
    """One physical device, or one partition of one."""

    id: str
    """The best of `ids`."""
    kind: str
    """``gpu``, ``npu``, ``accelerator``, ``cpu`` or ``display``."""
    ids: tuple[str, ...] = ()
    """Strong ids: PCI address, vendor UUID, device-tree path."""
    vendor: str | None = None
    """``nvidia``, ``amd``, ``intel``, ``apple``, ``arm`` …"""
    name: str | None = None
    """Marketing name as the driver, else chipdb, gives it."""
    chip: ChipRef = ChipRef()
    """The chip it is."""
    arch: str | None = None
    """Architecture family: ``ada``, ``cdna3`` …"""
    units: int | None = None
    """SMs, CUs, EUs or cores of this device."""
    cores: int | None = None
    """CUDA cores or stream processors."""
    threads: int | None = None
    """Hardware threads of a CPU."""
    pci: Mapping[str, str] | None = None
    """``id``, ``subsystem``, ``revision`` and ``class``, in hex."""
    dt: tuple[str, ...] = ()
    """Device-tree compatibles, most specific first."""
    gpu_id: str | None = None
    """Id register."""
    gfx: str | None = None
    """AMD's ISA target."""
    compute_capability: str | None = None
    """NVIDIA's."""
    clocks: Mapping[str, float] = _EMPTY
    """Clocks in MHz, each by its kind."""
    memory: Memory = Memory()
    """Its memory."""
    peaks: tuple[Peak, ...] = ()
    """Every known peak."""
    fp32: float | None = None
    """TFLOPS: dense, vector."""
    fp16: float | None = None
    """TFLOPS: dense, the fastest path accumulating in fp32, else the fp16 vector path."""
    int8: float | None = None
    """TOPS: dense, the fastest path."""
    bandwidth: float | None = None
    """Of its memory, in bytes per second."""
    bus_width_bits: int | None = None
    """Width of its memory bus."""
    driver: Mapping[str, str] | None = None
    """``name``, ``version`` and vendor versions such as ``cuda``."""
    backends: tuple[str, ...] = ()
    """Runtimes that can use it: ``cuda``, ``hip``, ``cpu`` …"""
    power_state: str | None = None
    """``active``, ``suspended`` …"""
    numa_node: int | None = None
    """The NUMA node it hangs on."""
    parent: str | None = None
    """Id of the device it is a part of."""
    share: Mapping[str, Any] | None = None
    """Its share of the parent."""
    links: tuple[Mapping[str, Any], ...] = ()
    """PCIe, NVLink and XGMI links."""
    node_index: Mapping[str, int] = _EMPTY
    """Ordinals in the driver's own lists (``nvml``, ``drm_card``, ``kfd``): for people."""
    processes: int | None = None
    """Compute processes that use it now."""
    cpu: Mapping[str, Any] | None = None
    """A CPU's identity, flags and kinds of cores."""
    visibility: Mapping[str, Mapping[str, Any]] = _EMPTY
    """Consumer → ``visible``, ``index``, ``reason``, ``variable``."""
    unknown: Mapping[str, str] = _EMPTY
    """Field → why it is not known."""
    sources: Mapping[str, str] = _EMPTY
    """Field → who said it."""
    others: Mapping[str, Any] = _EMPTY
    """Field → what other probers said instead."""
    seen_by: tuple[str, ...] = ()
    """Probers that saw it, best first."""
    extra: Mapping[str, Any] = _EMPTY
    """What a prober added for people."""

    def peak(self, dtype: str, path: str = "matrix", accumulate: str | None = None) -> Peak | None:
        """Return the fastest dense peak of this kind, or None."""
        fitting = [
            peak
            for peak in self.peaks
            if (peak.dtype, peak.path, peak.sparsity) == (dtype, path, "dense")
            and accumulate in (None, peak.accumulate)
        ]
        return max(fitting, key=lambda peak: peak.tflops, default=None)


@attrs.frozen
class Outcome:
    """How one prober's run ended."""

    prober: str
    """Its name."""
    status: str
    """One of `probe_core.isolation.run.STATUSES`."""
    distribution: str = ""
    """Who ships it, with version."""
    reason: str | None = None
    """Why, for every status but ``ok``."""
    partial: bool = False
    """Whether devices arrived before it failed."""
    devices: int = 0
    """How many devices it reported."""
    elapsed_ms: float = 0.0
    """How long it took."""
    code: str | None = None
    """The prober's own word for why, for scripts."""
    fix: str | None = None
    """What would help."""
    stderr: tuple[str, ...] = ()
    """The last lines it wrote, when it failed."""


@attrs.frozen
class Decision:
    """Whether a prober was run."""

    prober: str
    """Its name."""
    selected: bool
    """Whether it was run."""
    distribution: str = ""
    """Who ships it, with version."""
    cause: str | None = None
    """Word for scripts: ``blocked``, ``when``, ``api``, ``shadowed``, ``trust`` …"""
    reason: str | None = None
    """Why not."""
    priority: int = 100
    """Its priority, after the settings."""
    deadline_s: float = 5.0
    """Its deadline in seconds, after the settings."""
    active: bool = False
    """Whether it opens devices."""


@attrs.frozen
class Finding:
    """Something a person should know."""

    code: str
    """Word for scripts."""
    severity: str
    """``info``, ``warning`` or ``error``."""
    what: str
    """What was found."""
    why: str
    """Its cause."""
    fix: str
    """What would help."""
    device: str | None = None
    """Id of the device it is about."""


@attrs.frozen
class Report:
    """What this node is."""

    node: Node
    """The machine."""
    devices: tuple[Device, ...]
    """Accelerators first, then CPUs, then displays; never empty."""
    primary: str | None
    """Id of the device to use first."""
    outcomes: tuple[Outcome, ...]
    """How each prober's run ended."""
    decisions: tuple[Decision, ...]
    """Which probers were run, and why the others were not."""
    findings: tuple[Finding, ...]
    """What a person should know, worst first."""
    fallback: str | None
    """None, ``no-accelerator`` or ``degraded``."""
    chipdb: str | None
    """Version of the chip data."""
    probe_core: str
    """Version of the core that made the report."""
    timings_ms: Mapping[str, float]
    """Milliseconds per step."""
    schema: int = 1
    """Number of the document's schema."""
    _document: Mapping[str, Any] = attrs.field(default=_EMPTY, repr=False, eq=False)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Report:
        """Return the view of a document; fields it does not have keep their defaults.

        Raises `ValueError` for a document of another schema, or without devices.
        """
        if document.get("schema") != 1:
            raise ValueError(f"a report of schema {document.get('schema')!r}; this core reads 1")
        try:
            devices = tuple(_device(one) for one in document["devices"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"a device of the report lacks {error}") from None
        if not devices:
            raise ValueError("the report has no devices")
        node = document.get("node") or {}
        return cls(
            node=attrs.evolve(_build(Node, node), memory=_build(NodeMemory, node.get("memory"))),
            devices=devices,
            primary=document.get("primary"),
            outcomes=tuple(_build(Outcome, one) for one in document.get("outcomes", ())),
            decisions=tuple(_build(Decision, one) for one in document.get("decisions", ())),
            findings=tuple(_build(Finding, one) for one in document.get("findings", ())),
            fallback=document.get("fallback"),
            chipdb=document.get("chipdb"),
            probe_core=document.get("probe_core", ""),
            timings_ms=_frozen(document.get("timings_ms", {})),
            schema=1,
            document=_frozen(dict(document)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the document as plain data, to be changed at will."""
        document: dict[str, Any] = _thawed(self._document)
        return document

    @property
    def primary_device(self) -> Device:
        """The device to use first; the CPU when there is no accelerator."""
        return next((d for d in self.devices if d.id == self.primary), self.devices[0])

    @property
    def accelerators(self) -> tuple[Device, ...]:
        """GPUs, NPUs and other accelerators, hidden ones too."""
        return tuple(d for d in self.devices if d.kind in ("gpu", "npu", "accelerator"))

    def device(self, identity: str) -> Device | None:
        """Return the device that has this id, or None."""
        return next((d for d in self.devices if identity in d.ids or d.id == identity), None)

    def visible(self, consumer: str) -> tuple[Device, ...]:
        """Return the devices that a consumer (``cuda``, ``hip`` …) surely sees, in its order."""
        from probe_core import visibility

        seen = visibility.visible(self.to_json(), consumer)
        return tuple(filter(None, (self.device(str(one["id"])) for one in seen)))

    def __iter__(self) -> Iterator[Device]:
        return iter(self.devices)


def _device(data: Mapping[str, Any]) -> Device:
    device: Device = _build(Device, data)
    return attrs.evolve(
        device,
        chip=_build(ChipRef, data.get("chip")),
        memory=_build(Memory, data.get("memory")),
        peaks=tuple(_build(Peak, peak) for peak in data.get("peaks") or ()),
        # null in a document means the same as an absent table
        clocks=device.clocks or _EMPTY,
        node_index=device.node_index or _EMPTY,
    )
