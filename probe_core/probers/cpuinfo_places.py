"""Where x86's /proc/cpuinfo puts each processor: read where /sys does not show it."""

from __future__ import annotations

from probe_core.machine.files import named_lines
from probe_core.probers.cpuinfo import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.machine import Machine
    from probe_core.probers.cpu_types import Place

__all__ = ["cores_of", "packages", "places"]

_LONGEST = 8 << 20
"""Bytes of the file: 4,096 processors of 1.5 KiB each print six million."""


def places(machine: Machine) -> dict[int, Place]:
    """Return the place of each processor that the file lists."""
    listed: dict[int, Place] = {}
    for block in (machine.read("/proc/cpuinfo", _LONGEST) or "").split("\n\n"):
        lines = named_lines(block)
        number = whole(lines.get("processor"))
        if number is not None and number >= 0:
            listed[number] = whole(lines.get("physical id")) or 0, whole(lines.get("core id"))
    return listed


def packages(listed: Mapping[int, Place]) -> list[list[int]]:
    """Return the processors of each package."""
    groups: dict[int, list[int]] = {}
    for cpu, (package, _) in listed.items():
        groups.setdefault(package, []).append(cpu)
    return list(groups.values())


def cores_of(listed: Mapping[int, Place], members: Sequence[int]) -> list[list[int]] | None:
    """Return the processors of each core of a package; None where one has no core's number."""
    cores: dict[Place, list[int]] = {}
    for cpu in members:
        place = listed.get(cpu)
        if place is None or place[1] is None:
            return None
        cores.setdefault(place, []).append(cpu)
    return list(cores.values())
