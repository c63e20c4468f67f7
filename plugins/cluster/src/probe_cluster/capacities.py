"""What one node offers to a model, by one declared rule, out of its report.

The rule. Counted are the GPUs and accelerators that their vendor's own runtime surely sees and
whose memory is known. Where one of them has dedicated memory, those with dedicated memory count
and the integrated ones do not; else the integrated ones count and their memory is the system's,
once. Without any, the CPU counts. A GPU that is split into parts (MIG) counts as its visible
parts. NPUs and displays never count unless named. FLOPS and dedicated memory are sums, of a limited
processor over the cores that this process may use. Bandwidth is the memory-weighted harmonic mean:
layers lie on one device each, and are read one after another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probe_cluster.counted import Device, counted_devices
from probe_cluster.figures import amount, rate, text
from probe_core.commands import document_of

__all__ = ["Capacity", "Measured", "capacity"]


class Measured(NamedTuple):
    """The bandwidth at which `probe bench` read the memories, in bytes per second."""

    bandwidth: float
    by: str
    """With what, and when."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a node offers: bytes, TFLOPS (TOPS), bytes per second; None is unknown."""

    chip: str | None
    """Name of the first device that counts."""
    kind: str
    """``gpu``, ``accelerator``, ``npu`` or ``cpu``: what the first device is."""
    vendor: str | None
    """Its vendor."""
    devices: tuple[str, ...]
    """Ids of the devices that count."""
    memory_total: int | None
    """Bytes that a model could at most lie in."""
    memory_available: int | None
    """Bytes of them that can be taken now."""
    pools: tuple[int, ...]
    """`memory_available` apart, per memory: a layer lies in one of them."""
    ram_total: int | None
    """The system's memory, within the control group's limit."""
    ram_available: int | None
    """What of it can be taken now."""
    vram_total: int | None
    """Dedicated memory of the devices that count; None where there is none."""
    vram_available: int | None
    """What of it can be taken now."""
    unified: bool
    """Whether the model's memory is the system's."""
    fp32: float | None
    """TFLOPS: sum of the devices' dense fp32 shorthands."""
    fp16: float | None
    """TFLOPS: sum of the devices' dense fp16 shorthands."""
    int8: float | None
    """TOPS: sum of the devices' dense int8 shorthands."""
    bandwidth: float | None
    """Of the memory, in bytes per second."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Field → why it is unknown or incomplete; ``devices`` → what was left out."""
    arch: str | None = None
    """Architecture of the first device."""
    measured: Measured | None = None
    """What its memories were read at; None where not all of them were measured, or not well."""


def capacity(report: Any, devices: str | tuple[str, ...] = "all") -> Capacity:
    """Return what the node of a report, or of its document, offers.

    `devices` is ``all`` (the rule above), ``primary``, ``cpu``, or ids that must be in the report.
    Raises `ClusterError` for an id that is not, and never for what a report lacks.
    """
    document = document_of(report)
    chosen, reasons = counted_devices(document, devices)
    node = _table(document.get("node"))
    ram_total, ram_available = _system(node)
    memory = _model_memory(chosen, node, (ram_total, ram_available), reasons)
    rates = {name: _flops(chosen, name, reasons) for name in ("fp32", "fp16", "int8")}
    first = chosen[0] if chosen else {}
    return Capacity(
        chip=text(first.get("name")),
        kind=text(first.get("kind")) or "cpu",
        vendor=text(first.get("vendor")),
        devices=tuple(str(device["id"]) for device in chosen),
        memory_total=memory.total,
        memory_available=memory.available,
        pools=memory.pools,
        ram_total=ram_total,
        ram_available=ram_available,
        vram_total=None if memory.unified else memory.total,
        vram_available=None if memory.unified else memory.available,
        unified=memory.unified,
        bandwidth=_bandwidth(chosen, reasons),
        reasons=reasons,
        arch=text(first.get("arch")),
        measured=_measured(chosen),
        **rates,
    )


class _ModelMemory(NamedTuple):
    """The memory that a model can lie in, in bytes."""

    total: int | None
    available: int | None
    pools: tuple[int, ...]
    unified: bool


def _model_memory(
    chosen: list[Device],
    node: Mapping[str, Any],
    ram: tuple[int | None, int | None],
    reasons: dict[str, str],
) -> _ModelMemory:
    own = [device for device in chosen if _kind(device) == "dedicated"]
    if own:
        total = _sum(own, "total", reasons, "vram_total")
        available = _sum(own, "usable", reasons, "vram_available")
        pools = tuple(_usable(device) or 0 for device in own)
    else:
        total, available = _unified(chosen, node, *ram)
        pools = (available,) if available is not None else ()
    for name, value in (("total", total), ("available", available)):
        if value is None:
            reason = reasons.get(f"vram_{name}", "the report has no memory of this node")
            reasons.setdefault(f"memory_{name}", reason)
    return _ModelMemory(total, available, pools, unified=not own)


def _kind(device: Device) -> str | None:
    return text(_table(device.get("memory")).get("kind"))


