"""Links by name and by figures: which can carry a split layer, named or as the default."""

from __future__ import annotations

import pytest

from probe_cluster import ClusterError, Links, compare
from probe_cluster.planning.answer import answer
from probe_cluster.planning.links import KINDS, own_nvlink, parse_kind
from probe_cluster.planning.members import Member
from probe_cluster.planning.model_spec import parse_model
from probe_cluster.planning.reading import read_members
from probe_cluster.shared import parse_bytes, parse_speed
from probe_cluster.topology_command import _row


@pytest.mark.parametrize(
    ("text", "kind", "splits"),
    [
        ("rdma", "rdma", True), ("RoCE", "roce", True), ("RoCEv2", "roce", True),
        ("infiniband", "infiniband", True), ("ib", "infiniband", True), ("NDR", "ndr", True),
        ("thunderbolt5", "thunderbolt5", False), ("Thunderbolt 5", "thunderbolt5", False),
        ("TB5", "thunderbolt5", False), ("200gbe", "200gbe", False), ("200 GbE", "200gbe", False),
        ("400G", "400gbe", False), ("10g ethernet", None, False), ("NVLink", "nvlink", True),
        ("nvlink5", "nvlink5", True), ("xGMI", "xgmi", True), ("PCIe 5", "pcie5", True),
        ("wifi 6", "wifi6", False), ("USB4", "usb4", False), ("ConnectX-7", "roce", True),
        ("50GB/s,5us", "50GB/s,5us", True), ("50GB/s,50us", "50GB/s,50us", False),
        ("10GB/s", "10GB/s", False),
    ],
)  # fmt: skip
def test_kinds_as_people_write_them(text: str, kind: str | None, splits: bool) -> None:
    if kind is None:
        with pytest.raises(ClusterError, match="is no kind of link"):
            parse_kind(text)
        return
    found = parse_kind(text)
    assert (found.kind, found.reduce is not None) == (kind, splits)


def test_what_is_no_link_is_refused_with_the_nearest() -> None:
    with pytest.raises(ClusterError, match=r"'infinband' is no kind of link \(near: infiniband\)"):
        parse_kind("infinband")


@pytest.mark.parametrize("kind", ["rdma", "roce", "infiniband", "50GB/s,5us"])
def test_a_default_link_that_can_carry_it_yields_a_tensor_plan(kind: str) -> None:
    macs = read_members([], have=["2x Mac Studio M3 Ultra 256GB"])
    asked = {"model": "qwen3-235b", "bits": "8bit"}
    assert parse_model(asked).weight_bytes / 2**30 == pytest.approx(232.7, abs=0.1)
    by_default = answer(macs, asked, links=Links(default=parse_kind(kind))).comparison.best
    named = Links({(macs[0].id, macs[1].id): parse_kind(kind)})
    by_pair = answer(macs, asked, links=named).comparison.best
    assert by_default is not None
    assert by_pair is not None
    assert (by_default.parallel, by_default.seconds_per_token) == (
        "tensor", pytest.approx(by_pair.seconds_per_token)
    )  # fmt: skip


def test_a_slow_default_link_yields_none() -> None:
    macs = read_members([], have=["2x Mac Studio M3 Ultra 256GB"])
    links = Links(default=KINDS["thunderbolt5"])
    found = compare(macs, parse_model({"model": "qwen3-235b", "bits": "8bit"}), links=links)
    assert "tensor" not in [plan.strategy for plan in found.plans]


@pytest.mark.parametrize(
    ("links", "notes"),
    [
        (None, ("a connection that is not named counts as 1gbe",)),
        (Links(default=KINDS["1gbe"]), ()),
        (Links({("mac-studio-m3-ultra-1", "mac-studio-m3-ultra-2"): KINDS["10gbe"]}), ()),
    ],
)
def test_a_link_that_nobody_named_is_said_to_be_assumed(
    links: Links | None, notes: tuple[str, ...]
) -> None:
    macs = read_members([], have=["2x Mac Studio M3 Ultra 256GB"])
    asked = {"model": "qwen3-235b", "bits": "8bit"}
    assert answer(macs, asked, links=links).notes == notes
    # Nor where a plan needs none.
    assert answer(macs, {"model": "llama-3.1-8b"}, links=links).notes == ()


def test_a_route_over_links_that_were_named_is_not_assumed() -> None:
    macs = read_members([], have=["3x Mac Studio M3 Ultra 96GB"])
    first, second, third = (mac.id for mac in macs)
    # Two of them are faster than 1gbe, and slow enough that no layers are split over them.
    cable = parse_kind("10GB/s,25us")
    line = {(first, second): cable, (second, third): cable}
    asked = {"model": "qwen3-235b", "bits": "6bit"}
    found = answer(macs, asked, links=Links(line), engine="mlx")
    assert found.comparison.best is not None
    assert len(found.comparison.best.stages) == 3
    assert found.notes == ()
    # The way back from the last to the first is one, too.
    del line[first, second]
    notes = ("a connection that is not named counts as 1gbe",)
    assert answer(macs, asked, links=Links(line), engine="mlx").notes == notes


def test_of_many_nodes_the_fastest_that_can_be_compared_split_layers() -> None:
    sparks = read_members([], have=["20x DGX Spark"])
    links = Links(default=KINDS["roce"])
    asked = parse_model({"model": "llama-3.1-70b", "bits": "8bit"})
    found = [p for p in compare(sparks, asked, links=links).plans if p.strategy == "tensor"]
    assert [(plan.parallel, len(plan.stages)) for plan in found] == [("tensor", 8)]


