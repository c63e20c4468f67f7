"""The bytes of a layer, plain or compressed, in order and with bounds.

The first bytes decide how a layer is packed, for media types are often wrong. A compressed layer
may consist of several gzip members or zstd frames: a decoder that stops after the first loses the
rest.
"""

from __future__ import annotations

from io import RawIOBase

from probe_wheels.formats.packed import system_zstd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_wheels.files import Budget, Readable

PIECE = 1 << 20
"""Bytes of output at once."""
INPUT = 256 << 10
MAX_LAYER = 64 << 30
"""Bytes of one unpacked layer."""
FREE_OUTPUT = 1 << 30
MAX_RATIO = 1000
"""From `FREE_OUTPUT` bytes on, no layer of files is packed that well: gzip's limit is 1,032."""

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
"""Bytes 1 to 3 of a frame that decoders pass over; the first is 0x50 to 0x5f."""
_OTHERS = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x04\x22\x4d\x18": "LZ4"}


class BadImage(ValueError):
    """An image that cannot be read; the text says what is wrong with it."""


class Part:
    """A part of a file as a file of its own, for a ``with`` statement; nothing is opened."""

    __slots__ = ("_file", "_start", "size")

    def __init__(self, file: Readable, start: int, size: int) -> None:
        self._file = file
        self._start = start
        self.size = size

    def read(self, offset: int, count: int) -> bytes:
        """Return at most `count` bytes at `offset`; fewer at its end."""
        if not 0 <= offset < self.size or count <= 0:
            return b""
        return self._file.read(self._start + offset, min(count, self.size - offset))

    def __enter__(self) -> Part:
        return self

    def __exit__(self, *error: object) -> None:
        return None


class Plain:
    """Bytes that can be read at any offset: what is passed over costs nothing."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self._at = 0

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes; fewer at the end."""
        raw = self._file.read(self._at, count)
        self._at += len(raw)
        return raw

    def skip(self, count: int) -> bool:
        """Pass over `count` bytes; return whether they are there."""
        self._at += count
        return self._at <= self._file.size

    def part(self, size: int) -> Part | None:
        """Return the next `size` bytes as a file, for later, and pass over them."""
        part = Part(self._file, self._at, size)
        return part if self.skip(size) else None


class Unpacked:
    """Bytes that come from a decoder, once and in order."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = b""
        self._at = 0

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes; fewer at the end."""
        raw = self._piece[self._at : self._at + count]
        self._at += len(raw)
        if len(raw) == count:
            return raw
        parts = [raw]
        missing = count - len(raw)
        while missing and self._next():
            raw = self._piece[:missing]
            self._at = len(raw)
            missing -= len(raw)
            parts.append(raw)
        return b"".join(parts)

    def skip(self, count: int) -> bool:
        """Pass over `count` bytes; return whether they are there."""
        while count > len(self._piece) - self._at:
            count -= len(self._piece) - self._at
            if not self._next():
                return False
        self._at += count
        return True

    def part(self, size: int) -> Part | None:
        """Return None: what has passed cannot be read again."""
        return None

    def _next(self) -> bool:
        self._piece = next(self._pieces, b"")
        self._at = 0
        return bool(self._piece)


Source = Plain | Unpacked


class Stretch:
    """The next bytes of a stream as a file, to be read in order; the first 512 at any time."""

    __slots__ = ("_at", "_source", "first", "size")

    def __init__(self, source: Source, size: int) -> None:
        self._source = source
        self.size = size
        self.first = source.read(min(512, size))
        self._at = len(self.first)

    def read(self, offset: int, count: int) -> bytes:
        """Return bytes at an offset that follows the last one; fewer at the end."""
        count = min(count, self.size - offset)
        piece = self.first[offset : offset + count]
        if len(piece) == count or offset + len(piece) != self._at:
            return piece
        raw = self._source.read(count - len(piece))
        self._at += len(raw)
        return piece + raw

    def finish(self) -> bool:
        """Pass over what was not read; return whether it is there."""
        return self._source.skip(self.size - self._at)


