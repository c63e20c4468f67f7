"""The CPU's memory by three functions of the C library, which every system brings.

``memchr`` reads for a byte that is not there, ``memset`` writes, ``memcpy`` does both.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys

from probe_bench.register_runs import WrongResult, span_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_bench.crew import Crew
    from probe_bench.statistics import Run

__all__ = ["Memory"]

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