def test_the_rates_of_the_standards_are_in_their_names() -> None:
    for name, link in KINDS.items():
        number, unit, rest = name.partition("gbe")
        if unit and not rest:
            assert link.bandwidth == float(number) * 1e9 / 8, name
            # A server's card answers sooner than a desktop's.
            assert link.latency == (100e-6 if float(number) >= 10 else 300e-6), name
    rates = {"100mbe": 0.1, "thunderbolt3": 40, "thunderbolt4": 40, "thunderbolt5": 80, "rdma": 80}
    rates |= {"nvlink": 200, "xgmi": 3584, "same-host": 80}
    rates |= {"hdr": 200, "ndr": 400, "infiniband": 100, "roce": 200, "pcie4": 256, "pcie5": 512}
    for name, gbits in rates.items():
        assert KINDS[name].bandwidth == gbits * 1e9 / 8, name
    chips = ("V100-SXM2-16GB", "A100-SXM4-80GB", "H100 80GB HBM3", "B200")
    for generation, chip in enumerate(chips, 2):
        kind = f"nvlink{generation}"
        own = own_nvlink(f"NVIDIA {chip}")
        assert own is not None
        assert (own.kind, own.bandwidth) == (kind, KINDS[kind].bandwidth)


def test_what_is_nearer_answers_sooner() -> None:
    order = ("same-host", "nvlink", "rdma", "100gbe", "thunderbolt5", "100mbe", "wifi")
    times = [KINDS[name].latency for name in order]
    assert times == sorted(set(times))
    assert KINDS["wifi"].latency < 0.005
    assert {link.latency for name, link in KINDS.items() if link.reduce} == {10e-6, 50e-6}
    assert {KINDS[name].latency for name in ("thunderbolt3", "thunderbolt4", "usb4")} == {300e-6}
    assert KINDS["wifi6"].latency == KINDS["wifi7"].latency == KINDS["wifi"].latency
    # Half of a round trip of 7.5 ms; 8.0 us of 16 KiB on loopback; a frame of 1,538 bytes more.
    assert KINDS["wifi"].latency == 7.5e-3 / 2
    assert round(KINDS["same-host"].seconds(16 << 10), 7) == 8.0e-6
    assert round(KINDS["100mbe"].latency - KINDS["1gbe"].latency, 6) == round(1538 * 8 / 100e6, 6)
    reduce = {"nvlink": 10, "rdma": 15, "xgmi": 15, "hdr": 30, "roce": 30, "pcie4": 30}
    for name, microseconds in reduce.items():
        assert KINDS[name].reduce == pytest.approx(microseconds * 1e-6), name
    assert KINDS["1gbe"].reduce is KINDS["thunderbolt5"].reduce is None
    for name, gbits in {"wifi": 0.4, "wifi6": 0.8, "wifi7": 1.5, "usb4": 10}.items():
        assert KINDS[name].bandwidth == gbits * 1e9 / 8, name
    slower = ["wifi", "wifi6", "1gbe", "wifi7", "2.5gbe", "usb4", "same-host"]
    assert [KINDS[name].bandwidth for name in slower] == sorted(
        {KINDS[name].bandwidth for name in slower}
    )


def test_of_two_links_the_faster_for_a_token_stays() -> None:
    links = Links({("a", "b"): KINDS["1gbe"]})
    links.connect("b", "a", KINDS["10gbe"])
    links.connect("a", "b", KINDS["wifi"])
    assert links.between("a", "b") is links.between("b", "a") is KINDS["10gbe"]
    links.add_measured({("b", "a"): KINDS["wifi"], ("b", "c"): KINDS["hdr"]})
    assert links.between("a", "b") is KINDS["10gbe"]
    assert links.between("c", "b") is KINDS["hdr"]
    assert links.between("a", "c") is links.default is KINDS["1gbe"]
    links.replace("b", "a", KINDS["wifi"])
    assert links.between("a", "b") is KINDS["wifi"]
    among = links.among(["a", "b"], 0.5)
    assert among.named() == {("a", "b"): KINDS["wifi"]}
    assert among.seconds("b", "a", 50_000_000) == pytest.approx(1.50375)
    with pytest.raises(ClusterError, match="to itself"):
        links.connect("a", "a", KINDS["hdr"])


@pytest.mark.parametrize(
    ("text", "speed", "size"),
    [
        ("8 Gbit/s", 1e9, None), ("8mbit/s", 1e6, None), ("1 GB/s", 1e9, None),
        ("2.5 mb/s", 2.5e6, None), ("0 gb/s", None, None), ("-1 gb/s", None, None),
        ("1e6 gb/s", None, None), ("nan gb/s", None, None), ("fast", None, None),
        ("96GiB", None, 96 << 30), ("16 gb", None, 16 * 10**9), ("1.5 MiB", None, 3 << 19),
        ("2 tb", None, 2 * 10**12), ("2 TiB", None, 2 << 40), ("5 mb", None, 5 * 10**6),
    ],
)  # fmt: skip
def test_speeds_and_sizes_as_people_write_them(
    text: str, speed: float | None, size: int | None
) -> None:
    assert (parse_speed(text), parse_bytes(text)) == (speed, size)


def test_the_row_of_a_node() -> None:
    known = Member("a", 24 << 30, 20 << 30, fp32=82.6, chip="RTX 4090", model="Desk")
    assert _row(known)[:5] == ("a", "RTX 4090", "24.0 GiB", "20.0 GiB", "82.6")
    assert (_row(known)[8], _row(Member("b", None))[:4]) == ("Desk", ("b", "unknown", *["–"] * 2))
