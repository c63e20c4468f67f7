"""How much memory the node has and how much is free: cheap enough to ask every second.

The system's memory is read anew at each call (two or three small files). Dedicated memory's total
never changes; how much of it is free is read anew for AMD, whose driver tells it in /sys. For the
others it is what the last probe saw, or with `max_age_s` what the GPUs' samplers saw last: NVML
belongs in a process of its own, see `resident`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probe_cluster.planning.members import Capacity, capacity
from probe_cluster.planning.offers import counted_devices, table
from probe_core.commands import system_memory
from probe_core.machine import Machine, decimal
from probe_exo.engines import RUNNERS, EngineMemory, Free, engine_memories, uses
from probe_exo.installed import Installed, installed_engines
from probe_exo.node import node_document
from probe_exo.resident import FreeMemory, Reading

VARIABLE = "OVERRIDE_MEMORY_MB"
"""Exo's own way for a person to say how much memory a node may give."""
MIB = 1 << 20
# MiB: an exbibyte. More is a slip of the keyboard, not a memory.
_MOST = 1 << 40


def overridden(environ: Mapping[str, str]) -> tuple[int | None, str | None]:
    """Return (bytes, why) when the variable is set; (None, why not) when it says no amount.

    Read at every call, so that it acts at once. (None, None) when it is unset or empty.
    """
    text = environ.get(VARIABLE, "").strip()
    if not text:
        return None, None
    plain = text.isascii() and text.isdecimal() and len(text) <= 20
    if not plain or not 0 < int(text) < _MOST:
        return None, f"{VARIABLE}={text[:40]!r} is ignored: it is no number of MiB"
    return int(text) * MIB, f"{VARIABLE}={text}"


@dataclass(frozen=True, slots=True)
class AcceleratorMemory:
    """Memory of one GPU that counts, in bytes; None is unknown."""

    id: str
    """The device's id in the report."""
    name: str | None
    """As its driver calls it."""
    total: int | None
    """All of it."""
    available: int | None
    """What of it is free."""
    age_s: float | None
    """How old `available` is, in seconds; 0.0 when read now."""


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """Bytes; None is unknown, see `reasons`."""

    ram_total: int | None
    """The system's, within the control group's limit."""
    ram_available: int | None
    """What of it can be taken now, or what OVERRIDE_MEMORY_MB says, as exo reads it."""
    swap_total: int | None
    """All swap space."""
    swap_available: int | None
    """What of it is free."""
    vram_total: int | None
    """Dedicated memory of all visible GPUs; None where there is none."""
    vram_available: int | None
    """What of it is free."""
    vram_age_s: float | None
    """How old `vram_available` is, in seconds; 0.0 when read now."""
    unified: bool
    """Whether the devices that count together use the system's memory."""
    counted_total: int | None
    """Of all devices that count together, by old exo's rule: no runner of exo's reaches it."""
    counted_available: int | None
    """What of it can be taken now, or what OVERRIDE_MEMORY_MB says."""
    accelerators: tuple[AcceleratorMemory, ...] = ()
    """The GPUs with memory of their own that count."""
    engines: tuple[EngineMemory, ...] = ()
    """What each installed engine can allocate on the device that it uses; MLX first."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Field → why it is unknown or not the system's own figure; ``mlx`` and ``vllm`` → why there is
    no such engine."""

    @property
    def engine(self) -> EngineMemory | None:
        """The engine that exo's runner uses, whose memory placement should read.

        None where MLX is not installed, or it is not known: then exo's own figure stands.
        """
        return next((engine for engine in self.engines if engine.backend in RUNNERS), None)


class _Vram(NamedTuple):
    total: int | None
    available: int | None
    age_s: float | None
    accelerators: tuple[AcceleratorMemory, ...] = ()


