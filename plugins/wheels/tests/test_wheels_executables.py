"""Headers of ELF, Mach-O and PE files at the bounds of their fields."""

from __future__ import annotations

import struct
from typing import Any

import pytest
import wheel_files as build

from probe_wheels.formats import executables
from probe_wheels.formats.executables import (
    FAT,
    THIN,
    BadFile,
    Elf,
    elf_machine,
    read_elf,
    read_macho,
    read_pe,
)
from probe_wheels.images.layers import memory

DYNAMIC, NOBITS, VERDEF, VERNEED = 6, 8, 0x6FFFFFFD, 0x6FFFFFFE


def typed(sections: list[tuple[str, bytes]], kinds: dict[int, int], link: int = 1) -> bytes:
    """An ELF file whose sections (counted from 1) have these types and refer to section `link`."""
    raw = bytearray(build.elf(sections))
    (table,) = struct.unpack_from("<Q", raw, 0x28)
    for number, kind in kinds.items():
        struct.pack_into("<I", raw, table + number * 64 + 4, kind)
        struct.pack_into("<I", raw, table + number * 64 + 40, link)
    return bytes(raw)


def elf(raw: bytes) -> Elf:
    return read_elf(memory(raw))


def patched(raw: bytes, at: int, code: str, value: int) -> bytes:
    changed = bytearray(raw)
    struct.pack_into(code, changed, at, value)
    return bytes(changed)


PLAIN = build.elf([(".text", b"code"), (".bss", b"zero")], machine=183, flags=0x1234)


def test_what_a_header_says() -> None:
    found = elf(patched(PLAIN, 8, "B", 7))
    assert (found.machine, found.flags, found.abi) == ("aarch64", 0x1234, 7)
    assert [(s.name, s.kind, s.size) for s in found.sections][1:3] == [
        (".text", 1, 4),
        (".bss", 1, 4),
    ]
    assert (found.section(".text"), found.section(".none")) == (b"code", b"")
    empty = elf(typed([(".text", b"code")], {1: NOBITS}))
    assert (empty.sections[1].size, empty.section(".text")) == (0, b"")
    assert elf(build.elf([], machine=0x999)).machine == str(0x999)
    assert elf(patched(PLAIN, 0x28, "<Q", 0)).sections == []


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (PLAIN[:63], "it is cut within its first header"),
        (b"\x7fELG" + PLAIN[4:], "it is cut within its first header"),
        (patched(PLAIN, 4, "B", 1), "it is no 64-bit little-endian ELF file"),
        (patched(PLAIN, 5, "B", 2), "it is no 64-bit little-endian ELF file"),
        (patched(PLAIN, 58, "<H", 40), "its section headers have 40 bytes, not 64"),
        (patched(PLAIN, 60, "<H", 4096), "its section headers are cut off"),
        (patched(PLAIN, 60, "<H", 4097), "it has more than 4096 sections"),
        (PLAIN[:-1], "its section headers are cut off"),
        (patched(PLAIN, 62, "<H", 4), "the names of its sections are missing"),
    ],
)
def test_a_damaged_elf_file(raw: bytes, problem: str) -> None:
    with pytest.raises(BadFile) as raised:
        elf(raw)
    assert str(raised.value) == problem


def test_the_machine_of_a_head() -> None:
    assert (elf_machine(PLAIN[:20]), elf_machine(PLAIN[:19])) == ("aarch64", None)
    assert elf_machine(b"\x7fELG" + PLAIN[4:20]) is None
    assert elf_machine(PLAIN[:4] + b"\1" + PLAIN[5:20]) == "aarch64"  # of 32 bits, too


STRINGS = b"\0libm.so.6\0/a:$ORIGIN/..\0::/b\0GLIBC_2.34\0GLIBC_2.2.5\0" + b"n" * 300 + b"\0"


def at(text: bytes) -> int:
    return STRINGS.index(text)


def dynamic(*entries: tuple[int, int], link: int = 1) -> Elf:
    raw = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    return elf(typed([(".dynstr", STRINGS), (".dynamic", raw)], {2: DYNAMIC}, link))


def test_what_the_loader_looks_for() -> None:
    name, folders, more = at(b"libm"), at(b"/a:"), at(b"::/b")
    found = dynamic((1, name), (29, more), (15, folders), (14, folders), (0, 0), (1, name))
    assert found.needed() == ["libm.so.6"]
    assert found.search_path() == ["/a", "$ORIGIN/..", "/b"]  # DT_RPATH's first
    assert dynamic((1, name), link=9).needed() == []
    assert len(dynamic(*[(1, name)] * 257).needed()) == 256
    assert dynamic((1, at(b"nnn"))).needed() == ["n" * 256]
    assert dynamic((15, at(b"nnn"))).search_path() == ["n" * 300]
    assert elf(PLAIN).needed() == []


def test_the_loader_of_a_program() -> None:
    assert elf(build.elf([(".interp", b"/lib/ld.so\0x")])).interpreter() == "/lib/ld.so"
    assert elf(PLAIN).interpreter() == ""


