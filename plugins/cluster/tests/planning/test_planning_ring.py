"""Ring memory-weighted partitioning: the rule that old exo's nodes agree on, digit for digit."""

from __future__ import annotations

import random

import pytest

from probe_cluster import ClusterError, Partition, Shard, ring_memory_weighted, shards

Rows = list[tuple[str, int]]


def by_the_rule(nodes: Rows) -> list[tuple[str, float, float]]:
    """The rule's sentence, word by word: sort descending, add the share, round to five digits."""
    in_order = sorted(((memory, name) for name, memory in nodes), reverse=True)
    everything = sum(memory for memory, _ in in_order)
    ends = [0.0]
    for memory, _ in in_order:
        ends.append(round(ends[-1] + memory / everything, 5))
    return [(name, ends[at], ends[at + 1]) for at, (_, name) in enumerate(in_order)]


def layers_by_the_rule(parts: list[tuple[str, float, float]], n: int) -> list[tuple[str, int, int]]:
    ranges = [(name, int(start * n), int(end * n) - 1) for name, start, end in parts]
    name, start, _ = ranges[-1]
    ranges[-1] = (name, start, n - 1)
    return [one for one in ranges if one[1] <= one[2]]


def random_nodes(source: random.Random) -> Rows:
    count = source.randint(1, source.choice([2, 8, 64]))
    sizes = source.choice([[8192, 16384, 24576, 131072], range(200_000), [0, 1, 3], range(7, 10)])
    nodes = [(f"node{source.randrange(10**6)}-{at}", source.choice(sizes)) for at in range(count)]
    return nodes if any(memory for _, memory in nodes) else [*nodes, ("last", 1)]


@pytest.mark.heavy
def test_ten_thousand_random_topologies_give_the_rules_partitions_and_shards() -> None:
    source = random.Random(6)
    for _ in range(10_000):
        nodes, layers = random_nodes(source), source.randint(1, 200)
        expected = by_the_rule(nodes)
        source.shuffle(nodes)
        found = ring_memory_weighted(nodes)
        assert [tuple(one) for one in found] == expected
        assert [one[:3] for one in shards(found, layers)] == layers_by_the_rule(expected, layers)


def test_a_known_home() -> None:
    found = ring_memory_weighted([("air", 8192), ("studio", 131072), ("desk", 24564)])
    assert found == [
        Partition("studio", 0.0, 0.80006),
        Partition("desk", 0.80006, 0.95),
        Partition("air", 0.95, 1.0),
    ]
    assert shards(found, 32) == [
        Shard("studio", 0, 24, 32),
        Shard("desk", 25, 29, 32),
        Shard("air", 30, 31, 32),
    ]


def test_the_last_end_is_not_forced_to_one() -> None:
    found = ring_memory_weighted([("a", 1), ("b", 1), ("c", 1)])
    assert [one.end for one in found] == [0.33333, 0.66666, 0.99999]


def test_equal_memory_is_ordered_by_id_descending() -> None:
    assert [one.node_id for one in ring_memory_weighted([("a", 5), ("c", 5), ("b", 5)])] == [*"cba"]


def test_empty_shards_are_dropped() -> None:
    found = shards(ring_memory_weighted([("big", 99_000), ("small", 1), ("last", 0)]), 4)
    assert [one.node_id for one in found] == ["big", "small"]


def test_no_memory_at_all_is_an_error_that_says_so() -> None:
    with pytest.raises(ClusterError, match=r"the total memory of all nodes is 0.*'b', 'a'"):
        ring_memory_weighted([("a", 0), ("b", 0)])


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([], "there is no node"),
        ([("a", 1), ("a", 2)], "node 'a' is there twice"),
        ([("a", -1)], "node 'a' has -1 MiB"),
    ],
)
def test_senseless_nodes_are_named(nodes: Rows, said: str) -> None:
    with pytest.raises(ClusterError, match=said):
        ring_memory_weighted(nodes)


def test_a_model_without_layers_is_refused() -> None:
    with pytest.raises(ClusterError, match="at least 1 layer, not 0"):
        shards(ring_memory_weighted([("a", 1)]), 0)
