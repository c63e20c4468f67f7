"""Members of tar archives as `tarfile` writes them, and headers at the bounds of their fields."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest

from probe_wheels.images import archive
from probe_wheels.images.archive import clean, members
from probe_wheels.images.layers import memory
from probe_wheels.images.streams import BadImage, Plain

KINDS = {
    tarfile.REGTYPE: "file", tarfile.AREGTYPE: "file", tarfile.CONTTYPE: "file",
    tarfile.LNKTYPE: "hard", tarfile.SYMTYPE: "link", tarfile.DIRTYPE: "folder",
    tarfile.CHRTYPE: "other", tarfile.BLKTYPE: "other", tarfile.FIFOTYPE: "other",
}  # fmt: skip
ENTRIES: list[tuple[str, bytes, dict[str, Any]]] = [
    ("usr", tarfile.DIRTYPE, {"mode": 0o755}),
    ("usr/lib/a.so", tarfile.REGTYPE, {"size": 511, "mode": 0o4755, "uid": 1000, "gid": 5}),
    ("usr/lib/b.so", tarfile.AREGTYPE, {"size": 512}),
    ("usr/lib/c.so", tarfile.CONTTYPE, {"size": 513}),
    ("a" * 100, tarfile.REGTYPE, {"size": 1}),
    ("d/" + "a" * 100, tarfile.REGTYPE, {"size": 0}),
    ("/".join(["d" * 50] * 4), tarfile.REGTYPE, {"size": 3}),
    ("link", tarfile.SYMTYPE, {"linkname": "../x"}),
    ("long", tarfile.SYMTYPE, {"linkname": "t" * 150}),
    ("hard", tarfile.LNKTYPE, {"linkname": "usr/lib/a.so"}),
    ("dev", tarfile.CHRTYPE, {"devmajor": 195}),
    ("fifo", tarfile.FIFOTYPE, {}),
    ("last", tarfile.REGTYPE, {"size": 5, "uid": 0o7777777}),
]
WIDE = ("wide", tarfile.REGTYPE, {"size": 2, "uid": 1 << 40, "gid": (1 << 40) + 7})


def packed(entries: Any, form: int, **options: Any) -> tuple[bytes, list[tarfile.TarInfo]]:
    buffer = io.BytesIO()
    listed = []
    with tarfile.open(fileobj=buffer, mode="w", format=form, **options) as tar:
        for name, kind, fields in entries:
            info = tarfile.TarInfo(name)
            info.type = kind
            for key, value in fields.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(b"x" * info.size))
            listed.append(info)
    return buffer.getvalue(), listed


def walked(raw: bytes) -> list[Any]:
    source = Plain(memory(raw))
    found = []
    for member in members(source):
        found.append(member)
        assert source.skip(member.size)
    return found


@pytest.mark.parametrize(
    ("form", "more"),
    [(tarfile.USTAR_FORMAT, []), (tarfile.GNU_FORMAT, [WIDE]), (tarfile.PAX_FORMAT, [WIDE])],
)
def test_what_tarfile_writes_is_read(form: int, more: Any) -> None:
    entries = [entry for entry in ENTRIES if form != tarfile.USTAR_FORMAT or entry[0] != "long"]
    raw, infos = packed([*entries, *more], form)
    found = walked(raw)
    for member, info in zip(found, infos, strict=True):
        size = info.size if info.isfile() else 0
        assert (member.path, member.kind, member.size, member.mode, member.uid, member.gid) == (
            info.name, KINDS[info.type], size, info.mode, info.uid, info.gid
        )  # fmt: skip
        assert (member.target, member.sparse) == (info.linkname, False)


def test_records_of_pax_are_those_of_the_next_member() -> None:
    entries = [("\xe9" * 60, tarfile.REGTYPE, {"size": 1}), ("b", tarfile.REGTYPE, {"size": 0})]
    raw, _ = packed(entries, tarfile.PAX_FORMAT, pax_headers={"comment": "of all"})
    assert [member.path for member in walked(raw)] == ["\xe9" * 60, "b"]
    sparse = {"pax_headers": {"GNU.sparse.name": "real", "GNU.sparse.major": "1", "size": "7"}}
    raw, _ = packed([("x", tarfile.REGTYPE, sparse)], tarfile.PAX_FORMAT)
    source = Plain(memory(raw))
    member = next(members(source))
    assert (member.path, member.size, member.sparse) == ("real", 7, True)
    owners = {"pax_headers": {"uid": "1" * 19, "gid": "1" * 20, "size": "1" * 20}, "gid": 3}
    raw, _ = packed([("x", tarfile.REGTYPE, owners)], tarfile.PAX_FORMAT)
    member = next(members(Plain(memory(raw))))
    assert (member.uid, member.gid, member.size) == (int("1" * 19), 3, 0)


def header(name: bytes = b"a", kind: bytes = b"0", size: bytes = b"0", **fields: bytes) -> bytes:
    raw = bytearray(512)
    raw[: len(name)] = name
    raw[124 : 124 + len(size)], raw[156:157] = size, kind
    for key, value in fields.items():
        at = {"magic": 257, "prefix": 345, "mode": 100, "link": 157, "more": 482}[key]
        raw[at : at + len(value)] = value
    raw[148:156] = b"%06o\0 " % (sum(raw[:148]) + sum(raw[156:]) + 256)
    return bytes(raw)


END = bytes(512)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (header() + END, [("a", "file", 0)]),
        (header(b"d/") + END, [("d", "folder", 0)]),
        (header(b"d/", b"2") + END, [("d", "link", 0)]),
        (header(kind=b"9") + END, [("a", "other", 0)]),
        (header(kind=b"5", size=b"17") + END, [("a", "folder", 0)]),
        (header(kind=b"3", size=b"1") + bytes(512) + END, [("a", "other", 1)]),
        (header(size=b" 12 \0") + bytes(512) + END, [("a", "file", 10)]),
        (header(size=b"12\0 9") + bytes(512) + END, [("a", "file", 10)]),
        (header(size=b"x") + END, [("a", "file", 0)]),
        (header(size=b"\x80" + bytes(10) + b"\x05") + bytes(512) + END, [("a", "file", 5)]),
        (header(magic=b"ustar\0", prefix=b"p/q") + END, [("p/q/a", "file", 0)]),
        (header(magic=b"ustar ", prefix=b"p/q") + END, [("a", "file", 0)]),
        (header(b"n" * 100, magic=b"ustar\0", prefix=b"p" * 155) + END,
         [("p" * 155 + "/" + "n" * 100, "file", 0)]),
        (header(b"\xff") + END, [("\ufffd", "file", 0)]),
        (END, []),
    ],
)  # fmt: skip
def test_headers(raw: bytes, expected: Any) -> None:
    assert [(m.path, m.kind, m.size) for m in walked(raw)] == expected


def test_sums_that_count_bytes_with_a_sign() -> None:
    raw = bytearray(header(b"\xff\xfe"))
    total = sum(raw[:148]) + sum(raw[156:]) + 256 - 2 * 256
    raw[148:156] = b"%06o\0 " % total
    assert [member.path for member in walked(bytes(raw) + END)] == ["\ufffd\ufffd"]
    raw[148:156] = b"%06o\0 " % (total + 256)
    with pytest.raises(BadImage, match="it is no tar archive"):
        walked(bytes(raw) + END)


LONG = header(b"L", b"L", b"5") + b"names".ljust(512, b"\0")


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "it is no tar archive"),
        (b"x" * 512, "it is no tar archive"),
        (header()[:511], "it is no tar archive"),
        (header() + b"x" * 512, "its archive is damaged"),
        (header() + header()[:511], "its archive is cut off"),
        (header(size=b"1") + bytes(511), "its archive is cut off"),
        (LONG[:514], "its archive is cut off"),
        (LONG[:520], "its archive is cut off"),
        (header(b"x", b"x", b"4000001"), "it has a record of names that is longer than 1 MiB"),
        (header(b"x", b"x", b"4000000"), "its archive is cut off"),
        (header(b"../a") + END, "the entry '../a' climbs out of it"),
        (header(b"h", b"1", link=b"../b") + END, "the entry '../b' climbs out of it"),
    ],
)
def test_what_is_wrong_with_an_archive(raw: bytes, problem: str) -> None:
    with pytest.raises(BadImage) as raised:
        walked(raw)
    assert str(raised.value) == problem


def test_names_that_go_before_their_member() -> None:
    link = header(b"K", b"K", b"6") + b"target".ljust(512, b"\0")
    found = walked(LONG + link + header(kind=b"2") + header(b"next") + END)
    assert [(member.path, member.target) for member in found] == [("names", "target"), ("next", "")]


@pytest.mark.parametrize(
    "record", [b"5 a=\n", b"x a=b\n", b"6", b"3 a=b\n", b"2 \n", b"10 path=ab"]
)
def test_records_of_pax(record: bytes) -> None:
    raw = header(b"x", b"x", b"%o" % len(record)) + record.ljust(512, b"\0") + header() + END
    if record in (b"5 a=\n", b"10 path=ab"):
        assert [member.path for member in walked(raw)] == ["ab" if b"path" in record else "a"]
    else:
        with pytest.raises(BadImage, match="its records of pax are damaged"):
            walked(raw)


def test_old_sparse_files_have_maps_before_their_bytes() -> None:
    last, more = bytes(512), bytes(504) + b"\1" + bytes(7)
    raw = header(kind=b"S", more=b"\1") + more + last + header(b"b") + END
    assert [(member.path, member.sparse) for member in walked(raw)] == [("a", True), ("b", False)]
    raw = header(kind=b"S") + header(b"b") + END
    assert [(member.path, member.sparse) for member in walked(raw)] == [("a", True), ("b", False)]
    with pytest.raises(BadImage, match="its archive is cut off"):
        walked(header(kind=b"S", more=b"\1") + more)


def test_so_many_members_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_MEMBERS", 2)
    assert len(walked(header() * 2 + END)) == 2
    with pytest.raises(BadImage, match="it has more than 2 entries"):
        walked(header() * 3 + END)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/lib/", "usr/lib"),
        ("./usr", "usr"), ("usr//lib", "usr/lib"), ("usr/./lib", "usr/lib"),
        (".", ""), ("/", ""), ("", ""), ("..a/b", "..a/b"), ("a" * 4096, "a" * 4096),
        ("a/" * 256 + "b", "a/" * 256 + "b"),
    ],
)  # fmt: skip
def test_a_path_below_the_root(path: str, expected: str) -> None:
    assert clean(path) == expected


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("a/../b", "the entry 'a/../b' climbs out of it"),
        ("..", "the entry '..' climbs out of it"),
        ("../" + "a" * 99, f"the entry '../{'a' * 77}' climbs out of it"),
        ("a" * 4097, "a path in it is longer than 4096 characters or 256 folders"),
        ("a/" * 257, "a path in it is longer than 4096 characters or 256 folders"),
    ],
)
def test_a_path_that_is_none(path: str, problem: str) -> None:
    with pytest.raises(BadImage) as raised:
        clean(path)
    assert str(raised.value) == problem
