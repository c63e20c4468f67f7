"""Routes over the links of others: hubs, lines, and links that are slower than a way around."""

from __future__ import annotations

import itertools
import random

import pytest

from probe_cluster import Links
from probe_cluster.planning.links import KINDS, Link, routed

SIZE = 16 << 10
FAST, SLOW = KINDS["rdma"], KINDS["wifi"]


def test_two_spokes_reach_each_other_through_the_hub() -> None:
    links = routed(Links({("hub", "a"): FAST, ("hub", "b"): FAST}), SIZE)
    link = links.between("a", "b")
    assert link.kind == "rdma via hub"
    assert link.seconds(SIZE) == pytest.approx(2 * FAST.seconds(SIZE))
    assert links.between("hub", "a") == FAST
    # A node without a link of its own has the default one, also to the hub.
    assert links.between("a", "c") == links.default


def test_a_line_passes_on_over_several_nodes() -> None:
    kinds = [KINDS["100gbe"], KINDS["rdma"], KINDS["100gbe"]]
    links = Links(dict(zip([("a", "b"), ("b", "c"), ("c", "d")], kinds, strict=True)))
    link = routed(links, SIZE).between("a", "d")
    assert link.kind == "100gbe+rdma via b, c"
    assert link.seconds(SIZE) == pytest.approx(sum(kind.seconds(SIZE) for kind in kinds))


def test_a_slow_cable_is_gone_around_and_a_fast_one_is_not() -> None:
    named = {("a", "b"): SLOW, ("a", "c"): FAST, ("b", "c"): FAST}
    assert routed(Links(named), SIZE).between("a", "b").kind == "rdma via c"
    named[("a", "b")] = FAST
    assert routed(Links(named), SIZE).between("a", "b") == FAST


def test_a_default_link_that_is_faster_stays() -> None:
    links = Links({("hub", "a"): SLOW, ("hub", "b"): SLOW})
    assert routed(links, SIZE).between("a", "b") == links.default


def test_a_faster_or_further_link_makes_no_pair_slower() -> None:
    dice = random.Random(7)
    for _ in range(60):
        names = [f"n{number}" for number in range(dice.randint(3, 7))]
        pairs = list(itertools.combinations(names, 2))
        named = {
            pair: Link("x", dice.uniform(1e7, 1e10), dice.uniform(1e-6, 5e-3))
            for pair in dice.sample(pairs, dice.randint(1, len(pairs)))
        }
        before = routed(Links(named), SIZE)
        pair = dice.choice(pairs)
        old = named.get(pair, before.default)
        after = routed(Links(named | {pair: Link("y", old.bandwidth * 2, old.latency)}), SIZE)
        for first, second in pairs:
            now, then = (links.between(first, second).seconds(SIZE) for links in (after, before))
            assert now <= then * (1 + 1e-12)
