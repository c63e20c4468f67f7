"""What the cores do at most, whatever a library makes of it: arithmetic in registers, and memory.

Memory is measured by three functions of the C library, which every system brings: ``memchr`` reads
for a byte that is not there, ``memset`` writes, ``memcpy`` does both.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import sys
from time import perf_counter

from probe_bench.kernels import CLOCK, CLOCK_ADDS, find_compiler, kernel_for
from probe_bench.statistics import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_bench.cores import Crew, Span
    from probe_bench.kernels import Compiler, Kernel, Loop
    from probe_bench.tasks import Job


_FIRST_ROUNDS = 10_000
_CLOCK_RUNS = 5


class WrongResult(Exception):
    """A kernel that did not compute what it should; its time means nothing."""


class Registers:
    """The kernels of one child, compiled when first asked for, on all members of a crew."""

    def __init__(self, job: Job, crew: Crew) -> None:
        self._job = job
        self._crew = crew
        self._environ = dict(os.environ)  # before a library changes it
        self._compiler: Compiler | None = None
        self._clock: Loop | None = None

    def compiler(self) -> Compiler:
        """Return the C compiler; raises `CompilerError`."""
        self._compiler = self._compiler or find_compiler(self._environ)
        return self._compiler

    def prepared(self, dtype: str, target_s: float) -> tuple[Kernel, Callable[[], Run]]:
        """Return the kernel of a type and what runs it for about `target_s`.

        Raises `CompilerError`, `WrongResult`, and `LookupError` where the CPU has no instructions.
        """
        kernel = kernel_for(dtype, self._job["arch"], self._job["flags"])
        if kernel is None:
            raise LookupError(f"this CPU reports no instructions for {dtype} arithmetic")
        loop = self.compiler().build(self._job["folder"], dtype, kernel.flags)
        rounds = _rounds(loop, kernel.value, target_s)
        result = loop(_FIRST_ROUNDS, kernel.value, kernel.value)
        if result != kernel.total:
            raise WrongResult(f"the kernel returned {result:g} for {kernel.total:g}")

        def run() -> Run:
            spans = self._crew.run(lambda _: _call(loop, rounds, kernel.value))
            return span_run(spans, kernel.operations * rounds * self._crew.size)

        return kernel, run

    def clock_mhz(self, target_s: float) -> float | None:
        """Return the clock of the slowest core, in MHz, by adds that wait for each other."""
        if self._clock is None:
            self._clock = self.compiler().build(self._job["folder"], "clock", CLOCK)
        loop = self._clock
        rounds = _rounds(loop, 0.0, target_s)
        best = [0.0] * self._crew.size
        for _ in range(_CLOCK_RUNS):
            spans = self._crew.run(lambda _: _call(loop, rounds, 0.0))
            # Of CPU time: after a run OpenBLAS's threads spin, and take half of the wall time
            # (numpy 2.5 on a Xeon with 16 threads showed 1058 MHz for 2716).
            speeds = [rounds * CLOCK_ADDS / (span.cpu or span.end - span.begin) for span in spans]
            best = [max(pair) for pair in zip(best, speeds, strict=True)]
        return round(min(best) / 1e6, 1)


def span_run(spans: list[Span], amount: float) -> Run:
    """Return the run of a crew: from its first begin to its last end."""
    seconds = max(span.end for span in spans) - min(span.begin for span in spans)
    wall = sum(span.end - span.begin for span in spans)
    return Run(amount, max(seconds, 1e-9), sum(span.cpu for span in spans), wall)


def _call(loop: Loop, rounds: int, value: float) -> None:
    loop(rounds, value, value)


def _rounds(loop: Loop, value: float, target_s: float) -> int:
    """Return how many rounds take about `target_s` on one core."""
    rounds = _FIRST_ROUNDS
    while True:
        begin = perf_counter()
        loop(rounds, value, value)
        seconds = max(perf_counter() - begin, 1e-7)
        if seconds > target_s / 4 or rounds > 1 << 40:
            return max(1, int(rounds * target_s / seconds))
        rounds *= 4


_FUNCTIONS = {"read": "memchr", "write": "memset", "copy": "memcpy"}
_ABSENT = 1
"""A byte that the buffer, which holds zeros, does not have."""


class Memory:
    """A buffer of `size` bytes, divided among a crew; freed with the process."""

    def __init__(self, size: int, crew: Crew) -> None:
        self._crew = crew
        self._library = _library()
        # Two halves of whole pages: a copy goes from one to the other.
        self._part = size // 2 // crew.size // mmap.PAGESIZE * mmap.PAGESIZE
        self.size = self._part * crew.size * 2
        self._buffer = _anonymous(self.size)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))
        # Each member touches its own pages first, so that they lie in its NUMA node.
        self._crew.run(lambda number: self._write(number, 0))

    def by(self, figure: str) -> str:
        """Return what moves the bytes."""
        name, version = platform.libc_ver()
        library = f"{name} {version}".strip() or f"the C library of {sys.platform}"
        return f"{_FUNCTIONS[figure]} of {library}"

    def prepared(self, figure: str) -> Callable[[], Run]:
        """Return what goes through the whole buffer once, in one direction."""
        action = {"read": self._read, "write": self._fill, "copy": self._copy}[figure]

        def run() -> Run:
            return span_run(self._crew.run(action), self.size)

        return run

    def _at(self, number: int) -> int:
        return self._start + number * self._part * 2

    def _read(self, number: int) -> None:
        if self._library.memchr(self._at(number), _ABSENT, self._part * 2):
            raise WrongResult("memchr found a byte that is not there")

    def _fill(self, number: int) -> None:
        self._write(number, 0)

    def _write(self, number: int, value: int) -> None:
        self._library.memset(self._at(number), value, self._part * 2)

    def _copy(self, number: int) -> None:
        self._library.memcpy(self._at(number) + self._part, self._at(number), self._part)


def _anonymous(size: int) -> mmap.mmap:
    """Return private memory: shared one is a file of tmpfs, which has no huge pages."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _library() -> ctypes.CDLL:
    """Return the C library with the three functions' types."""
    library = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
    for name in ("memchr", "memset"):
        function = getattr(library, name)
        function.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
        function.restype = ctypes.c_void_p
    library.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    library.memcpy.restype = ctypes.c_void_p
    return library
