"""What a recording holds at its bounds, and what beyond; what of a process's files it keeps."""

from __future__ import annotations

import io
import json
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest
from trees import Tree

from probe_core.recording import BadRecording, Recording, document, gather, read, unpack
from probe_core.recording.anonymise import Anonymiser
from probe_core.recording.archives import pax_records
from probe_core.recording.declared import check_records
from probe_core.recording.document import parse
from probe_core.recording.paths import Expansion, check_path, check_target, resolve_links
from probe_core.recording.process import first_user, process_status, surroundings

MIB = 1 << 20


def packed(
    folder: Path, *members: tuple[str, bytes, bytes], form: int = tarfile.PAX_FORMAT
) -> Recording:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(content)
            info.linkname = "target" if kind == tarfile.SYMTYPE else ""
            tar.addfile(info, io.BytesIO(content))
    (folder / "machine.tar").write_bytes(buffer.getvalue())
    return read(str(folder / "machine.tar"))


FILE, LINK, FOLDER = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE


KINDS = [(FILE, FILE), (FILE, LINK), (LINK, FILE), (LINK, LINK), (FILE, FOLDER), (FOLDER, FILE)]
KINDS += [(FOLDER, LINK), (LINK, FOLDER)]


@pytest.mark.parametrize("kinds", KINDS)
def test_a_path_of_an_archive_is_there_once(kinds: tuple[bytes, bytes], tmp_path: Path) -> None:
    with pytest.raises(BadRecording, match="'/proc/a' is there twice"):
        packed(tmp_path, *[("proc/a", kind, b"") for kind in kinds])
    # The same folder may be named again.
    found = packed(tmp_path, ("proc", FOLDER, b""), ("proc", FOLDER, b""), ("proc/a", FILE, b""))
    assert found.files == {"/proc/a": b""}


@pytest.mark.parametrize(("name", "limit"), [("proc/a", MIB), ("machine.json", 64 << 10)])
def test_how_long_a_file_of_an_archive_may_be(name: str, limit: int, tmp_path: Path) -> None:
    whole = b"{}".ljust(limit) if name == "machine.json" else bytes(limit)
    found = packed(tmp_path, ("proc/b", FILE, b""), (name, FILE, whole))
    assert len(found.files.get(f"/{name}", whole)) == limit
    with pytest.raises(BadRecording) as raised:
        packed(tmp_path, ("proc/b", FILE, b""), (name, FILE, whole + b" "))
    assert str(raised.value).endswith(f"'/{name}' is longer than {limit >> 10} KiB")


def test_how_many_files_and_links_an_archive_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probe_core.recording.archives.MAX_ENTRIES", 3)
    members = [("proc/a", FILE, b""), ("proc/b", LINK, b""), ("proc/c", FILE, b"")]
    assert len(packed(tmp_path, *members, ("proc", FOLDER, b"")).files) == 2
    for kind in (FILE, LINK):
        with pytest.raises(BadRecording, match="more than 3 files and links"):
            packed(tmp_path, *members, ("proc/d", kind, b""))


@pytest.mark.parametrize(("length", "is_read"), [(64 << 10, True), ((64 << 10) + 1, False)])
def test_how_long_a_name_before_its_member_may_be(
    length: int, is_read: bool, tmp_path: Path
) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = b"L", length
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    body = b"proc/a".ljust(length, b"\0")
    end = tarfile.TarInfo("x").tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    (tmp_path / "x.tar").write_bytes(bytes(head) + body + bytes(-length % 512) + end)
    if is_read:
        assert list(read(str(tmp_path / "x.tar")).files) == ["/proc/a"]
    else:
        with pytest.raises(BadRecording, match="a header is longer than 64 KiB"):
            read(str(tmp_path / "x.tar"))


@pytest.mark.parametrize(
    ("data", "records"),
    [
        (b"", {}),
        (b"8 a=bcd\n", {"a": b"bcd"}),
        (b"8 a=bcd\n6 c=d\n", {"a": b"bcd", "c": b"d"}),
        (b"00000008 a=bcd\n", None),  # of more digits than a header can need
        (b"0000015 a=bcde\n", {"a": b"bcde"}),
        (b"9 a=bcd\n", None),
        (b"7 a=bcd\n", None),
        (b"6 abcd\n", None),
        (b"x a=b\n", None),
    ],
)
def test_records_of_a_header(data: bytes, records: dict[str, bytes] | None) -> None:
    if records is None:
        with pytest.raises(BadRecording):
            pax_records(data)
    else:
        assert pax_records(data) == records


def test_how_many_tables_a_document_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_TABLES", 3)
    document._check_nesting('{"a": [], "b": ["]]]]]]]]]]]"]}')
    with pytest.raises(BadRecording, match="it has more than 3 lists and tables"):
        document._check_nesting('{"a": [], "b": [], "c": []}')


