"""The system's memory, for GPUs that have none of their own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import Machine

__all__ = ["unified_memory"]


def unified_memory(machine: Machine) -> dict[str, Any] | None:
    """Return the memory (bytes) that CPU and GPU share, from /proc/meminfo; None without it."""
    total, available = _kib(machine, "MemTotal"), _kib(machine, "MemAvailable")
    if total is None:
        return None
    memory: dict[str, Any] = {"kind": "unified", "total": total, "parts": {"system": total}}
    return memory if available is None else memory | {"free": available}


def _kib(machine: Machine, field: str) -> int | None:
    for line in (machine.read("/proc/meminfo", 8192) or "").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            number = value.split()[0] if value.split() else ""
            return int(number) * 1024 if number.isdecimal() and len(number) <= 20 else None
    return None
