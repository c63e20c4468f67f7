"""A device of the report, its memory, its peaks and the chip it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from probe_core.model.plain import EMPTY, build

__all__ = ["ChipRef", "Device", "Memory", "Peak", "device_of"]


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
    parts: Mapping[str, int] = EMPTY
    """Parts with their own sources: ``vram``, ``gtt``, ``system``, ``limit``, ``reserved``."""


@attrs.frozen
class Peak:
    """One theoretical peak; a number without these keys means nothing."""

    dtype: str
    """What is multiplied: ``fp64``, ``fp32``, ``tf32``, ``bf16``, ``fp16``, ``int8`` …"""
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
    clocks: Mapping[str, float] = EMPTY
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
    node_index: Mapping[str, int] = EMPTY
    """Ordinals in the driver's own lists (``nvml``, ``drm_card``, ``kfd``): for people."""
    processes: int | None = None
    """Compute processes that use it now."""
    cpu: Mapping[str, Any] | None = None
    """A CPU's identity, flags and kinds of cores."""
    visibility: Mapping[str, Mapping[str, Any]] = EMPTY
    """Runtime → ``visible``, ``index``, ``reason``, ``variable``."""
    unknown: Mapping[str, str] = EMPTY
    """Field → why it is not known."""
    sources: Mapping[str, str] = EMPTY
    """Field → who said it."""
    others: Mapping[str, Any] = EMPTY
    """Field → what other probers said instead."""
    seen_by: tuple[str, ...] = ()
    """Probers that saw it, best first."""
    extra: Mapping[str, Any] = EMPTY
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


def device_of(data: Mapping[str, Any]) -> Device:
    """Return the view of a device of a document; raises `TypeError` without id or kind."""
    device: Device = build(Device, data)
    return attrs.evolve(
        device,
        chip=build(ChipRef, data.get("chip")),
        memory=build(Memory, data.get("memory")),
        peaks=tuple(build(Peak, peak) for peak in data.get("peaks") or ()),
        # null in a document means the same as an absent table
        clocks=device.clocks or EMPTY,
        node_index=device.node_index or EMPTY,
    )
