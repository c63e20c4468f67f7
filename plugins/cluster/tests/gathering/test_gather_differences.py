"""In what nodes differ: the odd one, missing GPUs, other counts of the engine, and why."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from probe_cluster import Node
from probe_cluster.gathering.differences import differences
from probe_cluster.gathering.summaries import summary_of

if TYPE_CHECKING:
    from probe_cluster.gathering.model import EngineDoc

Home = dict[str, dict[str, Any]]


def engine(gpus: float | None) -> EngineDoc:
    return {"source": "ray.nodes()", "gpus": gpus, "cpus": None, "memory": None, "state": None}


def node(id_: str, report: dict[str, Any], gpus: float | None = None) -> Node:
    counts = None if gpus is None else engine(gpus)
    return Node(id_, id_, "ok", summary=summary_of(report), engine=counts)


@pytest.fixture
def twin(home: Home) -> dict[str, Any]:
    return copy.deepcopy(home["twin"])


def changed(report: dict[str, Any], **node_fields: Any) -> dict[str, Any]:
    other = copy.deepcopy(report)
    other["node"].update(node_fields)
    return other


def gpus(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [device for device in report["devices"] if device["kind"] == "gpu"]


def codes(nodes: list[Node]) -> list[str]:
    return [entry["code"] for entry in differences(nodes)]


def test_alike_nodes_do_not_differ(twin: dict[str, Any]) -> None:
    assert differences([node(f"n{at}", twin, 2) for at in range(3)]) == []
    assert differences([]) == []


def test_the_odd_driver_is_named(twin: dict[str, Any]) -> None:
    odd = copy.deepcopy(twin)
    for gpu in gpus(odd):
        gpu["driver"]["version"] = "570.1"
    (entry,) = differences([node("a", twin), node("b", odd), node("c", twin)])
    assert entry == {
        "code": "driver",
        "severity": "warning",
        "nodes": ["b"],
        "field": "nvidia driver",
        "expected": "580.95.05",
        "values": {"580.95.05": ["a", "c"], "570.1": ["b"]},
        "what": "nvidia driver: 570.1 on b; expected is 580.95.05",
        "why": None,
        "fix": "install one version of the nvidia driver on all of them",
    }


def test_without_a_majority_no_value_is_expected(twin: dict[str, Any]) -> None:
    nodes = [node("a", changed(twin, kernel="6.1")), node("b", changed(twin, kernel="5.1"))]
    (entry,) = differences(nodes)
    assert (entry["field"], entry["expected"], entry["nodes"]) == ("kernel", None, ["a", "b"])
    assert "5.1 on b" in entry["what"]


def test_a_missing_gpu_is_found_among_computers_of_one_model(twin: dict[str, Any]) -> None:
    fewer = copy.deepcopy(twin)
    fewer["devices"].remove(gpus(fewer)[1])
    (entry,) = differences([node("a", twin), node("b", twin), node("c", fewer)])
    assert (entry["code"], entry["nodes"], entry["expected"]) == ("missing-gpus", ["c"], "2")
    assert entry["what"] == "number of NVIDIA GeForce RTX 4090: 1 on c; expected is 2"
    other = changed(fewer, model="another computer")
    assert "missing-gpus" not in codes([node("a", twin), node("b", twin), node("c", other)])


def with_gpus(report: dict[str, Any], count: int, name: str = "NVIDIA H100") -> dict[str, Any]:
    """Return a report with so many equal GPUs in place of its own."""
    other = copy.deepcopy(report)
    own = gpus(other)[0]
    rest = [device for device in other["devices"] if device["kind"] != "gpu"]
    cards = []
    for at in range(count):
        address = f"pci:0000:{at + 16:02x}:00.0"
        cards.append({**copy.deepcopy(own), "id": address, "ids": [address], "name": name})
    other["devices"] = [*cards, *rest]
    other["primary"] = other["devices"][0]["id"]
    return other


@pytest.mark.parametrize(
    ("counts", "fewer", "expected"),
    [
        ((8, 8, 0), [2], "8"),
        ((8, 8, 8, 7), [3], "8"),
        ((8, 7), [1], "8"),
        ((8, 8, 7, 7), [2, 3], "8"),
        ((8, 4), [], None),
        ((8, 4, 4), [0], None),  # the majority has fewer: nobody is short
        ((2, 2, 0), [], None),  # sold with and without
        ((4, 3, 2), [], None),
        ((8, 0), [1], "8"),
        ((8,), [], None),
    ],
)
def test_who_has_fewer_gpus_is_told_where_it_can_be_known(
    twin: dict[str, Any], counts: tuple[int, ...], fewer: list[int], expected: str | None
) -> None:
    nodes = [node(str(at), with_gpus(twin, count)) for at, count in enumerate(counts)]
    entries = [entry for entry in differences(nodes) if entry["code"] == "missing-gpus"]
    if expected is None:
        assert entries == []
        return
    (entry,) = entries
    assert (entry["nodes"], entry["expected"]) == (list(map(str, fewer)), expected)


def test_a_computer_with_other_gpus_lacks_none(twin: dict[str, Any]) -> None:
    eight, other = with_gpus(twin, 8), with_gpus(twin, 8, "NVIDIA A100")
    nodes = [node("a", eight), node("b", eight), node("c", other)]
    assert "missing-gpus" not in codes(nodes)
    unknown = changed(with_gpus(twin, 0), model=None)
    both = [node("a", changed(eight, model=None)), node("b", changed(eight, model=None))]
    assert "missing-gpus" not in codes([*both, node("c", unknown)])


def block(report: dict[str, Any]) -> dict[str, Any]:
    other = copy.deepcopy(report)
    gpus(other)[0]["readiness"] = {
        "state": "blocked",
        "broken": "driver",
        "steps": [{"step": "driver", "status": "broken", "evidence": "no driver", "code": None}],
    }
    return other


def test_a_slice_of_a_container_is_no_fault(twin: dict[str, Any]) -> None:
    other = block(twin)
    step = {"step": "node", "status": "broken", "evidence": "missing", "severity": "info"}
    step["code"] = "container-without-gpus"
    gpus(other)[0]["readiness"] |= {"broken": "node", "steps": [step]}
    entries = differences([node("a", other), node("b", twin)])
    found = [(e["severity"], e["field"]) for e in entries if e["code"] == "blocked-gpus"]
    assert found == [("info", "GPUs that are set aside at the step 'node'")]


def test_blocked_gpus_of_several_nodes_are_one_difference_with_two_causes(
    twin: dict[str, Any],
) -> None:
    nodes = []
    for name, evidence in zip("abc", ("z", "y", "x"), strict=True):
        other = block(twin)
        for gpu in gpus(other) if name == "a" else gpus(other)[:1]:
            gpu["readiness"] = copy.deepcopy(gpus(other)[0]["readiness"])
            gpu["readiness"]["steps"][0]["evidence"] = evidence
        nodes.append(node(name, other))
    found = [e for e in differences([*nodes, node("d", twin)]) if e["code"] == "blocked-gpus"]
    (entry,) = found
    assert (entry["nodes"], entry["severity"], entry["expected"]) == (
        ["a", "b", "c"],
        "warning",
        "0",
    )
    assert entry["field"] == "GPUs that are blocked at the step 'driver'"
    assert entry["why"] == "driver: x; driver: y"
    assert entry["values"] == {"2": ["a"], "1": ["b", "c"]}


def test_an_engine_that_counts_a_blocked_gpu(twin: dict[str, Any]) -> None:
    entries = differences([node("a", block(twin), 2), node("b", twin, 2)])
    assert [entry["code"] for entry in entries] == ["blocked-gpus", "engine-count"]
    assert entries[1]["nodes"] == ["a"]
    assert entries[1]["why"] == "pci:0000:01:00.0 is blocked: driver: no driver"


def test_an_engine_that_counts_others(twin: dict[str, Any], home: Home) -> None:
    hidden = copy.deepcopy(twin)
    gpus(hidden)[1]["visibility"] = {
        "cuda": {"visible": False, "index": None, "reason": "hidden by CUDA_VISIBLE_DEVICES=0"}
    }
    causes = {
        "hidden": (hidden, 2, "pci:0000:02:00.0 is hidden: hidden by CUDA_VISIBLE_DEVICES=0"),
        "more": (twin, 4, "the report has 2 GPUs: no plugin detects the others"),
        "fewer": (twin, 1, "the engine is not configured with all of NVIDIA GeForce RTX 4090"),
        "none": (home["nas"], 1, "the report has 0 GPUs"),
    }
    for report, count, cause in causes.values():
        (entry,) = differences([node("a", report, count)])
        assert (entry["code"], entry["severity"]) == ("engine-count", "warning")
        assert (entry["why"] or "").startswith(cause)
        assert entry["fix"]


def test_partitions_count_in_place_of_their_gpu(twin: dict[str, Any]) -> None:
    split = copy.deepcopy(twin)
    first = gpus(split)[0]
    for number in range(3):
        part = copy.deepcopy(first) | {"id": f"uuid:MIG-{number}", "parent": first["id"]}
        split["devices"].append(part)
    summary = summary_of(split)
    assert (len(summary.whole), len(summary.usable)) == (2, 4)
    (entry,) = differences([node("a", split, 2)])
    assert entry["why"] == "the node has 3 partitions of 2 GPUs"


def test_memory_differs_among_like_nodes_only(twin: dict[str, Any]) -> None:
    half = copy.deepcopy(twin)
    half["node"]["memory"]["total"] //= 2
    near = copy.deepcopy(twin)
    near["node"]["memory"]["total"] = int(near["node"]["memory"]["total"] * 0.99)
    (entry,) = differences([node("a", twin), node("b", near), node("c", half)])
    assert (entry["code"], entry["nodes"], entry["severity"]) == ("memory", ["c"], "info")
    assert list(entry["values"]) == ["127 GiB", "64 GiB"]


def test_one_machine_under_two_names_and_two_under_one(twin: dict[str, Any]) -> None:
    report = changed(twin, id="4d5e")
    (entry,) = differences([node("a", report), node("b", report), node("c", twin)])
    assert (entry["code"], entry["nodes"]) == ("same-machine", ["a", "b"])
    (entry,) = differences([node("a", twin), node("a#2", twin)])
    assert (entry["code"], entry["nodes"]) == ("same-id", ["a", "a#2"])


@pytest.mark.parametrize(
    "damage",
    [
        {"node": None},
        {"node": {"memory": [], "os": 3}},
        {"findings": {"code": 1}},
        {"devices": [1, None, {"kind": "gpu", "driver": 3, "readiness": [], "visibility": 1}]},
        {"devices": [{"kind": "gpu", "vendor": "amd", "readiness": {"steps": "x", "state": []}}]},
        {"devices": [{"kind": "gpu", "readiness": {"state": "blocked", "steps": {"a": 1}}}]},
    ],
)
def test_damaged_reports_raise_nothing_else(twin: dict[str, Any], damage: dict[str, Any]) -> None:
    summary = summary_of(twin | damage)
    differences([Node("a", "a", "ok", summary=summary, engine=engine(3))])


def test_graphics_of_a_processor_beside_a_card_are_not_counted(twin: dict[str, Any]) -> None:
    graphics = copy.deepcopy(gpus(twin)[0]) | {"id": "pci:0000:00:02.0", "vendor": "intel"}
    graphics["memory"] = graphics["memory"] | {"kind": "unified"}
    twin["devices"].append(graphics)
    assert differences([node("a", twin, 2)]) == []
    # Of two hidden cards the engine counts one: the graphics do not stand in for it.
    for gpu in gpus(twin)[:2]:
        gpu["visibility"] = {"cuda": {"visible": False, "index": None, "reason": "hidden by X"}}
    (entry,) = differences([node("a", twin, 1)])
    assert entry["what"] == "a: GPUs: ray.nodes() counts 1, a process can use 0"
    assert entry["why"] == "pci:0000:01:00.0, pci:0000:02:00.0 are hidden: hidden by X"
    # Alone they are all that there is.
    for gpu in gpus(twin)[:2]:
        twin["devices"].remove(gpu)
    assert differences([node("a", twin, 1)]) == []


def test_missing_gpus_explain_the_engine_count(twin: dict[str, Any]) -> None:
    fewer = copy.deepcopy(twin)
    fewer["devices"].remove(gpus(fewer)[1])
    entries = differences([node("a", twin, 2), node("b", twin, 2), node("c", fewer, 2)])
    assert [entry["code"] for entry in entries] == ["missing-gpus", "engine-count"]
    assert entries[1]["why"] == "1 are missing: other computers of its model have 2"


def test_sentences_call_nodes_by_their_names(twin: dict[str, Any]) -> None:
    nodes = [node("f00", changed(twin, kernel="6.1")), node("f01", changed(twin, kernel="5.1"))]
    nodes[0].name, nodes[1].name = "desk", "studio"
    (entry,) = differences(nodes)
    assert entry["what"] == "kernel: 5.1 on studio, 6.1 on desk"
    assert entry["values"] == {"5.1": ["f01"], "6.1": ["f00"]}
    nodes[1].name = "desk"
    (entry,) = differences(nodes)
    assert entry["what"] == "kernel: 5.1 on f01, 6.1 on f00"
