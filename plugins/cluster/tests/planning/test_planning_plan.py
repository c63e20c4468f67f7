"""Strategies on homes: predictions, what fits, what is told, and that the best is the best."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from probe_cluster import (
    STRATEGIES,
    ClusterError,
    Links,
    Member,
    Model,
    best,
    compare,
    member,
    plan,
)
from probe_cluster.planning.links import KINDS, Link

GIB = 1 << 30
Home = dict[str, dict[str, Any]]

LLAMA_8B = Model(8_030_261_248, 32, 8.0, hidden=4096)
LLAMA_70B = Model(70_553_706_496, 80, 4.5, hidden=8192)


def node(name: str, gib: float, gbs: float | None, tera: float | None = 10.0) -> Member:
    size = int(gib * GIB)
    bandwidth = None if gbs is None else gbs * 1e9
    return Member(name, size, size, (size,), tera, tera, None, bandwidth)


def home_members(home: Home, *names: str) -> list[Member]:
    return [member(name, home[name], bandwidth=30e9) for name in names]


def test_time_per_token_is_bytes_over_bandwidth_and_hops() -> None:
    pair = [node("a", 16, 100.0, 1000.0), node("b", 16, 200.0, 1000.0)]
    links = Links({("a", "b"): Link("cable", 1e9, 1e-3)})
    found = plan("memory", pair, LLAMA_8B, links=links)
    half = 8_030_261_248 / 2
    assert [(stage.node, stage.layers) for stage in found.stages] == [("b", 16), ("a", 16)]
    hops = 2 * (1e-3 + 8192 / 1e9)
    assert found.hop_seconds == pytest.approx(hops)
    assert found.seconds_per_token == pytest.approx(half / 100e9 + half / 200e9 + hops)
    assert found.slowest_stage == pytest.approx(half / 100e9)
    assert found.stages[0].memory == 16 * LLAMA_8B.layer_bytes
    assert found.fits


def test_arithmetic_bounds_a_node_with_more_bandwidth_than_flops() -> None:
    slow = node("a", 16, 1e6, tera=0.001)
    found = plan("fastest", [slow], LLAMA_8B)
    assert found.seconds_per_token == pytest.approx(2 * 8_030_261_248 / 0.001e12)
    assert found.seconds_per_prompt_token == found.seconds_per_token


def test_a_known_home_by_every_strategy(home: Home) -> None:
    members = home_members(home, "desk", "studio", "orin")
    found = compare(members, LLAMA_70B)
    shares = {p.strategy: {s.node: s.layers for s in p.stages} for p in found.plans}
    assert list(shares) == list(STRATEGIES)
    assert shares["memory"] == {"studio": 48, "orin": 22, "desk": 10}
    # The desk's GPU is fullest and fastest; the Orin only costs time.
    assert shares["fastest"] == {"desk": 48, "studio": 32}
    assert found.refused == ()
    assert found.best is not None
    assert found.best.strategy == "fastest"
    speeds = {p.strategy: p.tokens_per_second or 0.0 for p in found.plans}
    assert speeds["fastest"] > speeds["bandwidth"] > speeds["memory"]


def random_home(source: random.Random, home: Home) -> tuple[list[Member], Links]:
    """2 to 64 nodes of a home's kinds, some with less free, some connected by fast cables."""
    kinds = list(home)
    members = []
    for at in range(source.choice([2, 3, 4, 8, 16, 64])):
        kind = source.choice(kinds)
        one = member(f"{kind}{at:02}", home[kind], bandwidth=source.choice([17e9, 34e9]))
        free = tuple(int(pool * source.uniform(0.5, 1.0)) for pool in one.pools)
        members.append(replace(one, pools=free, available=sum(free)))
    links = Links(default=KINDS[source.choice(["wifi", "1gbe", "10gbe"])])
    for _ in range(source.randint(0, len(members))):
        left, right = source.sample(members, 2)
        links.connect(left.id, right.id, KINDS[source.choice(["rdma", "thunderbolt5", "10gbe"])])
    return members, links


@pytest.mark.heavy
def test_the_best_is_never_slower_than_ring_memory_weighted(home: Home) -> None:
    source = random.Random(11)
    compared = 0
    for _ in range(150):
        members, links = random_home(source, home)
        model = source.choice([LLAMA_8B, LLAMA_70B, replace(LLAMA_70B, bits=8.0)])
        found = compare(members, model, links=links)
        for one in found.plans:
            assert sum(stage.layers for stage in one.stages) == model.layers
            if one.strategy in ("flops", "bandwidth", "fastest"):
                assert one.fits
        ring = found.plans[0]
        if found.best is None or not ring.fits:
            continue
        compared += 1
        assert found.best.seconds_per_token is not None
        assert ring.seconds_per_token is not None
        assert found.best.seconds_per_token <= ring.seconds_per_token
    assert compared > 50


