"""All data in the host has one budget; who exceeds it is named, and costs nobody else."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from probe_core.machine import Machine
from probe_core.probing import document
from probe_core.registry import SHARE, TOTAL, Budget
from probe_core.registry.prober import PathCheck, discover, over_budget, unmet
from probe_core.setting_values import load_config


def install(site: Path, name: str, probers: dict[str, Any]) -> None:
    """Write one distribution whose probers each have a manifest."""
    metadata = site / f"probe_{name}-1.0.dist-info"
    metadata.mkdir()
    lines = "\n".join(f"{prober} = x_{prober}" for prober in probers)
    (metadata / "entry_points.txt").write_text(f"[probe_core.probers.v1]\n{lines}\n")
    for prober, fields in probers.items():
        (site / f"x_{prober}.py").write_text("")
        text = json.dumps({"schema": 1, "probers": {prober: fields}})
        (site / f"x_{prober}.prober.json").write_text(text.ljust(60_000))


def test_a_share_and_the_total() -> None:
    budget = Budget(clock=lambda: 0.0)
    for number in range(SHARE["files"]):
        assert budget.refusal("a") is None
        budget.charge("a", files=1, bytes=number)
    assert budget.refusal("a") is None
    budget.charge("a", files=1)
    assert budget.refusal("a") == "its data may take 128 files of a probe"
    assert budget.refusal("b") is None
    assert list(budget.exceeded) == ["a"]
    for owner in range(9):
        budget.charge(f"c{owner}", bytes=SHARE["bytes"])
    assert budget.refusal("b") == "all data may take 8,388,608 bytes of a probe"


def test_time_is_of_the_processor() -> None:
    now = [0.0]
    budget = Budget(clock=lambda: now[0])
    since = budget.clock()
    now[0] = SHARE["seconds"] + 0.01
    budget.charge("a", since=since)
    assert budget.refusal("a") == "its data may take 0.1 s of work of a probe"
    real = Budget()
    since = real.clock()
    time.sleep(SHARE["seconds"] * 1.5)  # a slow disk
    real.charge("a", since=since)
    assert real.refusal("a") is None


def test_manifests_beyond_the_share_are_left_out_and_named(tmp_path: Path) -> None:
    install(tmp_path, "many", {f"many{n}": {"summary": "x"} for n in range(30)})
    install(tmp_path, "other", {"other": {"summary": "mine", "priority": 7}})
    budget = Budget(clock=lambda: 0.0)
    probers, findings = discover({}, [str(tmp_path)], budget=budget)
    rejected = [p.name for p in probers if p.rejection]
    read = SHARE["bytes"] // 60_000 + 1
    assert len(rejected) == 30 - read
    assert [p.summary for p in probers if p.name == "other"] == ["mine"]
    assert findings == []
    (named,) = over_budget(budget)
    assert named["code"] == "budget-exceeded"
    assert named["what"] == "not all data of probe-many 1.0 was read"
    assert named["evidence"] == "its data may take 1,048,576 bytes of a probe"


def test_patterns_of_all_probers_together_are_bounded(tmp_path: Path) -> None:
    for number in range(2000):
        (tmp_path / f"d{number}").mkdir()
    machine = Machine(str(tmp_path), {}, "linux", "x86_64")
    budget = Budget(clock=lambda: 0.0)
    looks = [PathCheck(machine, budget, None, f"p{number // 4}") for number in range(1800)]
    when = [{"any_path": [f"/missing-{number}*" for number in range(64)]}]
    begin = time.monotonic()
    reasons = [unmet(when, machine, None, look) for look in looks]
    assert time.monotonic() - begin < 5.0
    assert reasons[-1] is None  # what cannot be checked holds
    # Five patterns of 2,001 names each are more than a share; four owners' are more than all.
    assert next(iter(budget.exceeded)) == "p0"
    assert sum(budget._total[unit] for unit in ("names",)) < TOTAL["names"] + 2 * 2001


@pytest.mark.heavy
def test_a_probe_names_who_exceeded_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(4000):
        (folder / f"n{number}").touch()
    patterns = [f"{folder}/missing{number}*" for number in range(8)]
    install(site, "slow", {"slow": {"when": {"any_path": patterns}}})
    install(site, "fine", {"fine": {"when": {"any_path": [f"{tmp_path}/missing"]}}})
    monkeypatch.syspath_prepend(str(site))
    config, _ = load_config({"only": ["slow", "fine"], "timeout": 5}, {})
    report = document(config, [])
    decisions = {d["prober"]: d for d in report["decisions"]}
    assert decisions["slow"]["selected"] is True
    assert decisions["fine"]["selected"] is False
    named = [f for f in report["findings"] if f["code"] == "budget-exceeded"]
    assert [f["what"] for f in named] == ["not all data of probe-slow 1.0 was read"]
