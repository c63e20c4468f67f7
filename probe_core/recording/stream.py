"""The bytes of a recording's file, unpacked piece by piece and counted before they are stored."""

from __future__ import annotations

import os
import stat

from probe_core.machine import is_kernels
from probe_core.recording.errors import BadRecording
from probe_core.recording.limits import MAX_PACKED, MAX_XZ_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import BinaryIO, Protocol

    class Readable(Protocol):
        """What gives at most `size` bytes at a call, and nothing at its end."""

        def read(self, size: int, /) -> bytes: ...

    class Decoder(Protocol):
        """What `zlib.decompressobj` and `lzma.LZMADecompressor` have in common."""

        @property
        def eof(self) -> bool: ...

        def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


__all__ = ["Stream"]

PIECE = 64 << 10
"""Bytes read and unpacked at once, so that a bomb is noticed before it fills the memory."""

_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"


class Stream:
    """A file that may be packed with gzip or xz; a context manager.

    Raises `OSError` when the file cannot be read, `BadRecording` when it is no regular file, its
    packing is damaged, or it gives more bytes than asked for.
    """

    def __init__(self, path: str) -> None:
        status = os.stat(path)
        mode = status.st_mode
        # Some of the kernel's own block until they have something: /proc/kmsg.
        if status.st_size == 0 and is_kernels(os.path.realpath(path)):
            raise BadRecording("it is a file of the kernel")
        # Not opened: a FIFO would wait for a writer. Of a folder, `open` has its own error.
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise BadRecording("it is no regular file")
        self._file: BinaryIO = open(path, "rb")  # noqa: SIM115 - closed by `__exit__`
        self._ahead = b""
        try:
            start = self._file.read(len(_XZ))
            self._source = _unpacked(_Bounded(self._file, start), start)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def start(self, size: int) -> bytes:
        """Return the first bytes, fewer at the end, and give them again to the next reader."""
        self._ahead = self.up_to(size)
        return self._ahead

    def up_to(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer at the end alone."""
        pieces, self._ahead = [self._ahead[:size]], self._ahead[size:]
        remaining = size - len(pieces[0])
        while remaining > 0 and (piece := self._source.read(min(remaining, PIECE))):
            pieces.append(piece)
            remaining -= len(piece)
        return b"".join(pieces)

    def whole(self, limit: int) -> bytes:
        """Return all remaining bytes; raises `BadRecording` when they are more than `limit`."""
        raw = self.up_to(limit + 1)
        if len(raw) > limit:
            raise BadRecording(f"it is longer than {limit >> 20} MiB")
        return raw


class _Bounded:
    """The packed bytes, with what was read ahead; an endless file that unpacks to nothing ends."""

    def __init__(self, file: BinaryIO, start: bytes) -> None:
        self._file = file
        self._start = start
        self._remaining = MAX_PACKED

    def read(self, size: int) -> bytes:
        piece, self._start = self._start[:size], self._start[size:]
        piece = piece or self._file.read(size)
        self._remaining -= len(piece)
        if self._remaining < 0:
            raise BadRecording(f"it is longer than {MAX_PACKED >> 20} MiB on the disk")
        return piece


class _Unpacked:
    """What a decoder of zlib's or lzma's kind makes of the packed bytes, at most `size` at a call.

    The standard library's own readers bound neither xz's memory nor the time that a million empty
    gzip members take; so of a file that holds several, the first counts.
    """

    def __init__(self, packed: _Bounded, decoder: Decoder, error: type[Exception]) -> None:
        self._packed = packed
        self._decoder = decoder
        self._error = error

    def read(self, size: int) -> bytes:
        try:
            return self._read(size)
        except self._error as error:
            raise BadRecording(f"its packing is damaged: {error}") from None

    def _read(self, size: int) -> bytes:
        if self._decoder.eof:
            return b""
        # What zlib could not unpack for want of room it hands back; lzma keeps that itself.
        piece = self._decoder.decompress(getattr(self._decoder, "unconsumed_tail", b""), size)
        while not piece and not self._decoder.eof:
            data = self._packed.read(PIECE)
            if not data:
                raise BadRecording("its packing is damaged: it is cut short")
            piece = self._decoder.decompress(data, size)
        return piece


def _unpacked(packed: _Bounded, start: bytes) -> Readable:
    if start.startswith(_GZIP):
        import zlib

        return _Unpacked(packed, zlib.decompressobj(zlib.MAX_WBITS | 16), zlib.error)
    if start.startswith(_XZ):
        try:
            import lzma
        except ImportError:
            raise BadRecording("it is packed with xz, which this Python cannot read") from None
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY)
        return _Unpacked(packed, decoder, lzma.LZMAError)
    return packed
