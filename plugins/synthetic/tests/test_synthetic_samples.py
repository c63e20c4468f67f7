"""Samples out of a file, which a test replaces while somebody watches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import probe_core
from probe_core.testing import Case, Machine
from probe_core.testing.case import prober_of
from probe_core.testing.checks_sampling import sample_case

GPU = "pci:0000:01:00.0"


def looks(root: Path, *contents: Any) -> list[Any]:
    path = root / "file.json"
    path.write_text(json.dumps(contents[0]))

    def replace(number: int) -> None:
        path.write_text(json.dumps(contents[number - 1]))

    machine = Machine(str(root), {"PROBE_SYNTHETIC": "/file.json"})
    prober = prober_of("synthetic", "probe_synthetic.prober")
    return sample_case(prober, Case(machine), count=len(contents), pause=replace)


def test_the_file_is_read_in_each_round(tmp_path: Path) -> None:
    rounds = looks(
        tmp_path,
        {"samples": [{"device": GPU, "busy": 0.25}]},
        {"samples": [{"device": GPU, "busy": 0.75}]},
    )
    assert [look.samples[0]["busy"] for look in rounds] == [0.25, 0.75]
    assert rounds[0].touched == [GPU]


def test_a_sample_may_misbehave(tmp_path: Path) -> None:
    rounds = looks(
        tmp_path,
        {"samples": [{"device": GPU, "busy": 0.25}]},
        {"samples": [{"device": "x:1"}, {"device": GPU, "busy": 0.5, "then": "raise"}]},
    )
    assert rounds[1].status == "call_error"
    assert [sample["device"] for sample in rounds[1].samples] == ["x:1"]


def test_devices_alone_are_not_sampled(tmp_path: Path) -> None:
    (look,) = looks(tmp_path, [{"ids": [GPU], "kind": "gpu"}])
    assert look.status == "not_applicable"


def test_the_whole_way(tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text(
        json.dumps({"devices": [{"ids": [GPU], "kind": "gpu"}],
                    "samples": [{"device": GPU, "busy": 0.5, "power_w": 1e9}]})
    )  # fmt: skip
    machine = Machine(str(tmp_path), {"PROBE_SYNTHETIC": "/file.json"})
    with probe_core.samples(count=1, machine=machine, only=["synthetic", "bus", "cpu"]) as rounds:
        (look,) = rounds
    sample = look.sample(GPU)
    assert sample
    assert (sample["busy"], sample["power_w"]) == (0.5, None)
    assert [finding["code"] for finding in look.findings] == ["value-rejected"]
