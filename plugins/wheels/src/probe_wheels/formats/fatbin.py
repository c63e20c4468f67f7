"""The targets of CUDA code: a section of containers, each with code for several GPUs.

A container holds the same kernels once for each target. The layout was measured on 118 libraries
of real wheels, with NVIDIA's cuobjdump 13.5 as the reference. Nothing is decompressed.
"""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_wheels.files import Opened

__all__ = ["Groups", "cuda_groups"]

MAGIC = 0xBA55ED50

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


def cuda_groups(file: Opened, offset: int, size: int) -> tuple[Groups, str | None]:
    """Return the targets of the containers in a section, and what is wrong with it, if anything.

    A target is ``sm_90a`` (machine code) or ``ptx_90@8.7`` (PTX with its ISA version).
    """
    groups, problem = _containers(file, offset, offset + size)
    if groups and not any(groups) and problem is None:
        problem = "no container of its CUDA code can be read"
    return groups, problem


def _containers(file: Opened, offset: int, end: int) -> tuple[Groups, str | None]:
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
        if magic != MAGIC:
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


def _targets(file: Opened, offset: int, end: int, raw: bytes) -> set[str]:
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
