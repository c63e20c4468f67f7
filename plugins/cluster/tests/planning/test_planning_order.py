"""The ring's order: the cheapest ring of all for few nodes, fast neighbours adjacent for many."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from probe_cluster import ClusterError, Links, parse_link
from probe_cluster.planning.links import KINDS, Link, parse_kind
from probe_cluster.planning.search import pairs, ring_order, ring_seconds

SIZE = 16384


def ring(ids: list[str], links: Links) -> float:
    return sum(ring_seconds(ids, links, SIZE))


def random_links(source: random.Random, names: list[str]) -> Links:
    links = Links(default=KINDS[source.choice(["1gbe", "wifi"])])
    for _ in range(source.randint(0, len(names) * 2)):
        left, right = source.sample(names, 2)
        links.connect(left, right, KINDS[source.choice(["rdma", "thunderbolt4", "10gbe"])])
    return links


def test_up_to_nine_nodes_no_ring_is_faster() -> None:
    source = random.Random(4)
    for _ in range(60):
        names = [f"n{at}" for at in range(source.randint(2, 7))]
        links = random_links(source, names)
        found = ring_order(names, links, SIZE)
        first, *others = names
        least = min(ring([first, *rest], links) for rest in permutations(others))
        assert sorted(found) == names
        assert ring(found, links) == pytest.approx(least)


def test_thunderbolt_neighbours_stand_together_in_a_large_ring() -> None:
    names = [f"mac{at:02}" for at in range(24)]
    shuffled = names[:]
    random.Random(5).shuffle(shuffled)
    links = Links()
    for left, right in zip(shuffled[::2], shuffled[1::2], strict=True):
        links.connect(left, right, KINDS["thunderbolt5"])
    found = ring_order(names, links, SIZE)
    fast = [hop for hop in pairs(found) if links.between(*hop).kind == "thunderbolt5"]
    assert sorted(found) == names
    assert len(fast) == 12


def test_a_chain_of_cables_is_followed() -> None:
    names = [f"n{at:03}" for at in range(100)]
    links = Links()
    for left, right in zip(names, names[7:], strict=False):
        if int(left[1:]) % 7 == 0:
            links.connect(left, right, KINDS["rdma"])
    found = ring_order(names, links, SIZE)
    fast = sum(1 for hop in pairs(found) if links.between(*hop).kind == "rdma")
    assert fast == len(links.named())


def test_the_order_given_does_not_matter() -> None:
    source = random.Random(7)
    names = [f"n{at}" for at in range(12)]
    links = random_links(source, names)
    expected = ring_order(names, links, SIZE)
    for _ in range(5):
        source.shuffle(names)
        assert ring_order(names, links, SIZE) == expected


def test_a_node_alone_has_no_hops() -> None:
    assert ring_seconds(["a"], Links(), SIZE) == []
    assert ring_order(["a"], Links(), SIZE) == ["a"]


def test_links_read_as_people_write_them() -> None:
    assert parse_link("desk:studio=TB5") == ("desk", "studio", KINDS["thunderbolt5"])
    assert parse_link("a:b=10GB/s,2ms") == ("a", "b", Link("10GB/s,2ms", 10e9, 2e-3))
    assert parse_kind("ethernet") is KINDS["1gbe"]
    assert parse_kind("400Mbit/s").bandwidth == 50e6


@pytest.mark.parametrize(
    "text", ["a:b", "a=tb5", ":b=tb5", "a:b=", "a:b=pigeon", "a:b=-1GB/s", "a:b=1GB/s,5"]
)
def test_what_is_no_link_is_told(text: str) -> None:
    with pytest.raises(ClusterError, match=r"is no (kind of )?link"):
        parse_link(text)


def test_of_two_cables_the_faster_counts_and_a_loop_is_refused() -> None:
    links = Links({("a", "b"): KINDS["rdma"]})
    links.connect("b", "a", KINDS["wifi"])
    assert links.between("b", "a").kind == "rdma"
    with pytest.raises(ClusterError, match="from 'a' to itself"):
        links.connect("a", "a", KINDS["wifi"])
    with pytest.raises(ClusterError, match="a link names node 'b'; there are a, c"):
        links.check(["c", "a"])
