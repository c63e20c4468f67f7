"""Sharing layers: proportions, the best balance and the least time, against every possibility."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from probe_cluster import ClusterError
from probe_cluster.planning.search import balanced, fastest, proportional


def every_way(caps: Sequence[int], layers: int) -> Iterator[list[int]]:
    """All ways to put `layers` on nodes of these capacities."""
    if not caps:
        if layers == 0:
            yield []
        return
    for count in range(min(caps[0], layers) + 1):
        for rest in every_way(caps[1:], layers - count):
            yield [count, *rest]


def token_time(steps: Sequence[float], counts: Sequence[int], hop: float) -> float:
    used = sum(1 for count in counts if count)
    own = sum(step * count for step, count in zip(steps, counts, strict=True))
    return own + (hop * used if used > 1 else 0.0)


def small_cluster(source: random.Random) -> tuple[list[float], list[int], int, float]:
    nodes, layers = source.randint(1, 4), source.randint(1, 9)
    steps = [source.choice([1.0, 1.5, 2.0, 5.0, source.random()]) for _ in range(nodes)]
    caps = [source.randint(0, 9) for _ in range(nodes)]
    caps[0] += max(0, layers - sum(caps))
    return steps, caps, layers, source.choice([0.0, 0.3, 2.0, 20.0])


def test_fastest_is_the_least_time_of_all_ways() -> None:
    source = random.Random(1)
    for _ in range(600):
        steps, caps, layers, hop = small_cluster(source)
        found = fastest(steps, caps, layers, hop)
        assert sum(found) == layers
        assert all(count <= cap for count, cap in zip(found, caps, strict=True))
        least = min(token_time(steps, way, hop) for way in every_way(caps, layers))
        assert token_time(steps, found, hop) == pytest.approx(least, abs=1e-12)


def test_balanced_has_the_fastest_slowest_node_of_all_ways() -> None:
    source = random.Random(2)
    for _ in range(600):
        steps, caps, layers, _ = small_cluster(source)
        found = balanced(steps, caps, layers)
        assert sum(found) == layers

        def slowest(way: Sequence[int], steps: Sequence[float] = steps) -> float:
            return max(step * count for step, count in zip(steps, way, strict=True))

        least = min(slowest(way) for way in every_way(caps, layers))
        assert slowest(found) == pytest.approx(least, abs=1e-12)


def test_a_slow_node_is_left_out_when_its_hop_costs_more() -> None:
    assert fastest([1.0, 1.0], [10, 10], 10, hop=0.5) == [10, 0]
    assert fastest([1.0, 3.0], [8, 10], 10, hop=0.5) == [8, 2]


def test_one_big_slow_node_beats_two_fast_ones_over_a_slow_network() -> None:
    assert fastest([1.0, 1.0, 1.2], [5, 5, 10], 10, hop=9.0) == [0, 0, 10]


def test_a_node_of_unknown_speed_gets_nothing() -> None:
    assert balanced([float("inf"), 1.0], [9, 9], 4) == [0, 4]
    assert fastest([float("inf"), 1.0], [9, 9], 4, 0.0) == [0, 4]


@pytest.mark.parametrize(
    ("weights", "layers", "expected"),
    [
        ([1.0, 1.0], 4, [2, 2]),
        ([3.0, 1.0], 4, [3, 1]),
        ([2.0, 1.0, 1.0], 6, [3, 2, 1]),  # 1.5 and 1.5: the earlier node gets the rest
        ([99.0, 1.0], 4, [3, 1]),  # at least one each
        ([1.0], 7, [7]),
    ],
)
def test_proportional_is_largest_remainder_with_one_each(
    weights: list[float], layers: int, expected: list[int]
) -> None:
    assert proportional(weights, layers) == expected


def test_proportional_always_places_every_layer() -> None:
    source = random.Random(3)
    for _ in range(500):
        weights = [source.randint(0, 100) + 0.5 for _ in range(source.randint(1, 20))]
        layers = source.randint(len(weights), 200)
        found = proportional(weights, layers)
        assert sum(found) == layers
        assert min(found) >= 1


def test_more_nodes_than_layers_and_no_memory_are_errors() -> None:
    with pytest.raises(ClusterError, match="2 layers cannot go to 3 nodes"):
        proportional([1.0, 1.0, 1.0], 2)
    with pytest.raises(ClusterError, match="total memory of all nodes is 0"):
        proportional([0.0, 0.0], 2)
