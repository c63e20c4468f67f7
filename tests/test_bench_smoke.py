"""The benchmarks run, and print what they promise; their figures are no matter of the tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the question reads /proc")

RUN = Path(__file__).resolve().parent / "bench" / "run.py"


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUN), "--quick", "--here", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.heavy
def test_a_question_is_answered_with_figures_and_targets() -> None:
    done = bench("--json", "memory")
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["name"] for one in figures] == [
        "peak memory, bare Python",
        "peak memory, probe --json",
        "peak memory, probe --json, 10 probers run",
        "peak memory, probe_core.probe(), 10 probers run",
    ], done.stderr
    assert {one["question"] for one in figures} == {"memory"}
    assert [one["target"] for one in figures] == [None, 40.0, 40.0, 40.0]
    assert figures[0]["passed"] is None
    assert 1 < figures[0]["value"] < figures[1]["value"]
    for one in figures[1:]:
        assert one["passed"] is (one["value"] <= 40.0)
    assert done.returncode == int(not all(one["passed"] for one in figures[1:]))


def test_an_unknown_question_names_those_there_are() -> None:
    done = bench("speed")
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "'speed' is no question: one of price, first, real, import, cold, bytecode, rivals,"
        " nvidia, amd, intel, user, stages, ready, child, hang, memory, exo, export, partition,"
        " predictions, serving, cluster, engines, sshd, commands, doctor, env, images, report,"
        " reading, sealed, leases, samples, watch, way"
    )


@pytest.mark.heavy
def test_the_text_form_has_a_line_per_figure() -> None:
    done = bench("memory")
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert all(line.startswith("memory   peak memory, ") for line in lines[1:])
    assert " <= 40 " in lines[2]