def test_links_decide_who_is_used() -> None:
    """Two Macs by RDMA beat a third, faster one that only Wi-Fi reaches."""
    members = [node("mac1", 36, 400.0), node("mac2", 36, 400.0), node("pc", 36, 500.0)]
    links = Links({("mac1", "mac2"): KINDS["rdma"]}, default=Link("radio", 50e6, 0.05))
    found = plan("fastest", members, LLAMA_70B, links=links)
    assert sorted(stage.node for stage in found.stages) == ["mac1", "mac2"]
    assert {stage.link for stage in found.stages} == {"rdma"}


def test_a_layer_lies_in_one_memory_of_a_node() -> None:
    twin = replace(node("twin", 20, 100.0), pools=(10 * GIB, 10 * GIB))
    model = Model(12 * GIB, 2, 8.0)  # two layers of 6 GiB: one per GPU, not three of 20 GiB
    assert plan("fastest", [twin], model).fits
    three = Model(18 * GIB, 3, 8.0)
    with pytest.raises(ClusterError, match=r"needs 18 GiB"):
        plan("fastest", [twin], three)
    assert not plan("memory", [twin], three).fits


def test_a_node_of_unknown_bandwidth_is_not_used_where_time_counts() -> None:
    members = [node("known", 40, 100.0), replace(node("dark", 90, None), reasons={})]
    found = compare(members, LLAMA_8B)
    memory, fastest = found.plans[0], found.plans[-1]
    assert memory.seconds_per_token is None
    assert memory.notes == ("the time of node 'dark' is unknown: its report does not give",)
    assert [stage.node for stage in fastest.stages] == ["known"]
    assert found.best is fastest
    note = "node 'dark' is not used, its memory bandwidth is unknown: its report does not give"
    assert fastest.notes == (note,)


def test_a_model_that_needs_the_unknown_node_says_what_is_missing() -> None:
    members = [node("known", 4, 100.0), node("dark", 90, None)]
    with pytest.raises(ClusterError, match=r"'dark' is not used.*does not fit on the other nodes"):
        plan("fastest", members, LLAMA_8B)
    assert best(members, LLAMA_8B).strategy in ("memory", "proportional", "flops")


def test_a_node_alone_of_unknown_bandwidth_is_compared_with_no_others() -> None:
    with pytest.raises(ClusterError) as error:
        plan("fastest", [replace(node("dark", 90, None), reasons={})], LLAMA_8B)
    assert str(error.value) == (
        "node 'dark' is not used, its memory bandwidth is unknown: its report does not give"
    )


def test_a_plan_that_does_not_fit_names_the_node_and_its_figures() -> None:
    members = [node("full", 64, 100.0), node("free", 64, 100.0)]
    members[0] = replace(members[0], available=2 * GIB, pools=(2 * GIB,))
    found = plan("memory", members, LLAMA_70B)
    assert not found.fits
    assert found.notes == (
        "node 'full' has 1.9 GiB for its 40 layers, which need 18.5 GiB: 4 would fit",
    )
    assert plan("memory", members, LLAMA_70B, use="total").fits


def test_a_model_larger_than_the_cluster_says_what_would_fit() -> None:
    with pytest.raises(
        ClusterError, match=r"needs 131.4 GiB and the nodes have 38 GiB for it; at 4"
    ):
        best([node("a", 40, 100.0)], replace(LLAMA_70B, bits=16.0))


def test_no_memory_at_all_is_told() -> None:
    nodes = [replace(node("a", 1, 1.0), memory=0, available=0, pools=(0,))]
    found = compare(nodes, LLAMA_8B)
    assert found.plans == ()
    assert dict(found.refused)["memory"].startswith("the total memory of all nodes is 0")
    with pytest.raises(ClusterError, match="the nodes have 0 B for it; no model"):
        best(nodes, LLAMA_8B)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"strategy": "luck"}, "'luck' is no strategy"),
        ({"use": "some"}, "memory to use is"),
        ({"reserve": 1.0}, "a share of the memory below 1"),
        ({"members": []}, "there is no node"),
        ({"members": [node("a", 9, 1.0), node("a", 9, 1.0)]}, "node 'a' is there twice"),
        ({"links": Links({("a", "z"): KINDS["wifi"]})}, "a link names node 'z'"),
        ({"members": [Member("a", None)]}, "the memory of node 'a' is unknown"),
    ],
)
def test_senseless_questions_are_errors(change: dict[str, Any], said: str) -> None:
    asked: dict[str, Any] = {"strategy": "memory", "members": [node("a", 9, 1.0)]} | change
    with pytest.raises(ClusterError, match=said):
        plan(asked.pop("strategy"), asked.pop("members"), LLAMA_8B, **asked)


@pytest.mark.heavy
def test_a_thousand_nodes_with_the_same_answer_each_time() -> None:
    source = random.Random(8)
    members = [node(f"n{at}", source.uniform(4, 32), source.uniform(50, 900)) for at in range(1000)]
    model = Model(70_553_706_496, 128, 8.0)
    first, again = plan("fastest", members, model), plan("fastest", members, model)
    assert first == again
    assert sum(stage.layers for stage in first.stages) == 128
