"""Teams that split layers, joined by a pipeline: against every choice, by the declared costs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, permutations
from typing import Any

import pytest
from weights import mostly_heavy

from probe_cluster import Links, Member, Model, Plan, compare
from probe_cluster.planning.document import comparison_document
from probe_cluster.planning.efficiency import efficiency_of
from probe_cluster.planning.fitting import fit
from probe_cluster.planning.links import KINDS
from probe_cluster.planning.setting import Setting
from probe_cluster.planning.tensor import _fastest, _groups, _joined

GIB = 1 << 30
MAC = efficiency_of("apple-m3", "mlx")
Unit = dict[str, Any]


def mac(name: str, gib: float, gbs: float = 819.2) -> Member:
    size = int(gib * GIB)
    return Member(
        name, size, size, (size,), fp16=50.0, bandwidth=gbs * 1e9, class_="apple-m3", efficiency=MAC
    )


def model(layers: int, billions: float) -> Model:
    params = int(billions * 1e9)
    return Model(params, layers, 4.5, hidden=8192, kv_heads=8, head_dim=128, heads=64)


def tensor(members: Sequence[Member], of: Model, links: Links) -> tuple[Plan | None, Any]:
    """Return the plan that splits layers, and the costs of the document."""
    comparison = compare(members, of, links=links)
    plans = [plan for plan in comparison.plans if plan.strategy == "tensor"]
    document = comparison_document(of, fit(members, of), comparison)
    return plans[0] if plans else None, document["costs"]


def test_two_pairs_of_macs_are_joined_by_a_pipeline() -> None:
    """405 billion at 4.5 bits need all four; each pair alone is joined by RDMA."""
    macs = [mac(name, 64) for name in ("a", "b", "c", "d")]
    pairs = {("a", "b"): KINDS["rdma"], ("c", "d"): KINDS["rdma"]}
    links = Links(pairs, KINDS["10gbe"])
    of = model(126, 405)
    found, costs = tensor(macs, of, links)
    assert found is not None
    best = compare(macs, of, links=links).best
    assert best is not None
    assert (best.strategy, best.parallel, best.fits) == ("tensor", "tensor", True)
    layers = {stage.node: (stage.start_layer, stage.end_layer) for stage in best.stages}
    assert layers["a"] == layers["b"]
    assert layers["c"] == layers["d"]
    assert {stage.node: stage.split_with for stage in best.stages} == {
        "a": ("b",), "b": ("a",), "c": ("d",), "d": ("c",),
    }  # fmt: skip
    step = costs["teams"][0]["layer_seconds"]
    # Two hops of 10 Gbit/s, and what each pair needs to tell its other half.
    hops = 2 * (costs["hops"]["a"]["c"] + 15e-6)
    assert best.seconds_per_token == pytest.approx(126 * step + hops, rel=1e-12)
    apart = compare(macs, of, links=Links(default=KINDS["10gbe"])).best
    assert apart is not None
    assert apart.parallel == "pipeline"
    assert (best.tokens_per_second or 0.0) > 1.3 * (apart.tokens_per_second or 0.0)
    for stage in best.stages:
        assert stage.memory <= stage.room <= 64 * GIB


def test_arithmetic_bounds_a_split_layer_too() -> None:
    """A CPU of 0.3 TFLOPS takes as long for half of a layer's arithmetic as half of it takes."""
    slow = [replace(mac(name, 200), fp16=0.3) for name in ("a", "b")]
    of = model(80, 70)
    found, _ = tensor(slow, of, Links({("a", "b"): KINDS["rdma"]}))
    assert found is not None
    assert (found.seconds_per_token or 0.0) > 2 * 70e9 / 0.3e12 / 2


def test_an_engine_that_splits_no_layers_across_nodes_is_named() -> None:
    links = Links({("a", "b"): KINDS["roce"]})
    sparks = [replace(mac(name, 100), efficiency=efficiency_of("unified")) for name in ("a", "b")]
    found, _ = tensor(sparks, model(80, 70), links)
    assert found is not None
    assert found.notes == (
        "llama.cpp splits no layers across nodes; mlx, exo, vllm, sglang, tensorrt-llm do",
    )
    found, _ = tensor([mac("a", 100), mac("b", 100)], model(80, 70), links)
    assert found is not None
    assert found.notes == ()


def disjoint(teams: Sequence[Unit]) -> Iterator[list[Unit]]:
    for at, team in enumerate(teams):
        apart = [t for t in teams[at + 1 :] if not {*t["nodes"]} & {*team["nodes"]}]
        yield [team]
        for others in disjoint(apart):
            yield [team, *others]


def units_of(costs: Any) -> Iterator[list[Unit]]:
    """Give every choice of teams and of single nodes beside them."""
    for chosen in disjoint(costs["teams"]):
        taken = {name for team in chosen for name in team["nodes"]}
        alone = [
            node | {"nodes": [name], "spread_seconds": 0.0}
            for name, node in costs["nodes"].items()
            if name not in taken and node["most"]
        ]
        for count in range(len(alone) + 1):
            for some in combinations(alone, count):
                yield [*chosen, *some]


def seconds(costs: Any, units: Sequence[Unit], layers: int) -> float:
    """Return the least seconds of one token on all of these units, each with a layer at least."""
    if not len(units) <= layers <= sum(unit["most"] for unit in units):
        return float("inf")
    spare, total = layers - len(units), 0.0
    for unit in sorted(units, key=lambda unit: unit["layer_seconds"]):
        more = min(spare, unit["most"] - 1)
        spare, total = spare - more, total + unit["layer_seconds"] * (1 + more)

    def hop(first: Unit, second: Unit) -> float:
        ways = [costs["hops"][a][b] for a in first["nodes"] for b in second["nodes"]]
        return float(min(ways) + second["spread_seconds"])

    if len(units) == 1:
        return total
    orders = [[units[0], *order, units[0]] for order in permutations(units[1:])]
    return total + min(sum(hop(a, b) for a, b in pairwise(order)) for order in orders)