class MemoryReader:
    """Reads one machine's memory again and again; what the report tells is worked out once.

    `free` has the GPUs' samplers, where somebody wants them.
    """

    def __init__(
        self,
        machine: Machine,
        report: Mapping[str, Any],
        free: FreeMemory | None = None,
        installed: Installed | None = None,
    ) -> None:
        self.report = report
        self.free = free
        self._machine = machine
        self._offer = capacity(report)
        self._devices = _dedicated(report, self._offer)
        self._files = dict(_used_files(self._devices))
        wheels = installed or Installed()
        self._uses, self._why_no_engine = uses(report, wheels), wheels.reasons
        self._at = time.monotonic()

    def needs_samplers(self) -> bool:
        """Return whether some GPU's free memory is in no file."""
        return len(self._files) < len(self._devices)

    def has_engine_on_gpu(self) -> bool:
        """Return whether an engine is installed whose memory is a GPU's own."""
        return any(not use.unified and use.device is not None for use in self._uses)

    def read(self, environ: Mapping[str, str], max_age_s: float | None = None) -> NodeMemory:
        """Return the memory now. Reads a few small files; never probes, never raises."""
        reasons: dict[str, str] = dict(self._why_no_engine)
        total, available = self._system(reasons)
        size, reason = overridden(environ)
        if reason is not None:
            reasons["ram_available"] = reasons["counted_available"] = reason
        vram = self._vram(max_age_s)
        if vram.total is None:
            why_not = self._offer.reasons.get("vram_total", "no GPU with memory of its own")
            reasons["vram_total"] = why_not
        counted_total, counted = self._counted((total, available), vram, reasons)
        override = (size, str(reason)) if size is not None else None
        own = {part.id: part.available for part in vram.accelerators}
        now = Free(total, available, own, override, reasons.get("ram_total"))
        swap_total, swap_available = _swap(self._machine)
        return NodeMemory(
            ram_total=total,
            ram_available=available if size is None else size,
            swap_total=swap_total,
            swap_available=swap_available,
            vram_total=vram.total,
            vram_available=vram.available,
            vram_age_s=vram.age_s,
            unified=self._offer.unified,
            counted_total=counted_total,
            counted_available=counted if size is None else size,
            accelerators=vram.accelerators,
            engines=engine_memories(self._uses, now),
            reasons=reasons,
        )

    def _system(self, reasons: dict[str, str]) -> tuple[int | None, int | None]:
        system = system_memory(self._machine)
        if system["limit"] is None:
            return system["total"], system["available"]
        reasons["ram_total"] = "a control group limits it; the machine has more"
        return system["limit"], system["available"]

    def _counted(
        self, ram: tuple[int | None, int | None], vram: _Vram, reasons: dict[str, str]
    ) -> tuple[int | None, int | None]:
        """Return what the devices that count have together: all of it, and what is free."""
        if not self._offer.unified:
            return vram.total, vram.available
        total, available = ram
        reach = self._offer.memory_total  # a GPU may reach less than all of the system's memory
        if total is None:
            return reach, self._offer.memory_available
        if reach is None or reach >= total:
            return total, available
        reasons["counted_total"] = "the GPU reaches no more of the system's memory"
        return reach, None if available is None else min(available, reach)

    def _vram(self, max_age_s: float | None) -> _Vram:
        if self._offer.vram_total is None:
            return _Vram(None, None, None)
        readings: Mapping[str, Reading] = {}
        if self.free is not None and max_age_s is not None:
            readings = self.free.read(max_age_s)
        parts = tuple(self._part(device, readings) for device in self._devices)
        ages = [part.age_s for part in parts if part.age_s is not None]
        free = [part.available for part in parts if part.available is not None]
        available = sum(free) if len(free) == len(parts) else self._offer.vram_available
        age = max(ages) if len(ages) == len(parts) and ages else None
        return _Vram(self._offer.vram_total, available, age, parts)

    def _part(
        self, device: Mapping[str, Any], readings: Mapping[str, Reading]
    ) -> AcceleratorMemory:
        """Return one GPU's memory: from its file, its sampler, or as the probe saw it."""
        id_, memory = str(device["id"]), device["memory"]
        total, now = memory.get("total"), time.monotonic()
        if id_ in self._files and total is not None:
            used = self._machine.read_int(self._files[id_])
            if used is not None:
                return _accelerator(device, max(0, total - used), 0.0)
        if id_ in readings:
            # The driver keeps some for itself, which is neither used nor free: an H100 480 MiB.
            reserved = table(memory.get("parts")).get("reserved") or 0
            available = max(0, readings[id_].available - reserved)
            return _accelerator(device, available, max(0.0, now - readings[id_].at))
        free = next((memory[n] for n in ("free", "usable", "total") if memory.get(n)), None)
        return _accelerator(device, free, None if free is None else now - self._at)


