"""Sections and needed libraries of ELF, Mach-O and PE files, from their headers alone."""

from __future__ import annotations

from itertools import islice
from struct import Struct

from probe_wheels.records import MACHINES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_wheels.files import Readable


ELF_MAGIC = b"\x7fELF"

MAX_ELF_SECTIONS = 4096
MAX_NAMES = 1 << 20
"""Bytes of the table of section names; libtorch_cuda's, of 40 sections, has 500."""
MAX_DYNAMIC = 64 << 10
MAX_NEEDED = 256
MAX_NAME = 256
MAX_SEARCH_PATH = 4096
"""Bytes of one list of folders."""
MAX_VERSIONS = 512
"""Versions of symbols in one file; glibc 2.41 defines 48."""

_HEADER = Struct("<16xHHIQQQIHHHHHH")
_ELF_SECTION = Struct("<IIQQQQIIQQ")
_DYNAMIC = Struct("<qQ")
_SHT_DYNAMIC = 6
_SHT_NOBITS = 8
_SHT_GNU_VERDEF = 0x6FFFFFFD
_SHT_GNU_VERNEED = 0x6FFFFFFE
_DT_NEEDED = 1
_DT_RPATH = 15
_DT_RUNPATH = 29

# Of Verneed and Verdef the offsets of the first part and of the next entry; of their parts the
# name and the offset of the next (gABI's LSB, "Symbol Versioning").
_VERNEED = Struct("<8xII")
_VERNAUX = Struct("<8xII")
_VERDEF = Struct("<12xII")
_VERDAUX = Struct("<II")


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
        self, file: Readable, machine: str, flags: int, abi: int, sections: list[Section]
    ) -> None:
        self._file = file
        self.abi = abi
        self.machine = machine
        self.flags = flags
        self.sections = sections

    def needed(self) -> list[str]:
        """Return the names of the libraries that the loader will look for."""
        return self._dynamic(_DT_NEEDED)

    def search_path(self) -> list[str]:
        """Return the folders of DT_RPATH and DT_RUNPATH, as they are written (``$ORIGIN/..``)."""
        texts = [*self._dynamic(_DT_RPATH), *self._dynamic(_DT_RUNPATH)]
        return [folder for text in texts for folder in text.split(":") if folder]

    def interpreter(self) -> str:
        """Return the loader that the kernel starts for it; "" for a static program or a library."""
        raw = next((self._bytes(s) for s in self.sections if s.name == ".interp"), b"")
        return raw.partition(b"\0")[0].decode("utf-8", "replace")

    def section(self, name: str) -> bytes:
        """Return the first 64 KiB of a section; b"" where it has none."""
        return next(
            (self._bytes(section) for section in self.sections if section.name == name), b""
        )

    def versions_needed(self) -> list[str]:
        """Return the versions of symbols that it takes from other libraries: ``GLIBC_2.34``."""
        return self._versions(_SHT_GNU_VERNEED, _VERNEED, _VERNAUX)

    def versions_defined(self) -> list[str]:
        """Return the versions of symbols that it has itself."""
        return self._versions(_SHT_GNU_VERDEF, _VERDEF, _VERDAUX)

    def _bytes(self, section: Section) -> bytes:
        return self._file.read(section.offset, min(section.size, MAX_DYNAMIC))

    def _dynamic(self, wanted: int) -> list[str]:
        for section in self.sections:
            if section.kind == _SHT_DYNAMIC and section.link < len(self.sections):
                strings = self.sections[section.link]
                return list(self._texts(self._bytes(section), strings.offset, wanted))
        return []

    def _texts(self, raw: bytes, strings: int, wanted: int) -> Iterator[str]:
        count = 0
        for tag, value in _DYNAMIC.iter_unpack(raw[: len(raw) // 16 * 16]):
            if tag == 0 or count == MAX_NEEDED:
                return
            if tag == wanted:
                count += 1
                limit = MAX_NAME if wanted == _DT_NEEDED else MAX_SEARCH_PATH
                yield self._text(strings + value, limit)

    def _text(self, offset: int, limit: int = MAX_NAME) -> str:
        return self._file.read(offset, limit).partition(b"\0")[0].decode("utf-8", "replace")

    def _versions(self, kind: int, entry: Struct, part: Struct) -> list[str]:
        """Return the names in a list of lists."""
        names = (
            self._text(self.sections[section.link].offset + name)
            for section in self.sections
            if section.kind == kind and section.link < len(self.sections)
            for raw in [self._bytes(section)]
            for at, first in _chain(raw, 0, entry)
            for _, name in _chain(raw, at + first, part)
        )
        return list(islice(names, MAX_VERSIONS))


def _chain(raw: bytes, at: int, form: Struct) -> Iterator[tuple[int, int]]:
    """Yield where each entry of a list is, and its value; each has a link to its next, or 0."""
    while at + form.size <= len(raw):
        value, step = form.unpack_from(raw, at)
        yield at, value
        if step == 0:
            return
        at += step


def elf_machine(head: bytes) -> str | None:
    """Return the machine in the first 20 bytes of an ELF file, of 32 bits, too; None for others."""
    if head[:4] != ELF_MAGIC or len(head) < 20:
        return None
    return MACHINES.get(int.from_bytes(head[18:20], "little"))


def read_elf(file: Readable) -> Elf:
    """Return the headers of an ELF file; raises `BadFile`."""
    head = file.read(0, 64)
    if len(head) < 64 or head[:4] != ELF_MAGIC:
        raise BadFile("it is cut within its first header")
    if head[4] != 2 or head[5] != 1:
        raise BadFile("it is no 64-bit little-endian ELF file")
    _, machine, _, _, _, table, flags, _, _, _, entry, count, names = _HEADER.unpack(head)
    sections = _sections(file, table, entry, count, names) if table else []
    return Elf(file, MACHINES.get(machine, str(machine)), flags, head[8], sections)


def _sections(file: Readable, table: int, entry: int, count: int, names: int) -> list[Section]:
    if entry != _ELF_SECTION.size:
        raise BadFile(f"its section headers have {entry} bytes, not {_ELF_SECTION.size}")
    if count == 0 or names == 0xFFFF:  # too many for 16 bits: section 0 has the numbers
        first = file.read(table, entry)
        if len(first) < entry:
            raise BadFile("its section headers are cut off")
        fields = _ELF_SECTION.unpack(first)
        count, names = count or fields[5], fields[6] if names == 0xFFFF else names
    if count > MAX_ELF_SECTIONS:
        raise BadFile(f"it has more than {MAX_ELF_SECTIONS} sections")
    raw = file.read(table, entry * count)
    if len(raw) < entry * count:
        raise BadFile("its section headers are cut off")
    headers = list(_ELF_SECTION.iter_unpack(raw))
    if names >= len(headers):
        raise BadFile("the names of its sections are missing")
    texts = file.read(headers[names][4], min(headers[names][5], MAX_NAMES))
    return [
        Section(_elf_name(texts, at), kind, offset, 0 if kind == _SHT_NOBITS else size, link)
        for at, kind, _, _, offset, size, link, _, _, _ in headers
    ]


def _elf_name(texts: bytes, at: int) -> str:
    end = texts.find(b"\0", at, at + MAX_NAME)
    return texts[at : end if end >= 0 else at + MAX_NAME].decode("ascii", "replace")


# Machine and linked frameworks of a macOS library.

THIN = b"\xcf\xfa\xed\xfe"
FAT = b"\xca\xfe\xba\xbe"
MACHO_MAGICS = (THIN, FAT)

MAX_PARTS = 8
MAX_COMMANDS = 1024
MAX_BYTES = 256 << 10

MACHO_MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64"}
_DYLIBS = (0xC, 0x80000018, 0x8000001F)  # LC_LOAD_DYLIB, _WEAK_DYLIB, _REEXPORT_DYLIB


def read_macho(file: Readable) -> tuple[list[str], list[str]]:
    """Return the machines and the names of linked libraries; raises `BadFile`."""
    if file.read(0, 4) == THIN:
        machine, names = _part(file, 0)
        return [machine], names
    machines, linked = [], []
    count = int.from_bytes(file.read(4, 4), "big")
    for index in range(min(count, MAX_PARTS)):
        machine, names = _part(file, int.from_bytes(file.read(8 + 20 * index + 8, 4), "big"))
        machines.append(machine)
        linked += names
    return machines, list(dict.fromkeys(linked))


def _part(file: Readable, start: int) -> tuple[str, list[str]]:
    head = file.read(start, 32)
    if len(head) < 32 or head[:4] != THIN:
        raise BadFile("it is cut within its first header")
    cpu, count, size = (int.from_bytes(head[at : at + 4], "little") for at in (4, 16, 20))
    commands = file.read(start + 32, min(size, MAX_BYTES))
    return MACHO_MACHINES.get(cpu, str(cpu)), list(_linked(commands, min(count, MAX_COMMANDS)))


def _linked(raw: bytes, count: int) -> Iterator[str]:
    at = 0
    for _ in range(count):
        kind, size = (int.from_bytes(raw[at + step : at + step + 4], "little") for step in (0, 4))
        if size < 8 or at + size > len(raw):
            return
        if kind in _DYLIBS:
            name = int.from_bytes(raw[at + 8 : at + 12], "little")
            yield raw[at + name : at + size].partition(b"\0")[0].decode("utf-8", "replace")
        at += size


# Sections of a Windows library. NVIDIA's and AMD's compilers use the same, names cut to 8.

MAX_PE_SECTIONS = 96  # the Windows loader's own limit

_COFF = Struct("<4sHHIIIHH")
_SECTION = Struct("<8sIIII16x")

PE_MACHINES = {0x14C: "i686", 0x8664: "x86_64", 0xAA64: "aarch64"}

# The names that the linkers on Windows leave of the sections that Linux has.
_PE_NAMES = {
    ".nv_fatb": ".nv_fatbin",
    ".nvFatBi": ".nvFatBinSegment",
    ".hip_fat": ".hip_fatbin",
    ".hipFatB": ".hipFatBinSegment",
}


def read_pe(file: Readable) -> tuple[str, list[Section]]:
    """Return machine and sections of a PE file, named as on Linux; raises `BadFile`."""
    start = int.from_bytes(file.read(0x3C, 4), "little")
    raw = file.read(start, _COFF.size)
    if len(raw) < _COFF.size or raw[:4] != b"PE\0\0":
        raise BadFile("it has no PE header")
    _, machine, count, _, _, _, optional, _ = _COFF.unpack(raw)
    count = min(count, MAX_PE_SECTIONS)
    table = file.read(start + _COFF.size + optional, count * _SECTION.size)
    if len(table) < count * _SECTION.size:
        raise BadFile("its section headers are cut off")
    return PE_MACHINES.get(machine, str(machine)), [
        Section(_name(name), 1, offset, size, 0)
        for name, _, _, size, offset in _SECTION.iter_unpack(table)
    ]


def _name(raw: bytes) -> str:
    name = raw.rstrip(b"\0").decode("ascii", "replace")
    return _PE_NAMES.get(name, name)
