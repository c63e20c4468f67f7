"""From single runs to a figure: best, median, what was warmed up, and whether others disturbed.

What other processes use of the CPUs meanwhile is read from /proc/stat.
"""

from __future__ import annotations

import os
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


WARM_S = 0.5
"""Seconds of warming up: clocks rise, pages are mapped; the first run is 20 to 50 % slower."""

LEAST_RUNS = 10
MEDIAN_PART = 0.9
"""Under others' load the best often holds, and the median falls by 45 %."""

CPU_PART = 0.95
OTHERS_PART = 0.05
_MOST_RUNS = 10_000


class Run(NamedTuple):
    """One run: operations or bytes, in seconds; `cpu_s` of `thread_s` its threads had a CPU."""

    amount: float
    seconds: float
    cpu_s: float | None = None
    thread_s: float | None = None


class Series(NamedTuple):
    """The runs of one task."""

    rates: list[float]
    cold: float
    warm_s: float
    cpu_share: float | None
    others_share: float | None


def series(run: Callable[[], Run], seconds: float) -> Series:
    """Warm up, then run for `seconds` in all, and at least ten times unless that takes too long.

    Too long is four times as long and a second: a device may be slower than any expected.
    """
    begin = perf_counter()
    first = run()
    warm_end = begin + min(WARM_S, seconds / 4)
    while perf_counter() < warm_end:
        run()
    warm_s = perf_counter() - begin
    before, own = ticks(), process_time()
    runs: list[Run] = []
    while not _is_complete(len(runs), perf_counter() - begin, seconds):
        runs.append(run())
    return Series(
        rates=[entry.amount / entry.seconds for entry in runs],
        cold=first.amount / first.seconds,
        warm_s=warm_s,
        cpu_share=_cpu_share(runs),
        others_share=others_share(before, ticks(), process_time() - own),
    )


def _is_complete(count: int, elapsed: float, seconds: float) -> bool:
    if count < 1:
        return False
    if count < LEAST_RUNS:
        return elapsed > 4 * seconds + 1
    return elapsed > seconds or count >= _MOST_RUNS


def _cpu_share(runs: Sequence[Run]) -> float | None:
    spans = [(run.cpu_s, run.thread_s) for run in runs]
    cpu = sum(cpu for cpu, _ in spans if cpu is not None)
    wall = sum(wall for _, wall in spans if wall is not None)
    return cpu / wall if wall else None


def disturbances(
    rates: Sequence[float],
    cpu_share: float | None,
    others: float | None,
    processes: int | None,
) -> list[str]:
    """Return what shows that others used the device, as `DISTURBANCES` of the core names it.

    `processes` are those of others on the device; a CPU has none to count.
    """
    signs = {
        "median": median(rates) < MEDIAN_PART * max(rates),
        "cpu-time": cpu_share is not None and cpu_share < CPU_PART,
        "other-load": others is not None and others > OTHERS_PART,
        "processes": bool(processes),
    }
    return [name for name, shown in signs.items() if shown]


# What other processes use of the CPUs meanwhile.

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
    return max(0.0, busy - own_s * os.sysconf("SC_CLK_TCK")) / whole
