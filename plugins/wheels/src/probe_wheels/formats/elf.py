"""Sections and needed libraries of a 64-bit ELF file, from its headers alone."""

from __future__ import annotations

from struct import Struct

from probe_wheels.names import MACHINES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_wheels.files import Opened

__all__ = ["BadFile", "Elf", "Section", "read_elf"]

MAGIC = b"\x7fELF"

MAX_SECTIONS = 4096
MAX_NAMES = 1 << 20
"""Bytes of the table of section names; libtorch_cuda's, of 40 sections, has 500."""
MAX_DYNAMIC = 64 << 10
MAX_NEEDED = 256
MAX_NAME = 256

_HEADER = Struct("<16xHHIQQQIHHHHHH")
_SECTION = Struct("<IIQQQQIIQQ")
_DYNAMIC = Struct("<qQ")
_SHT_DYNAMIC = 6
_SHT_NOBITS = 8
_DT_NEEDED = 1


class BadFile(ValueError):
    """A file that is not what its first bytes promise; the text says how."""


class Section:
    """One section: name, type, the bytes of the file that it covers, the section it refers to."""

    __slots__ = ("kind", "link", "name", "offset", "size")

    def __init__(self, name: str, kind: int, offset: int, size: int, link: int) -> None:
        self.name = name
        self.kind = kind
        self.offset = offset
        self.size = size
        self.link = link


class Elf:
    """What the headers hold: `machine` (a value of `MACHINES`, else its number), sections."""

    __slots__ = ("_file", "abi", "flags", "machine", "sections")

    def __init__(
        self, file: Opened, machine: str, flags: int, abi: int, sections: list[Section]
    ) -> None:
        self._file = file
        self.abi = abi
        self.machine = machine
        self.flags = flags
        self.sections = sections

    def needed(self) -> list[str]:
        """Return the names of the libraries that the loader will look for."""
        for section in self.sections:
            if section.kind == _SHT_DYNAMIC and section.link < len(self.sections):
                strings = self.sections[section.link]
                raw = self._file.read(section.offset, min(section.size, MAX_DYNAMIC))
                return list(self._needed(raw, strings.offset))
        return []

    def _needed(self, raw: bytes, strings: int) -> Iterator[str]:
        count = 0
        for tag, value in _DYNAMIC.iter_unpack(raw[: len(raw) // 16 * 16]):
            if tag == 0 or count == MAX_NEEDED:
                return
            if tag == _DT_NEEDED:
                count += 1
                name = self._file.read(strings + value, MAX_NAME).partition(b"\0")[0]
                yield name.decode("ascii", "replace")


def read_elf(file: Opened) -> Elf:
    """Return the headers of an ELF file; raises `BadFile`."""
    head = file.read(0, 64)
    if len(head) < 64 or head[:4] != MAGIC:
        raise BadFile("it is cut within its first header")
    if head[4] != 2 or head[5] != 1:
        raise BadFile("it is no 64-bit little-endian ELF file")
    _, machine, _, _, _, table, flags, _, _, _, entry, count, names = _HEADER.unpack(head)
    sections = _sections(file, table, entry, count, names) if table else []
    return Elf(file, MACHINES.get(machine, str(machine)), flags, head[8], sections)


def _sections(file: Opened, table: int, entry: int, count: int, names: int) -> list[Section]:
    if entry != _SECTION.size:
        raise BadFile(f"its section headers have {entry} bytes, not {_SECTION.size}")
    if count == 0 or names == 0xFFFF:  # too many for 16 bits: section 0 has the numbers
        first = file.read(table, entry)
        if len(first) < entry:
            raise BadFile("its section headers are cut off")
        fields = _SECTION.unpack(first)
        count, names = count or fields[5], fields[6] if names == 0xFFFF else names
    if count > MAX_SECTIONS:
        raise BadFile(f"it has more than {MAX_SECTIONS} sections")
    raw = file.read(table, entry * count)
    if len(raw) < entry * count:
        raise BadFile("its section headers are cut off")
    headers = list(_SECTION.iter_unpack(raw))
    if names >= len(headers):
        raise BadFile("the names of its sections are missing")
    texts = file.read(headers[names][4], min(headers[names][5], MAX_NAMES))
    return [
        Section(_name(texts, at), kind, offset, 0 if kind == _SHT_NOBITS else size, link)
        for at, kind, _, _, offset, size, link, _, _, _ in headers
    ]


def _name(texts: bytes, at: int) -> str:
    end = texts.find(b"\0", at, at + MAX_NAME)
    return texts[at : end if end >= 0 else at + MAX_NAME].decode("ascii", "replace")