def test_how_deep_a_document_may_be() -> None:
    document._check_nesting("[" * 32 + "]" * 32)
    with pytest.raises(BadRecording):
        document._check_nesting("[" * 33 + "]" * 33)


@pytest.mark.parametrize(
    ("path", "is_plain"),
    [
        ("/" + "/".join(["n" * 255] * 3 + ["m" * 254]) + "/", False),
        ("/" + "/".join(["n" * 255] * 3 + ["m" * 255]), True),  # 1,024 bytes
        ("/" + "/".join(["n" * 255] * 3 + ["m" * 254, "x"]), False),
        ("/" + "n" * 256, False),
        ("/" + "é" * 127, True),
        ("/" + "é" * 128, False),
        ("/a" * 64, True),
        ("/a" * 65, False),
        ("a", False),
        ("/a/./b", False),
        ("/a\0", False),
    ],
)
def test_which_paths_a_recording_has(path: str, is_plain: bool) -> None:
    if is_plain:
        assert check_path(path) == path
    else:
        with pytest.raises(BadRecording):
            check_path(path)


@pytest.mark.parametrize(
    ("target", "is_plain"),
    [
        ("", False), ("a\0", False), ("/a", False), ("../a", True),
        ("n" * 255, True), ("n" * 256, False),
        ("a/" * 512, True), ("a/" * 512 + "a", False),
    ],
)  # fmt: skip
def test_where_a_link_may_lead(target: str, is_plain: bool) -> None:
    if is_plain:
        assert check_target("/l", target) == target
    else:
        with pytest.raises(BadRecording):
            check_target("/l", target)


def test_through_how_many_links_a_path_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    links = {f"/{number}": f"{number - 1}" for number in range(1, 42)}
    links["/0"] = "end"
    assert resolve_links({path: links[path] for path in links if path != "/41"})["/40"] == "/end"
    with pytest.raises(BadRecording, match="through too many links"):
        resolve_links(links)
    assert resolve_links({"/a/l": "x/" * 63}) == {"/a/l": "/a" + "/x" * 63}
    with pytest.raises(BadRecording):
        resolve_links({"/a/l": "x/" * 64})
    # The steps of all links together: each of these takes two.
    monkeypatch.setattr("probe_core.recording.paths.MAX_LINK_STEPS", 4)
    assert resolve_links({"/a": "./x", "/b": "./x"}) == {"/a": "/x", "/b": "/x"}
    with pytest.raises(BadRecording):
        resolve_links({"/a": "./x", "/b": "./x", "/c": "x"})


def test_how_many_paths_a_pattern_names(monkeypatch: pytest.MonkeyPatch, tree: Tree) -> None:
    for name in ("n1", "n2", "n3", "nx", "m1"):
        tree.file(f"/sys/{name}/a", "")
    for limit, names, cut in ((3, ["n1", "n2", "n3"], 0), (2, ["n1", "n2"], 1)):
        monkeypatch.setattr("probe_core.recording.paths.MAX_MATCHES", limit)
        found = Expansion(tree.machine())
        assert found.paths("/sys/n#/a") == [f"/sys/{name}/a" for name in names]
        assert found.cut == cut
    assert found.paths("/n#", "/sys") == ["/sys/n1", "/sys/n2"]
    assert found.paths("/sys/n#/b") == []


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        ("MAX_HEADERS", 2, "it has more than 2 members"),
        ("MAX_TAR", 2560, "it is longer than 0 MiB when unpacked"),
        ("MAX_TOTAL", 4, "its files are longer than 0 MiB together"),
        ("MAX_PACKED", 2560, "it is longer than 0 MiB on the disk"),
    ],
)
def test_an_archive_at_its_bounds(
    limit: str, value: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two headers, a block for each content, and the first block of the end.
    members = [("proc/a", FILE, b"12"), ("proc/b", FILE, b"34")]
    for number, is_read in ((value, True), (value - 1, False)):
        monkeypatch.setattr(f"probe_core.recording.archives.{limit}", number)
        if is_read:
            assert len(packed(tmp_path, *members).files) == 2
        else:
            with pytest.raises(BadRecording) as raised:
                packed(tmp_path, *members)
            assert str(raised.value).endswith(words.replace("2 members", "1 members"))


END: Any = {"kind": "end", "status": "ok", "reason": None, "facts": {}, "abandoned": False}
ANSWER: Any = {"distribution": "d", "version": "1", "api": "1", "priority": 500, "deadline_s": 5.0,
               "elapsed_ms": 1.0, "vendors": [], "frames": [END]}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "end", "is_kept"),
    [
        ({"version": "x" * 4096}, {}, True),
        ({"version": "x" * 4097}, {}, False),
        ({"elapsed_ms": 0}, {}, True),
        ({"elapsed_ms": 99_999_999}, {}, True),
        ({"elapsed_ms": 1e8}, {}, False),
        ({"elapsed_ms": True}, {}, False),
        ({}, {"facts": {"exit_status": 0}}, True),
        ({}, {"facts": []}, False),
        ({}, {"facts": {"avoided": [""]}}, False),
        ({}, {"facts": {"avoided": ["x"]}}, True),
        ({}, {"facts": {"avoided": ["x"] * 64}}, True),
        ({}, {"facts": {"avoided": ["x"] * 65}}, False),
        ({}, {"facts": {"code": 5}}, False),
        ({}, {"status": 5}, False),
    ],
)
def test_what_an_answer_may_hold(
    changes: dict[str, Any], end: dict[str, Any], is_kept: bool
) -> None:
    answers = {"acme": {**ANSWER, "frames": [{**END, **end}], **changes}}
    text = json.dumps({"schema": 1, "origin": "invented", "files": {}, "answers": answers}).encode()
    if is_kept:
        assert list(parse(text).answers) == ["acme"]
    else:
        with pytest.raises(BadRecording, match="cannot be"):
            parse(text)


