"""The first bytes of compressed code objects: zlib, and zstd where a decoder is at hand."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["HEAD", "NoDecoder", "unzlib_head", "unzstd_head"]

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


_CACHE: list[Callable[[bytes, int], bytes]] = []


def _decoder() -> Callable[[bytes, int], bytes]:
    if not _CACHE:
        _CACHE.append(_of_python() or _of_library() or _absent)
    return _CACHE[0]


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
    """Return the decoder of the system's libzstd, a part of every Debian, Fedora and Arch.

    By its file name: `ctypes.util.find_library` would start ldconfig or a compiler.
    """
    import ctypes

    class Buffer(ctypes.Structure):
        _fields_ = (
            ("place", ctypes.c_void_p),
            ("size", ctypes.c_size_t),
            ("at", ctypes.c_size_t),
        )

    try:
        library = ctypes.CDLL("libzstd.so.1")
        library.ZSTD_createDStream.restype = ctypes.c_void_p
        step = library.ZSTD_decompressStream
    except (OSError, AttributeError):
        return None
    step.argtypes = (ctypes.c_void_p, ctypes.POINTER(Buffer), ctypes.POINTER(Buffer))
    step.restype = ctypes.c_size_t
    library.ZSTD_freeDStream.argtypes = (ctypes.c_void_p,)

    def decode(raw: bytes, limit: int) -> bytes:
        output = ctypes.create_string_buffer(limit)
        target = Buffer(ctypes.addressof(output), limit, 0)
        source = Buffer(ctypes.cast(ctypes.c_char_p(raw), ctypes.c_void_p).value, len(raw), 0)
        stream = library.ZSTD_createDStream()
        try:
            while target.at < limit and source.at < len(raw):
                before = target.at, source.at
                step(stream, ctypes.byref(target), ctypes.byref(source))
                if (target.at, source.at) == before:
                    break  # an error, or it wants input that is not here
        finally:
            library.ZSTD_freeDStream(stream)
        return ctypes.string_at(output, target.at)

    return decode
