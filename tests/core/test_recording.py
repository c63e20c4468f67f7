"""A recording in JSON: every limit and every way out of the folder is refused with its reason."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from probe_core.recording import BadRecording, Recording, read, unpack
from probe_core.recording.document import parse, write

GOOD: dict[str, Any] = {"schema": 1, "origin": "invented", "files": {}, "links": {}}
LONG = "a" * 250 + "/"


def raw(change: dict[str, Any]) -> bytes:
    return json.dumps(GOOD | change).encode()


def links(count: int) -> dict[str, str]:
    """Return links of which each goes twice through the one before it."""
    return {"/l0": "."} | {f"/l{n}": f"l{n - 1}/l{n - 1}" for n in range(1, count)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "it is no recording of schema 1"),
        ({"files": {"/a/../../b": ""}}, "'/a/../../b' is not a plain absolute path"),
        ({"files": {"relative": ""}}, "'relative' is not a plain absolute path"),
        ({"files": {"/a\0b": ""}}, "'/a\ufffdb' is not a plain absolute path"),
        ({"files": {"//a": ""}}, "'//a' is not a plain absolute path"),
        ({"files": {"/a/./b": ""}}, "'/a/./b' is not a plain absolute path"),
        ({"files": {"/a/": ""}}, "'/a/' is not a plain absolute path"),
        ({"files": {"/": ""}}, "'/' is not a plain absolute path"),
        ({"files": {"": ""}}, "'' is not a plain absolute path"),
        ({"files": {"/\ud800": ""}}, "'/\ufffd' cannot be written in UTF-8"),
        ({"files": {"/\x1b[31m": 5}}, "'/\ufffd[31m' is neither text nor a list of lines"),
        ({"files": {"/a": ["x", 5]}}, "'/a' is neither text nor a list of lines"),
        ({"files": {"/a": "\udcff"}}, "the text of '/a' cannot be written in UTF-8"),
        ({"files": {"/" + "a" * 256: ""}}, "has a name longer than 255 bytes"),
        ({"files": {"/" + LONG * 4 + "aaaaaaaaaaaaaaaaaaaa": ""}}, "is longer than 1024 bytes"),
        ({"files": {"/a" * 65: ""}}, "lies deeper than 64 folders"),
        ({"files": {"/big": "x" * ((1 << 20) + 1)}}, "'/big' is longer than 1024 KiB"),
        ({"files": {f"/{n}": "" for n in range(20_001)}}, "more than 20000 files and links"),
        ({"files": {"/machine.json": ""}}, "/machine.json is kept for what a recording says"),
        ({"files": {"/machine.json/a": ""}}, "/machine.json is kept for what a recording says"),
        ({"files": []}, "its 'files' or 'links' is no table"),
        ({"links": 5}, "its 'files' or 'links' is no table"),
        ({"files": {"/a": ""}, "links": {"/a": "b"}}, "'/a' is both a file and a link"),
        ({"files": {"/a": "", "/a/b": ""}}, "'/a/b' lies below the file '/a'"),
        ({"files": {"/a/b/c": ""}, "links": {"/a": "d"}}, "'/a/b/c' lies below the link '/a'"),
        ({"links": {"/a": "b", "/a/c": "d"}}, "'/a/c' lies below the link '/a'"),
        ({"links": {"/sys/x": "/etc/passwd"}}, "an absolute target would lead out of the folder"),
        ({"links": {"/sys/x": "../../etc"}}, "its target '../../etc' leads out of the folder"),
        ({"links": {"/sys/x": "a/../../../etc"}}, "leads out of the folder"),
        ({"links": {"/x": ".."}}, "leads out of the folder"),
        # The text of the second stays inside; where it leads does not.
        ({"links": {"/b/c/up": "../..", "/b/c/x": "up/../e"}}, "'/b/c/x': its target 'up/../e'"),
        ({"links": {"/a": "b", "/b": "a"}}, "'/a' leads in a circle"),
        ({"links": links(60)}, "leads in a circle, or through too many links"),
        ({"links": {"/a": "b/" * 70}}, "leads in a circle, or through too many links"),
        ({"links": {"/a": ""}}, "its target is empty or holds a NUL"),
        ({"links": {"/a": "b\0"}}, "its target is empty or holds a NUL"),
        ({"links": {"/a": "b/" * 600}}, "its target is longer than 1024 bytes"),
        ({"links": {"/a": 5}}, "'5' is not a plain absolute path: it is no text"),
        ({"origin": "found somewhere"}, "its origin must begin with 'recorded' or 'invented'"),
        ({"origin": None}, "it has no origin"),
        ({"origin": "recorded" * 200}, "its origin is longer than 1024 characters"),
        ({"os": "a b"}, "its os 'a b' is not one word, such as linux or x86_64"),
        ({"arch": ["x"]}, "is not one word"),
        ({"arch": ""}, "its arch '' is not one word"),
        ({"environ": ["A=B"]}, "its environ is no table of at most 256 variables"),
        ({"environ": {str(n): "" for n in range(257)}}, "at most 256 variables"),
        ({"environ": {"A": 5}}, "its environ holds 'A', which is no variable with a text"),
        ({"environ": {"A=": "x"}}, "its environ holds 'A=', which is no variable"),
        ({"environ": {"A": "\0"}}, "the variable 'A' holds a NUL"),
        ({"environ": {"A": "x" * 70_000}}, "or its environ is too long"),
        ({"environ": {"A": "\ud800"}}, "the variable 'A' cannot be written in UTF-8"),
        ({"expect": json.loads("[" * 33 + "]" * 33)}, "nested deeper than 32 levels"),
        ({"expect": [[]] * 100_000}, "more than 100000 lists and tables"),
    ],
)
def test_what_could_do_harm_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRecording) as caught:
        parse(raw(change))
    assert message in str(caught.value)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{" + b'"a":{' * 50_000, "nested deeper than 32 levels"),
        (b'{"a": [' + b"[" * 5_000_000, "more than 100000 lists and tables"),
        (b'{"a": "' + b'\\"' * 3_000_000, "or its brackets do not match"),
        (b'{"a": 1, "a": 2}', "'a' is there twice"),
        (b'{"a": ' + b"1" * 5000 + b"}", "it is not valid JSON"),
        (b'{"a": "\xff"}', "it is not valid JSON"),
        (b"[]", "it is JSON, but no table"),
        (b"", "it is not valid JSON"),
        (b'{"schema": 1}', "its 'files' or 'links' is no table"),
    ],
    ids=range(9),
)
def test_bad_json_is_refused_quickly(content: bytes, message: str) -> None:
    with pytest.raises(BadRecording) as caught:
        parse(content)
    assert message in str(caught.value)


def test_files_together_are_bounded() -> None:
    with pytest.raises(BadRecording, match="longer than 16 MiB together"):
        Recording({f"/{n}": bytes(1 << 20) for n in range(17)})


@pytest.mark.heavy
def test_folders_are_bounded() -> None:
    deep = "/a" * 60
    files = {f"/{n}{deep}/f": b"" for n in range(800)}
    assert len(Recording(files).folders) == 800 * 61
    with pytest.raises(BadRecording, match="more than 50000 folders"):
        Recording({f"/{n}{deep}/f": b"" for n in range(900)})
    with pytest.raises(BadRecording, match="more than 50000 folders"):
        Recording({}, {f"/{n}": f"{n}.{deep}" for n in range(900)})


def test_what_is_not_known_is_ignored_and_what_is_missing_has_a_default() -> None:
    found = parse(raw({"expect": {"primary": "cpu:0"}, "later": 1}))
    assert (found.os, found.arch, found.environ, found.origin) == (
        "linux",
        "unknown",
        {},
        "invented",
    )
    longest = "recorded" * 128
    assert parse(raw({"origin": longest})).origin == longest
    assert Recording({"/proc/sys/kernel/arch": b"riscv64\n"}).arch == "riscv64"
    assert Recording({"/proc/sys/kernel/arch": b"\x1b[31m"}).arch == "unknown"


def test_folder_gets_lines_text_and_links(tmp_path: Path) -> None:
    files = {"/a/lines": ["one", "two"], "/a/text": "x\0y"}
    found = parse(raw({"files": files, "links": {"/b/link": "../a", "/b/driver": "../drivers/x"}}))
    root = unpack(found, str(tmp_path / "root"))
    assert Path(root, "b/link/lines").read_bytes() == b"one\ntwo\n"
    assert Path(root, "a/text").read_bytes() == b"x\0y"
    assert Path(root, "b/driver").is_dir()  # what only a link names is there as well
    assert os.stat(root).st_mode & 0o777 == 0o700
    about = json.loads(Path(root, "machine.json").read_text())
    assert about == {"os": "linux", "arch": "unknown", "environ": {}, "origin": "invented"}


def test_link_into_a_file_or_to_the_root_makes_no_folder(tmp_path: Path) -> None:
    links = {"/a": "f", "/b": "f/x", "/c": ".", "/d": "c/e", "/g": "machine.json/x"}
    made = Recording({"/f": b""}, links)
    root = unpack(made, str(tmp_path / "root"))
    assert sorted(os.listdir(root)) == ["a", "b", "c", "d", "e", "f", "g", "machine.json"]
    assert Path(root, "d").resolve() == Path(root, "e")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(OSError, match="not empty"):
        unpack(Recording({"/mine": b"yours"}), str(tmp_path))
    assert (tmp_path / "mine").read_text() == "mine"


def test_document_of_a_recording_is_read_back_as_the_same() -> None:
    files = {"/one": b"x\n", "/two": b"x\ny\n", "/none": b"", "/open": b"x\ny", "/nul": b"a\0b\0"}
    about = {"os": "linux", "arch": "aarch64", "environ": {"A": "é"}, "origin": "recorded here"}
    made = Recording(files, {"/sys/l": "../one"}, about)
    text = write(made)
    again = parse(text.encode())
    assert (again.files, again.links, again.about()) == (files, {"/sys/l": "../one"}, about)
    assert json.loads(text)["files"]["/two"] == ["x", "y"]
    assert json.loads(write(Recording({"/a": b"\xff"}, {}, about)))["files"] == {"/a": "\ufffd"}


def test_plain_and_packed_files_are_read(tmp_path: Path) -> None:
    plain, packed = tmp_path / "m.json", tmp_path / "named-as-you-like"
    plain.write_bytes(raw({"files": {"/a": "b"}}))
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read(str(plain)).files == read(str(packed)).files == {"/a": b"b"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is neither a recording in JSON nor a tar archive"),
        (b"PK\3\4", "it is neither a recording in JSON nor a tar archive"),
        (gzip.compress(raw({}), mtime=0)[:-9], "its packing is damaged"),
        (b"\x1f\x8bxxxxxxxxxxxxx", "its packing is damaged"),
    ],
    ids=range(4),
)
def test_file_that_is_no_recording(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(BadRecording) as caught:
        read(str(path))
    assert str(caught.value).startswith(f"'{path}' is no recorded machine: {message}")


@pytest.mark.heavy
def test_bombs_end_when_they_have_given_enough(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(b"{" + b" " * (9 << 20), 1))
    with pytest.raises(BadRecording, match="it is longer than 8 MiB"):
        read(str(path))
    header, nothing = gzip.compress(b"")[:10], b"\0\0\0\xff\xff"
    path.write_bytes(header + nothing * ((65 << 20) // len(nothing)))
    with pytest.raises(BadRecording, match="it is longer than 64 MiB on the disk"):
        read(str(path))


def test_fifo_and_folder_are_told_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(BadRecording, match="it is no regular file"):
        read(str(tmp_path / "fifo"))
    with pytest.raises(IsADirectoryError):
        read(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        read(str(tmp_path / "none"))
    with pytest.raises(BadRecording, match="is no path: it holds a NUL"):
        read("a\0b")