@pytest.mark.heavy
@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_no_choice_of_teams_is_faster_by_the_costs_in_the_document(nodes: int) -> None:
    source = random.Random(nodes)
    joined = 0
    for _ in range(26):
        members = [
            mac(f"n{at}", source.uniform(8, 90), source.uniform(100, 900)) for at in range(nodes)
        ]
        links = Links(default=KINDS[source.choice(["wifi", "1gbe", "10gbe"])])
        links.software = source.choice([0.0, 0.002])
        for first, second in combinations(members, 2):
            if source.random() < 0.6:
                links.connect(first.id, second.id, KINDS[source.choice(["rdma", "roce"])])
        of = model(source.choice([4, 9, 30]), source.uniform(10, 300))
        found, costs = tensor(members, of, links)
        least = min((seconds(costs, units, of.layers) for units in units_of(costs)), default=None)
        if least in (None, float("inf")):
            assert found is None
            continue
        assert found is not None
        assert found.seconds_per_token == pytest.approx(least, rel=1e-9)
        joined += len({stage.start_layer for stage in found.stages}) > 1
        each = sorted({(stage.start_layer, stage.end_layer) for stage in found.stages})
        assert (each[0][0], each[-1][1]) == (0, of.layers - 1)
        assert all(before[1] + 1 == after[0] for before, after in pairwise(each))
        assert all(stage.memory <= stage.room for stage in found.stages)
    assert joined or nodes == 2


def test_many_nodes_beside_a_team_are_planned_with() -> None:
    members = [mac(f"m{at:02d}", 24) for at in range(40)]
    links = Links({("m00", "m01"): KINDS["rdma"]})
    found, costs = tensor(members, model(60, 200), links)
    assert [team["nodes"] for team in costs["teams"]] == [["m00", "m01"]]
    assert found is not None
    assert 2 < len(found.stages) <= 11


def quickest(members: Sequence[Member], of: Model, link: str, by_pair: bool) -> float:
    links = Links(default=KINDS["10gbe" if by_pair else link])
    for first, second in combinations(members, 2) if by_pair else ():
        links.connect(first.id, second.id, KINDS[link])
    plans = compare(members, of, links=links).plans
    seconds = [plan.seconds_per_token for plan in plans if plan.fits]
    return min((each for each in seconds if each is not None), default=float("inf"))


@pytest.mark.parametrize("by_pair", [False, True])
@pytest.mark.parametrize(("gib", "gbs"), [(128, 400), (16, 900), (512, 200)])
def test_a_ninth_node_never_makes_it_slower(gib: float, gbs: float, by_pair: bool) -> None:
    """The ninth may be alike, fast without memory, or slow with much: eight are not all."""
    eight, of = [mac(f"m{at}", 128, 400) for at in range(8)], model(80, 700)
    less = quickest(eight, of, "rdma", by_pair)
    more = quickest([*eight, mac("n", gib, gbs)], of, "rdma", by_pair)
    assert more <= less * (1 + 1e-9)
    assert quickest(eight, of, "10gbe", by_pair) > 3 * less


@pytest.mark.parametrize("kinds", mostly_heavy([2, 3, 20], 3))
def test_no_node_more_makes_it_slower(kinds: int) -> None:
    source = random.Random(kinds)
    for by_pair in (False, True):
        sorts = [(source.uniform(8, 90), source.uniform(100, 900)) for _ in range(kinds)]
        members = [mac(f"n{at:02d}", *source.choice(sorts)) for at in range(12)]
        of = model(30, source.uniform(30, 300))
        times = [quickest(members[:count], of, "rdma", by_pair) for count in range(7, 13)]
        assert all(more <= less * (1 + 1e-9) for less, more in pairwise(times))
        assert times[-1] < float("inf")


def setting_of(members: Sequence[Member], of: Model, links: Links) -> Setting:
    return Setting(members, of, links, "available", 0.05)


def test_of_many_nodes_the_fastest_teams_of_each_size_are_found() -> None:
    """Beyond the nodes whose teams are all tried, with links that are alike: none is better."""
    source = random.Random(3)
    fronts = []
    for _ in range(26):
        nodes = range(source.randint(2, 7))
        members = [
            mac(f"n{at}", source.choice([16, 32, 64, 96]), source.choice([200.0, 400.0, 800.0]))
            for at in nodes
        ]
        of = model(source.choice([20, 60]), source.choice([20, 40, 80]))
        setting = setting_of(members, of, Links(default=KINDS["rdma"]))
        front: list[tuple[float, int]] = []
        for team in sorted(_groups(setting, nodes), key=lambda team: (team.layer, -team.most)):
            if not front or team.most > front[-1][1]:
                front.append((team.layer, team.most))
        found = _fastest(setting, _joined(setting))
        assert [(team.layer, team.most) for team in found] == front
        fronts.append(len(front))
    assert max(fronts) == 3


def test_of_many_nodes_those_without_a_link_make_no_team() -> None:
    members = [mac(name, 64) for name in "abc"]
    setting = setting_of(members, model(60, 20), Links({("a", "b"): KINDS["rdma"]}))
    assert [team.nodes for team in _fastest(setting, [2, 1, 0])] == [(0, 1)]
