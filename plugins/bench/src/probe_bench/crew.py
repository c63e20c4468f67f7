"""Threads that start together, one a core, and how long they took and had a CPU.

C code that is called through `ctypes` runs without Python's lock, so threads compute in parallel.
"""

from __future__ import annotations

import threading
from time import perf_counter, thread_time
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Crew", "Span"]


class Span(NamedTuple):
    """One member's part: begin and end by `perf_counter`, and CPU time, all in seconds."""

    begin: float
    end: float
    cpu: float


class Crew:
    """`size` threads that wait for work until the process ends; used by one thread at a time."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._barrier = threading.Barrier(size + 1)
        self._action: Callable[[int], None] | None = None
        self._spans: list[Span] = [Span(0, 0, 0)] * size
        self._error: Exception | None = None
        for number in range(size):
            threading.Thread(target=self._serve, args=(number,), daemon=True).start()

    def run(self, action: Callable[[int], None]) -> list[Span]:
        """Call `action` with each member's number, all at once; raises what one of them raises."""
        self._action, self._error = action, None
        self._barrier.wait()
        self._barrier.wait()
        if self._error is not None:
            raise self._error
        return list(self._spans)

    def _serve(self, number: int) -> None:
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
