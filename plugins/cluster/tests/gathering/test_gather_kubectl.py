"""`probe cluster --kubectl`: pods of a selector, and what the API server counts on their nodes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fake_engines import KUBECTL, Engines

from probe_cluster import ClusterError, Gathered, gather
from probe_cluster.gathering import Kubectl
from probe_cluster.shared import quantity

Home = dict[str, dict[str, Any]]


def pod(name: str, node: str | None, phase: str = "Running") -> dict[str, Any]:
    spec = {"nodeName": node} if node else {}
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


def node(name: str, **amounts: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {}, "status": {"allocatable": amounts}}


def serve(engines: Engines, pods: Any, nodes: Any = None) -> None:
    engines.command("kubectl", KUBECTL)
    (engines.folder / "pods.json").write_text(json.dumps({"items": pods}))
    if nodes is not None:
        (engines.folder / "nodes.json").write_text(json.dumps({"items": nodes}))


def gathered(**options: Any) -> Gathered:
    return asyncio.run(gather(Kubectl("app=probe", **options)))


def test_pods_are_keyed_by_their_node(engines: Engines, home: Home) -> None:
    amounts = {"nvidia.com/gpu": "2", "cpu": "3920m", "memory": "1048576Ki"}
    serve(engines, [pod("p-1", "n1"), pod("p-2", "n2")], [node("n1", **amounts), node("n2")])
    engines.report("p-1", home["twin"])
    engines.report("p-2", home["nas"])
    answer = gathered(namespace="gpu")
    assert {id_: row.status for id_, row in answer.nodes.items()} == {"n1": "ok", "n2": "ok"}
    assert answer.nodes["n1"].engine == {
        "source": "kubectl get nodes, allocatable",
        "gpus": 2,
        "cpus": 3.92,
        "memory": 1 << 30,
        "state": None,
    }
    assert not [entry for entry in answer.differences() if entry["code"] == "engine-count"]


def test_without_the_right_to_list_nodes_there_are_no_counts(engines: Engines, home: Home) -> None:
    serve(engines, [pod("p-1", "n1")])
    engines.report("p-1", home["desk"])
    answer = gathered()
    assert answer.complete
    assert answer.nodes["n1"].engine is None


def test_a_pod_that_was_granted_no_gpu_is_explained(engines: Engines, home: Home) -> None:
    serve(engines, [pod("p-1", "n1")], [node("n1", **{"nvidia.com/gpu": "8"})])
    engines.report("p-1", home["nas"])
    (entry,) = [entry for entry in gathered().differences() if entry["code"] == "engine-count"]
    assert entry["why"] == (
        "the report has 0 GPUs: no plugin detects the others, or the process was not granted them"
    )


def test_pods_that_do_not_run_and_pods_of_one_node(engines: Engines, home: Home) -> None:
    serve(engines, [pod("a", "n1"), pod("b", "n1"), pod("c", None, "Pending")])
    engines.report("a", home["desk"])
    engines.report("b", home["desk"])
    answer = gathered()
    assert {id_: row.status for id_, row in answer.nodes.items()} == {
        "n1/a": "ok",
        "n1/b": "ok",
        "unscheduled/c": "missing",
    }
    assert answer.nodes["unscheduled/c"].reason == "its pod c is Pending, not Running"


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo 'error: Unauthorized' >&2; exit 1", "ended with 1: error: Unauthorized"),
        ("echo no json", "printed no list of JSON"),
        ("echo '{\"items\": []}'", "no pod has the label 'app=probe'"),
    ],
)
def test_a_server_that_does_not_answer_is_one_sentence(
    engines: Engines, script: str, sentence: str
) -> None:
    engines.command("kubectl", f"#!/bin/sh\n{script}\n")
    with pytest.raises(ClusterError) as error:
        gathered()
    assert sentence in str(error.value)


def test_quantities() -> None:
    assert [quantity(text) for text in ("64", "3920m", "2Ki", "1.5G", "", "x", "1e3", "-1")] == [
        64.0,
        3.92,
        2048.0,
        1.5e9,
        None,
        None,
        None,
        None,
    ]
