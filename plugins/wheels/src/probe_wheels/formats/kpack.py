"""The targets of ROCm's kernel packs: code that TheRock puts beside the libraries (``*.kpack``)."""

from __future__ import annotations

from probe_wheels.formats.elf import BadFile
from probe_wheels.formats.msgpack import unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_wheels.files import Opened

__all__ = ["pack_targets"]

MAGIC = b"KPAK"
MAX_TOC = 4 << 20
"""Bytes of the table of contents; it has a few dozen per kernel library and target."""


def pack_targets(file: Opened) -> tuple[str, ...]:
    """Return the processors that a kernel pack has code for; raises `BadFile`.

    Header: magic, u32 version, u64 offset of a MessagePack map with ``gfx_arches``
    (rocm-kpack, docs/multi_arch_packaging_with_kpack.md).
    """
    head = file.read(0, 16)
    if len(head) < 16 or head[:4] != MAGIC:
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
