"""The command: what it prints, how it ends, what it refuses, and that it changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
import test_readiness_causes as readiness
from command import environment, probe_here
from doctor_cases import complete
from readiness_nodes import DEVICE, Node, nvidia

from probe_core.cli import doctor as doctor_command
from probe_core.cli import record as record_command
from probe_core.cli.doctor_text import lines
from probe_core.commands import CommandError, Context
from probe_core.doctor.assumed import with_driver
from probe_core.doctor.check import Request
from probe_core.doctor.examine import examine
from probe_core.model.causes import CAUSES

SCHEMA = Path(__file__).parents[2] / "probe_core" / "doctor" / "doctor.schema.json"


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """A folder with a machine whose library is newer than its kernel driver."""
    return written(readiness.upgraded_without_a_restart(tmp_path / "root"))


@pytest.fixture
def healthy(tmp_path: Path) -> str:
    return written(nvidia(tmp_path / "healthy"))


def written(node: Node) -> str:
    complete(node)
    about = {"os": "linux", "arch": "x86_64", "environ": node.environ, "access": node.access}
    (node.tree.root / "machine.json").write_text(json.dumps(about))
    return str(node.tree.root)


def doctor(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return probe_here("doctor", *arguments, env=environment(**{"COLUMNS": "80", **variables}))


def document(*arguments: str) -> dict[str, Any]:
    result = doctor("--json", *arguments)
    data: dict[str, Any] = json.loads(result.stdout)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(data)
    assert result.returncode == (1 if data["healthy"] is False else 0)
    return data


def test_a_broken_machine_is_one_error_with_its_fix(broken: str) -> None:
    result = doctor("--machine", broken)
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith(" probe doctor: 1 error")
    assert lines[0].endswith("ubuntu 24.04, linux 6.8.0-60-generic")
    assert "✕ version-mismatch   NVIDIA GeForce RTX 4090  pci:0000:01:00.0" in result.stdout
    assert "fix    `sudo reboot`" in result.stdout
    assert "probe doctor --bundle" in lines[-1]
    assert max(map(len, lines)) <= 80


def test_the_errors_consequences_are_folded_under_it(broken: str) -> None:
    data = document("--machine", broken)
    assert [f["code"] for f in data["findings"] if f["severity"] == "error"] == ["version-mismatch"]
    assert data["devices"][0]["readiness"]["broken"] == "library"


def test_a_healthy_machine_is_one_line_and_what_was_checked(healthy: str) -> None:
    result = doctor("--machine", healthy)
    assert result.returncode == 0
    first = result.stdout.splitlines()[0]
    assert first.startswith(" probe doctor: healthy. ")
    assert "checks passed" in first
    assert "NVIDIA GeForce RTX 4090: ready" in result.stdout


@pytest.mark.parametrize(
    ("variables", "power", "state"),
    [
        ({}, "active", "ready"),
        ({}, "suspended", "asleep"),
        ({"CUDA_VISIBLE_DEVICES": ""}, "active", "hidden"),
    ],
)
def test_a_device_has_the_state_of_the_table(
    variables: dict[str, str], power: str, state: str, tmp_path: Path
) -> None:
    node = nvidia(tmp_path, power=power)
    node.environ.update(variables)
    complete(node)
    data = examine(Request(node.machine(), node.report()))  # type: ignore[arg-type]
    assert f"   NVIDIA GeForce RTX 4090: {state}" in list(lines(data, Context()))


def test_the_document_counts_every_check(healthy: str) -> None:
    data = document("--machine", healthy)
    assert data["healthy"] is True
    codes = [check["code"] for check in data["checks"]]
    assert set(CAUSES) <= set(codes)
    assert len(codes) == len(set(codes))
    assert all(
        "reason" in c for c in data["checks"] if c["status"] in ("unknown", "not_applicable")
    )


def test_only_runs_what_is_named(broken: str) -> None:
    data = document("--machine", broken, "--only", "version-mismatch,off-the-bus")
    assert [check["code"] for check in data["checks"]] == ["off-the-bus", "version-mismatch"]
    assert [finding["code"] for finding in data["findings"]] == ["version-mismatch"]
    data = document("--machine", broken, "--only", "off-the-bus")
    assert (data["findings"], data["healthy"]) == ([], True)


@pytest.mark.parametrize("codes", ["", ",", " , "])
def test_an_empty_list_of_checks_is_refused(codes: str, broken: str) -> None:
    result = doctor("--machine", broken, f"--only={codes}")
    assert (result.returncode, result.stdout) == (2, "")
    assert "--only has no code" in result.stderr


def test_a_few_checks_call_no_machine_healthy(broken: str) -> None:
    result = doctor("--machine", broken, "--only", "off-the-bus")
    assert result.stdout.startswith(" probe doctor: nothing found. 1 check passed.")
    assert "healthy" not in result.stdout
    entries = json.loads(doctor("--list", "--json", "--only", "xid-seen,tdr").stdout)
    assert [entry["code"] for entry in entries] == ["xid-seen", "tdr"]
    assert doctor("--list", "--only", "xid-sen").returncode == 2


def test_a_device_by_a_part_of_its_id(broken: str) -> None:
    data = document("--machine", broken, "--device", "01:00")
    assert [device["id"] for device in data["devices"]] == [DEVICE]
    result = doctor("--machine", broken, "--device", "ff:00")
    assert result.returncode == 2
    assert "no device" in result.stderr
    assert DEVICE in result.stderr


def test_a_misspelt_check_is_refused_with_the_near_one(broken: str) -> None:
    result = doctor("--machine", broken, "--only", "version-missmatch")
    assert result.returncode == 2
    assert "no such check. Did you mean version-mismatch?" in result.stderr
    assert result.stdout == ""


def test_list_names_every_check_and_runs_none() -> None:
    result = doctor("--list", "--json")
    entries = json.loads(result.stdout)
    assert result.returncode == 0
    assert {entry["code"] for entry in entries} >= set(CAUSES)
    by_code = {entry["code"]: entry for entry in entries}
    assert "/etc/cdi" in by_code["cdi-spec-stale"]["needs"]
    assert by_code["version-mismatch"]["step"] == "library"
    assert "/proc/driver/nvidia/version" in by_code["version-mismatch"]["needs"]


def test_the_list_for_people_has_what_each_check_needs() -> None:
    lines = doctor("--list").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "cdi-spec-stale node" in text
    assert "Needs: /etc/cdi, /var/run/cdi, /run/cdi" in text
    assert "environment-missing runtime" in text
    assert "Needs: environment" in text
    assert " library: /proc/driver/nvidia/version, /etc/ld.so.conf, /usr/lib" in text
    assert "…" not in text


def test_all_lists_each_result(healthy: str) -> None:
    text = doctor("--machine", healthy, "--all").stdout
    assert all(f"\n{code} " in text for code in ("off-the-bus", "rocm-missing", "tdr"))


@pytest.mark.parametrize("width", ["40", "60", "80", "200"])
def test_it_fits_the_terminal(width: str, broken: str) -> None:
    text = doctor("--machine", broken, COLUMNS=width).stdout
    # A path has no blank to break at.
    longest = max(max(map(len, line.split()), default=0) for line in text.splitlines())
    assert max(map(len, text.splitlines())) <= max(min(int(width), 80), longest + 10)
    assert "\033" not in text


def test_a_stranger_reads_the_bundle_as_its_maker(broken: str, tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    result = doctor("--machine", broken, "--bundle", str(path))
    assert result.returncode == 1
    listed, written_at = (
        result.stderr.index("/probe/doctor.json"),
        result.stderr.index("was written"),
    )
    assert listed < written_at
    first = document("--machine", broken)["findings"][0]
    again = document("--machine", str(path))["findings"][0]
    assert (first["code"], first["device"], first["fix"]) == (
        again["code"],
        again["device"],
        again["fix"],
    )
    second = doctor("--machine", broken, "--bundle", str(path))
    assert second.returncode == 2
    assert "exists already; --force overwrites it" in second.stderr


def test_an_environment_without_a_set_that_reads_one(healthy: str, tmp_path: Path) -> None:
    # An allowlist that has no such set, for one is installed beside these tests.
    result = doctor("--json", "--machine", healthy, "--env", str(tmp_path), PROBE_ALLOW="nobody")
    assert json.loads(result.stdout)["healthy"] is True
    assert "the checks of probe-wheels" in result.stderr
    # An allowlist that is an option binds the doctor's checks as the variable does.
    arguments = ("--machine", healthy, "--env", str(tmp_path), "--allow", "probe-nvidia")
    owner = doctor(*arguments).stderr.removeprefix("probe: the checks of probe-wheels ")
    assert owner.endswith(" did not all run: probe-wheels is not on the allowlist\n")


def test_it_writes_nothing_and_leaves_the_environment_alone(healthy: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    before = sorted(str(path) for path in Path(healthy).rglob("*"))
    doctor("--machine", healthy, HOME=str(home), XDG_STATE_HOME=str(home / "state"))
    assert list(home.iterdir()) == []
    assert sorted(str(path) for path in Path(healthy).rglob("*")) == before


def test_it_loads_neither_argparse_nor_json(healthy: str) -> None:
    code = (
        "import sys\nfrom probe_core.cli import main\n"
        f"main(['doctor', '--json', '--machine', {healthy!r}])\n"
        "slow = {'argparse', 'typing', 'dataclasses', 'tarfile', 'subprocess'}\n"
        "sys.stderr.write(repr(sorted(slow & set(sys.modules))))\n"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment(), capture_output=True, text=True
    )
    assert "argparse" not in result.stderr
    assert "tarfile" not in result.stderr


def test_a_state_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = doctor("--save", XDG_STATE_HOME=str(tmp_path / "file"))
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert os.fspath(tmp_path / "file") in result.stderr


def test_no_place_for_the_state() -> None:
    result = doctor("--save", XDG_STATE_HOME="", LOCALAPPDATA="", HOME="")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "probe doctor: nothing is saved: neither XDG_STATE_HOME nor HOME names a folder"
    )


def test_options_that_contradict_each_other(broken: str) -> None:
    for arguments in (["--save", "--machine", broken], ["--force"]):
        result = doctor(*arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("probe doctor: --")


def test_marks_stay_apart_where_a_terminal_has_ascii_alone(broken: str) -> None:
    text = doctor("--machine", broken, PYTHONIOENCODING="ascii").stdout
    assert "\n x version-mismatch   NVIDIA GeForce RTX 4090" in text
    assert "?" not in text


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_no_bundle_is_made_off_linux(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", platform)
    context = Context()
    context.examined = pytest.fail  # type: ignore[method-assign,assignment]
    args = SimpleNamespace(
        list=False,
        save=False,
        force=False,
        machine=None,
        bundle="probe-bundle.tar.gz",
        config=None,
        codes=None,
        env=None,
        next_boot=False,
        supposed=None,
    )
    with pytest.raises(CommandError, match="recordings, which are made on Linux"):
        doctor_command.run(args, context)  # type: ignore[arg-type]


def test_an_archive_that_exists_is_refused_before_the_work(tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    path.symlink_to("nowhere")
    context = Context()
    context.examined = pytest.fail  # type: ignore[method-assign,assignment]
    unset = dict.fromkeys(("list", "save", "force", "next_boot"), False)
    unset |= dict.fromkeys(("config", "codes", "env", "supposed"))
    doctor_args = SimpleNamespace(**unset, machine=str(tmp_path), bundle=str(path))
    # It has no other option of `probe record`, so that nothing else can come first.
    record_args = SimpleNamespace(file=str(path), force=False)
    for command, args in ((doctor_command, doctor_args), (record_command, record_args)):
        with pytest.raises(CommandError, match=r"bundle\.tar\.gz exists already; --force over"):
            command.run(args, context)  # type: ignore[arg-type]


def test_an_assumed_driver_takes_the_place_of_nouveau_on_nvidias_gpus_alone() -> None:
    plain = {"vendor": "nvidia", "kind": "gpu"}
    drivers: list[Any] = [None, {"name": "nouveau"}, {"name": "nova-drm", "version": "6.15"}]
    drivers.append({"name": "nvidia-open", "version": "570.1", "kernel": "6.8"})
    others = [plain | {"vendor": "amd", "driver": {"name": "amdgpu"}}, plain | {"kind": "audio"}]
    report: Any = {"devices": [*(plain | {"driver": driver} for driver in drivers), *others]}
    assert with_driver(report, None) is report
    assumed: Any = with_driver(report, "595")["devices"]
    nvidia_own = {"name": "nvidia", "version": "595.99"}  # the newest of its branch
    assert [device["driver"] for device in assumed[:3]] == [nvidia_own] * 3
    assert assumed[3]["driver"] == {"name": "nvidia-open", "version": "595.99", "kernel": "6.8"}
    assert assumed[4:] == others
    exact: Any = with_driver(report, "595.45")["devices"][1]["driver"]
    assert exact == {"name": "nvidia", "version": "595.45"}
