"""An installation without bytecode has the line that compiles it; an untried Python is named."""

from __future__ import annotations

import compileall
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import probe_chipdb
import probe_core
from probe_core.doctor.check import Request
from probe_core.doctor.installation import CHECKS, TRIED, _finding, bytecode, is_untried
from probe_core.machine import Machine

PACKAGES = [Path(str(package.__file__)).parent for package in (probe_core, probe_chipdb)]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with the core and its chips, as an installer that compiles nothing leaves."""
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package, tmp_path / "site" / package.name, ignore=ignored)
    return tmp_path / "site"


def doctor(site: Path, *arguments: str, **variables: str) -> list[dict[str, Any]]:
    """Return what the doctor finds of bytecode, run from the folder."""
    environ = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1", "PROBE_ONLY": "cpu"}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *arguments, "-m", "probe_core", "doctor", "--json"]
    done = subprocess.run(
        [*command, "--only", "no-bytecode"],
        env=environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    document = json.loads(done.stdout)
    (entry,) = document["checks"]
    assert entry["status"] == ("failed" if document["findings"] else "passed")
    findings: list[dict[str, Any]] = document["findings"]
    return findings


@pytest.mark.heavy
def test_an_installation_without_bytecode_has_the_line_that_compiles_it(site: Path) -> None:
    (found,) = doctor(site, PYTHONDONTWRITEBYTECODE="1")
    assert (found["code"], found["severity"], found["device"]) == ("no-bytecode", "info", None)
    assert found["variable"] == "PYTHONDONTWRITEBYTECODE"
    assert found["what"] == (
        "the installation has no bytecode: a start takes about four times as long"
    )
    assert found["why"].endswith(" and PYTHONDONTWRITEBYTECODE forbids Python to write it")
    line = found["fix"].split("`")[1].removeprefix("RUN ")
    assert line == f"{sys.executable} -m compileall -q {site}"
    subprocess.run(shlex.split(line), check=True, timeout=120)
    assert doctor(site, PYTHONDONTWRITEBYTECODE="1") == []


@pytest.mark.parametrize(
    ("container", "folder", "before"),
    [(None, "", "`"), (None, "gone", "`sudo "), ("docker", "gone", "in the image's build: `RUN ")],
)
def test_who_may_write_the_folder_compiles_it_and_else_root_or_the_images_build(
    tmp_path: Path, container: str | None, folder: str, before: str
) -> None:
    request: Any = SimpleNamespace(scene=SimpleNamespace(container=container))
    found = _finding(request, str(tmp_path / folder), 1, 2)
    line = f"{sys.executable} -m compileall -q {tmp_path / folder}`"
    assert str(found["fix"]).startswith(f"{before}{line}")
    assert str(found["why"]).startswith("of 2 loaded modules 1 have none, and ")


@pytest.mark.parametrize(
    ("count", "missing", "status"),
    [(0, 0, "not_applicable"), (5, 2, "passed"), (4, 2, "failed"), (5, 5, "failed")],
)
def test_half_of_the_modules_without_bytecode_are_a_fault(
    count: int, missing: int, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {"probe_core": SimpleNamespace(__spec__=None), "probe_x": SimpleNamespace()}
    for at in range(count):
        cached = tmp_path / "__pycache__" / f"m{at}.pyc"
        cached.parent.mkdir(exist_ok=True)
        if at >= missing:
            cached.touch()
        spec = SimpleNamespace(
            origin=f"{tmp_path}/p/m{at}.py", cached=str(cached), has_location=True
        )
        others[f"probe_core.m{at}"] = SimpleNamespace(__spec__=spec)
    kept = {"executable": "/bin/python", "dont_write_bytecode": False, "modules": others}
    monkeypatch.setattr("probe_core.doctor.installation.sys", SimpleNamespace(**kept))
    result: Any = bytecode.run(Request(Machine(), {}))  # type: ignore[typeddict-item]
    assert result["status"] == status
    if status == "failed":
        why = f"of {count} loaded modules {missing} have none, and Python wrote none when"
        assert result["findings"][0]["why"] == f"{why} it loaded them"
        assert result["findings"][0]["evidence"] == f"{tmp_path}: no __pycache__ of this Python"


def test_one_that_python_may_compile_is_well_at_once(site: Path) -> None:
    assert doctor(site) == []


@pytest.mark.heavy
def test_a_changed_module_or_another_place_of_bytecode_is_no_fault(
    site: Path, tmp_path: Path
) -> None:
    compileall.compile_dir(site, quiet=1)
    for cached in (site / "probe_core" / "__pycache__").glob("wording.*"):
        cached.unlink()
    assert doctor(site, PYTHONDONTWRITEBYTECODE="1") == []
    for folder in site.rglob("__pycache__"):
        shutil.rmtree(folder)
    elsewhere = tmp_path / "elsewhere"
    doctor(site, PYTHONPYCACHEPREFIX=str(elsewhere))
    assert doctor(site, PYTHONPYCACHEPREFIX=str(elsewhere), PYTHONDONTWRITEBYTECODE="1") == []


FREE_THREADED = """
import sys
sys.abiflags = sys.argv.pop(1)
from probe_core.cli import main
sys.exit(main(["doctor", "--json", "--only", "python-untried"]))
"""


@pytest.mark.parametrize(("flags", "count"), [("", 0), ("d", 0), ("t", 1), ("td", 1)])
def test_a_free_threaded_build_is_said_to_be_untried(flags: str, count: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FREE_THREADED, flags],
        env={**os.environ, "PROBE_ONLY": "cpu"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    findings = json.loads(done.stdout)["findings"]
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    count *= sys.version_info[:2] not in TRIED
    assert [
        (found["code"], found["severity"], found["fix"], found["evidence"]) for found in findings
    ] == [
        (
            "python-untried",
            "info",
            f"install probe with the ordinary build of Python {version}",
            f"sys.abiflags: {flags}",
        )
    ] * count


@pytest.mark.parametrize(
    ("flags", "version", "expected"),
    [
        ("t", (3, 13), True),
        ("t", (3, 14), False),
        ("td", (3, 14), False),
        ("t", (3, 15), True),
        ("", (3, 13), False),
    ],
)
def test_the_builds_that_were_tried(flags: str, version: tuple[int, int], expected: bool) -> None:
    assert is_untried(flags, version) is expected


def test_a_recording_says_nothing_of_the_installation(tmp_path: Path) -> None:
    report: Any = {"devices": []}
    request = Request(Machine(str(tmp_path)), report)
    assert [check.run(request)["status"] for check in CHECKS] == ["not_applicable"] * 2
