"""A GPU is measured under a lease: its holder is named, and it is given back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench_runs import document, environment, run

GPU = {
    "ids": ["pci:0000:01:00.0"],
    "kind": "gpu",
    "vendor": "nvidia",
    "name": "NVIDIA H100 80GB HBM3",
    "memory": {"kind": "dedicated", "total": 85520809984, "free": 85000000000},
    "backends": ["cuda"],
    "driver": {"name": "nvidia", "version": "580.95.05"},
}
HOLDER = """
from probe_core import lease
held = lease(1)
print("held", flush=True)
input()
"""
WORDS = ("--kind", "matmul", "--dtype", "fp32", "--seconds", "0.1")


@pytest.fixture
def node(tmp_path: Path) -> dict[str, str]:
    """Variables of a computer that has a GPU by its report alone."""
    path = tmp_path / "devices.json"
    path.write_text(json.dumps([GPU]))
    return {"PROBE_SYNTHETIC": str(path), "PROBE_ONLY": "synthetic"}


def entry(answer: dict[str, Any]) -> dict[str, Any]:
    (own,) = (device for device in answer["devices"] if device["id"] == GPU["ids"][0])
    assert isinstance(own, dict)
    return own


@pytest.mark.heavy
def test_driver_that_is_not_there_is_the_reason_and_the_lease_ends(
    tmp_path: Path, node: dict[str, str]
) -> None:
    answer = entry(document(tmp_path, "--device", "01:00.0", *WORDS, **node))
    assert (answer["not_measured"], answer["measured"]) == (None, [])
    (problem,) = answer["problems"]
    task = {name: problem[name] for name in ("figure", "kind", "dtype", "library")}
    assert list(task.values()) == ["compute", "matmul", "fp32", "tinygrad"]
    # Where the computer has a GPU of its own, that one would be opened, and is none of ours.
    reasons = ("opens no backend: CUDA: ", "which is not the device that was leased")
    assert any(reason in problem["reason"] for reason in reasons)
    # Its other interfaces would take the device from its driver: one error, of the driver's.
    assert "sub-exceptions" not in problem["reason"]
    listed = subprocess.run(
        [sys.executable, "-m", "probe_core", "leases", "--json"],
        env=environment(tmp_path, **node), capture_output=True, check=True,
    )  # fmt: skip
    assert json.loads(listed.stdout)["leases"] == []


@pytest.mark.heavy
def test_holder_of_the_device_is_named(tmp_path: Path, node: dict[str, str]) -> None:
    env = environment(tmp_path, **node)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], env=env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        answer = entry(document(tmp_path, "--device", "01:00.0", *WORDS, **node))
        process.communicate("\n")
    assert "not free; leased: pci:0000:01:00.0 by process " in answer["not_measured"]


@pytest.mark.heavy
def test_a_check_takes_no_device_from_its_holder(tmp_path: Path, node: dict[str, str]) -> None:
    env = environment(tmp_path, **node)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], env=env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        done = subprocess.run(
            [sys.executable, "-m", "probe_core", "check", "--json", "--device", "01:00.0"],
            env=env, capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        process.communicate("\n")
    answer = entry(json.loads(done.stdout))
    assert (done.returncode, answer["verdict"], answer["products"]) == (1, None, {})
    assert "not free; leased: pci:0000:01:00.0 by process " in answer["not_checked"]


@pytest.mark.heavy
def test_device_that_another_variable_hides_is_not_measured(
    tmp_path: Path, node: dict[str, str]
) -> None:
    done = run(tmp_path, "--device", "01:00.0", *WORDS, **node, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1
    assert "not measured: " in done.stdout
