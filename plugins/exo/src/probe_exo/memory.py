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
from typing import Any

from probe_core.cluster.capacities import Capacity, capacity
from probe_core.machine import Machine
from probe_core.node import memory as system_memory
from probe_exo.override import overridden
from probe_exo.static_part import cached_document, node_document

__all__ = ["NodeMemory", "node_memory"]


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """Bytes; None is unknown, see `reasons`."""

    ram_total: int | None
    """The system's, within the control group's limit."""
    ram_available: int | None
    """What of it can be taken now, or what OVERRIDE_MEMORY_MB says, as exo reads it."""
    swap_total: int | None
    swap_available: int | None
    vram_total: int | None
    """Dedicated memory of all visible GPUs; None where there is none, or none was probed yet."""
    vram_available: int | None
    """What of it is free."""
    vram_age_s: float | None
    """How old `vram_available` is, in seconds; 0.0 when read now."""
    unified: bool | None
    """Whether GPU and CPU share the system's memory; None before the first probe."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Field → why it is unknown or not the system's own figure."""


class _Known:
    """The static part, worked out once per report."""

    __slots__ = ("at", "offer", "report", "used_files")

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.report = report
        self.offer: Capacity = capacity(report)
        self.at = time.monotonic()
        self.used_files = _used_files(report, self.offer)


_known: _Known | None = None
_machine: Machine | None = None


def node_memory(*, probe: bool = True) -> NodeMemory:
    """Return the node's memory now. The first call probes, unless `probe` is False.

    Later calls read files alone: at most 200 microseconds. Safe from any thread; blocks for the
    probe, so await the first one in a thread.
    """
    global _machine
    machine = _machine
    if machine is None:
        machine = _machine = Machine()
    known = _static(probe)
    reasons: dict[str, str] = {}
    system = system_memory(machine)
    total, available = system["total"], system["available"]
    if system["limit"] is not None:
        total = system["limit"]
        reasons["ram_total"] = "a control group limits it; the machine has more"
    size, why = overridden(os.environ)
    if size is not None:
        available = size
    if why is not None:
        reasons["ram_available"] = why
    swap_total, swap_available = _swap(machine)
    return NodeMemory(
        ram_total=total,
        ram_available=available,
        swap_total=swap_total,
        swap_available=swap_available,
        reasons=reasons,
        **_vram(machine, known, reasons),
    )


def _static(probe: bool) -> _Known | None:
    global _known
    report = cached_document()
    if report is None and probe:
        report = node_document()
    if report is None:
        return None
    known = _known
    if known is None or known.report is not report:
        known = _known = _Known(report)
    return known


def _vram(machine: Machine, known: _Known | None, reasons: dict[str, str]) -> dict[str, Any]:
    if known is None:
        reasons["vram_total"] = "not probed yet"
        return dict.fromkeys(("vram_total", "vram_available", "vram_age_s", "unified"))
    offer = known.offer
    free, age = offer.vram_available, time.monotonic() - known.at
    if known.used_files:
        used = [machine.read_int(path) for path in known.used_files]
        if offer.vram_total is not None and None not in used:
            free, age = max(0, offer.vram_total - sum(filter(None, used))), 0.0
    if offer.vram_total is None:
        reasons["vram_total"] = offer.reasons.get("vram_total", "no GPU with memory of its own")
    return {
        "vram_total": offer.vram_total,
        "vram_available": free,
        "vram_age_s": None if free is None else age,
        "unified": offer.unified,
    }


def _used_files(report: Mapping[str, Any], offer: Capacity) -> tuple[str, ...]:
    """Return the files that tell how much is used, when every GPU that counts has one."""
    files = []
    for device in report["devices"]:
        if device["id"] in offer.devices and offer.vram_total is not None:
            if device.get("vendor") != "amd" or not device["id"].startswith("pci:"):
                return ()
            address = device["id"].removeprefix("pci:")
            files.append(f"/sys/bus/pci/devices/{address}/mem_info_vram_used")
    return tuple(files)


def _swap(machine: Machine) -> tuple[int | None, int | None]:
    if machine.os != "linux":
        return _swap_from_psutil()
    found: dict[str, int] = {}
    for line in (machine.read("/proc/meminfo", 16 << 10) or "").splitlines():
        if line.startswith("Swap"):
            name, _, rest = line.partition(":")
            words = rest.split()
            if words and words[0].isdecimal():
                found[name] = int(words[0]) * 1024
    return found.get("SwapTotal"), found.get("SwapFree")


def _swap_from_psutil() -> tuple[int | None, int | None]:
    try:
        import psutil

        found = psutil.swap_memory()
    except Exception:  # psutil raised on betas of macOS 26 and 27 (exo PR 2161)
        return None, None
    return int(found.total), int(found.free)
