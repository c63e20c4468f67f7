"""A device's memory: its own, or the system's where the GPU has none.

NOT_SUPPORTED means "no memory of its own" only on parts that are integrated by construction
(GB10, Jetson). On a discrete card it is a fault and must not turn into the host's RAM.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import Machine, SightingMemory
    from probe_nvidia.ask import Asker

__all__ = ["INTEGRATED", "live_memory", "memory_of"]

INTEGRATED = frozenset({"3.2", "5.3", "6.2", "7.2", "8.7", "10.1", "11.0", "12.1"})
"""Compute capabilities that exist only in SoCs: Tegra K1, X1, X2, Xavier, Orin, Thor (10.1 until
CUDA 12.9, then 11.0) and GB10 (NVIDIA, "CUDA GPU compute capability")."""

_VERSION_2 = 0x0200_0028
"""Version 2 of the memory structure: its size (40 bytes) and number, as NVML wants them."""

_ABSENT = (1 << 64) - 1
"""NVML_VALUE_NOT_AVAILABLE: a monitor showed 17,179,869,184 GiB of it (nvtop#432)."""


def memory_of(asker: Asker, machine: Machine, capability: str | None) -> SightingMemory | None:
    """Return the ``memory`` of a sighting (bytes), or None with the reason in the asker."""
    if capability in INTEGRATED:
        return _unified(asker, machine)
    info = _info(asker, "memory.total")
    if info is None:
        return None
    total = int(info.total)
    if not total:
        asker.unknown["memory.total"] = "NVML answered 0 bytes"
        return None
    reserved = int(getattr(info, "reserved", 0))
    return {
        "kind": "dedicated",
        "total": total,
        "free": int(info.free),
        "used": int(info.used),
        # The total includes what the driver keeps for itself; the memory bar of a 24564 MiB card
        # never reaches it.
        "usable": total - reserved,
        "parts": {"vram": total} | ({"reserved": reserved} if reserved else {}),
    }


def _unified(asker: Asker, machine: Machine) -> SightingMemory:
    """Return the system's memory; a carve-out that the driver calls its own is a part of it."""
    from probe_nvidia.sysmem import unified_memory

    memory = unified_memory(machine)
    info = _info(asker, None)
    if memory is None:
        asker.unknown["memory.total"] = "it is the system's, and /proc/meminfo has no MemTotal"
        memory = {"kind": "unified", "parts": {}}
    if info is not None and info.total:
        memory["parts"]["vram"] = int(info.total)
    return memory


def live_memory(asker: Asker, machine: Machine, *, integrated: bool) -> dict[str, int] | None:
    """Return bytes used and in all; None with the reason in the asker.

    Of the sizes that NVML reports, `used` counts what the driver reserves in R525 and its manual
    is silent since: what is neither free nor reserved is the same in all.
    """
    if integrated:
        from probe_core.sysfs import meminfo

        sizes = meminfo.sizes(machine)
        if "MemTotal" not in sizes or "MemAvailable" not in sizes:
            asker.unknown["memory"] = "it is the system's, which /proc/meminfo does not show"
            return None
        total = sizes["MemTotal"]
        return {"total": total, "used": max(0, total - sizes["MemAvailable"])}
    info = _info(asker, "memory")
    if info is None or not info.total or _ABSENT in (info.total, info.free):
        asker.unknown.setdefault("memory", "NVML reports no size")
        return None
    reserved = int(getattr(info, "reserved", 0))
    total = int(info.total)
    return {"total": total, "used": max(0, total - int(info.free) - reserved)}


def _info(asker: Asker, field: str | None) -> Any:
    """Ask version 2, which tells reserved bytes apart, then version 1 (drivers before 510)."""
    version = getattr(asker.nvml, "nvmlMemory_v2", _VERSION_2)
    call = "nvmlDeviceGetMemoryInfo"
    return asker.first(field, (call, version), (call,))
