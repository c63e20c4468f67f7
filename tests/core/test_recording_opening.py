"""A recorded machine is opened for a while, whatever it is kept in, and leaves nothing behind."""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
import recorded
from reports import report_of

from probe_core.recording import BadRecording, open_machine

ABOUT = {"os": "linux", "arch": "riscv64", "environ": {"A": "b"}, "origin": "invented"}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def kept(folder: Path, kind: str, files: dict[str, str]) -> str:
    """Write a machine as a folder, a document or an archive; return its path."""
    path = folder / f"machine.{kind}"
    if kind == "json":
        path.write_text(json.dumps({"schema": 1, **ABOUT, "files": files, "links": {}}))
    elif kind == "tar":
        with tarfile.open(path, "w") as tar:
            for name, text in {"/machine.json": json.dumps(ABOUT), **files}.items():
                info = tarfile.TarInfo(name[1:])
                info.size = len(text.encode())
                tar.addfile(info, io.BytesIO(text.encode()))
    else:
        for name, text in {"/machine.json": json.dumps(ABOUT), **files}.items():
            place = path / name[1:]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    return str(path)


@pytest.mark.parametrize("kind", ["folder", "json", "tar"])
def test_each_kind_is_the_same_machine(kind: str, tmp_path: Path, temporary: Path) -> None:
    path = kept(tmp_path, kind, {"/proc/meminfo": "MemTotal: 1 kB"})
    with open_machine(path) as machine:
        assert machine.read("/proc/meminfo") == "MemTotal: 1 kB"
        told = (machine.os, machine.arch, machine.environ, machine.live)
        assert told == ("linux", "riscv64", {"A": "b"}, False)
        assert len(os.listdir(temporary)) == (kind != "folder")
    assert os.listdir(temporary) == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, OSError])
def test_whatever_happens_the_folder_is_gone(
    error: type[BaseException], tmp_path: Path, temporary: Path
) -> None:
    path = kept(tmp_path, "json", {"/a/b": "c"})
    with pytest.raises(error), open_machine(path):
        raise error
    assert os.listdir(temporary) == []


@pytest.mark.parametrize("name", recorded.names())
def test_recorded_machine_gives_the_report_of_its_folder(name: str, tmp_path: Path) -> None:
    root = str(recorded.unpack(recorded.read(name), tmp_path / "root"))
    with open_machine(root) as folder, open_machine(str(recorded.path(name))) as file:
        assert settled(report_of(folder)) == settled(report_of(file))


def settled(document: dict[str, Any]) -> dict[str, Any]:
    """Return a report without what differs from run to run."""
    outcomes = [{**one, "elapsed_ms": 0} for one in document["outcomes"]]
    return {**document, "outcomes": outcomes, "timings_ms": {}}


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ("{", "is nested deeper"),
        ('{"os": 5}', "its os '5' is not one word"),
        ("[" * 40 + "]" * 40, "is nested deeper than 32 levels"),
        (" " * 70_000, "it is longer than 64 KiB"),
        ("[]", "it is JSON, but no table"),
    ],
    ids=range(5),
)
def test_machine_json_of_a_folder_is_checked(about: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text(about)
    with (
        pytest.raises(BadRecording, match=f"machine.json' cannot be used: .*{message}"),
        open_machine(str(tmp_path)),
    ):
        pass


def test_machine_json_is_a_file_of_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    os.mkfifo(path)
    with pytest.raises(BadRecording, match="it is no regular file"), open_machine(str(tmp_path)):
        pass
    path.unlink()
    path.symlink_to("/etc/hostname")
    with pytest.raises(OSError, match="symbolic links"), open_machine(str(tmp_path)):
        pass
    path.unlink()
    with open_machine(str(tmp_path)) as machine:
        assert (machine.os, machine.arch) == ("linux", "x86_64")


def test_bad_file_leaves_nothing_behind(tmp_path: Path, temporary: Path) -> None:
    path = kept(tmp_path, "json", {"/a": "", "/a/b": ""})
    with pytest.raises(BadRecording, match="'/a/b' lies below the file '/a'"), open_machine(path):
        pass
    with pytest.raises(FileNotFoundError), open_machine(str(tmp_path / "none")):
        pass
    assert os.listdir(temporary) == []