def _accelerator(
    device: Mapping[str, Any], available: int | None, age_s: float | None
) -> AcceleratorMemory:
    return AcceleratorMemory(
        str(device["id"]), device.get("name"), device["memory"].get("total"), available, age_s
    )


_reader: MemoryReader | None = None


def node_memory(max_age_s: float | None = None) -> NodeMemory:
    """Return this node's memory now; the first call probes, later ones take 200 µs at most.

    With `max_age_s` (seconds) the free memory of GPUs is no older than that, where a driver tells
    it: a process that stays is asked where its last answer is older, and asks by itself twice in
    that time, so that whoever polls waits for nothing. It never asks a GPU that sleeps, and ends
    30 s after the last call. How old a figure really is stands beside it. Without `max_age_s` the
    figure of a GPU that needs a library (NVIDIA) is that of the last probe.

    Safe from any thread. Await the first call in a thread: a probe takes as long as it takes.
    """
    reader = _current()
    _keep_samplers(reader, max_age_s)
    return reader.read(os.environ, max_age_s)


def engine_memory(max_age_s: float | None = None) -> EngineMemory | None:
    """Return what the engine that exo's runner uses can allocate now: what placement should read.

    None where MLX is not installed, or that cannot be told. As cheap as `node_memory`; a node
    whose engine computes on the CPU keeps no process for its GPUs.
    """
    reader = _current()
    if reader.has_engine_on_gpu():
        _keep_samplers(reader, max_age_s)
    return reader.read(os.environ, max_age_s).engine


def _current() -> MemoryReader:
    global _reader
    report, reader = node_document(), _reader
    if reader is None or reader.report is not report:
        close_samplers()
        reader = _reader = MemoryReader(Machine(), report, installed=installed_engines())
    return reader


def _keep_samplers(reader: MemoryReader, max_age_s: float | None) -> None:
    if max_age_s is not None and reader.free is None and reader.needs_samplers():
        reader.free = _samplers(reader.report)


def close_samplers() -> None:
    """End the processes that `max_age_s` keeps; a later call starts them again."""
    if _reader is not None and _reader.free is not None:
        _reader.free.close()


def _samplers(report: Mapping[str, Any]) -> FreeMemory:
    """Return the samplers of the GPUs that count and have memory of their own."""
    ids = [str(device["id"]) for device in _dedicated(report, capacity(report))]

    def sample(interval: float) -> Any:
        import probe_core

        return probe_core.samples(interval=interval, devices=ids, report=dict(report))

    return FreeMemory(ids, sample)


def _dedicated(report: Mapping[str, Any], offer: Capacity) -> tuple[Mapping[str, Any], ...]:
    """Return the GPUs, or parts of them, that count and have memory of their own."""
    return () if offer.vram_total is None else tuple(counted_devices(report, "all")[0])


def _used_files(devices: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield (id, file that tells how much is used) of the GPUs whose driver has one."""
    for device in devices:
        id_ = str(device["id"])
        if device.get("vendor") == "amd" and id_.startswith("pci:"):
            address = id_.removeprefix("pci:")
            yield id_, f"/sys/bus/pci/devices/{address}/mem_info_vram_used"


def _swap(machine: Machine) -> tuple[int | None, int | None]:
    if machine.os != "linux":
        return _swap_from_psutil()
    amounts: dict[str, int] = {}
    for line in (machine.read("/proc/meminfo", 16 << 10) or "").splitlines():
        if line.startswith("Swap"):
            name, _, value = line.partition(":")
            fields = value.split()
            size = decimal(fields[0]) if fields else None
            if size is not None:
                amounts[name] = size * 1024
    return amounts.get("SwapTotal"), amounts.get("SwapFree")


def _swap_from_psutil() -> tuple[int | None, int | None]:
    try:
        import psutil

        swap = psutil.swap_memory()
    except Exception:  # psutil raised on betas of macOS 26 and 27 (exo PR 2161)
        return None, None
    return int(swap.total), int(swap.free)
