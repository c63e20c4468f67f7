"""The whole core with the fake NVML: a GPU that hangs or crashes its process hides no other."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import probe_core
from probe_core import Machine
from probe_core.testing.stage import VARIABLE

ROOT = Path(__file__).parents[1]
MANIFEST = json.loads((ROOT / "src/probe_nvidia/prober.json").read_text())
# Counts as live, so that the library is asked, though its files lie below a root.
ORDERS = {"target": "probe_nvidia.prober", "live": True, "watched": False, "avoid": []}
STAGE = {**MANIFEST["probers"]["nvidia"], "target": "probe_core.testing.stage"}

Probe = Callable[..., dict[str, Any]]


@pytest.fixture
def probe_eight(
    fake: ModuleType,
    trees: ModuleType,
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Probe:
    """Return a function that probes eight H100 of which some follow a rule of the fake's."""

    def run(rules: dict[int, str], deadline_s: float = 4.0) -> dict[str, Any]:
        tree = trees.eight_h100(tmp_path / "root")
        tree.memory(263_000_000, 250_000_000)
        head, *gpus = (fake.PROFILES / "h100x8.profile").read_text().split("gpu\n")
        blocks = [f"gpu\n{text}{rules.get(number, '')}\n" for number, text in enumerate(gpus)]
        profile = tmp_path / "rules.profile"
        profile.write_text(head + "".join(blocks))
        for name, value in fake.environment(library, str(profile)).items():
            monkeypatch.setenv(name, value)
        machine = Machine(str(tmp_path / "root"), {VARIABLE: json.dumps(ORDERS)})
        probers = {"nvidia": {**STAGE, "deadline_s": deadline_s}}
        report = probe_core.probe(machine=machine, only="nvidia", probers=probers).to_json()
        document: dict[str, Any] = json.loads(json.dumps(report))
        return document

    return run


def gpus(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [device for device in report["devices"] if device["kind"] == "gpu"]


def shown(device: dict[str, Any]) -> dict[str, Any]:
    """Return a device without what the other devices change: numbers, and a count of queries."""
    state = device["readiness"]["state"]
    return {**device, "visibility": None, "readiness": state}


def outcome(report: dict[str, Any]) -> dict[str, Any]:
    outcomes = [o for o in report["outcomes"] if o["prober"] == "nvidia"]
    return next(o for o in outcomes if o["status"] != "skipped")  # that of the installed plugin


@pytest.mark.parametrize("number", [0, pytest.param(5, marks=pytest.mark.heavy)])
@pytest.mark.parametrize(
    ("rule", "code"),
    [
        pytest.param("on handle hang", "driver-hangs", marks=pytest.mark.heavy),
        pytest.param("on nvmlDeviceGetMemoryInfo_v2 hang", "driver-hangs", marks=pytest.mark.heavy),
        ("on nvmlDeviceGetMemoryInfo_v2 crash", "driver-crashes"),
    ],
)
def test_seven_of_eight_are_complete(
    probe_eight: Probe, trees: ModuleType, rule: str, code: str, number: int
) -> None:
    whole = probe_eight({})
    start = time.monotonic()
    report = probe_eight({number: rule})
    assert time.monotonic() - start < 5.0
    dead = f"pci:{trees.H100_ADDRESSES[number]}"
    living = {device["id"]: shown(device) for device in gpus(report) if device["id"] != dead}
    assert living == {d["id"]: shown(d) for d in gpus(whole) if d["id"] != dead}
    assert (outcome(report)["status"], outcome(report)["avoided"]) == ("ok", [dead])
    (finding,) = [f for f in report["findings"] if f["device"] == dead]
    assert finding["code"] == code
    assert "H100" in finding["what"]
    assert "`NVRM: Xid`" in finding["fix"]
    (broken,) = [device for device in gpus(report) if device["id"] == dead]
    assert broken["readiness"]["state"] == "blocked"
    assert broken["readiness"]["broken"] == "responding"
    assert report["primary"] in living
    assert report["fallback"] is None


@pytest.mark.heavy
def test_one_that_hangs_beside_slow_ones_is_named_with_its_call(
    probe_eight: Probe, trees: ModuleType
) -> None:
    """Each call takes 1 ms: the GPUs are asked side by side."""
    rules = dict.fromkeys(range(8), "on * sleep 1")
    rules[5] = f"on nvmlDeviceGetMemoryInfo_v2 hang\n{rules[5]}"
    report = probe_eight(rules, deadline_s=3.0)
    dead = f"pci:{trees.H100_ADDRESSES[5]}"
    assert (outcome(report)["status"], outcome(report)["avoided"]) == ("ok", [dead])
    assert outcome(report)["stuck_at"].endswith(" in nvmlDeviceGetMemoryInfo")
    (finding,) = [f for f in report["findings"] if f["device"] == dead]
    assert finding["code"] == "driver-hangs"
    assert finding["evidence"].endswith(" in nvmlDeviceGetMemoryInfo")
    living = [device for device in gpus(report) if device["id"] != dead]
    assert [device["memory"]["total"] for device in living] == [85520809984] * 7
    assert [device["readiness"]["state"] for device in living] == ["ready"] * 7


@pytest.mark.heavy
def test_a_slow_gpu_is_no_dead_one(probe_eight: Probe) -> None:
    """Its first call takes seconds, as without a persistence daemon."""
    report = probe_eight({0: "on handle sleep 1500"})
    assert outcome(report)["status"] == "ok"
    assert "avoided" not in outcome(report)
    assert all(device["memory"]["total"] for device in gpus(report))
