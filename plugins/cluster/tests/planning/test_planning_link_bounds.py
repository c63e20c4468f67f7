"""Links as people write them, between whom, and routes over others: each at its bounds."""

from __future__ import annotations

import pytest

from probe_cluster.planning.links import KINDS, Link, Links, parse_kind, parse_link, routed
from probe_cluster.shared import ClusterError

# Gbit/s by what the kind's name or its generation's specification says.
GBITS = {
    "nvlink2": 6 * 200, "nvlink3": 12 * 200, "nvlink4": 18 * 200, "nvlink5": 18 * 400,
    "xgmi": 7 * 64 * 8, "pcie4": 16 * 16, "pcie5": 16 * 32, "rdma": 80, "infiniband": 100,
    "hdr": 200, "ndr": 400, "roce": 200, "thunderbolt5": 80, "thunderbolt4": 40,
    "thunderbolt3": 40, "usb4": 10, "wifi": 0.4, "wifi6": 0.8, "wifi7": 1.5, "same-host": 80,
    "nvlink": 25 * 8,
}  # fmt: skip


def test_the_speed_of_each_kind_is_that_of_its_name() -> None:
    ethernet = {name: float(name.removesuffix("gbe")) for name in KINDS if name.endswith("gbe")}
    assert {name: link.bandwidth * 8 / 1e9 for name, link in KINDS.items()} == {
        **GBITS, **ethernet, "100mbe": 0.1
    }  # fmt: skip
    assert len(ethernet) == 9
    assert all(name == link.kind for name, link in KINDS.items())


def test_direct_links_answer_before_sockets_and_those_before_radio() -> None:
    microseconds = {name: round(link.latency * 1e6, 1) for name, link in KINDS.items()}
    fast = {name for name, time in microseconds.items() if time == 10}
    assert fast == {
        "nvlink", "nvlink2", "nvlink3", "nvlink4", "nvlink5", "xgmi", "pcie4", "pcie5",
        "infiniband", "hdr", "ndr", "roce",
    }  # fmt: skip
    assert (microseconds["same-host"], microseconds["rdma"]) == (6.4, 50)
    assert {microseconds[name] for name in ("10gbe", "400gbe", "40gbe")} == {100}
    assert {microseconds[name] for name in ("5gbe", "1gbe", "thunderbolt5", "usb4")} == {300}
    assert microseconds["100mbe"] == 423
    assert {microseconds[name] for name in ("wifi", "wifi6", "wifi7")} == {3750}
    # Layers are split over what answers at once.
    split = {name for name, link in KINDS.items() if link.reduce is not None}
    assert split == fast | {"rdma"}
    reduces = ("nvlink5", "rdma", "xgmi", "roce", "pcie4")
    assert [round((KINDS[name].reduce or 0) * 1e6) for name in reduces] == [10, 15, 15, 30, 30]


def test_the_time_of_bytes_and_of_an_all_reduce() -> None:
    assert Link("x", 100.0, 0.5).seconds(200) == 2.5
    assert Link("pcie5", 1.0, 0.0, 4.0).reduce_among(4) == 4.0
    assert [Link("pcie5", 1.0, 0.0, 4.0).reduce_among(width) for width in (2, 8)] == [2.0, 6.0]
    assert Link("nvlink5", 1.0, 0.0, 4.0).reduce_among(8) == 4.0
    assert Link("pcie5", 1.0, 0.0).reduce_among(8) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *[(" TB5 ", "thunderbolt5"), ("Thunderbolt", "thunderbolt4")],
        *[("thunderbolt 5", "thunderbolt5"), ("2.5GbE", "2.5gbe")],
        *[("ethernet", "1gbe"), ("10 GbE", "10gbe"), ("10g-bit", "10gbe"), ("10 gigabit", None)],
        *[("gigabit", "1gbe"), ("IB", "infiniband"), ("edr", "infiniband"), ("ConnectX-7", "roce")],
        *[("RoCE v2", "roce"), ("tb5_rdma", "rdma"), ("rdma over tb5", "rdma"), ("pcie", "pcie4")],
        *[("Wi-Fi", "wifi"), ("infinity fabric", "xgmi"), ("10gethernet", None)],
    ],
)  # fmt: skip
def test_kinds_as_people_write_them(text: str, kind: str | None) -> None:
    if kind is None:
        with pytest.raises(ClusterError, match="is no kind of link"):
            parse_kind(text)
    else:
        assert parse_kind(text) is KINDS[kind]


