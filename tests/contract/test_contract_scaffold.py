"""A new plugin is complete: it passes its own tests, lint and types, and the core runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from probe_core import Machine, __version__, probe
from probe_core.testing import Tree
from probe_core.testing.scaffold import KINDS, write

ROOT = Path(__file__).resolve().parents[2]
LONG = "quite-a-long-name-npu"
CASES = [("sysfs", "acme"), ("sysfs", "acme-x2"), ("ctypes", "acme"), ("ctypes", LONG)]


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


def needs(*modules: str) -> None:
    for module in modules:
        pytest.importorskip(module)


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_new_plugin_passes_its_own_tests(tmp_path: Path, kind: str, name: str) -> None:
    if kind == "ctypes" and not shutil.which("cc"):
        pytest.skip("no C compiler: its fake library cannot be built")
    files = write(name, tmp_path, kind=kind)
    root = tmp_path / f"probe-{name}"
    assert all(path.is_file() for path in files)
    assert {path for path in root.rglob("*") if path.is_file()} == set(files)
    # Below pytest's own folder it would delete what earlier runs left: that takes a minute.
    base = f"--basetemp={tmp_path / 'pytest'}"
    without = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:anyio")
    out = python("-m", "pytest", "-q", *without, base, cwd=root)
    assert " passed" in out
    assert "skipped" not in out
    assert int(out.rpartition(" passed")[0].split()[-1]) > 44


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_it_is_typed_and_tidy(tmp_path: Path, kind: str, name: str) -> None:
    needs("mypy", "ruff")
    write(name, tmp_path, kind=kind)
    root = tmp_path / f"probe-{name}"
    # With its own settings, as its workflow calls them; what it finds of the core, the next knows.
    python("-m", "mypy", "--cache-dir", str(tmp_path.parent / "mypy"), cwd=root)
    python("-m", "ruff", "check", "--no-cache", ".", cwd=root)
    python("-m", "ruff", "format", "--no-cache", "--check", ".", cwd=root)


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_pyright_agrees(tmp_path: Path, kind: str) -> None:
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed here (pip install pyright; it needs Node.js)")
    write("acme", tmp_path, kind=kind)
    done = subprocess.run(
        [pyright, "--pythonpath", sys.executable],
        cwd=tmp_path / "probe-acme",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_its_types_are_strict(tmp_path: Path, kind: str) -> None:
    write("acme", tmp_path, kind=kind)
    settings = tomllib.loads((tmp_path / "probe-acme/pyproject.toml").read_text())
    assert settings["tool"]["mypy"]["strict"] is True
    assert settings["tool"]["mypy"]["files"] == ["src", "tests"]
    assert settings["tool"]["pyright"]["typeCheckingMode"] == "strict"


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_it_can_be_installed_beside_this_core(tmp_path: Path) -> None:
    """It once asked for a core newer than the one that wrote it."""
    write("acme", tmp_path)
    project = tomllib.loads((tmp_path / "probe-acme/pyproject.toml").read_text())["project"]
    (needed,) = project["dependencies"]
    wanted = Requirement(needed)
    assert wanted.name == "probe-core"
    assert wanted.specifier.contains(__version__, prereleases=True)
    assert not wanted.specifier.contains("0.8")


def test_it_has_what_a_release_needs(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    write("acme", tmp_path)
    root = tmp_path / "probe-acme"
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["license-files"] == ["LICENSE"]
    assert (root / "LICENSE").read_text().startswith("MIT License\n")
    publish = yaml.safe_load((root / ".github/workflows/publish.yml").read_text())
    assert publish["permissions"] == {}
    job = publish["jobs"]["publish"]
    # Trusted publishing: an identity token in place of a password.
    assert job["permissions"] == {"id-token": "write"}
    assert "password" not in json.dumps(job)
    assert publish["jobs"]["publish"]["needs"] == "build"


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_of_github_can_be_read(tmp_path: Path, kind: str) -> None:
    yaml = pytest.importorskip("yaml")
    write("acme", tmp_path, kind=kind)
    files = sorted((tmp_path / "probe-acme/.github").rglob("*.yml"))
    assert [path.name for path in files] == ["wrong-device.yml", "publish.yml", "tests.yml"]
    for path in files:
        text = path.read_text()
        assert yaml.safe_load(text)["name"]
        assert "$$" not in text


def test_the_core_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("acme", tmp_path, vendor="1AC7")
    monkeypatch.syspath_prepend(str(tmp_path / "probe-acme/src"))
    tree = Tree(tmp_path / "machine")
    tree.pci("0000:01:00.0", "1ac7:0001", pci_class="120000", driver="acme", product_name="One")
    machine = Machine(str(tmp_path / "machine"))
    report = probe(machine=machine, probers={"acme": "probe_acme.prober"}, only=["acme"])
    outcome = next(one for one in report.outcomes if one.prober == "acme")
    assert (outcome.status, outcome.devices) == ("ok", 1)
    assert report.device("pci:0000:01:00.0").name == "One"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "name", ["", "Acme", "acme_x", "1acme", "-acme", "acme-", "a" * 41, "../up", "acmé", "cpu"]
)
def test_names_that_cannot_be_used(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="name is"):
        write(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("vendor", ["", "1ac", "1ac00", "0x10", "10dé", "gggg"])
def test_vendor_ids_that_are_none(tmp_path: Path, vendor: str) -> None:
    with pytest.raises(ValueError, match="is no PCI vendor id"):
        write("acme", tmp_path, vendor=vendor)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "probe-acme").mkdir()
    with pytest.raises(FileExistsError, match="exists already"):
        write("acme", tmp_path)
    assert list((tmp_path / "probe-acme").iterdir()) == []
