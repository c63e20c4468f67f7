"""A file that passes once in a stream: what of it the reader of libraries will ask for is kept.

An ELF file's section table lies behind its code, so nobody knows while the code passes where it is.
But code for GPUs has marks of its own: containers of CUDA begin at multiples of eight with a magic,
bundles of HIP at multiples of a page, and each states its size. So their heads are kept, their
bodies, most of such a file, are passed over unsearched, and the file's first and last MiBs are
kept. Then `formats.library` reads it as any other file. What it asks for beyond that makes its
answer "unknown", never "no code".
"""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct

from probe_wheels.formats.executables import BadFile
from probe_wheels.formats.gpu_code import (
    COMPRESSED,
    FATBIN_MAGIC,
    INPUT,
    MAX_ENTRIES,
    MAX_PAGES,
    PAGE,
    PLAIN,
    bundle_size,
)
from probe_wheels.images.streams import BadImage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_wheels.images.streams import Source

CHUNK = 1 << 20
"""Bytes that are searched at once; a multiple of eight."""
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


def kept_of(source: Source, size: int, first: bytes) -> Kept:
    """Return what was kept of the next `size` bytes of a stream, and pass over them.

    `first` are those of them that were read before. Raises `BadImage` where the stream ends.
    """
    if size <= HEAD + TAIL:
        whole = _Ahead(source, size, first).read(0, size)
        return Kept(size, whole, b"", {})
    ahead = _Ahead(source, size, first)
    head = ahead.read(0, HEAD)
    start = size - TAIL
    marks = _Marks(ahead, len(head), start)
    marks.walk()
    return Kept(size, head, ahead.read(start, TAIL), marks.kept)


class _Ahead:
    """The bytes of a stream by their offsets, which grow; raises `BadImage` where it ends."""

    def __init__(self, source: Source, size: int, raw: bytes) -> None:
        self._source = source
        self._size = size
        self._start = 0
        self._raw = raw

    def read(self, offset: int, count: int) -> bytes:
        """Return bytes at an offset that is not below the last one; fewer at the file's end."""
        count = min(count, self._size - offset)
        end = self._start + len(self._raw)
        if offset >= end:
            self._pass(offset - end)
            self._start, self._raw = offset, self._next(count)
        elif offset + count > end:
            raw = self._raw[offset - self._start :]
            self._start, self._raw = offset, raw + self._next(offset + count - end)
        at = offset - self._start
        return self._raw[at : at + count]

    def find(self, at: int, limit: int) -> int:
        """Return where the next mark begins, from a multiple of eight on; `limit` without one."""
        while at < limit:
            if self._start + len(self._raw) - at < 8:  # no mark lies across two pieces
                self.read(at, CHUNK)
            found = self._first(at)
            if found is not None:
                return min(found, limit)
            at = max(at + 8, (self._start + len(self._raw)) & ~7)
        return limit

    def _first(self, at: int) -> int | None:
        raw, start = self._raw, self._start
        place = raw.find(_MAGIC, at - start)
        while place >= 0 and (start + place) % 8:
            place = raw.find(_MAGIC, place + 4)
        end = place if place >= 0 else len(raw)
        for page in range(at - start + -at % PAGE, end, PAGE):
            if raw[page : page + 4] in _BUNDLE_MARKS:
                return start + page
        return start + place if place >= 0 else None

    def _next(self, count: int) -> bytes:
        raw = self._source.read(count)
        if len(raw) < count:
            raise BadImage("its archive is cut off")
        return raw

    def _pass(self, count: int) -> None:
        if not self._source.skip(count):
            raise BadImage("its archive is cut off")


class _Marks:
    """The heads of containers and bundles between the kept head of a file and its kept tail."""

    def __init__(self, ahead: _Ahead, head: int, tail: int) -> None:
        self.kept: dict[int, bytes] = {}
        self._ahead = ahead
        self._head = head
        self._tail = tail
        self._room = MAX_MARKED

    def walk(self) -> None:
        """Keep the head of each, and pass over its body."""
        at = self._ahead.find(0, self._tail)
        while at < self._tail and self._room > 0:
            raw = self._keep(at, _START)
            end = self._container(at, raw) if raw.startswith(_MAGIC) else self._bundles(at)
            at = self._ahead.find(end, self._tail)

    def _keep(self, offset: int, count: int) -> bytes:
        """Return bytes of the file; none in its tail, which is kept whole."""
        if offset >= self._tail:
            return b""
        raw = self._ahead.read(offset, count)
        if offset + len(raw) > self._head:
            self._room -= len(raw)
            if self._room >= 0:
                self.kept[offset] = raw
        return raw

    def _container(self, start: int, raw: bytes) -> int:
        """Keep the heads of a container's entries; return where it ends, rounded up to eight."""
        version, header, length = _CONTAINER.unpack_from(raw, 4)
        if version != 1 or header != 16:
            return start + 8  # nothing but its magic: the search goes on behind it
        stop: int = start + header + length
        at: int = start + header
        for _ in range(MAX_ENTRIES):
            entry = self._keep(at, _ENTRY_HEAD) if at + _ENTRY_HEAD <= stop else b""
            if len(entry) < _ENTRY_HEAD:
                break
            size, payload = _ENTRY.unpack_from(entry, 4)
            if size < _ENTRY_HEAD:
                break
            at += size + payload
        end = min((stop + 7) & ~7, self._tail)
        self._keep(end, _BETWEEN)
        return end

    def _bundles(self, start: int) -> int:
        """Keep the heads of bundles in a row; return where the last one ends."""
        at, pages = start, 0
        while at < self._tail and pages <= MAX_PAGES:
            raw = self._keep(at, _BUNDLE)
            size = bundle_size(raw[:PAGE]) if raw.startswith(_BUNDLE_MARKS) else 0
            if not size and any(raw[:PAGE]):
                break
            pages = 0 if size else pages + 1
            at += (size + PAGE - 1) // PAGE * PAGE or PAGE
        return min(max(at, start + 8), self._tail)