def test_so_many_versions_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    part = struct.Struct("<8xII")
    needs = struct.pack("<8xII", 16, 0) + part.pack(at(b"GLIBC_2.34"), 16) * 4
    sections = [(".dynstr", STRINGS), (".r", needs)]
    for most, found in ((3, 3), (4, 4), (5, 4)):
        monkeypatch.setattr(executables, "MAX_VERSIONS", most)
        file = elf(typed(sections, {2: VERNEED}))
        assert file.versions_needed() == ["GLIBC_2.34"] * found


def test_versions_that_a_file_needs_and_defines() -> None:
    new, old = at(b"GLIBC_2.34"), at(b"GLIBC_2.2.5")
    part = struct.Struct("<8xII")
    # Two files: of the first two versions, of the second one.
    needs = struct.pack("<8xII", 16, 48) + part.pack(new, 16) + part.pack(old, 0)
    needs += struct.pack("<8xII", 16, 0) + part.pack(new, 0)
    defines = struct.pack("<12xII", 20, 28) + struct.pack("<II", old, 0)
    defines += struct.pack("<12xII", 20, 0) + struct.pack("<II", new, 0)
    sections = [(".dynstr", STRINGS), (".r", needs), (".d", defines)]
    found = elf(typed(sections, {2: VERNEED, 3: VERDEF}))
    assert found.versions_needed() == ["GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.34"]
    assert found.versions_defined() == ["GLIBC_2.2.5", "GLIBC_2.34"]
    assert elf(typed(sections, {2: VERNEED}, 9)).versions_needed() == []
    cut = elf(typed([(".dynstr", STRINGS), (".r", needs[:47])], {2: VERNEED}))
    assert cut.versions_needed() == ["GLIBC_2.34"]
    circle = struct.pack("<8xII", 16, 0) + part.pack(new, 1 << 31)
    assert elf(typed([(".dynstr", STRINGS), (".r", circle)], {2: VERNEED})).versions_needed() == [
        "GLIBC_2.34"
    ]


def dylib(kind: int, name: bytes) -> bytes:
    size = 24 + len(name) + 1
    return struct.pack("<IIIIII", kind, size, 24, 0, 0, 0) + name + b"\0"


def thin(*commands: bytes, cpu: int = 0x0100000C, count: int | None = None) -> bytes:
    body = b"".join(commands)
    head = struct.pack("<IIIII", cpu, 0, 6, len(commands) if count is None else count, len(body))
    return THIN + head + bytes(8) + body


METAL = dylib(0xC, b"/Metal")


def test_what_a_mac_library_links() -> None:
    raw = thin(METAL, dylib(0x80000018, b"/Weak"), dylib(0x8000001F, b"/Re"), dylib(0xD, b"/Own"))
    assert read_macho(memory(raw)) == (["arm64"], ["/Metal", "/Weak", "/Re"])
    assert read_macho(memory(thin(cpu=0x01000007))) == (["x86_64"], [])
    assert read_macho(memory(thin(cpu=5))) == (["5"], [])
    assert read_macho(memory(thin(METAL, METAL, count=1)))[1] == ["/Metal"]
    assert read_macho(memory(thin(METAL, struct.pack("<II", 0xC, 7), METAL)))[1] == ["/Metal"]
    assert read_macho(memory(thin(METAL, struct.pack("<II", 0xC, 9))))[1] == ["/Metal"]
    with pytest.raises(BadFile, match="it is cut within its first header"):
        read_macho(memory(thin()[:31]))


def test_a_library_for_several_macs() -> None:
    parts = [thin(METAL), thin(METAL, dylib(0xC, b"/x"), cpu=0x01000007)]
    places, body = [], b""
    for part in parts:
        places.append(8 + 20 * len(parts) + len(body))
        body += part
    table = b"".join(struct.pack(">IIIII", 0, 0, place, 0, 0) for place in places)
    raw = FAT + struct.pack(">I", len(parts)) + table + body
    assert read_macho(memory(raw)) == (["arm64", "x86_64"], ["/Metal", "/x"])


@pytest.mark.parametrize(
    ("machine", "name"), [(0x14C, "i686"), (0x8664, "x86_64"), (0xAA64, "aarch64"), (7, "7")]
)
def test_sections_of_a_windows_library(machine: int, name: str) -> None:
    names = [".nv_fatb", ".nvFatBi", ".hip_fat", ".hipFatB", ".text"]
    raw = build.pe([(text, text.encode()) for text in names], machine=machine)
    found, sections = read_pe(memory(raw))
    assert (found, [section.name for section in sections]) == (
        name, [".nv_fatbin", ".nvFatBinSegment", ".hip_fatbin", ".hipFatBinSegment", ".text"]
    )  # fmt: skip
    places: list[Any] = [raw[s.offset : s.offset + s.size] for s in sections]
    assert places == [text.encode() for text in names]


def test_a_damaged_windows_library() -> None:
    raw = build.pe([(".text", b"x")])
    for bad, problem in [
        (raw[: 0x40 + 23], "it has no PE header"),
        (raw[:0x40] + b"PX" + raw[0x42:], "it has no PE header"),
        (raw[: 0x40 + 24 + 39], "its section headers are cut off"),
    ]:
        with pytest.raises(BadFile, match=problem):
            read_pe(memory(bad))
    many = patched(raw, 0x40 + 6, "<H", 97) + bytes(96 * 40)
    assert len(read_pe(memory(many))[1]) == 96
