"""The targets of code for GPUs: CUDA's containers, HIP's bundles and packs, SYCL's images.

CUDA code is a section of containers, each with code for several GPUs: the same kernels once for
each target. The layout was measured on 118 libraries of real wheels, with NVIDIA's cuobjdump 13.5
as the reference. Nothing of it is decompressed.
"""

from __future__ import annotations

from struct import Struct, error

from probe_wheels.formats.executables import BadFile
from probe_wheels.formats.packed import NoDecoder, unpack, unzlib_head, unzstd_head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_wheels.files import Readable


FATBIN_MAGIC = 0xBA55ED50

MAX_CONTAINERS = 100_000
"""onnxruntime-gpu has 609, libtorch_cuda about 1,000, libcublasLt some thousands."""
MAX_ENTRIES = 64
"""Targets of one container; 15 is the most that was seen."""
MAX_PADDING = 512
"""Eights of zeros between two containers: a page."""

PTX, SASS = 1, 2

ONLY_CHIP = 0x100000
"""Flag of code for one chip alone: sm_90a."""
FAMILY = 0x200000
"""Flag of code for a family of chips: sm_100f."""

_CONTAINER = Struct("<IHHQ")
_ENTRY = Struct("<HHIQIIHHIIIQ")
_START = _CONTAINER.size + 64

Groups = dict[tuple[str, ...], int]
"""Targets of one container, sorted, to the number of containers that have exactly them."""


def cuda_groups(file: Readable, offset: int, size: int) -> tuple[Groups, str | None]:
    """Return the targets of the containers in a section, and what is wrong with it, if anything.

    A target is ``sm_90a`` (machine code) or ``ptx_90@8.7`` (PTX with its ISA version).
    """
    groups, problem = _containers(file, offset, offset + size)
    if groups and not any(groups) and problem is None:
        problem = "no container of its CUDA code can be read"
    return groups, problem


def _containers(file: Readable, offset: int, end: int) -> tuple[Groups, str | None]:
    groups: Groups = {}
    padding = 0
    for _ in range(MAX_CONTAINERS):
        offset = (offset + 7) & ~7
        if offset + _CONTAINER.size > end:
            return groups, None
        raw = file.read(offset, _START)
        if len(raw) < _CONTAINER.size:
            return groups, "its CUDA code is cut off"
        magic, _, header, length = _CONTAINER.unpack_from(raw)
        if magic != FATBIN_MAGIC:
            # Linkers pad with zeros: Windows' 8 bytes between objects, all at a section's end.
            if any(raw[:8]) or padding == MAX_PADDING:
                return groups, "its CUDA code is not readable" if any(raw[:8]) else None
            padding += 1
            offset += 8
            continue
        padding = 0
        if header < _CONTAINER.size or offset + header + length > end:
            return groups, "a container of its CUDA code is longer than its section"
        targets = _targets(file, offset + header, offset + header + length, raw[header:])
        key = tuple(sorted(targets))
        groups[key] = groups.get(key, 0) + 1
        offset += header + length
    return groups, f"it has more than {MAX_CONTAINERS} containers of CUDA code"


def _targets(file: Readable, offset: int, end: int, raw: bytes) -> set[str]:
    """Return the targets of the entries between two offsets; `raw` is the first entry's header."""
    targets: set[str] = set()
    for _ in range(MAX_ENTRIES):
        if offset + 64 > end:
            break
        raw = raw if len(raw) >= 64 else file.read(offset, 64)
        if len(raw) < 64:
            break
        kind, _, header, payload, _, _, minor, major, arch, _, _, flags = _ENTRY.unpack_from(raw)
        step = header + payload
        if header < 64 or offset + step > end:
            break
        if kind in (PTX, SASS):
            targets.add(_target(kind, arch, flags, major, minor))
        offset += step
        raw = b""
    return targets


def _target(kind: int, arch: int, flags: int, major: int, minor: int) -> str:
    suffix = "a" if flags & ONLY_CHIP else "f" if flags & FAMILY else ""
    return f"sm_{arch}{suffix}" if kind == SASS else f"ptx_{arch}{suffix}@{major}.{minor}"


# The targets of HIP code: bundles of clang-offload-bundler, plain or compressed.
#
# Layout: LLVM's documentation of ClangOffloadBundler. In all 16 libraries that were measured the
# bundles start at multiples of 4,096; they are walked by their sizes, for a search of half a GiB
# for the magic takes 12 s, and the walk 2 ms.

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


def hip_groups(file: Readable, offset: int, size: int) -> tuple[Groups, int, str | None]:
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


def _bundle(file: Readable, offset: int, head: bytes) -> tuple[tuple[str, ...], int]:
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


def bundle_size(head: bytes) -> int:
    """Return the bytes of the bundle that a page begins, its list included; 0 where it is none.

    For those who see a file pass once, and must know where the next bundle may begin.
    """
    try:
        if head.startswith(COMPRESSED):
            return _compressed_size(head)
        return _plain(head)[1] if head.startswith(PLAIN) and _fits(head) else 0
    except (error, ValueError):
        return 0


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


# The processor that an AMD code object is for, by the flags in its header.
#
# Measured: clang 19 compiled a kernel for each of these, and aiter 0.1.7 has files for gfx950. The
# newest numbers are read in LLVM's AMDGPUUsage, ELF header, EF_AMDGPU_MACH.