def _memory(device: Device, name: str) -> int | None:
    return amount(_table(device.get("memory")).get(name))


def _usable(device: Device) -> int | None:
    """What can be taken now; where only the reach or the total is known, that."""
    for name in ("free", "usable", "total"):
        value = _memory(device, name)
        if value is not None:
            return value
    return None


def _sum(devices: list[Device], name: str, reasons: dict[str, str], field_: str) -> int | None:
    values = []
    for device in devices:
        value = _usable(device) if name == "usable" else _memory(device, name)
        if value is None:
            because = _because(device, "memory.total")
            reasons[field_] = f"the memory of {device['id']} is unknown{because}"
        else:
            values.append(value)
    return sum(values) if values else None


def _system(node: Mapping[str, Any]) -> tuple[int | None, int | None]:
    table = _table(node.get("memory"))
    total, limit = amount(table.get("total")), amount(table.get("limit"))
    available = amount(table.get("available"))
    if limit is not None:
        total = limit if total is None else min(total, limit)
    if total is not None and available is not None:
        available = min(available, total)
    return total, available


def _unified(
    chosen: list[Device], node: Mapping[str, Any], ram_total: int | None, ram_available: int | None
) -> tuple[int | None, int | None]:
    """Return (total, available) of memory that CPU and GPU share: once, however many devices.

    What a GPU reaches counts where its prober knows it: an APU's carve-out and GTT, which are not
    the system's total; and a limit binds (macOS wires at most a share, a control group less).
    """
    total, available = ram_total, ram_available
    # All of them share one memory, so the largest reach counts and no sum.
    integrated = [device for device in chosen if device.get("kind") != "cpu"]
    reach = [value for device in integrated if (value := _memory(device, "total")) is not None]
    free = [value for device in integrated if (value := _usable(device)) is not None]
    if reach:
        total, available = max(reach), max(free)
    limits = [value for device in integrated if (value := _limit(device)) is not None]
    if amount(_table(node.get("memory")).get("limit")) is not None:
        limits += [ram_total or 0]
        available = min(filter(None, (available, ram_available)), default=None)
    if total is not None:
        total = min([total, *limits])
        available = total if available is None else min(available, total)
    return total, available


def _limit(device: Device) -> int | None:
    return amount(_table(_table(device.get("memory")).get("parts")).get("limit"))


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _flops(chosen: list[Device], name: str, reasons: dict[str, str]) -> float | None:
    values = []
    for device in chosen:
        value = _own_rate(device, name)
        if value is None:
            reasons[name] = f"{name} of {device['id']} is unknown{_because(device, name)}"
        else:
            values.append(value)
    if not chosen:
        reasons[name] = "the report has no device that counts"
    return sum(values) or None if values else None


def _own_rate(device: Device, name: str) -> float | None:
    """Return a figure of a device; of a processor, that of the cores this process may use.

    Memory is counted within its control group's limit, and so are the cores.
    """
    whole, allowed = rate(device.get(name)), device.get("allowed")
    if whole is None or not isinstance(allowed, Mapping):
        return whole
    part = allowed.get(name)
    return 0.0 if part == 0 else rate(part)


def _measured(chosen: list[Device]) -> Measured | None:
    """Return the measured bandwidth of all devices together: decoding reads, so by reading.

    The middle run's: a plan is for long.
    """
    size = seconds = 0.0
    sources: dict[str, None] = {}
    for device in chosen:
        figure = _read_figure(device)
        value = rate(figure.get("median"))
        if value is None:
            return None
        own = float(_memory(device, "total") or 1)
        size, seconds = size + own, seconds + own / value
        sources[f"{figure.get('by')} on {str(figure.get('date'))[:10]}"] = None
    return Measured(size / seconds, " and ".join(sources)) if seconds else None


def _read_figure(device: Device) -> Mapping[str, Any]:
    """Return a device's figure of reading; an empty table where none can be planned with."""
    figures = device.get("measured")
    for figure in figures if isinstance(figures, list) else ():
        if not isinstance(figure, Mapping) or figure.get("figure") != "read":
            continue
        if figure.get("stale") is None and figure.get("disturbed") == []:
            return figure
    return {}


def _bandwidth(chosen: list[Device], reasons: dict[str, str]) -> float | None:
    size = seconds = 0.0
    for device in chosen:
        value = rate(device.get("bandwidth"))
        if value is None:
            because = _because(device, "bandwidth")
            reasons["bandwidth"] = f"the memory bandwidth of {device['id']} is unknown{because}"
            return None
        # Weighted by memory, as layers are shared; where no memory is known all weigh the same.
        own = float(_memory(device, "total") or 1)
        size, seconds = size + own, seconds + own / value
    if not chosen:
        reasons["bandwidth"] = "the report has no device that counts"
    return size / seconds if seconds else None


def _because(device: Device, field_: str) -> str:
    reason = text(_table(device.get("unknown")).get(field_))
    return f": {reason}" if reason else ""