def source_of(file: Readable, budget: Budget, *, once: bool = False) -> Source:
    """Return the bytes of a layer, unpacked where they are packed.

    `once` is whether the file can be read in order alone, even where it is not packed.

    Raises `BadImage`, as reading from it does for a bomb and for data that is damaged or cut, and
    `Exhausted` when the time is over.
    """
    head = file.read(0, 8)
    if head.startswith(GZIP):
        return Unpacked(_bounded(_gzip(file), file, budget))
    if head.startswith(ZSTD) or (head[1:4] == _SKIPPABLE and head[:1] >= b"\x50"):
        return Unpacked(_bounded(_zstd(file), file, budget))
    for magic, name in _OTHERS.items():
        if head.startswith(magic):
            raise BadImage(f"it is packed with {name}, which layers of images never are")
    return Unpacked(_inputs(file)) if once else Plain(file)


def _bounded(pieces: Iterator[bytes], file: Readable, budget: Budget) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > MAX_LAYER:
            raise BadImage(f"it unpacks to more than {MAX_LAYER >> 30} GiB")
        if total > FREE_OUTPUT and total > MAX_RATIO * file.size:
            raise BadImage(f"it unpacks to more than {MAX_RATIO} times its size: it is a bomb")
        budget.check()
        yield piece


def _inputs(file: Readable) -> Iterator[bytes]:
    at = 0
    while raw := file.read(at, INPUT):
        at += len(raw)
        yield raw


def _inflate() -> Any:
    """Return the module that inflates: ISA-L's where it is installed, twice as fast as zlib."""
    try:
        from isal import isal_zlib  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        import zlib

        return zlib
    return isal_zlib


def _gzip(file: Readable) -> Iterator[bytes]:
    module = _inflate()
    decoder = None
    error: type[Exception] = module.error
    for raw in _inputs(file):
        while raw or decoder is not None:
            if decoder is None:
                raw = raw.lstrip(b"\0")  # tapes and some tools pad with zeros
                if not raw:
                    break
                decoder = module.decompressobj(31)
            try:
                piece = decoder.decompress(raw, PIECE)
            except error as problem:
                raise BadImage(f"its gzip data is damaged ({problem})") from None
            if piece:
                yield piece
            if decoder.eof:
                raw, decoder = decoder.unused_data, None
                continue
            raw = decoder.unconsumed_tail
            if not raw and len(piece) < PIECE:
                break
    if decoder is not None:
        # ISA-L waits for more of a head whose fields are nonsense, which zlib refuses.
        fault = "cut off" if module.__name__ == "zlib" else "damaged or cut off"
        raise BadImage(f"its gzip data is {fault}")


class _File(RawIOBase):
    """A file for decoders that read by themselves."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raw = self._file.read(self._at, len(buffer))
        buffer[: len(raw)] = raw
        self._at += len(raw)
        return len(raw)


def _zstd(file: Readable) -> Iterator[bytes]:
    """Yield the output of whatever decoder of zstd is here."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        pass
    else:
        return _read_all(zstd.ZstdFile(_File(file)), (zstd.ZstdError, EOFError))
    make = system_zstd()
    if make is not None:
        return _by_system(file, make)
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise BadImage(
            "it is packed with zstd, and nothing here unpacks that:"
            " take Python 3.14, or install zstandard"
        ) from None
    decoder = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    reader = decoder.stream_reader(_File(file), read_across_frames=True)
    return _read_all(reader, (zstandard.ZstdError,))


def _read_all(reader: Any, errors: tuple[type[Exception], ...]) -> Iterator[bytes]:
    try:
        while piece := reader.read(PIECE):
            yield piece
    except errors as problem:
        raise BadImage(f"its zstd data is damaged or cut off ({problem})") from None


def _by_system(file: Readable, make: Any) -> Iterator[bytes]:
    stream = make()
    try:
        for raw in _inputs(file):
            while True:
                piece, used = stream.step(raw, PIECE)
                if raw and not used and not piece:
                    raise BadImage("its zstd data is damaged")
                raw = raw[used:]
                if piece:
                    yield piece
                if not raw and len(piece) < PIECE:
                    break
        if not stream.complete:
            raise BadImage("its zstd data is cut off")
    except BadImage:
        raise
    except ValueError as error:
        raise BadImage(str(error)) from None
    finally:
        stream.close()
