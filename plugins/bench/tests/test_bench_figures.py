"""Whatever a device measures, its figure is one that a report takes.

On an H200 the figures of the link to the host were refused: no task's answer had passed the whole
way, from the task to the report's own check.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from bench_devices import cpu, gpu

from probe_bench.figures import checked, figure
from probe_bench.sensors import Readings
from probe_bench.tasks import KINDS, Task, default_dtypes, tasks, title
from probe_core.model.document import DeviceDoc


@dataclass(frozen=True)
class Case:
    device: DeviceDoc
    task: Task


CASES = [
    Case(device, task)
    for device in (cpu(), gpu(links=[{"kind": "pcie", "bandwidth": 64e9}]))
    for task in tasks(device, default_dtypes(device), KINDS)
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: title(case.task))
def test_a_measured_figure_is_taken(case: Case) -> None:
    line = {"rates": [2e9, 3e9, 4e9], "cold": 1e9, "warm_s": 0.5, "by": "tinygrad 0.14.0 (CUDA)"}
    entry = checked(figure(case.device, case.task, line, Readings(), 0))
    assert (entry["figure"], entry["kind"]) == (case.task["figure"], case.task["kind"])
    scale = 1e12 if entry["figure"] == "compute" else 1.0
    assert (entry["best"], entry["median"], entry["runs"]) == (4e9 / scale, 3e9 / scale, 3)
    json.dumps(entry)


def test_the_link_of_a_card_is_among_them() -> None:
    ways = [case.task["figure"] for case in CASES if case.task["kind"] == "link"]
    assert ways == ["upload", "download"]
