"""What is sent: small enough, whole, of what may run here, and gone afterwards."""

from __future__ import annotations

import fcntl
import importlib
import io
import json
import os
import subprocess
import sys
import tarfile
import time
import zlib
from pathlib import Path

import pytest

from probe_cluster.gathering import node_agent
from probe_cluster.gathering.archive import MOST_BYTES, Archive, build
from probe_cluster.gathering.sending import program


@pytest.fixture(scope="module")
def archive() -> Archive:
    return build({})


def names(archive: Archive) -> set[str]:
    with tarfile.open(fileobj=io.BytesIO(archive.data)) as file:
        return set(file.getnames())


def test_it_is_the_core_the_chips_and_the_probers_of_python_alone(archive: Archive) -> None:
    assert len(archive.data) <= MOST_BYTES == 3 << 20
    files = names(archive)
    packages = {name.partition("/")[0] for name in files if name.endswith("/__init__.py")}
    assert {"probe_core", "probe_chipdb", "attr", "attrs", "pluggy", "probe_nvidia"} <= packages
    assert {"pynvml.py", "probe_chipdb/table/chips.txt"} <= files
    assert not {"probe_cluster", "probe_tinygrad", "tinygrad", "psutil"} & packages
    # Of 40 MB, and nothing of it is there without the rest.
    assert archive.absent == {"probe-tinygrad": "tinygrad has more than 8 MiB"}
    assert not [name for name in files if name.endswith((".pyc", ".so", ".pyi"))]


def test_the_same_files_make_the_same_archive(archive: Archive) -> None:
    assert build({}).data == archive.data


def test_an_allowlist_holds_for_what_is_sent(archive: Archive, tmp_path: Path) -> None:
    allowed = build({"PROBE_ALLOW": "probe-intel"})
    assert "probe_intel/__init__.py" in names(allowed)
    assert "probe_amd/__init__.py" not in names(allowed)
    assert allowed.absent["probe-amd"] == "probe-amd is not on the allowlist"


def plugin(folder: Path, name: str, *, compiled: bool = False) -> None:
    """Write an installed distribution with one prober."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}_prober").mkdir()
    (folder / f"{name}_prober" / "__init__.py").write_text("")
    if compiled:
        (folder / f"{name}_prober" / "fast.so").write_bytes(b"\x7fELF")
    info = folder / f"probe_{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: probe-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[probe_core.probers.v1]\n{name} = {name}_prober\n")


def test_a_compiled_plugin_is_left_out_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(tmp_path / "site", "pure")
    plugin(tmp_path / "site", "quick", compiled=True)
    monkeypatch.syspath_prepend(tmp_path / "site")
    importlib.invalidate_caches()
    built = build({})
    assert "pure_prober/__init__.py" in names(built)
    assert "probe_pure-1.0.dist-info/entry_points.txt" in names(built)
    assert "quick_prober/__init__.py" not in names(built)
    assert built.absent["probe-quick"] == "fast.so is compiled for one kind of processor"


@pytest.mark.skipif(os.geteuid() != 0, reason="the rule is for root")
def test_root_sends_nothing_that_others_could_have_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(tmp_path / "site", "open")
    (tmp_path / "site" / "open_prober" / "__init__.py").chmod(0o666)
    monkeypatch.syspath_prepend(tmp_path / "site")
    importlib.invalidate_caches()
    built = build({})
    assert "open_prober/__init__.py" not in names(built)
    assert "writable by everyone" in built.absent["probe-open"]


def test_it_reports_what_the_installed_probe_reports(archive: Archive, tmp_path: Path) -> None:
    folder = tmp_path / "probe"
    folder.mkdir(mode=0o700)
    node_agent._extract(zlib.decompress(archive.data, 31), str(folder))
    sent, report = (
        json.loads(subprocess.check_output([sys.executable, *words, "--json"], cwd="/"))
        for words in (["-I", "-S", str(folder)], ["-m", "probe_core"])
    )
    assert [device["id"] for device in sent["devices"]] == [
        device["id"] for device in report["devices"]
    ]
    outcomes = {outcome["prober"]: outcome["status"] for outcome in sent["outcomes"]}
    installed = {outcome["prober"]: outcome["status"] for outcome in report["outcomes"]}
    assert outcomes == {name: installed[name] for name in outcomes}
    assert installed.keys() - outcomes.keys() <= {"tinygrad"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(node_agent, "places", lambda environ: [str(tmp_path)])
    return tmp_path


def test_a_folder_whose_owner_is_gone_is_deleted_by_the_next(place: Path) -> None:
    """All processes of a run may be killed at once, as at a logout or without memory."""
    old = time.time() - 3600
    for name in ("gone", "used", "foreign"):
        folder = place / (name if name == "foreign" else f"{node_agent.PREFIX}{name}")
        folder.mkdir()
        (folder / "file").write_text("")
        os.utime(folder, (old, old))
    new = place / f"{node_agent.PREFIX}new"
    new.mkdir()
    file = os.open(place / f"{node_agent.PREFIX}used", os.O_RDONLY)
    fcntl.flock(file, fcntl.LOCK_EX)
    node_agent.sweep(str(place))
    os.close(file)
    left = sorted(path.name.removeprefix(node_agent.PREFIX) for path in place.iterdir())
    assert left == ["foreign", "new", "used"]
    node_agent.sweep(str(place / "none"))  # no folder is none to sweep


@pytest.mark.parametrize("minor", [6, 7, 8, 9, 10])
def test_the_program_runs_on_a_system_python(minor: int) -> None:
    found = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))
    if not found:
        pytest.skip(f"no Python 3.{minor} is installed by pyenv")
    words = ["-I", "-S", "-c", program().decode(), "20", "alone", "1.0", "n", "no-such-probe"]
    done = subprocess.run([str(found[0]), *words], capture_output=True, check=True, timeout=60)
    assert done.stderr == b""
    assert b"#probe-cluster n " in done.stdout


def test_a_damaged_archive_is_not_run() -> None:
    words = ["-I", "-S", "-c", program().decode(), "20", "lifeline", "1.0", "n", "no-such-probe"]
    head = f"{4:08x} {'0' * 64}".encode().ljust(node_agent.HEAD)
    done = subprocess.run(
        [sys.executable, *words], input=head + b"code", capture_output=True, check=True, timeout=60
    )
    from probe_cluster.gathering.lines import Streams

    messages: list[dict[str, object]] = []
    Streams(lambda stream: messages.append(json.loads(stream.text()))).feed(done.stdout)
    assert [message["kind"] for message in messages] == ["start", "need", "failed"]
    assert messages[-1]["reason"] == "the probe that was sent arrived damaged"
