"""Topologies: old exo's JSON, and the merge of what many nodes say."""

from __future__ import annotations

import random
from typing import Any

import pytest

from probe_cluster import ClusterError, Links, Member, Topology, member, merge_views
from probe_cluster.planning.links import KINDS
from probe_cluster.planning.old_exo import Edge, View

FLOPS = {"fp32": 1.0, "fp16": 2.0, "int8": 4.0}


def says(memory: int) -> dict[str, Any]:
    return {"model": "Box", "chip": "Chip", "memory": memory, "flops": FLOPS}


@pytest.mark.heavy
def test_the_document_has_old_exos_shape(home: dict[str, dict[str, Any]]) -> None:
    members = [member(name, home[name]) for name in ("studio", "desk")]
    links = Links({("studio", "desk"): KINDS["thunderbolt5"]})
    document = Topology.of(members, links, "desk").to_json()
    assert document == {
        "nodes": {
            "desk": {
                "model": "desk of this home",
                "chip": "NVIDIA GeForce RTX 4090",
                "memory": 24564,
                "flops": {"fp32": 82.5754, "fp16": 165.1507, "int8": 660.6029},
            },
            "studio": {
                "model": "studio of this home",
                "chip": "Apple M3 Max",
                "memory": 131072,
                "flops": {"fp32": 14.1312, "fp16": 14.1312, "int8": 0.0},
            },
        },
        "peer_graph": {
            "desk": [{"from_id": "desk", "to_id": "studio", "description": "thunderbolt5"}],
            "studio": [{"from_id": "studio", "to_id": "desk", "description": "thunderbolt5"}],
        },
        "active_node_id": "desk",
    }
    assert Topology.from_json(document).to_json() == document


def test_unknown_figures_are_zero_in_this_shape_alone() -> None:
    document = Topology.of([Member("x", None)]).to_json()
    assert document["nodes"]["x"] == {
        "model": "Unknown Model",
        "chip": "Unknown Chip",
        "memory": 0,
        "flops": {"fp32": 0.0, "fp16": 0.0, "int8": 0.0},
    }


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "it has no 'nodes'"),
        ({"nodes": {"a": None}}, "node 'a' has no capabilities"),
        ({"nodes": {"a": says(-1)}}, "node 'a' has -1 MiB"),
        ({"nodes": {"a": says(1) | {"memory": "much"}}}, "node 'a' has 'much' MiB"),
        ({"nodes": {"a": says(1) | {"flops": {"fp16": float("nan")}}}}, "node 'a' has nan TFLOPS"),
        ({"nodes": {}, "peer_graph": []}, "'peer_graph' is no table"),
        ({"nodes": {}, "peer_graph": {"a": {}}}, "the peers of node 'a' are no list"),
        ({"nodes": {}, "peer_graph": {"a": [{}]}}, "a peer of node 'a' has no 'to_id'"),
    ],
)
def test_a_broken_document_names_what_is_wrong(document: Any, said: str) -> None:
    with pytest.raises(ClusterError, match=said):
        Topology.from_json(document)


def test_older_documents_lack_fields() -> None:
    found = Topology.from_json({"nodes": {"a": {"memory": 8192}}})
    assert found.nodes["a"]["model"] == "Unknown Model"
    assert found.edges == frozenset()