@pytest.mark.parametrize(
    ("text", "latency", "reduce"),
    [
        ("10GB/s", 300e-6, None),
        ("10GB/s,50us", 50e-6, None),
        ("10GB/s,20us", 20e-6, 60e-6),
        ("10GB/s,21us", 21e-6, None),
        ("10GB/s,2ms", 2e-3, None),
    ],
)
def test_links_by_their_figures(text: str, latency: float, reduce: float | None) -> None:
    link = parse_kind(f" {text} ")
    assert (link.kind, link.bandwidth) == (text, 10e9)
    assert link.latency == pytest.approx(latency)
    assert link.reduce == (None if reduce is None else pytest.approx(reduce))


@pytest.mark.parametrize("text", ["", "thunderbolt9", "10GB/s,x", "x,50us"])
def test_what_is_no_kind(text: str) -> None:
    with pytest.raises(ClusterError, match=r"is no kind of link.*: one of same-host, nvlink, "):
        parse_kind(text)


def test_the_link_of_two_nodes() -> None:
    assert parse_link("a:b=tb5") == ("a", "b", KINDS["thunderbolt5"])
    assert parse_link("a:b:c=tb5") == ("a", "b:c", KINDS["thunderbolt5"])
    for text in ("a=tb5", ":b=tb5", "a:=tb5", "a:b=", "a:b"):
        with pytest.raises(ClusterError) as raised:
            parse_link(text)
        assert str(raised.value) == f"{text!r} is no link, such as desk:studio=thunderbolt5"
    with pytest.raises(ClusterError, match="; --default-link tb5 is for all nodes"):
        parse_link("tb5")


FAST, SLOW = Link("fast", 1e9, 0.0), Link("slow", 1e6, 0.0)


def test_who_is_connected_to_whom() -> None:
    links = Links({("b", "a"): SLOW})
    assert (links.between("a", "b"), links.between("b", "a"), links.default.kind) == (
        SLOW, SLOW, "1gbe"
    )  # fmt: skip
    assert (links.is_assumed("a", "b"), links.is_assumed("a", "c")) == (False, True)
    assert not Links(default=FAST).is_assumed("a", "c")
    links.connect("a", "b", FAST)
    links.connect("b", "a", SLOW)  # the faster stays
    assert links.between("a", "b") is FAST
    links.add_measured({("b", "a"): SLOW, ("c", "a"): SLOW})
    assert (links.between("a", "b"), links.between("a", "c")) == (FAST, SLOW)
    links.replace("b", "a", SLOW)
    assert links.named() == {("a", "b"): SLOW, ("a", "c"): SLOW}
    own = links.among(["a", "b"], 0.25)
    assert (own.named(), own.seconds("b", "a", 1_000_000)) == ({("a", "b"): SLOW}, 1.25)
    with pytest.raises(ClusterError, match="a link leads from 'a' to itself"):
        links.connect("a", "a", FAST)
    links.check(["a", "b", "c"])
    with pytest.raises(ClusterError, match="a link names node 'c'; there are a, b"):
        links.check(["b", "a"])


def test_a_route_counts_where_it_is_faster_than_the_own_link() -> None:
    line = Links({("a", "b"): FAST, ("b", "c"): FAST, ("c", "d"): FAST}, SLOW)
    route = routed(line, 1000).between("d", "a")
    assert (route.kind, route.bandwidth, route.latency) == (
        "fast via b, c",
        pytest.approx(1e9 / 3),
        0,
    )
    assert line.between("a", "d") is SLOW
    direct = Links({("a", "b"): FAST, ("b", "c"): FAST, ("a", "c"): Link("own", 5e8, 0.0)}, SLOW)
    assert routed(direct, 1000).between("a", "c").kind == "own"  # equally fast
    direct.replace("a", "c", Link("own", 4.9e8, 0.0))
    assert routed(direct, 1000).between("a", "c").kind == "fast via b"
    mixed = Links({("a", "b"): FAST, ("b", "c"): Link("other", 1e9, 0.125)}, Link("x", 1.0, 9.0))
    joined = routed(mixed, 1000).between("a", "c")
    assert (joined.kind, joined.latency) == ("fast+other via b", 0.125)
    two = Links({("a", "b"): FAST}, SLOW)
    assert routed(two, 1000) is two


@pytest.mark.parametrize(("count", "is_routed"), [(64, True), (65, False)])
def test_routes_are_looked_for_among_so_many_nodes(count: int, is_routed: bool) -> None:
    star = Links({("hub", f"n{number}"): FAST for number in range(count - 1)}, SLOW)
    assert (routed(star, 1000).between("n0", "n1").kind == "fast via hub") is is_routed
