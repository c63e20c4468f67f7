"""Threads that start together, one a core, and how long they took and had a CPU.

C code that is called through `ctypes` runs without Python's lock, so threads compute in parallel.
Each stays on its own CPU: where none is idle, Linux wakes both on that of the waking thread.
"""

from __future__ import annotations

import os
import threading
from time import perf_counter, thread_time
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Crew", "Span"]


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
        self._spans: list[Span] = [Span(0, 0, 0)] * self.size
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
        return list(self._spans)

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
