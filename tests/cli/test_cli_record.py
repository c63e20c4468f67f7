"""`probe record`: what it writes, what it says, and what it refuses."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import recorded

from probe_core.cli import main
from probe_core.cli.record import _LEFT_OUT, _coverage, _summary, save
from probe_core.commands import CommandError

VM = "vm-without-accelerator--cpu"
ASLEEP = "laptop--sleeping-nvidia-geforce-rtx-4060-laptop-gpu"


@contextmanager
def few_bytes() -> Iterator[None]:
    """Files that are written hold 100 bytes, as on a disk that is nearly full.

    Not longer than that: pytest's own output may be a file.
    """
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def told(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    status = main(["record", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def report(capsys: Any, path: object) -> dict[str, Any]:
    assert main(["--json", "--only", "cpu", "--machine", str(path)]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_recording_of_this_machine_gives_its_report(capsys: Any, tmp_path: Path) -> None:
    path = tmp_path / "here.json"
    status, out, err = told(capsys, str(path))
    assert (status, out) == (0, "")
    assert err.startswith(f"{len(json.loads(path.read_text())['files'])} files and ")
    assert err.endswith("It is readable JSON: look it through before you share it.\n")
    assert main(["--json", "--only", "cpu"]) == 0
    here = json.loads(capsys.readouterr().out)
    there = report(capsys, path)
    assert ids(there) == ids(here)
    assert there["node"]["memory"]["total"] == here["node"]["memory"]["total"]
    assert there["node"]["arch"] == here["node"]["arch"]


def ids(document: dict[str, Any]) -> list[str]:
    return [device["id"] for device in document["devices"]]


def test_another_machine_to_standard_output(capsys: Any) -> None:
    status, out, err = told(capsys, "-", "--machine", str(recorded.path(ASLEEP)))
    data = json.loads(out)
    assert status == 0
    assert data["origin"] == recorded.read(ASLEEP)["origin"]
    assert "written to standard output." in err
    assert "Left out, so as not to wake them: most files of 0000:01:00.0" in err


def test_file_in_this_folder_by_default(
    capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    machine = str(recorded.path(VM))
    assert told(capsys, "--machine", machine)[0] == 0
    assert os.listdir(tmp_path) == ["recorded-machine.json"]
    assert stat.S_IMODE(os.stat("recorded-machine.json").st_mode) & 0o111 == 0
    assert ids(report(capsys, "recorded-machine.json")) == ids(report(capsys, machine))


def test_file_is_overwritten_only_by_force(capsys: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text("mine")
    machine = ("--machine", str(recorded.path(VM)))
    status, out, err = told(capsys, str(path), *machine)
    assert (status, out) == (2, "")
    assert err == f"probe record: {path} exists already; --force overwrites it\n"
    assert path.read_text() == "mine"
    assert told(capsys, str(path), "--force", *machine)[0] == 0
    assert json.loads(path.read_text())["schema"] == 1
    (tmp_path / "link").symlink_to("mine.json")
    save(str(tmp_path / "link"), b"through a link", force=True)
    assert (os.readlink(tmp_path / "link"), path.read_text()) == ("mine.json", "through a link")


def test_file_that_cannot_be_written(capsys: Any, tmp_path: Path) -> None:
    path = tmp_path / "none" / "file"
    status, _, err = told(capsys, str(path), "--machine", str(recorded.path(VM)))
    assert (status, err) == (2, f"probe record: {path}: No such file or directory\n")


def test_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    refused = f"^{path}: {os.strerror(errno.EFBIG)}$"
    with few_bytes(), pytest.raises(CommandError, match=refused):
        save(str(path), b"x" * 101, force=False)
    assert os.listdir(tmp_path) == []
    path.write_text("mine")
    with few_bytes(), pytest.raises(CommandError, match=refused):
        save(str(path), b"x" * 101, force=True)
    assert (os.listdir(tmp_path), path.read_text()) == (["mine.json"], "mine")


def test_machine_whose_probers_read_no_files(capsys: Any, tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text('{"os": "darwin"}')
    status, _, err = told(capsys, "-", "--machine", str(tmp_path))
    assert status == 2
    assert err == "probe record: on darwin plugins read no files that could be recorded\n"


def gathered(**more: Any) -> Any:
    recording = SimpleNamespace(files={"/a": b""}, links={"/b": "a", "/c": "a"}, answers=[])
    found: dict[str, Any] = {"asleep": [], "unreadable": [], "over": 0, "recording": recording}
    return SimpleNamespace(**found | more)


def test_what_was_written_and_what_was_left_out() -> None:
    first = ["1 file and 2 links were written to x.json.", _LEFT_OUT]
    assert _summary("x.json", gathered()) == first
    assert _summary("-", gathered())[0] == "1 file and 2 links were written to standard output."
    whole = gathered(asleep=[f"d{n}" for n in range(9)], unreadable=["/d"], over=2)
    whole.recording.answers = ["nvidia", "acme"]
    assert _summary("x.json", whole) == [
        *first,
        "Answers of libraries: nvidia and acme.",
        "Left out, so as not to wake them: most files of d0, d1, d2, d3, d4, d5, d6, d7 ….",
        "Left out, for they cannot be read: 1 file.",
        "Left out, for a recording is full: 2 files.",
    ]
    asleep = gathered(asleep=[f"d{n}" for n in range(8)])
    assert _summary("x.json", asleep)[-1].endswith("most files of d0, d1, d2, d3, d4, d5, d6, d7.")


def test_which_plugins_files_it_holds() -> None:
    none: Any = SimpleNamespace(covered=[], silent=[], refused=[], findings=[])
    install = (
        "Files that only other plugins read are missing: install those first, then record again."
    )
    assert _coverage(none) == [
        "Covered: the files that probe-core reads; no installed plugin declares others.",
        install,
    ]
    finding = {"what": "it is odd", "why": "w", "fix": "f"}
    some: Any = SimpleNamespace(
        covered=["amd", "nvidia"], silent=["a", "b"], refused=["c: why"], findings=[finding]
    )
    assert _coverage(some) == [
        "Covered: the files that probe-core reads, and those of amd and nvidia.",
        install,
        "Not covered, for their manifests declare no files: a or b.",
        "Not covered: c: why.",
        "it is odd: w; f.",
    ]
