"""A new plugin is complete: it passes its own tests, its types, and the core runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from probe_core import Machine, probe
from probe_core.testing.scaffold import write

ROOT = Path(__file__).resolve().parents[2]


def python(*command: str, cwd: Path) -> str:
    path = os.pathsep.join([str(cwd / "src"), str(ROOT), str(ROOT / "chipdb/src")])
    environ = {**os.environ, "PYTHONPATH": path, "MYPYPATH": path}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["acme", "acme-x2"])
def test_a_new_plugin_passes_its_own_tests(tmp_path: Path, name: str) -> None:
    files = write(name, tmp_path)
    root = tmp_path / f"probe-{name}"
    assert all(path.is_file() for path in files)
    assert (root / f"src/probe_{name.replace('-', '_')}/prober.json") in files
    out = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", cwd=root)
    assert " passed" in out
    assert "skipped" not in out
    assert int(out.rpartition(" passed")[0].split()[-1]) > 40


def test_it_is_typed_and_tidy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    write("acme", tmp_path)
    root = tmp_path / "probe-acme"
    python("-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "src", cwd=root)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length", "100", "."],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named ruff" not in done.stderr:
        assert done.returncode == 0, done.stdout


def test_the_core_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("acme", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "probe-acme/src"))
    device = tmp_path / "machine/sys/class/acme/acme0"
    device.mkdir(parents=True)
    (device / "name").write_text("Acme One\n")
    machine = Machine(str(tmp_path / "machine"))
    report = probe(machine=machine, probers={"acme": "probe_acme.prober"}, only=["acme"])
    outcome = next(one for one in report.outcomes if one.prober == "acme")
    assert (outcome.status, outcome.devices) == ("ok", 1)
    assert report.device("acme:acme0").name == "Acme One"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "name", ["", "Acme", "acme_x", "1acme", "-acme", "acme-", "a" * 41, "../up", "acmé", "cpu"]
)
def test_names_that_cannot_be_used(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="name is"):
        write(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "probe-acme").mkdir()
    with pytest.raises(FileExistsError, match="exists already"):
        write("acme", tmp_path)
    assert list((tmp_path / "probe-acme").iterdir()) == []
