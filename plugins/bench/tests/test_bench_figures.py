"""Whatever a device measures, its figure is one that a report takes.

On an H200 the figures of the link to the host were refused: no task's answer had passed the whole
way, from the task to the report's own check.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from bench_devices import cpu, gpu

from probe_bench.figures import checked, figure
from probe_bench.measuring import Outcome, _outcome
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


def test_what_becomes_of_each_task() -> None:
    """By what its child wrote; of what comes twice the first counts."""
    memory = {"rates": [2e9, 4e9], "cold": 1e9, "warm_s": 0.5, "by": "a library"}
    own: Task = {"figure": "read", "kind": "memory", "dtype": None, "library": "libc"}
    others: list[Task] = [
        {**own, "figure": name} for name in ("write", "copy", "upload", "download")
    ]
    done = [own, *others]
    lines: list[dict[str, Any]] = [
        {"task": 0, "event": "clock", "clock_mhz": 1980.0},
        {"task": 0, "event": "result", **memory},
        {"task": 0, "event": "wrong", "reason": "too late"},
        {"task": 1, "event": "wrong", "reason": "1 is\n2"},
        {"task": 2, "event": "compared", "count": 7},
        {"task": 3, "event": "problem", "reason": "no room"},
        {"task": 4, "event": "begin"},
    ]
    watch: Any = SimpleNamespace(seen={0: Readings(clock_mhz=1000.0, power_w=350.0)})

    def outcome(*more: dict[str, Any], early: str | None = None) -> Outcome:
        return _outcome(gpu(), done, [*more, *lines], early, watch, [])

    found = outcome()
    (figure,) = found.figures
    assert (figure["best"], figure["clock_mhz"], figure["power_w"]) == (4e9, 1980.0, 350.0)
    assert found.wrong == [(others[0], "1 is 2")]
    assert found.compared == [(others[1], 7)]
    assert found.problems == [(others[2], "no room"), (others[3], "it gave no answer")]
    assert outcome(early="it ended").problems[-1] == (others[3], "it ended")
    late = outcome({"task": 4, "event": "result", "rates": [], "cold": 1.0})
    assert late.problems[-1][1].startswith("its answer makes no sense: ")
    assert len(late.figures) == 1
    (figure,) = _outcome(gpu(), [own], lines[1:2], None, watch, []).figures
    assert figure["clock_mhz"] == 1000.0
