"""Sections of a Windows library. NVIDIA's and AMD's compilers use the same ones, names cut to 8."""

from __future__ import annotations

from struct import Struct

from probe_wheels.formats.elf import BadFile, Section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_wheels.files import Opened

__all__ = ["read_pe"]

MAX_SECTIONS = 96  # the Windows loader's own limit

_COFF = Struct("<4sHHIIIHH")
_SECTION = Struct("<8sIIII16x")

MACHINES = {0x14C: "i686", 0x8664: "x86_64", 0xAA64: "aarch64"}

# The names that the linkers on Windows leave of the sections that Linux has.
_NAMES = {
    ".nv_fatb": ".nv_fatbin",
    ".nvFatBi": ".nvFatBinSegment",
    ".hip_fat": ".hip_fatbin",
    ".hipFatB": ".hipFatBinSegment",
}


def read_pe(file: Opened) -> tuple[str, list[Section]]:
    """Return machine and sections of a PE file, named as on Linux; raises `BadFile`."""
    start = int.from_bytes(file.read(0x3C, 4), "little")
    raw = file.read(start, _COFF.size)
    if len(raw) < _COFF.size or raw[:4] != b"PE\0\0":
        raise BadFile("it has no PE header")
    _, machine, count, _, _, _, optional, _ = _COFF.unpack(raw)
    count = min(count, MAX_SECTIONS)
    table = file.read(start + _COFF.size + optional, count * _SECTION.size)
    if len(table) < count * _SECTION.size:
        raise BadFile("its section headers are cut off")
    return MACHINES.get(machine, str(machine)), [
        Section(_name(name), 1, offset, size, 0)
        for name, _, _, size, offset in _SECTION.iter_unpack(table)
    ]


def _name(raw: bytes) -> str:
    name = raw.rstrip(b"\0").decode("ascii", "replace")
    return _NAMES.get(name, name)