def test_what_a_document_says_of_nodes_and_edges_is_kept() -> None:
    peers = [
        {"to_id": "b", "from_id": "c", "description": "usb4"},
        {"to_id": "b", "from_id": 5},
        {"to_id": "b", "description": None},
    ]
    most = {"memory": (1 << 40) - 1, "flops": {"fp32": 999_999_999, "fp16": 0.5}, "chip": "M2"}
    document = {
        "nodes": {"a": {"memory": 0, "flops": 5}, "b": most},
        "peer_graph": {"a": peers},
        "active_node_id": 5,
    }
    found = Topology.from_json(document)
    assert found.edges == {Edge("c", "b", "usb4"), Edge("a", "b", "")}
    assert found.active_node_id is None
    nothing = {"fp32": 0.0, "fp16": 0.0, "int8": 0.0}
    assert found.nodes == {
        "a": {"model": "Unknown Model", "chip": "Unknown Chip", "memory": 0, "flops": nothing},
        "b": {
            **{"model": "Unknown Model", "chip": "M2", "memory": (1 << 40) - 1},
            "flops": {"fp32": 999_999_999.0, "fp16": 0.5, "int8": 0.0},
        },
    }


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"memory": 1 << 40}, "node 'a' has 1099511627776 MiB of memory"),
        ({"memory": -1}, "node 'a' has -1 MiB of memory"),
        ({"memory": True}, "node 'a' has True MiB of memory"),
        ({"memory": 1, "flops": {"fp16": 1e9}}, "node 'a' has 1000000000.0 TFLOPS of fp16"),
        ({"memory": 1, "flops": {"int8": -0.1}}, "node 'a' has -0.1 TFLOPS of int8"),
        (5, "node 'a' has no capabilities"),
    ],
    ids=range(6),
)
def test_figures_of_a_node_have_bounds(node: Any, said: str) -> None:
    with pytest.raises(ClusterError) as raised:
        Topology.from_json({"nodes": {"a": node}})
    assert str(raised.value) == said


def test_the_same_node_twice_is_named() -> None:
    with pytest.raises(ClusterError, match="node 'a' is there twice"):
        Topology.of([Member("a", 1), Member("a", 2)])


def view(own: str, knows: dict[str, tuple[int, float]], *peers: str) -> View:
    nodes = {name: says(memory) for name, (memory, _) in knows.items()}
    edges = frozenset(Edge(own, peer, "cable") for peer in peers)
    return View(Topology(nodes, edges, own), {name: when for name, (_, when) in knows.items()})


def test_what_was_heard_last_of_a_node_wins() -> None:
    views = {
        "a": view("a", {"a": (1, 100.0), "b": (2, 50.0)}, "b"),
        "b": view("b", {"b": (3, 99.0), "a": (9, 10.0)}, "a"),
    }
    found = merge_views(views, "a")
    assert {id_: said["memory"] for id_, said in found.nodes.items()} == {"a": 1, "b": 3}
    assert found.active_node_id == "a"


def test_a_silent_peer_is_known_from_others() -> None:
    views = {"a": view("a", {"a": (1, 1.0), "b": (2, 1.0)}, "b")}
    assert sorted(merge_views(views, "a").nodes) == ["a", "b"]


def test_a_ring_ends_and_is_whole() -> None:
    names = [f"n{at}" for at in range(6)]
    views = {
        name: view(name, {name: (at, 1.0)}, names[(at + 1) % 6]) for at, name in enumerate(names)
    }
    found = merge_views(views, "n0", depth=99)
    assert sorted(found.nodes) == names
    assert len(found.edges) == 6


def test_the_depth_bounds_the_view() -> None:
    names = [f"n{at}" for at in range(6)]
    views = {
        name: view(name, {name: (at, 1.0)}, *names[at + 1 : at + 2])
        for at, name in enumerate(names)
    }
    found = merge_views(views, "n0", depth=2)
    assert sorted(found.nodes) == ["n0", "n1", "n2"]
    assert {edge.to_id for edge in found.edges} == {"n1", "n2"}
    assert sorted(merge_views(views, "n0", depth=0).nodes) == ["n0"]


def test_the_merge_does_not_depend_on_the_order_of_views() -> None:
    source = random.Random(9)
    names = [f"n{at}" for at in range(8)]
    views = {
        name: view(
            name,
            {other: (source.randrange(99), float(source.randrange(5))) for other in names},
            *source.sample(names, 3),
        )
        for name in names
    }
    expected = merge_views(views, "n0")
    for _ in range(10):
        source.shuffle(names)
        assert merge_views({name: views[name] for name in names}, "n0") == expected


def test_an_unknown_origin_and_a_negative_depth_are_errors() -> None:
    with pytest.raises(ClusterError, match="no view of node 'z'; there are none"):
        merge_views({}, "z")
    with pytest.raises(ClusterError, match="the depth is 0 or more"):
        merge_views({"a": view("a", {"a": (1, 1.0)})}, "a", depth=-1)
