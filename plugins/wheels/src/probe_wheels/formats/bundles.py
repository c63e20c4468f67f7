"""The targets of HIP code: bundles of clang-offload-bundler, plain or compressed.

Layout: LLVM's documentation of ClangOffloadBundler. In all 16 libraries that were measured the
bundles start at multiples of 4,096; they are walked by their sizes, for a search of half a GiB
for the magic takes 12 s, and the walk 2 ms.
"""

from __future__ import annotations

from struct import Struct, error

from probe_wheels.formats.zstd import NoDecoder, unzlib_head, unzstd_head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_wheels.files import Opened
    from probe_wheels.formats.fatbin import Groups

__all__ = ["hip_groups"]

PLAIN = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED = b"CCOB"
PAGE = 4096

MAX_BUNDLES = 16_384
MAX_TARGETS = 256
MAX_ID = 256
MAX_PAGES = 64
"""Pages of zeros between two bundles; none was seen."""
INPUT = 40 << 10
"""Bytes of a compressed bundle that give its head: 36 KiB was the most of 61 bundles."""

_COUNT = Struct("<Q")
_ITEM = Struct("<QQQ")
_HEADS = {1: (Struct("<4xHHIQ"), 20), 2: (Struct("<4xHHIIQ"), 24), 3: (Struct("<4xHHQQQ"), 32)}
_ZLIB, _ZSTD = 0, 1


def hip_groups(file: Opened, offset: int, size: int) -> tuple[Groups, int, str | None]:
    """Return the targets of the bundles, how many could not be decompressed, and what is wrong.

    A target is the processor with its flags: ``gfx90a:sramecc+:xnack-``.
    """
    groups: Groups = {}
    unread = pages = 0
    start, end = offset, offset + size
    for _ in range(MAX_BUNDLES):
        # From the section's start: a Windows library has its sections anywhere in the file.
        offset = start + (offset - start + PAGE - 1) // PAGE * PAGE
        if offset >= end:
            return groups, unread, None
        head = file.read(offset, PAGE)
        try:
            ids, length = _bundle(file, offset, head)
        except (NoDecoder, OverflowError):
            unread += 1
            ids, length = (), _compressed_size(head)
        except (error, ValueError):
            pages += 1
            if any(head) or pages > MAX_PAGES:
                return groups, unread, None if not any(head) else "its HIP code is not readable"
            offset += PAGE
            continue
        length = length or end - offset
        if offset + length > end:
            return groups, unread, "a bundle of its HIP code is longer than its section"
        if ids:
            groups[ids] = groups.get(ids, 0) + 1
        offset += length
    return groups, unread, f"it has more than {MAX_BUNDLES} bundles of HIP code"


def _bundle(file: Opened, offset: int, head: bytes) -> tuple[tuple[str, ...], int]:
    """Return a bundle's targets and its bytes; raises `ValueError` or `struct.error`."""
    if head.startswith(PLAIN):
        # The list is longer than a page in a bundle of about forty targets.
        return _plain(head if _fits(head) else file.read(offset, 64 << 10))
    if not head.startswith(COMPRESSED):
        raise ValueError("no bundle")
    version, method = _version(head)
    raw = file.read(offset + _HEADS[version][1], min(INPUT, _compressed_size(head) or INPUT))
    text = unzstd_head(raw) if method == _ZSTD else unzlib_head(raw)
    if not text.startswith(PLAIN):
        raise OverflowError("its head is not in the first bytes")
    return _plain(text)[0], _compressed_size(head)


def _fits(head: bytes) -> bool:
    (count,) = _COUNT.unpack_from(head, len(PLAIN))
    return bool(count < 32)


def _plain(raw: bytes) -> tuple[tuple[str, ...], int]:
    (count,) = _COUNT.unpack_from(raw, len(PLAIN))
    if count > MAX_TARGETS:
        raise ValueError("too many targets")
    at, last, ids = len(PLAIN) + _COUNT.size, 0, set()
    for _ in range(count):
        offset, size, length = _ITEM.unpack_from(raw, at)
        at += _ITEM.size
        if length > MAX_ID or at + length > len(raw):
            raise ValueError("an id that is too long")
        last = max(last, offset + size)
        ids.add(_processor(raw[at : at + length].decode("ascii", "replace")))
        at += length
    return tuple(sorted(ids - {""})), last


def _processor(text: str) -> str:
    """Return ``gfx90a:xnack-`` of ``hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-``; "" of the host's."""
    _, dashes, processor = text.rpartition("--")
    return processor if dashes and "amdgcn" in text and processor.startswith("gfx") else ""


def _version(head: bytes) -> tuple[int, int]:
    version = int.from_bytes(head[4:6], "little")
    if version not in _HEADS:
        raise ValueError("an unknown version")
    return version, int.from_bytes(head[6:8], "little")


def _compressed_size(head: bytes) -> int:
    """Return the bytes of a compressed bundle, its header included; 0 where it has no such field.

    Version 1 has none, and its bundle is alone in its section.
    """
    version, _ = _version(head)
    fields: tuple[int, ...] = _HEADS[version][0].unpack_from(head)
    return fields[2] if version > 1 else 0
