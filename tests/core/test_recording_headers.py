"""Headers of archives that recordings come in, at the bounds of their fields."""

from __future__ import annotations

import pytest

from probe_core.recording.archives import Header, pax_records
from probe_core.recording.document import BadRecording


def block(name: bytes = b"a", kind: bytes = b"0", size: bytes = b"0", **fields: bytes) -> bytes:
    raw = bytearray(512)
    raw[: len(name)] = name
    raw[124 : 124 + len(size)], raw[156:157], raw[257:263] = size, kind, b"ustar\0"
    for key, value in fields.items():
        at = {"magic": 257, "prefix": 345, "link": 157}[key]
        raw[at : at + len(value)] = value
    raw[148:156] = b"%06o\0 " % (sum(raw[:148]) + sum(raw[156:]) + 256)
    return bytes(raw)


@pytest.mark.parametrize(
    ("raw", "path", "size"),
    [
        (block(), "/a", 0),
        (block(b"./a/b/"), "/a/b", 0),
        (block(b"./"), None, 0),
        (block(b"."), None, 0),
        (block(b"a" * 100), "/" + "a" * 100, 0),
        (block(prefix=b"p" * 155), "/" + "p" * 155 + "/a", 0),
        (block(magic=b"ustar ", prefix=b"p"), "/a", 0),
        (block(size=b" 17\0 "), "/a", 15),
        (block(size=b"\x80" + bytes(9) + b"\x01\x00"), "/a", 256),
        (block(size=b""), "/a", 0),
        (block("\xe9".encode()), "/\xe9", 0),
    ],
)
def test_a_header(raw: bytes, path: str | None, size: int) -> None:
    header = Header(raw)
    assert (header.path(), header.size, header.kind) == (path, size, b"0")


def test_a_folder_of_old_tools_and_a_link() -> None:
    assert (Header(block(b"a/")).is_folder, Header(block()).is_folder) == (True, False)
    assert Header(block(kind=b"2", link=b"t" * 100)).target() == "t" * 100


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (block(magic=b"other\0"), "a header's sum is wrong"),
        (block()[:148] + b"000000\0 " + block()[156:], "a header's sum is wrong"),
        (block(size=b"9"), "a field is no number"),
        (block(size=b"\xff"), "a field is no number"),
    ],
)
def test_a_damaged_header(raw: bytes, problem: str) -> None:
    with pytest.raises(BadRecording) as raised:
        Header(raw)
    assert str(raised.value) == f"it is a damaged tar archive: {problem}"


def test_names_that_no_recording_has() -> None:
    with pytest.raises(BadRecording, match="absolute; pack the root from inside"):
        Header(block(b"/a")).path()
    with pytest.raises(BadRecording, match="is not UTF-8"):
        Header(block(b"\xff")).path()


def test_records_take_the_place_of_fields() -> None:
    records = {"path": b"p", "linkpath": b"t", "size": b"1" * 20}
    header = Header(block(size=b"7")).extended(records)
    assert (header.path(), header.target(), header.size) == ("/p", "t", int("1" * 20))
    kept = Header(block(size=b"7")).extended({})
    assert (kept.path(), kept.target(), kept.size, kept.kind) == ("/a", "", 7, b"0")
    assert Header(block()).extended({"GNU.sparse.major": b"1"}).kind == b"S"
    for size in (b"1" * 21, b"-1", b"", b"x"):
        with pytest.raises(BadRecording, match="a size is no number"):
            Header(block()).extended({"size": size})


def test_records_of_pax() -> None:
    assert pax_records(b"") == {}
    assert pax_records(b"6 a=b\n9 key=v=\n") == {"a": b"b", "key": b"v="}
    assert pax_records(b"5 a=\n") == {"a": b""}
    for data in (b"7 a=b\n", b"6 a=b", b"5 a=b\n", b"x a=b\n", b"0 ", b"00000006 a=b\n", b"4 ab\n"):
        with pytest.raises(BadRecording, match="a pax header cannot be read"):
            pax_records(data)
