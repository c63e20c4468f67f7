"""A file that passes once in a stream: what of it the reader of libraries will ask for is kept.

An ELF file's section table lies behind its code, so nobody knows while the code passes where it is.
But code for GPUs has marks of its own: containers of CUDA begin at multiples of eight with a magic,
bundles of HIP at multiples of a page. Their heads are kept, with the file's first and last MiBs;
then `formats.library` reads it as any other file. What it asks for beyond that makes its answer
"unknown", never "no code".
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappop, heappush
from struct import Struct

from probe_wheels.formats.executables import BadFile
from probe_wheels.formats.gpu_code import (
    COMPRESSED,
    FATBIN_MAGIC,
    INPUT,
    MAX_PAGES,
    PAGE,
    PLAIN,
    bundle_size,
)

__all__ = ["CHUNK", "Kept", "Passing"]

CHUNK = 1 << 20
"""Bytes that are fed at once, but for the end of a file."""
HEAD = 16 << 20
TAIL = 16 << 20
MAX_MARKED = 64 << 20
"""Bytes of all heads of one file; those of torch's libtorch_hip, of 95 bundles, have 4 MiB."""

_MAGIC = FATBIN_MAGIC.to_bytes(4, "little")
_CONTAINER = Struct("<HHQ")
_ENTRY = Struct("<IQ")
_ENTRY_HEAD = 64
_START = 16 + _ENTRY_HEAD
_BETWEEN = 4096 + _START
"""Bytes behind a container, where zeros may separate it from the next."""
_BUNDLE_MARKS = (COMPRESSED, PLAIN[:4])
_BUNDLE = PAGE + INPUT


class Kept:
    """What was kept of a file, to be read at offsets; raises `BadFile` beyond that."""

    def __init__(self, size: int, head: bytes, tail: bytes, marks: dict[int, bytes]) -> None:
        self.size = size
        self._head = head
        self._tail = tail
        self._tail_start = size - len(tail)
        self._marks = marks
        self._starts = sorted(marks)

    def read(self, offset: int, count: int) -> bytes:
        """Return at most `count` bytes at `offset`; fewer at the end of the file."""
        if not 0 <= offset < self.size or count <= 0:
            return b""
        end = min(offset + count, self.size)
        if end <= len(self._head):
            return self._head[offset:end]
        if offset >= self._tail_start:
            return self._tail[offset - self._tail_start : end - self._tail_start]
        at = bisect_right(self._starts, offset)
        for start in reversed(self._starts[max(0, at - 4) : at]):
            raw = self._marks[start]
            if end <= start + len(raw):
                return raw[offset - start : end - start]
        raise BadFile("a part of it that decides passed unread in the stream of its layer")


class Passing:
    """Takes a file's bytes in order, `CHUNK` at once, and keeps what is read of it afterwards."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._at = 0
        self._head = bytearray()
        self._tail: list[bytes] = []
        self._marks: dict[int, bytearray] = {}
        self._wanted: list[tuple[int, int, int, str, int]] = []
        self._marked = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        if len(self._head) < HEAD:
            self._head += chunk[: HEAD - len(self._head)]
        self._tail.append(chunk)
        if len(self._tail) > TAIL // CHUNK + 1:
            del self._tail[0]
        self._find(chunk)
        self._serve(chunk)
        self._at += len(chunk)

    def file(self) -> Kept:
        """Return what was kept, as a file."""
        tail = b"".join(self._tail)
        self._tail.clear()
        marks = {start: bytes(raw) for start, raw in self._marks.items()}
        return Kept(self._at, bytes(self._head), tail, marks)

    def _find(self, chunk: bytes) -> None:
        """Want the heads of all containers and bundles that begin in a chunk.

        Chunks begin at multiples of 1 MiB, so none of either mark lies across two of them.
        """
        at = chunk.find(_MAGIC)
        while at >= 0:
            if at % 8 == 0:
                self._want(self._at + at, _START, "container")
            at = chunk.find(_MAGIC, at + 4)
        for at in range(0, len(chunk), PAGE):
            if chunk[at : at + 4] in _BUNDLE_MARKS:
                self._want(self._at + at, _BUNDLE, "bundle")

    def _want(self, start: int, count: int, kind: str, end: int = 0) -> None:
        if start in self._marks or start >= self._size or self._marked > MAX_MARKED:
            return
        self._marked += count
        self._marks[start] = bytearray()
        heappush(self._wanted, (start, start, min(count, self._size - start), kind, end))

    def _serve(self, chunk: bytes) -> None:
        """Copy what is wanted of a chunk; what is complete may want more behind it."""
        limit = self._at + len(chunk)
        while self._wanted and self._wanted[0][0] < limit:
            place, start, count, kind, end = heappop(self._wanted)
            first = max(place, self._at) - self._at
            raw = self._marks[start]
            raw += chunk[first : first + count - len(raw)]
            if len(raw) < count:
                heappush(self._wanted, (limit, start, count, kind, end))
            else:
                self._follow(start, bytes(raw), kind, end)

    def _follow(self, start: int, raw: bytes, kind: str, end: int) -> None:
        # What follows a container is wanted before it is seen to be another one.
        if kind == "between" and raw.startswith(_MAGIC):
            kind = "container"
        if kind == "container" and len(raw) >= _START:
            _, header, length = _CONTAINER.unpack_from(raw, 4)
            if header >= 16 and length <= self._size:
                stop = start + header + length
                if header == 16:
                    self._entry(start + header, raw[header:], stop)
                self._want((stop + 7) & ~7, _BETWEEN, "between")
        elif kind == "entry":
            self._entry(start, raw, end)
        elif kind == "bundle" or (kind == "page" and raw.startswith(_BUNDLE_MARKS)):
            if size := bundle_size(raw[:PAGE]):
                self._want(start + (size + PAGE - 1) // PAGE * PAGE, _BUNDLE, "page", MAX_PAGES)
        elif kind == "page" and not any(raw[:PAGE]) and end:
            self._want(start + PAGE, _BUNDLE, "page", end - 1)

    def _entry(self, start: int, raw: bytes, stop: int) -> None:
        """Want the head of the entry behind this one of a container that ends at `stop`."""
        if len(raw) < _ENTRY_HEAD:
            return
        header, payload = _ENTRY.unpack_from(raw, 4)
        following = start + header + payload
        if header >= _ENTRY_HEAD and following + _ENTRY_HEAD <= stop:
            self._want(following, _ENTRY_HEAD, "entry", stop)