_MASK = 0xFF
_SIGNS = ("", "", "-", "+")

_PROCESSORS = {
    0x2C: "gfx900", 0x2D: "gfx902", 0x2E: "gfx904", 0x2F: "gfx906", 0x30: "gfx908", 0x31: "gfx909",
    0x3F: "gfx90a", 0x32: "gfx90c", 0x40: "gfx940", 0x4B: "gfx941", 0x4C: "gfx942", 0x4F: "gfx950",
    0x33: "gfx1010", 0x34: "gfx1011", 0x35: "gfx1012", 0x42: "gfx1013", 0x36: "gfx1030",
    0x37: "gfx1031", 0x38: "gfx1032", 0x39: "gfx1033", 0x3E: "gfx1034", 0x3D: "gfx1035",
    0x45: "gfx1036", 0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103",
    0x43: "gfx1150", 0x4A: "gfx1151", 0x55: "gfx1152", 0x58: "gfx1153", 0x48: "gfx1200",
    0x4E: "gfx1201", 0x49: "gfx1250", 0x5A: "gfx1251", 0x51: "gfx9-generic",
    0x52: "gfx10-1-generic", 0x53: "gfx10-3-generic", 0x54: "gfx11-generic", 0x59: "gfx12-generic",
    0x5F: "gfx9-4-generic",
}  # fmt: skip


def processor_of(flags: int) -> str | None:
    """Return ``gfx942:sramecc+`` of e_flags; None for a processor that is not known here.

    Bits 8 and 9 say of xnack, 10 and 11 of sramecc: 1 any, 2 off, 3 on.
    """
    name = _PROCESSORS.get(flags & _MASK)
    if name is None:
        return None
    sramecc, xnack = _SIGNS[flags >> 10 & 3], _SIGNS[flags >> 8 & 3]
    return name + (sramecc and f":sramecc{sramecc}") + (xnack and f":xnack{xnack}")


# The targets of ROCm's kernel packs: code that TheRock puts beside the libraries (``*.kpack``).

PACK_MAGIC = b"KPAK"
MAX_TOC = 4 << 20
"""Bytes of the table of contents; it has a few dozen per kernel library and target."""


def pack_targets(file: Readable) -> tuple[str, ...]:
    """Return the processors that a kernel pack has code for; raises `BadFile`.

    Header: magic, u32 version, u64 offset of a MessagePack map with ``gfx_arches``
    (rocm-kpack, docs/multi_arch_packaging_with_kpack.md).
    """
    head = file.read(0, 16)
    if len(head) < 16 or head[:4] != PACK_MAGIC:
        raise BadFile("it is no kernel pack")
    offset = int.from_bytes(head[8:16], "little")
    try:
        contents = unpack(file.read(offset, MAX_TOC))
    except ValueError as error:
        raise BadFile(f"the contents of the kernel pack cannot be read: {error}") from None
    names = contents.get("gfx_arches") if isinstance(contents, dict) else None
    if not isinstance(names, list):
        raise BadFile("the kernel pack names no targets")
    return tuple(sorted(name for name in names if isinstance(name, str) and name[:3] == "gfx"))


# The chips that SYCL code for Intel's GPUs was built for: images of ocloc, plain or in zstd.
#
# Measured on bitsandbytes 0.50.2: a section ``__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen`` is a row
# of images. Each is an `ar` archive with a member for each chip (``64.12.55.8``: 64-bit, then the
# IP version) and one of SPIR-V for all others (``generic_ir``). All images of a library name the
# same.

ARCHIVE = b"!<arch>\n"
ZSTD = b"\x28\xb5\x2f\xfd"

MAX_INPUT = 4 << 20
"""Bytes that are read of an image; those of bitsandbytes have 36,736 at most."""
MAX_IMAGE = 8 << 20
"""Bytes of a decompressed image; bitsandbytes has 691,056."""
MAX_MEMBERS = 64
_HEADER = 60

GENERIC = "generic_ir"


def built_for(file: Readable, offset: int, size: int) -> tuple[list[str], bool]:
    """Return the IP versions in the first image of a section, and whether it has SPIR-V, too.

    No version where the image cannot be read: then nobody knows which chips it is for.
    """
    raw = file.read(offset, min(size, MAX_INPUT))
    if raw.startswith(ZSTD):
        try:
            raw = unzstd_head(raw, MAX_IMAGE)
        except NoDecoder:
            return [], False
    names = _members(raw)
    versions = [name.partition(".")[2] for name in names if name.startswith(("64.", "32."))]
    return [version for version in versions if version.count(".") == 2], GENERIC in names


def _members(raw: bytes) -> list[str]:
    """Return the names of an archive's members, as far as it goes."""
    if not raw.startswith(ARCHIVE):
        return []
    names = []
    at = len(ARCHIVE)
    for _ in range(MAX_MEMBERS):
        header = raw[at : at + _HEADER]
        size = header[48:58].strip()
        if len(header) < _HEADER or header[58:] != b"`\n" or not size.isdigit():
            break
        names.append(header[:16].decode("ascii", "replace").strip().rstrip("/"))
        at += _HEADER + int(size)
        at += at & 1  # members start at even offsets
    return names
