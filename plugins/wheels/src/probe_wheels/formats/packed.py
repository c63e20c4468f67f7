"""Packed data: the first bytes of compressed code objects, and the MessagePack of kernel packs.

zlib is Python's; zstd is read where a decoder is at hand.
"""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, TypeAlias

    class ZstdStream(Protocol):
        """Decodes zstd frames one after another; `complete` is whether the last one has ended."""

        complete: bool

        def step(self, raw: bytes, limit: int) -> tuple[bytes, int]:
            """Return up to `limit` bytes of output and the bytes of `raw` that were used.

            Raises `ValueError` for data that is damaged, or needs a window above 128 MiB.
            """

        def close(self) -> None:
            """Free the memory of the library."""

    Value: TypeAlias = "bool | int | float | str | bytes | list[Value] | dict[str, Value] | None"


HEAD = 16 << 10
"""Bytes of output: a bundle's list of targets is below 4 KiB in all libraries that were seen."""


class NoDecoder(Exception):
    """Nothing here can decode zstd (Python has a decoder from 3.14 on)."""


def unzlib_head(raw: bytes) -> bytes:
    """Return the first `HEAD` bytes of zlib data; what can be decoded of broken data."""
    import zlib

    try:
        return zlib.decompressobj().decompress(raw, HEAD)
    except zlib.error:
        return b""


def unzstd_head(raw: bytes, limit: int = HEAD) -> bytes:
    """Return the first `limit` bytes of a zstd frame; raises `NoDecoder`."""
    return _decoder()(raw, limit)


@cache
def _decoder() -> Callable[[bytes, int], bytes]:
    return _of_python() or _of_library() or _absent


def _absent(raw: bytes, limit: int) -> bytes:
    raise NoDecoder


def _of_python() -> Callable[[bytes, int], bytes] | None:
    """Return the decoder of Python 3.14 and later."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None

    def decode(raw: bytes, limit: int) -> bytes:
        try:
            return bytes(zstd.ZstdDecompressor().decompress(raw, limit))
        except zstd.ZstdError:
            return b""

    return decode


def _of_library() -> Callable[[bytes, int], bytes] | None:
    """Return the decoder of the system's libzstd."""
    make = system_zstd()
    if make is None:
        return None

    def decode(raw: bytes, limit: int) -> bytes:
        stream, pieces, size = make(), [], 0
        try:
            while size < limit:
                piece, used = stream.step(raw, limit - size)
                if not piece and not used:
                    break  # it wants input that is not here
                pieces.append(piece)
                size += len(piece)
                raw = raw[used:]
        except ValueError:
            pass
        finally:
            stream.close()
        return b"".join(pieces)

    return decode


def system_zstd() -> type[ZstdStream] | None:
    """Return the class of streams of the system's libzstd; None where it has none.

    A part of every Debian, Fedora and Arch. By its file name: `ctypes.util.find_library` would
    start ldconfig or a compiler.
    """
    import ctypes

    try:
        library = ctypes.CDLL("libzstd.so.1")
        library.ZSTD_createDStream.restype = ctypes.c_void_p
        step, failed = library.ZSTD_decompressStream, library.ZSTD_isError
    except (OSError, AttributeError):
        return None

    class Buffer(ctypes.Structure):
        _fields_ = (
            ("place", ctypes.c_void_p),
            ("size", ctypes.c_size_t),
            ("at", ctypes.c_size_t),
        )

    step.argtypes = (ctypes.c_void_p, ctypes.POINTER(Buffer), ctypes.POINTER(Buffer))
    step.restype = failed.restype = ctypes.c_size_t
    failed.argtypes = (ctypes.c_size_t,)
    library.ZSTD_freeDStream.argtypes = (ctypes.c_void_p,)

    class Stream:
        def __init__(self) -> None:
            self.complete = True
            self._stream = library.ZSTD_createDStream()

        def step(self, raw: bytes, limit: int) -> tuple[bytes, int]:
            output = ctypes.create_string_buffer(limit)
            target = Buffer(ctypes.addressof(output), limit, 0)
            source = Buffer(ctypes.cast(ctypes.c_char_p(raw), ctypes.c_void_p).value, len(raw), 0)
            code = step(self._stream, ctypes.byref(target), ctypes.byref(source))
            if failed(code):
                raise ValueError("its zstd data is damaged")
            if source.at or target.at:
                self.complete = code == 0
            return ctypes.string_at(output, target.at), source.at

        def close(self) -> None:
            library.ZSTD_freeDStream(self._stream)

    return Stream


# The little of MessagePack that kernel packs use: maps, lists, texts, numbers.

MAX_DEPTH = 16
MAX_ITEMS = 200_000


def unpack(raw: bytes) -> Value:
    """Return the first value; raises `ValueError` for what is cut, too deep or unknown."""
    return _Reader(raw).value(0)


class _Reader:
    __slots__ = ("at", "items", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0
        self.items = 0

    def take(self, count: int) -> bytes:
        piece = self.raw[self.at : self.at + count]
        if len(piece) < count:
            raise ValueError("it is cut")
        self.at += count
        return piece

    def number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "big", signed=signed)

    def value(self, depth: int) -> Value:
        self.items += 1
        if depth > MAX_DEPTH or self.items > MAX_ITEMS:
            raise ValueError("it is too deep or too long")
        code = self.take(1)[0]
        if code < 0x80 or code >= 0xE0:
            return code if code < 0x80 else code - 256
        if code < 0xC0:
            return self.short(code, depth)
        return self.long(code, depth)

    def short(self, code: int, depth: int) -> Value:
        if code < 0x90:
            return self.table(code & 15, depth)
        if code < 0xA0:
            return self.array(code & 15, depth)
        return self.take(code & 31).decode("utf-8", "replace")

    def long(self, code: int, depth: int) -> Value:
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            return self.number(*_NUMBERS[code])
        if code in _SIZES:
            kind, size = _SIZES[code]
            count = self.number(size)
            if kind == "map":
                return self.table(count, depth)
            if kind == "array":
                return self.array(count, depth)
            piece = self.take(count)
            return piece.decode("utf-8", "replace") if kind == "text" else piece
        if code in (0xCA, 0xCB):  # a float: nothing here needs its value
            self.take(4 if code == 0xCA else 8)
            return None
        raise ValueError(f"type {code:#x} is not known")

    def table(self, count: int, depth: int) -> Value:
        return {str(self.value(depth + 1)): self.value(depth + 1) for _ in range(count)}

    def array(self, count: int, depth: int) -> Value:
        return [self.value(depth + 1) for _ in range(count)]


_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    **{0xCC + step: (1 << step, False) for step in range(4)},
    **{0xD0 + step: (1 << step, True) for step in range(4)},
}
_SIZES = {
    **{0xC4 + step: ("bytes", 1 << step) for step in range(3)},
    **{0xD9 + step: ("text", 1 << step) for step in range(3)},
    **{0xDC + step: ("array", 2 << step) for step in range(2)},
    **{0xDE + step: ("map", 2 << step) for step in range(2)},
}
