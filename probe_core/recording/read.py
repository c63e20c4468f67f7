"""The bytes of a recording's file, unpacked piece by piece and counted before they are stored."""

from __future__ import annotations

import os
import stat

from probe_core.machine import is_kernels
from probe_core.recording.limits import MAX_DOCUMENT, MAX_PACKED, MAX_XZ_MEMORY, BadRecording, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import BinaryIO, Protocol

    from probe_core.recording.recording import Recording

    class Decoder(Protocol):
        """What `zlib.decompressobj` and `lzma.LZMADecompressor` have in common."""

        @property
        def eof(self) -> bool: ...

        def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


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


# Reads a recorded machine from a file; what kind of file it is, its first bytes say.

# The first bytes of archives that are not read, as file(1) knows them.
_PACKED = (
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),  # an empty one
    (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
    (b"Rar!\x1a\x07", "RAR"),
    (b"LZIP", "lzip"),
    (b"\x5d\x00\x00", "LZMA"),
    (b"\x89LZO\x00", "lzop"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\x1f\x9d", "compress"),
    (b"0707", "cpio"),
    (b"hsqs", "squashfs"),
)
_NEITHER = (
    "it is neither a recording in JSON nor a tar archive of a machine's root, plain or packed with"
    " gzip or xz"
)


def read(path: str) -> Recording:
    """Return the recording in a file: JSON, or a tar archive, plain or packed with gzip or xz.

    Raises `BadRecording` with the file's name and the reason, `OSError` when it cannot be read.
    """
    if "\0" in path:
        raise BadRecording(f"{shown(path)} is no path: it holds a NUL")
    try:
        with Stream(path) as stream:
            return _read(stream)
    except BadRecording as error:
        raise BadRecording(f"{shown(path)} is no recorded machine: {error}") from None


def _read(stream: Stream) -> Recording:
    from probe_core.recording.tar import BLOCK, MAGIC

    # By content, not by name: a recording from an issue tracker may be called anything.
    start = stream.start(BLOCK)
    if start[257:262] == MAGIC:
        from probe_core.recording.tar import read_tar

        return read_tar(stream)
    if start.lstrip().startswith(b"{"):
        from probe_core.recording.document import parse

        return parse(stream.whole(MAX_DOCUMENT))
    form = next((name for magic, name in _PACKED if start.startswith(magic)), None)
    if form:
        unread = f"it is packed with {form}, which is not read; unpack it and name the folder"
        raise BadRecording(f"{_NEITHER}: {unread}")
    if not start.strip(b"\0"):
        form = "an empty archive" if start else "an empty file"
        raise BadRecording(f"{_NEITHER}: it is {form}; `probe record` writes one")
    raise BadRecording(f"{_NEITHER}; `probe record` writes one")


if TYPE_CHECKING:

    class Readable(Protocol):
        """What gives at most `size` bytes at a call, and nothing at its end."""

        def read(self, size: int, /) -> bytes: ...
