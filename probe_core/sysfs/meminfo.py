"""Reads the system's memory from /proc/meminfo, for devices that have none of their own."""

from __future__ import annotations

from probe_core.machine import decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.model.document import SightingMemory

__all__ = ["sizes", "unified"]

LIMIT = 16_384
"""Bytes read: ten times what the file has on Linux 6.18."""


def sizes(machine: Machine) -> dict[str, int]:
    """Return the lines of /proc/meminfo in bytes, by name (``MemTotal``, ``MemAvailable``).

    These are the whole machine's: the limit of a control group does not show.
    """
    lines: dict[str, int] = {}
    for line in (machine.read("/proc/meminfo", LIMIT) or "").splitlines():
        name, _, value = line.partition(":")
        kibibytes = decimal((value.split() or [""])[0])
        if kibibytes is not None:
            lines.setdefault(name, kibibytes * 1024)
    return lines


def unified(machine: Machine) -> SightingMemory:
    """Return the ``memory`` of a device that uses the system's, all of it.

    Without /proc/meminfo that is the kind alone.
    """
    lines = sizes(machine)
    memory: SightingMemory = {"kind": "unified"}
    if total := lines.get("MemTotal"):
        memory |= {"total": total, "usable": total, "parts": {"system": total}}
    if (available := lines.get("MemAvailable")) is not None:
        memory["free"] = available
    return memory
