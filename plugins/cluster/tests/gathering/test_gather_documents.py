"""Rows of a saved document, read again: what has no sound form is left out, nothing is guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probe_cluster.gathering.document import SavedCluster, answer_in, target_in

IDS = {"a": "1", "b": "2"}


def saved(tmp_path: Path, **parts: Any) -> SavedCluster:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"schema": 1, "nodes": {}, **parts}))
    return SavedCluster(str(path))


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (None, None),
        ({"gpus": 1}, None),  # without its source
        (
            {"source": "slurm", "gpus": 0, "cpus": 2.5, "memory": 7, "state": "idle"},
            {"source": "slurm", "gpus": 0, "cpus": 2.5, "memory": 7, "state": "idle"},
        ),
        (
            {"source": "slurm", "gpus": -1, "cpus": True, "memory": -7, "state": 3},
            {"source": "slurm", "gpus": None, "cpus": None, "memory": None, "state": None},
        ),
    ],
)
def test_what_an_engine_counted(engine: Any, expected: dict[str, Any] | None) -> None:
    target = target_in("n", {"name": "desk", "engine": engine})
    assert (target.id, target.name, target.engine) == ("n", "desk", expected)
    assert target_in("n", {"name": 3}).name == ""


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"report": {}, "sent": True}, ("ok", None, None, b"{}", True)),
        ({"report": {}, "sent": False}, ("ok", None, None, b"{}", False)),
        ({"report": {}, "sent": 1}, ("ok", None, None, b"{}", None)),
        ({"report": {}}, ("ok", None, None, b"{}", None)),
        (
            {"status": "ok"},
            ("invalid", "the saved document has no report of it", "gather it again", None, None),
        ),
        (
            {"status": "strange"},
            ("invalid", "the saved document has no report of it", "gather it again", None, None),
        ),
        (
            {"status": "timeout", "reason": "slow", "fix": "wait"},
            ("timeout", "slow", "wait", None, None),
        ),
        ({"status": "timeout", "reason": 1}, ("timeout", None, None, None, None)),
    ],
)
def test_what_came_of_a_node(entry: dict[str, Any], expected: tuple[Any, ...]) -> None:
    answer = answer_in("n", entry)
    assert (answer.status, answer.reason, answer.fix, answer.text, answer.sent) == expected
    assert answer.basics is None


def test_basics_of_a_node_without_a_report() -> None:
    answer = answer_in("n", {"status": "timeout", "basics": {"kernel": "6.1", "memory": 9}})
    assert answer.basics is not None
    assert (answer.basics["kernel"], answer.basics["memory"]) == ("6.1", 9)


LINK = {
    "ends": ["a", "b"], "kind": "ethernet", "latency": 1e-4, "round_trip": 2e-4, "bandwidth": 1e9,
    "bandwidths": [1e9, 2e9], "interfaces": ["eth0", "eth1"], "speed": 25e9,
    "reason": "slow", "fix": "a cable",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {**LINK, "ends": ["1", "2"]}),
        ({"ends": ["a", "c"]}, None),
        ({"ends": ["a"]}, None),
        ({"ends": ["a", "b", "a"]}, None),
        ({"ends": "ab"}, None),
        ({"bandwidths": [1e9]}, {"bandwidths": [None, None], "interfaces": ["eth0", "eth1"]}),
        ({"interfaces": 3}, {"bandwidths": [1e9, 2e9], "interfaces": [None, None]}),
        ({"bandwidths": [0, "x"], "latency": -1}, {"bandwidths": [None, None], "latency": None}),
    ],
)  # fmt: skip
def test_a_link(changes: dict[str, Any], expected: dict[str, Any] | None, tmp_path: Path) -> None:
    found: list[Any] = saved(tmp_path, links=[LINK | changes]).links(IDS)
    assert len(found) == (expected is not None)
    if expected is not None:
        assert {key: found[0][key] for key in expected} == expected


FINDING = {
    "code": "link-slow", "severity": "error", "nodes": ["a", "b"], "what": "w", "why": "y",
    "fix": "f", "evidence": "e",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {**FINDING, "severity": "warning", "nodes": ["1", "2"]}),
        ({"code": "other"}, None),
        ({"nodes": ["a", "x"]}, None),
        ({"what": None, "why": 1, "fix": []}, {"what": "", "why": "", "fix": "", "evidence": "e"}),
        ({"evidence": {}}, {"what": "w", "evidence": ""}),
    ],
)  # fmt: skip
def test_a_finding(
    changes: dict[str, Any], expected: dict[str, Any] | None, tmp_path: Path
) -> None:
    found: list[Any] = saved(tmp_path, findings=[FINDING | changes]).findings(IDS)
    assert len(found) == (expected is not None)
    if expected is not None:
        assert {key: found[0][key] for key in expected} == expected


@pytest.mark.parametrize(("problem", "kept"), [("gone", "gone"), ("", None), (3, None)])
def test_a_problem_of_the_engine(problem: Any, kept: str | None, tmp_path: Path) -> None:
    document = saved(tmp_path, problem=problem, nodes={"a": {"status": "timeout"}})
    assert document.problem == kept
    ((target, answer),) = document.nodes.values()
    assert (target.id, answer.id, answer.status) == ("a", "a", "timeout")
    assert document.links(IDS) == []
