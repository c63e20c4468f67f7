"""Which pairs are measured, in how many rounds, and what a wrong pair is told."""

from __future__ import annotations

from itertools import pairwise

import pytest

from probe_cluster import ClusterError, Limits
from probe_cluster.network.links import Network
from probe_cluster.network.measure import bounds, groups_of
from probe_cluster.network.pairs import batches, choose_pairs, rounds

FOUR = ["a", "b", "c", "d"]


def test_up_to_eight_nodes_all_pairs_are_measured() -> None:
    assert choose_pairs(FOUR, {}) == [
        ("a", "b"),
        ("a", "c"),
        ("a", "d"),
        ("b", "c"),
        ("b", "d"),
        ("c", "d"),
    ]
    assert len(choose_pairs([f"n{at}" for at in range(8)], {})) == 28


def test_of_more_nodes_a_ring_and_as_many_random_pairs() -> None:
    ids = [f"n{at}" for at in range(9)]
    pairs = choose_pairs(ids, {})
    assert pairs[:9] == [*pairwise(ids), ("n8", "n0")]
    assert len(pairs) == len({frozenset(pair) for pair in pairs}) == 18
    assert pairs == choose_pairs(ids, {})
    assert len(choose_pairs(ids, {}, "all")) == 36
    assert choose_pairs(ids, {}, "3") == [("n0", "n1"), ("n1", "n2"), ("n2", "n3")]
    assert choose_pairs(FOUR, {}, "5")[:4] == [*pairwise(FOUR), ("d", "a")]
    assert choose_pairs(FOUR[:2], {}, "1") == choose_pairs(FOUR[:2], {}) == [("a", "b")]
    assert len(choose_pairs(ids, {}, "999")) == 36


def test_pairs_by_hand_may_be_names_and_hold_colons() -> None:
    ids = ["fd00::1", "fd00::2", "f194"]
    assert choose_pairs(ids, {"head": "f194"}, "fd00::1:fd00::2,head:fd00::1") == [
        ("fd00::1", "fd00::2"),
        ("f194", "fd00::1"),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a:z", "no such two nodes gave a report; there are a, b, c, d"),
        ("a:a", "a pair is two nodes"),
        ("some", "write all, a number of pairs, or a:b,c:d"),
        ("0", "write all, a number of pairs"),
        ("-1", "write all, a number of pairs"),
        ("1000000", "write all, a number of pairs"),
        ("²", "write all, a number of pairs"),
    ],
)
def test_what_is_no_pair_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ClusterError) as error:
        choose_pairs(FOUR, {}, text)
    assert sentence in str(error.value)


def test_all_pairs_of_many_nodes_are_refused() -> None:
    with pytest.raises(ClusterError, match="499500 pairs; at most 5000"):
        choose_pairs([f"n{at}" for at in range(1000)], {}, "all")
    ids = [f"n{at}" for at in range(101)]  # 5050 pairs
    assert len(choose_pairs(ids, {}, "5000")) == 5000
    with pytest.raises(ClusterError, match="5001 pairs; at most 5000"):
        choose_pairs(ids, {}, "5001")
    assert len(choose_pairs(FOUR, {}, "999999")) == 6


def test_no_node_is_in_two_pairs_of_a_round() -> None:
    assert rounds(choose_pairs(FOUR, {})) == 3
    assert rounds([("a", "b"), ("b", "c"), ("c", "d")]) == 2
    assert rounds([]) == 0
    thousand = choose_pairs([f"n{at}" for at in range(1000)], {})
    assert len(thousand) == 2000
    assert rounds(thousand) < 12


def test_groups_hold_no_more_nodes_than_processes_may_run() -> None:
    pairs = choose_pairs([f"n{at}" for at in range(20)], {})
    groups = list(batches(pairs, 6))
    assert sorted(pair for group in groups for pair in group) == sorted(pairs)
    assert max(len({end for pair in group for end in pair}) for group in groups) <= 6

    class Engine:
        name = "x"
        process_each = False

    assert groups_of(pairs, Engine(), Limits(fanout=6)) == [pairs]  # type: ignore[arg-type]
    Engine.process_each = True
    assert groups_of(pairs, Engine(), Limits(fanout=6)) == groups  # type: ignore[arg-type]


def test_the_cost_is_known_before() -> None:
    cost = bounds([choose_pairs(FOUR, {})], Network())
    assert (cost.expected, cost.size) == (3 * 3.5 + 2.0, 12 * (4 << 30))
    assert cost.seconds == 2 * 3 * 3.5 + 20 + 3 * 14
    twice = bounds([[("a", "b")], [("a", "c"), ("b", "c")]], Network(seconds=2, size=1 << 20))
    assert (twice.expected, twice.seconds) == (3 * 5.5 + 4.0, 2 * 3 * 5.5 + 40 + 3 * 14)
    assert twice.size == 6 << 20
    eight = choose_pairs([f"n{at}" for at in range(8)], {})
    count = rounds(eight)
    assert count > 5  # a firewall is waited for in five of them
    assert bounds([eight], Network()).seconds == 2 * count * 3.5 + 20 + 5 * 14
