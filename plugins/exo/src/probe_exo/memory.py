"""How much memory the node has and how much is free: cheap enough to ask every second.

The system's memory is read anew at each call (two or three small files). Dedicated memory's total
never changes; how much of it is free is read anew for AMD, whose driver tells it in /sys, and is
otherwise what the last probe saw: asking NVML wakes the library, and belongs in a prober.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probe_cluster.capacities import Capacity, capacity
from probe_core.commands import system_memory
from probe_core.machine import Machine, decimal
from probe_exo.override import overridden
from probe_exo.plain import no_reasons
from probe_exo.static_part import node_document

__all__ = ["MemoryReader", "NodeMemory", "node_memory"]


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
    """Whether a model lies in the system's memory."""
    reasons: Mapping[str, str] = field(default_factory=no_reasons)
    """Field → why it is unknown or not the system's own figure."""


class _Vram(NamedTuple):
    total: int | None
    available: int | None
    age_s: float | None


class MemoryReader:
    """Reads one machine's memory again and again; what the report tells is worked out once."""

    __slots__ = ("_at", "_files", "_machine", "_offer", "report")

    def __init__(self, machine: Machine, report: Mapping[str, Any]) -> None:
        self.report = report
        self._machine = machine
        self._offer = capacity(report)
        self._files = _used_files(report, self._offer)
        self._at = time.monotonic()

    def read(self, environ: Mapping[str, str]) -> NodeMemory:
        """Return the memory now. Reads a few small files; never probes, never raises."""
        reasons: dict[str, str] = {}
        total, available = self._system(reasons)
        size, reason = overridden(environ)
        if reason is not None:
            reasons["ram_available"] = reason
        vram = self._vram()
        if vram.total is None:
            why_not = self._offer.reasons.get("vram_total", "no GPU with memory of its own")
            reasons["vram_total"] = why_not
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
            reasons=reasons,
        )

    def _system(self, reasons: dict[str, str]) -> tuple[int | None, int | None]:
        system = system_memory(self._machine)
        if system["limit"] is None:
            return system["total"], system["available"]
        reasons["ram_total"] = "a control group limits it; the machine has more"
        return system["limit"], system["available"]

    def _vram(self) -> _Vram:
        total, free = self._offer.vram_total, self._offer.vram_available
        if total is not None and self._files:
            used = [self._machine.read_int(path) for path in self._files]
            readable = [amount for amount in used if amount is not None]
            if len(readable) == len(used):
                return _Vram(total, max(0, total - sum(readable)), 0.0)
        return _Vram(total, free, None if free is None else time.monotonic() - self._at)


_reader: MemoryReader | None = None


def node_memory() -> NodeMemory:
    """Return this node's memory now; the first call probes, later ones take 200 µs at most.

    Safe from any thread. Await the first call in a thread: a probe takes as long as it takes.
    """
    global _reader
    report, reader = node_document(), _reader
    if reader is None or reader.report is not report:
        reader = _reader = MemoryReader(Machine(), report)
    return reader.read(os.environ)


def _used_files(report: Mapping[str, Any], offer: Capacity) -> tuple[str, ...]:
    """Return the files that tell how much is used, when every GPU that counts has one."""
    if offer.vram_total is None:
        return ()
    vendors = {device["id"]: device.get("vendor") for device in report["devices"]}
    if any(vendors[id_] != "amd" or not id_.startswith("pci:") for id_ in offer.devices):
        return ()
    folder = "/sys/bus/pci/devices"
    return tuple(f"{folder}/{id_.removeprefix('pci:')}/mem_info_vram_used" for id_ in offer.devices)


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