def test_an_unpacked_recording_is_the_users_own(tmp_path: Path) -> None:
    recording = Recording({"/proc/a/b": b"1"}, {"/sys/x": "y"}, {"os": "linux"})
    root = Path(unpack(recording, str(tmp_path / "out")))
    assert [stat.S_IMODE((root / name).stat().st_mode) for name in ("proc", "proc/a")] == [
        0o700, 0o700,
    ]  # fmt: skip
    modes = [
        stat.S_IMODE((root / name).stat().st_mode) for name in ("", "machine.json", "proc/a/b")
    ]
    assert modes == [0o700, 0o600, 0o600]
    assert (root / "proc/a/b").read_text() == "1"
    assert str((root / "sys/x").readlink()) == "y"
    assert json.loads((root / "machine.json").read_text())["os"] == "linux"


def test_files_together_are_kept_up_to_the_bound(
    monkeypatch: pytest.MonkeyPatch, tree: Tree
) -> None:
    tree.file("/proc/a", "123456")
    tree.file("/proc/b", "1234")
    for limit, files, over in ((10, 2, 0), (9, 1, 1), (6, 1, 1), (3, 0, 2)):
        monkeypatch.setattr(gather, "MAX_TOTAL", limit)
        found = gather.Taker(tree.machine(), Anonymiser(b""))
        for path, size in (("/proc/a", 6), ("/proc/b", 4)):
            found.put(path, bytes(size))
        assert (len(found.files), found.over) == (files, over)


@pytest.mark.parametrize(
    ("text", "is_right"),
    [("", False), ("x", True), ("x" * 64, True), ("x" * 65, False), (5, False)],
)
def test_how_long_a_condition_of_a_file_may_be(text: Any, is_right: bool) -> None:
    rule = {"files": ["a"], "pci_vendor": ["1ac0"], "only_if": {"b": text}}
    _, mistakes = check_records({"pci": [rule]})
    assert (len(mistakes) == 0) is is_right, mistakes


def test_a_serial_number_hides_what_repeats_in_it() -> None:
    hidden = [Anonymiser(b"s" * 16).serial(text) for text in ("AAAAAAAA", "00000000", "AAAAAAAB")]
    assert all(len(set(text)) > 2 for text in hidden)
    assert hidden[0][:7] == hidden[2][:7]
    assert hidden[0] != hidden[2]


# What of a process is kept.


def kept_status(tree: Tree, groups: str, uid: str = "1000") -> str:
    tree.file("/proc/self/status", f"Uid:\t{uid}\t1\t1\t1\nGid:\t5\t5\t5\t5\nGroups:\t{groups}\n")
    text = process_status(tree.machine())
    assert text is not None
    return text


def test_a_users_groups_are_told_by_kind(tree: Tree) -> None:
    text = kept_status(tree, "44 999 1000 65534 123456 9999999999 99999999999 x")
    assert "Groups:\t44 999 1000 65534 1000 1000 1000 1000" in text
    assert first_user(text) == "1000"
    assert first_user("Gid:\t5\n") is None


@pytest.mark.parametrize(
    ("first", "kept"),
    [("0 0 4294967295", "0 0 4294967295\n"), ("0 100000 65536", "0 1000 1\n"), ("", "0 1000 1\n")],
)
def test_a_map_of_users_has_one_line(first: str, kept: str, tree: Tree) -> None:
    tree.file("/proc/self/uid_map", f"{first.replace(' ', ' ' * 40)}\n9 9 9\n")
    assert surroundings(tree.machine())["/proc/self/uid_map"] == kept
