"""`probe layout` and `probe exec` of devices that no variable hides, and of nameless ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reports import report_of_recording

from probe_core.cli import main

GAUDI = "server--8x-intel-gaudi-2"
FREE = "does not hide others beside pci:0000:{}: no variable is known that does"


@pytest.fixture
def static(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROBE_LEASES", str(tmp_path / "leases"))
    return tmp_path / "report.json"


def test_a_layout_without_a_variable_says_so(
    static: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    static.write_text(json.dumps(report_of_recording(GAUDI)))
    assert main(["layout", "2x1", "--static", str(static)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "# process 0: pci:0000:19:00.0 (Intel Gaudi 2)",
        f"# layout {FREE.format('19:00.0')}",
        "# process 1: pci:0000:1a:00.0 (Intel Gaudi 2)",
        f"# layout {FREE.format('1a:00.0')}",
    ]


def test_exec_says_so_too_where_others_are_left(
    static: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    static.write_text(json.dumps(report_of_recording(GAUDI)))
    assert main(["exec", "--static", str(static), "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"# {FREE.format('19:00.0')}"]
    assert main(["exec", "--static", str(static), "--dry-run", "-n", "8"]) == 0
    assert capsys.readouterr().out == ""


def test_devices_of_no_runtime_are_visible_to_none(
    static: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    static.write_text(json.dumps(report_of_recording("inf2-xlarge--aws-inferentia2")))
    assert main(["layout", "2x1", "--static", str(static)]) == 3
    assert "\nvisible: 0: AWS Inferentia2 (pci:0000:00:1f.0)\n" in capsys.readouterr().err


def test_a_device_without_a_name_is_what_is_known_of_it(
    static: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = report_of_recording("desktop--intel-arc-a770-of-unknown-memory")
    static.write_text(json.dumps(report))
    known = "arc-a770-graphics-16gb or arc-a770-graphics-8gb"
    assert main(["layout", "1x1", "--static", str(static)]) == 0
    assert f"# process 0: pci:0000:0b:00.0 ({known})" in capsys.readouterr().out.splitlines()
    assert main(["visible", "--for", "sycl", "--static", str(static)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[3:6] == known.split()
