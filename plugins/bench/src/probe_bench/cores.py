"""The CPUs that measure a package: one hardware thread of each core that this process may use.

Their threads start together, and tell how long they took and had a CPU. C code that is called
through `ctypes` runs without Python's lock, so threads compute in parallel. Each stays on its own
CPU: where none is idle, Linux wakes both on that of the waking thread.
"""

from __future__ import annotations

import os
import threading
from time import perf_counter, thread_time
from typing import NamedTuple

from probe_core.machine import cpu_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from probe_core.machine import Machine


_CPUS = "/sys/devices/system/cpu"
_SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def online(machine: Machine) -> list[int]:
    """Return the CPUs that run; none where no file tells them."""
    return cpu_list(machine.read(f"{_CPUS}/online"))


def packages(machine: Machine, cpus: Sequence[int]) -> list[list[int]]:
    """Return the CPUs of each package, in the order of their first CPUs, as `cpu:N` counts them.

    Where the system says nothing of packages all CPUs are one.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for cpu in sorted(cpus):
        members = _listed(machine, cpu, "package_cpus_list", "core_siblings_list")
        groups.setdefault(tuple(members), []).append(cpu)
    return list(groups.values())


def chosen(
    machine: Machine, cpus: Sequence[int], allowed: Collection[int], quota: float | None
) -> list[int]:
    """Return the CPUs of a package to measure on: allowed, one a core, as many as the quota pays.

    `quota` is the CPU time that a control group grants, in CPUs.
    """
    seen: set[int] = set()
    result = []
    for cpu in (cpu for cpu in cpus if cpu in allowed):
        if cpu not in seen:
            result.append(cpu)
            seen.update(_listed(machine, cpu, "core_cpus_list", "thread_siblings_list"), {cpu})
    return result if quota is None else result[: max(1, int(quota))]


def last_cache(machine: Machine, cpus: Sequence[int]) -> int | None:
    """Return the bytes of the last caches of these CPUs together; None where none is told."""
    sizes: dict[str, int] = {}
    for cpu in cpus:
        folder = f"{_CPUS}/cpu{cpu}/cache"
        indexes = [name for name in machine.listdir(folder) if name.startswith("index")]
        levels = [(machine.read_int(f"{folder}/{name}/level") or 0, name) for name in indexes]
        if levels:
            _, name = max(levels)
            shared = machine.read(f"{folder}/{name}/shared_cpu_list") or str(cpu)
            sizes[shared] = _size(machine.read(f"{folder}/{name}/size") or "")
    return sum(sizes.values()) or None


def _size(text: str) -> int:
    """Return the bytes of ``32768K``; 0 of anything else."""
    number, unit = text[:-1], _SUFFIXES.get(text[-1:])
    return int(number) * unit if unit and number.isdecimal() and len(number) < 12 else 0


def _listed(machine: Machine, cpu: int, *names: str) -> list[int]:
    for name in names:
        text = machine.read(f"{_CPUS}/cpu{cpu}/topology/{name}")
        if text is not None:
            return cpu_list(text)
    return []


def allowed_cpus() -> list[int]:
    """Return the CPUs of this process; all of the system where that is not told."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class Span(NamedTuple):
    """One member's part: begin and end by `perf_counter`, and CPU time, all in seconds."""

    begin: float
    end: float
    cpu: float


class Crew:
    """A thread for each of `cpus`, which waits for work until the process ends.

    Without CPUs it is one thread on any. Used by one thread at a time.
    """

    def __init__(self, cpus: Sequence[int]) -> None:
        self.size = max(1, len(cpus))
        self._barrier = threading.Barrier(self.size + 1)
        self._action: Callable[[int], None] | None = None
        self._spans: dict[int, Span] = {}
        self._error: Exception | None = None
        for number in range(self.size):
            arguments = (number, cpus[number : number + 1])
            threading.Thread(target=self._serve, args=arguments, daemon=True).start()

    def run(self, action: Callable[[int], None]) -> list[Span]:
        """Call `action` with each member's number, all at once; raises what one of them raises."""
        self._action, self._error = action, None
        self._barrier.wait()
        self._barrier.wait()
        if self._error is not None:
            raise self._error
        return [self._spans[number] for number in range(self.size)]

    def _serve(self, number: int, cpus: Sequence[int]) -> None:
        if cpus and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cpus)  # of this thread alone
        while True:
            self._barrier.wait()
            begin, cpu = perf_counter(), thread_time()
            try:
                if self._action is not None:
                    self._action(number)
            except Exception as error:
                self._error = error
            self._spans[number] = Span(begin, perf_counter(), thread_time() - cpu)
            self._barrier.wait()
