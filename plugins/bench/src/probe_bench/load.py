"""What other processes use of the CPUs meanwhile, from /proc/stat."""

from __future__ import annotations

import os

__all__ = ["Ticks", "others_share", "parsed", "ticks"]

Ticks = tuple[int, int]
"""(busy, all) time of all CPUs, in ticks of `_tick_s`."""

_LEAST_TICKS = 40
"""A tick is a hundredth of a second: of fewer than 40, one more or less is 2.5 %."""

_IDLE, _WAITING = 3, 4
_GUESTS = 8
"""Columns from here on are counted in earlier ones (proc(5))."""


def ticks() -> Ticks | None:
    """Return the CPUs' times; None where there is no /proc/stat."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            return parsed(file.readline())
    except (OSError, ValueError):
        return None


def parsed(line: str) -> Ticks | None:
    """Return the times in the first line of /proc/stat; time stolen by a hypervisor is busy."""
    name, *columns = line.split()
    if name != "cpu" or len(columns) <= _WAITING:
        return None
    times = [int(column) for column in columns[:_GUESTS]]
    whole = sum(times)
    return whole - times[_IDLE] - times[_WAITING], whole


def others_share(before: Ticks | None, after: Ticks | None, own_s: float) -> float | None:
    """Return the part of all CPUs that others used; None where the span is too short to know.

    `own_s` is the CPU time of this process in seconds.
    """
    if before is None or after is None:
        return None
    busy, whole = after[0] - before[0], after[1] - before[1]
    if whole < _LEAST_TICKS:
        return None
    return max(0.0, busy - own_s * _per_second()) / whole


def _per_second() -> float:
    return float(os.sysconf("SC_CLK_TCK"))
