"""A tar archive of a root: regular files and links that stay inside, and nothing else."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from probe_core.recording import BadRecording, Recording, read
from probe_core.recording.archives import _number

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def member(name: str, content: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=kind, linkname=target)


def archive(members: Iterable[tuple[tarfile.TarInfo, bytes]], form: str = "pax") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=FORMATS[form]) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def block(kind: bytes = b"0", name: bytes = b"a", size: bytes = b"00000000000\0") -> bytes:
    """Return a header as no tool writes it."""
    head = bytearray(512)
    head[:100] = name.ljust(100, b"\0")
    head[124:136], head[156:157], head[257:265] = size, kind, b"ustar\00000"
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def read_bytes(folder: Path, content: bytes) -> Recording:
    path = folder / "machine.tar"
    path.write_bytes(content)
    return read(str(path))


TREE = [
    member("./", type=tarfile.DIRTYPE),
    member("./proc", type=tarfile.DIRTYPE),
    member("./proc/meminfo", b"MemTotal: 1 kB\n"),
    member("./sys/" + "d/" * 60 + "n" * 120, b"deep"),
    link("./sys/class/l", "../" + "e/" * 55 + "t" * 120),
    member("./é", b""),
]


@pytest.mark.parametrize("form", ["gnu", "pax"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress], ids=lambda p: p.__name__)
def test_archives_that_tools_write_are_read(form: str, pack: Any, tmp_path: Path) -> None:
    found = read_bytes(tmp_path, pack(archive(TREE, form)))
    deep = "/sys/" + "d/" * 60 + "n" * 120
    assert found.files == {"/proc/meminfo": b"MemTotal: 1 kB\n", deep: b"deep", "/é": b""}
    assert found.links == {"/sys/class/l": "../" + "e/" * 55 + "t" * 120}
    assert (found.os, found.arch, found.origin) == ("linux", "unknown", None)


def test_prefix_of_ustar_is_part_of_the_name(tmp_path: Path) -> None:
    name = "a" * 90 + "/" + "b" * 90
    assert list(read_bytes(tmp_path, archive([member(name)], "ustar")).files) == [f"/{name}"]


def test_machine_json_at_the_top_tells_the_rest(tmp_path: Path) -> None:
    about = b'{"os": "darwin", "arch": "aarch64", "environ": {"A": "b"}, "origin": "recorded: x"}'
    found = read_bytes(tmp_path, archive([member("machine.json", about), member("a")]))
    assert found.files == {"/a": b""}
    assert (found.os, found.arch, found.environ) == ("darwin", "aarch64", {"A": "b"})
    assert found.origin == "recorded: x"


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([member("../a")], "'/../a' is not a plain absolute path"),
        ([member("a/../../b")], "'/a/../../b' is not a plain absolute path"),
        ([member("a//b")], "'/a//b' is not a plain absolute path"),
        ([member("a" * 300)], "has a name longer than 255 bytes"),
        ([member("a/" * 70 + "b")], "lies deeper than 64 folders"),
        ([member("a/" * 600 + "b")], "is longer than 1024 bytes"),
        ([member("a"), link("b", "a", tarfile.LNKTYPE)], "'/b' is a hard link; a recording holds"),
        ([member("a", type=tarfile.CHRTYPE)], "'/a' is a character device"),
        ([member("a", type=tarfile.BLKTYPE)], "'/a' is a block device"),
        ([member("a", type=tarfile.FIFOTYPE)], "'/a' is a FIFO"),
        ([member("a", type=tarfile.GNUTYPE_SPARSE)], "'/a' is a sparse file"),
        ([member("a", type=b"Z")], "'/a' is a member of the unknown kind 'Z'"),
        ([member("a", pax_headers={"GNU.sparse.major": "1"})], "'/a' is a sparse file"),
        ([member("a"), member("./a")], "'/a' is there twice"),
        ([member("a"), link("a", "b")], "'/a' is there twice"),
        ([member("a"), member("a/", type=tarfile.DIRTYPE)], "'/a' is there twice"),
        ([member("a/", type=tarfile.DIRTYPE), member("a")], "'/a' is there twice"),
        ([member("a"), member("a/b")], "'/a/b' lies below the file '/a'"),
        ([link("a", "b"), member("a/c")], "'/a/c' lies below the link '/a'"),
        ([link("a", "/etc")], "'/a': an absolute target would lead out of the folder"),
        ([link("a/b", "../../etc")], "its target '../../etc' leads out of the folder"),
        ([link("a", "")], "its target is empty"),
        ([link("a", "b"), link("b", "a")], "leads in a circle"),
        ([member("a", bytes((1 << 20) + 1))], "'/a' is longer than 1024 KiB"),
        ([member("machine.json", b"[]")], "it is JSON, but no table"),
        ([member("machine.json", b"{}" + b" " * 70_000)], "is longer than 64 KiB"),
        ([member("machine.json", b'{"x": 1}'), member("machine.json")], "is there twice"),
        ([link("machine.json", "a")], "/machine.json is kept for what a recording says"),
        ([member("machine.json", b'{"os": 5}')], "its os '5' is not one word"),
        ([member(str(n), bytes(1 << 20)) for n in range(17)], "longer than 16 MiB together"),
        ([member(str(n)) for n in range(20_001)], "more than 20000 files and links"),
    ],
)
def test_members_that_are_refused(
    members: list[tuple[tarfile.TarInfo, bytes]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadRecording) as caught:
        read_bytes(tmp_path, archive(members))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("field", "number"),
    [
        (b"00000000017\0", 15),
        (b"       17 \0\0", 15),
        (b"\0" * 12, 0),
        (b"\x80\x01" + bytes(10), 1 << 80),
        (b"\x80" + bytes(10) + b"\x07", 7),
    ],
)
def test_numbers_of_headers(field: bytes, number: int) -> None:
    assert _number(field) == number


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (block(name=b"/etc/passwd"), "the name '/etc/passwd' is absolute; pack the root from"),
        (block(name=b"\xff"), "the name 'ÿ' is not UTF-8"),
        (block(b"x", size=b"00000000014\0") + padded(b"12 path=a\0b\n"), "it is cut short"),
        (
            block(b"x", size=b"00000000014\0") + padded(b"12 path=a\0b\n") + block() + bytes(512),
            "'/a\ufffdb' is not a plain absolute path",
        ),
        (block()[:400], "it is cut short"),
        (block(), "it is cut short"),
        (block(size=b"00000001000\0") + b"x", "it is cut short"),
        (block()[:-1] + b"x" + bytes(512), "a header's sum is wrong"),
        (block() + b"x" * 512, "a header's sum is wrong"),
        (block(size=b"99999999999\0"), "a field is no number"),
        (block(size=b"\xff" * 12), "a field is no number"),
        (block(size=b"\x80" + b"\xff" * 11), "is longer than 1024 KiB"),
        (block(b"5", size=b"00000001000\0"), "is no regular file and has content"),
        (block(b"2", size=b"00000001000\0"), "is no regular file and has content"),
        (block(b"L", size=b"\x80" + b"\xff" * 11), "a header is longer than 64 KiB"),
        (block(b"x", size=b"77777777777\0"), "a header is longer than 64 KiB"),
        (block(b"x", size=b"00000000003\0") + padded(b"abc"), "a pax header cannot be read"),
        (block(b"x", size=b"00000000005\0") + padded(b"5 a=b"), "a pax header cannot be read"),
        (block(b"x", size=b"00000000005\0") + padded(b"0 a=b"), "a pax header cannot be read"),
        (
            block(b"x", size=b"00000000013\0") + padded(b"11 size=-1\n") + block(),
            "a size is no number",
        ),
        (block(b"L") + bytes(1024), "it ends after a long name without its member"),
        (bz2.compress(block() + bytes(1024)), "neither a recording in JSON nor a tar archive"),
    ],
    ids=range(22),
)
def test_archives_that_no_tool_writes(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadRecording) as caught:
        read_bytes(tmp_path, content)
    assert message in str(caught.value)


@pytest.mark.heavy
def test_bombs_end_when_they_have_given_enough(tmp_path: Path) -> None:
    with pytest.raises(BadRecording, match="it has more than 80000 members"):
        read_bytes(tmp_path, gzip.compress(block(b"x") * 80_001, 1))
    extension = block(b"g", size=b"%011o\0" % (64 << 10)) + bytes(64 << 10)
    with pytest.raises(BadRecording, match="it is longer than 64 MiB when unpacked"):
        read_bytes(tmp_path, gzip.compress(extension * 1024, 1))
    xz = lzma.compress(extension * 1024, preset=0)
    assert len(xz) < 100_000
    with pytest.raises(BadRecording, match="it is longer than 64 MiB when unpacked"):
        read_bytes(tmp_path, xz)


def test_xz_that_asks_for_gigabytes_is_refused(tmp_path: Path) -> None:
    packed = bytearray(lzma.compress(archive(TREE), preset=9))
    assert read_bytes(tmp_path, bytes(packed)).files
    header = packed[12 : 12 + 4 * (packed[12] + 1)]
    assert header[2:4] == b"\x21\x01"  # LZMA2, with one byte for the size of its dictionary
    header[4] = 40  # 4 GiB
    header[-4:] = zlib.crc32(header[:-4]).to_bytes(4, "little")
    packed[12 : 12 + len(header)] = header
    with pytest.raises(BadRecording, match="its packing is damaged: Memory usage limit"):
        read_bytes(tmp_path, bytes(packed))
