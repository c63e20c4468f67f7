"""The system's memory, for GPUs that have none of their own."""

from __future__ import annotations

from probe_core.sysfs import meminfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine, SightingMemory

__all__ = ["unified_memory"]


def unified_memory(machine: Machine) -> SightingMemory | None:
    """Return the memory (bytes) that CPU and GPU share, from /proc/meminfo; None without it.

    How much of it CUDA can have is not said: NVML and the kernel do not tell.
    """
    memory = meminfo.unified(machine)
    if "total" not in memory:
        return None
    del memory["usable"]
    return memory
