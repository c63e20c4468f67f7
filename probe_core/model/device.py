"""Read-only plain data: what the typed views hold, and what can be pickled, copied and hashed."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

import attrs

from probe_core.model.fields import FIELDS
from probe_core.model.parts import CHIP, MEMORY, PEAK, READINESS

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
    from probe_core.model.field import Field


class FrozenTable(dict[str, Any]):
    """A table that cannot be changed. Equal to a dict with the same items, and hashable.

    A dict, not a `types.MappingProxyType`: that one can neither be pickled nor deep-copied, so a
    report could not be sent to another process (multiprocessing, Ray).
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return dict.__repr__(self)

    def __reduce__(self) -> tuple[type[FrozenTable], tuple[dict[str, Any]]]:
        return FrozenTable, (dict(self),)

    def __copy__(self) -> FrozenTable:
        return self

    def __deepcopy__(self, memo: object) -> FrozenTable:
        return self

    def copy(self) -> FrozenTable:
        """Return itself: nothing in it can change."""
        return self

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a report cannot be changed; to_json() gives a document that can")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


EMPTY = FrozenTable()
"""The empty table, as a default."""


def freeze(value: Any) -> Any:
    """Return plain JSON data with read-only tables, and tuples instead of lists."""
    if isinstance(value, FrozenTable):
        return value
    if isinstance(value, dict):
        return FrozenTable({name: freeze(item) for name, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """Return frozen data as plain JSON data that may be changed."""
    if isinstance(value, dict):
        return {name: thaw(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


# Make the typed views of parts of a document.

View = TypeVar("View")


def view(cls: type[View], table: FrozenTable, fields: Mapping[str, Field]) -> View:
    """Return `cls` with the keys of `table` that it has; what a newer core added is left out.

    The view holds the document's own frozen tables, not copies. Keys that an older core did not
    write get the stand-in that the table of fields names.
    """
    values: dict[str, Any] = {}
    for attribute in attrs.fields(cls):  # type: ignore[arg-type]
        value = table.get(attribute.name)
        if value is not None:
            values[attribute.name] = value
        elif attribute.default is attrs.NOTHING:
            values[attribute.name] = fields[attribute.name].empty
    return cls(**values)


# Devices and what belongs to them, as frozen values.


@attrs.frozen
class Memory:
    """A device's memory, in bytes."""

    # begin generated: Memory
    kind: str | None = None
    """dedicated, unified (shared with the CPU) or shared (the system's own)."""
    total: int | None = None
    """All of it, with what the driver reserves, in bytes."""
    free: int | None = None
    """What the driver reports as free now, in bytes."""
    usable: int | None = None
    """What a program could take, in bytes."""
    used: int | None = None
    """What the driver reports as in use now, in bytes."""
    limited_by: str | None = None
    """What keeps usable below total: used (by programs), cgroup, system (its available memory), or
    a prober's word for a limit of the driver."""
    parts: Mapping[str, int] = EMPTY
    """Parts with their own sources: vram, gtt, system, limit, reserved, in bytes."""

    # end generated


@attrs.frozen
class Peak:
    """One theoretical peak; a number without these keys means nothing."""

    # begin generated: Peak
    dtype: str
    """What is multiplied: fp64, fp32, tf32, bf16, fp16, fp8, fp6, fp4, int8, int4 …."""
    path: str
    """Which units: vector or matrix."""
    accumulate: str
    """What products are summed in."""
    sparsity: str
    """dense, or sparse where hardware skips zeros."""
    clock: str
    """Which clock: boost, matrix, base, max (an upper bound), current, published …."""
    tflops: float
    """10^12 operations per second, an FMA counting as two; TOPS for integers, in TFLOPS or
    TOPS."""
    source: str
    """How the number came about, and from which documents."""
    confidence: str = "derived"
    """vendor, derived, measured, community, or reported by a prober."""
    variant: str | None = None
    """single (no dual issue) or packed, where a chip has both."""
    mhz: float | None = None
    """The clock's frequency, in MHz."""
    low: float | None = None
    """The figure at the bottom of the range that the part is sold with, in TFLOPS or TOPS."""
    condition: str | None = None
    """What decides within the range: the laptop, the power mode …."""
    published: float | None = None
    """The vendor's own figure for the same key, in TFLOPS or TOPS."""
    bound: str | None = None
    """lower: the true peak may be higher, as clock, core or kinds of cores are not known."""
    high: float | None = None
    """The figure if all cores were its fastest, where their kinds are not known, in TFLOPS or
    TOPS."""

    # end generated


@attrs.frozen
class ChipRef:
    """Which chip of chipdb a device is, and how sure that is."""

    # begin generated: ChipRef
    id: str | None = None
    """The chip's id in chipdb (nvidia/geforce-rtx-4090)."""
    name: str | None = None
    """The chip's name in chipdb."""
    by: str | None = None
    """Which key matched: pci-subsystem, pci-revision, pci, gpu-id, dt, name, parent, host …."""
    confidence: str | None = None
    """high, medium or low."""
    candidates: tuple[str, ...] = ()
    """Ids of the chips it may be, when nothing distinguishes them."""
    conflicts: tuple[str, ...] = ()
    """Sentences about keys that name other chips."""
    nominal: Mapping[str, Json] | None = None
    """Units and peaks (TFLOPS, TOPS) of the full chip, where the device has fewer units."""

    # end generated


@attrs.frozen
class Readiness:
    """Whether this process can use a device, and the step that is broken."""

    # begin generated: Readiness
    state: str = "unknown"
    """ready, limited (usable, but with less than it has), blocked or unknown."""
    broken: str | None = None
    """The first step that is broken; null where none is."""
    steps: tuple[StepDoc, ...] = ()
    """Every step, in order."""

    # end generated


@attrs.frozen
class Device:
    """One physical device, or one partition of one."""

    # begin generated: Device
    id: str
    """The best of ids: pci:dddd:bb:dd.f, dt:/path, uuid:GPU-…, cpu:n."""
    kind: str
    """gpu, npu, accelerator, cpu, coprocessor (its use is not known) or display (cannot
    compute)."""
    ids: tuple[str, ...] = ()
    """Strong ids, best first: what joins the sightings of one device."""
    vendor: str | None = None
    """Vendor in one lower-case word: nvidia, amd, intel, apple, arm …."""
    name: str | None = None
    """Marketing name as the driver, else chipdb, gives it."""
    chip: ChipRef = ChipRef()
    """Which chip of chipdb it is."""
    arch: str | None = None
    """Architecture family: ada, cdna3, zen5 … (kinds of cores joined by +)."""
    units: int | None = None
    """SMs, CUs, EUs or cores of this device."""
    cores: int | None = None
    """CUDA cores, stream processors or other fp32 lanes of this device."""
    threads: int | None = None
    """Hardware threads of a CPU."""
    pci: PciDoc | None = None
    """id, subsystem, revision and class, in lower-case hexadecimal."""
    dt: tuple[str, ...] = ()
    """Device-tree compatibles, most specific first."""
    gpu_id: str | None = None
    """Value of the GPU's id register, as vendor:0xvalue."""
    gfx: str | None = None
    """AMD's ISA target: gfx1100."""
    compute_capability: str | None = None
    """NVIDIA's compute capability: 8.9."""
    clocks: Mapping[str, float] = EMPTY
    """Clocks, each by its kind: max_mhz, base_mhz, boost_mhz, memory_max_mhz, current_mhz, in
    MHz."""
    memory: Memory = Memory()
    """Its memory."""
    peaks: tuple[Peak, ...] = ()
    """Every known peak."""
    fp32: float | None = None
    """Dense, vector, in TFLOPS."""
    fp16: float | None = None
    """Dense, the fastest path that accumulates in fp32, else the fp16 vector path, in TFLOPS."""
    int8: float | None = None
    """Dense, the fastest path, in TOPS."""
    bandwidth: float | None = None
    """Memory bandwidth, in bytes per second."""
    measured: tuple[MeasuredDoc, ...] = ()
    """What `probe bench` achieved on it, and with what; never mixed with the derived peaks."""
    bus_width_bits: int | None = None
    """Width of the memory bus, in bits."""
    driver: Mapping[str, str] | None = None
    """name, version, and versions of the vendor's own (cuda, rocm)."""
    backends: tuple[str, ...] = ()
    """Runtimes that can use it: cuda, hip, cpu …."""
    power_state: str | None = None
    """active, suspended, off … as the kernel reports it."""
    power: PowerDoc | None = None
    """Its power limits, and what holds its clocks down."""
    ecc: EccDoc | None = None
    """Error correction of its memory."""
    compute_mode: str | None = None
    """Which processes may compute on it: default, exclusive-process, exclusive-thread or
    prohibited."""
    persistence: bool | None = None
    """Whether the driver keeps it initialised while no process uses it."""
    numa_node: int | None = None
    """The NUMA node it is attached to; the first one of numa_nodes."""
    numa_nodes: tuple[int, ...] = ()
    """The NUMA nodes of a CPU package that has several."""
    parent: str | None = None
    """Id of the device that this one is a part of."""
    profile: str | None = None
    """Profile of a partition, as its driver names it: 3g.40gb, cpx."""
    share: Mapping[str, float] | None = None
    """This part's share of the parent: units of how many."""
    links: tuple[LinkDoc, ...] = ()
    """PCIe, NVLink and XGMI links."""
    bridges: tuple[str, ...] = ()
    """PCI addresses of the bridges above it, its own port first, the root port last; devices that
    share one lie behind the same switch or port."""
    node_index: Mapping[str, int] = EMPTY
    """Ordinals in the drivers' own lists (nvml, drm_card, drm_render, kfd): for people, never for
    matching."""
    processes: int | None = None
    """Compute processes that use it now."""
    cpu: Mapping[str, Json] | None = None
    """A CPU's identity (vendor_id, family, model, stepping, implementer, part, variant), flags
    that decide peaks, CPUs that are offline, and kinds of cores (clusters: name, cores, threads,
    clock, fp32 in TFLOPS)."""
    allowed: Mapping[str, Json] | None = None
    """What of a CPU this process may use, where that is less than the whole."""
    visibility: Mapping[str, VisibilityDoc] = EMPTY
    """Runtime (cuda, hip, vulkan …) to what it shows of this device."""
    nodes: tuple[str, ...] = ()
    """Device nodes that a program must open to use it, as /dev/nvidia0."""
    readiness: Readiness = Readiness()
    """Whether this process can use it, and the step that is broken."""
    unknown: Mapping[str, str] = EMPTY
    """Field (memory.total) to the reason why it is not known."""
    sources: Mapping[str, str] = EMPTY
    """Field to its source: a prober, chipdb, node or derived."""
    others: Mapping[str, Sequence[OtherDoc]] = EMPTY
    """Field to what other probers report for it."""
    seen_by: tuple[str, ...] = ()
    """Probers that detected it, best first."""
    extra: Mapping[str, Json] = EMPTY
    """What a prober adds for people; no promise about its form."""

    # end generated
    def peak(self, dtype: str, path: str = "matrix", accumulate: str | None = None) -> Peak | None:
        """Return the fastest dense peak of this kind, or None."""
        fitting = [
            peak
            for peak in self.peaks
            if (peak.dtype, peak.path, peak.sparsity) == (dtype, path, "dense")
            and accumulate in (None, peak.accumulate)
        ]
        return max(fitting, key=lambda peak: peak.tflops, default=None)


def device_of(table: FrozenTable) -> Device:
    """Return the view of a device of a frozen document."""
    device = view(Device, table, FIELDS)
    return attrs.evolve(
        device,
        chip=view(ChipRef, table.get("chip") or EMPTY, CHIP),
        readiness=view(Readiness, table.get("readiness") or EMPTY, READINESS),
        memory=view(Memory, table.get("memory") or EMPTY, MEMORY),
        peaks=tuple(view(Peak, peak, PEAK) for peak in table.get("peaks") or ()),
    )
