"""NVLink: what each chip of the chip database has, by a bridge, on a board and in a report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from weights import mostly_heavy

import probe_chipdb
from probe_chipdb import Chip
from probe_cluster import ClusterError, Links
from probe_cluster.planning.answer import answer
from probe_cluster.planning.links import KINDS, Link, own_nvlink, parse_kind
from probe_cluster.planning.members import Member, member
from probe_cluster.planning.predict import RESERVE
from probe_cluster.planning.reading import read_members
from probe_cluster.planning.serving import Load, device_of, layouts
from probe_cluster.planning.whatif import what_if

CHIPS = [
    chip
    for chip in probe_chipdb.load().chips()
    if chip.interconnect is not None and chip.interconnect[0].startswith("NVLink")
]
GENERATIONS = [f"nvlink{number}" for number in (2, 3, 4, 5)]
SMALL = {"model": "llama-3.1-8b", "bits": "q4"}


def pair(chip: Chip, link: str = "") -> Member:
    (own,) = read_members([], have=[f"2x {chip.id}{link}"])
    return own


def test_cards_with_a_bridge_and_boards_are_among_them() -> None:
    found = {chip.id for chip in CHIPS}
    assert {
        "nvidia/geforce-rtx-2080-ti", "nvidia/geforce-rtx-3090", "nvidia/rtx-a6000", "nvidia/a30",
        "nvidia/tesla-v100-sxm2-16gb", "nvidia/a100-sxm4-80gb", "nvidia/h100-nvl",
        "nvidia/h200-sxm5-141gb", "nvidia/b200-sxm6-180gb", "nvidia/gb200",
    } <= found  # fmt: skip


@pytest.mark.parametrize("chip", mostly_heavy(CHIPS, 4), ids=[chip.id for chip in CHIPS])
def test_nvlink_without_a_generation_is_the_chips_own(chip: Chip) -> None:
    # Names of several chips, as NVIDIA H100, stand for the slowest of them.
    alike = probe_chipdb.load().match(name=chip.name).candidates or (chip,)
    own_links = [each.interconnect for each in alike if each.interconnect]
    kind, both_ways = min(own_links, key=lambda link: link[1])
    own = pair(chip, ", nvlink").inner
    assert (own.kind, own.bandwidth) == (kind.lower().replace(" ", ""), both_ways * 1e9 / 2)
    assert pair(chip, f", {own.kind}").inner == own
    for other in GENERATIONS:
        if other != own.kind:
            with pytest.raises(
                ClusterError, match=rf"has {own.kind}, \S+ GB/s one way, not {other}"
            ):
                what_if([f"2x {chip.id}, {other}"])


@pytest.mark.parametrize(
    ("card", "gbs"),
    [
        ("RTX 2080 Ti", 50), ("RTX 3090", 56.25), ("RTX A6000", 56.25), ("A40", 56.25),
        ("A30", 100), ("A100 PCIe 80GB", 300), ("H100 NVL", 300), ("H100 SXM", 450),
    ],
)  # fmt: skip
def test_one_direction_as_the_makers_publish_both(card: str, gbs: float) -> None:
    (own,) = read_members([], have=[f"2x {card} nvlink"])
    assert own.inner.bandwidth == gbs * 1e9


def test_of_chips_that_are_not_known_to_have_it_it_is_refused() -> None:
    with pytest.raises(ClusterError, match=r"does not tell whether .*T4 has NVLink"):
        what_if(["2x T4, nvlink"])
    with pytest.raises(ClusterError, match=r"RTX 4090 has no connector for nvlink4: .* PCIe 4"):
        what_if(["2x RTX 4090, nvlink4"])


def test_as_the_default_of_one_computer_it_joins_its_cards() -> None:
    bridged = read_members([], have=["2x RTX 3090, nvlink"])
    bare = read_members([], have=["2x RTX 3090"])
    assert bare[0].inner == KINDS["pcie4"]
    links = Links(default=parse_kind("nvlink"))
    found = answer(bare, SMALL, links=links).choice.members
    assert found[0].inner == bridged[0].inner
    with pytest.raises(
        ClusterError, match=r"RTX 3090 has nvlink3, 56.25 GB/s one way, not nvlink5"
    ):
        answer(bare, SMALL, links=Links(default=parse_kind("nvlink5")))


def test_between_computers_it_joins_superchips_alone() -> None:
    racks = read_members([], have=["2x GB200", "2x GB200"])
    found = answer(racks, SMALL, links=Links(default=parse_kind("nvlink"))).links.default
    assert (found.kind, found.bandwidth) == ("nvlink5", 900e9)
    cards = read_members([], have=["RTX 3090", "RTX 3090"])
    pairs = {(cards[0].id, cards[1].id): parse_kind("nvlink")}
    for links in (Links(default=parse_kind("nvlink")), Links(pairs)):
        with pytest.raises(ClusterError, match="nvlink joins the cards of one computer"):
            answer(cards, SMALL, links=links)


def test_a_bridge_serves_prompts_slower_than_a_board_would() -> None:
    model = {"model": "llama-3.3-70b", "bits": "awq"}
    bridged = read_members([], have=["2x RTX 3090, nvlink"])
    found = answer(bridged, model, engine="vllm")
    (own,) = found.choice.members

    def most(inner: Link) -> float:
        nodes = [replace(own, inner=inner)]
        load = Load(16, 2048)
        device = device_of(nodes, found.model, found.links, RESERVE)
        assert device is not None
        made = layouts(device, 1, replace(found.model, context=2048 + load.answer), load, "vllm")
        return max(each.total for each in made if each.tensor == 2)

    assert most(KINDS["pcie4"]) < most(own.inner) < most(KINDS["nvlink4"])


def card(
    place: int, *links: dict[str, Any], name: str = "NVIDIA GeForce RTX 3090"
) -> dict[str, Any]:
    id_ = f"pci:0000:0{place}:00.0"
    memory = {"kind": "dedicated", "total": 24 << 30, "free": 24 << 30}
    return {
        "id": id_, "ids": [id_], "kind": "gpu", "vendor": "nvidia", "name": name,
        "arch": "ampere-geforce", "bandwidth": 936.2e9, "memory": memory, "links": list(links),
        "readiness": {"state": "ready"},
    }  # fmt: skip


def bridge(peer: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "nvlink", "peer": f"pci:0000:0{peer}:00.0", "count": 4, "to": "gpu", **fields}


def inner(*devices: dict[str, Any]) -> tuple[str, float]:
    found = member("a", {"schema": 1, "node": {}, "devices": list(devices)}).inner
    return found.kind, found.bandwidth


def test_a_report_tells_who_is_joined_and_by_how_many_links() -> None:
    pcie = ("pcie4", 32e9)
    assert inner(card(1, bridge(2)), card(2, bridge(1))) == ("nvlink3", 56.25e9)
    # Two of the four links are up; NVML gives 14,062 MB/s each.
    half = {"count": 2, "bandwidth": 2 * 14_062e6}
    assert inner(card(1, bridge(2, **half)), card(2, bridge(1, **half))) == ("nvlink3", 28.124e9)
    # Two bridges join four cards two by two.
    two = [card(1, bridge(2)), card(2, bridge(1)), card(3, bridge(4)), card(4, bridge(3))]
    assert inner(*two) == pcie
    # A ring of bridges reaches all.
    ring = [card(n, bridge(n % 3 + 1), bridge((n + 1) % 3 + 1)) for n in (1, 2, 3)]
    assert inner(*ring) == ("nvlink3", 56.25e9)
    switch = {"kind": "nvlink", "peer": None, "count": 18, "to": "switch", "bandwidth": 478.1e9}
    board = [card(n, switch, name="NVIDIA H100 80GB HBM3") for n in range(1, 5)]
    assert inner(*board) == ("nvlink4", 450e9)
    assert inner(card(1, bridge(2)), card(2)) == pcie


def test_of_an_unknown_chip_it_is_the_slowest_there_is() -> None:
    other = [card(1, bridge(2), name="NVIDIA Z1"), card(2, bridge(1), name="NVIDIA Z1")]
    assert own_nvlink("NVIDIA Z1") is None
    slowest = min(both / 2 for _, both in filter(None, (chip.interconnect for chip in CHIPS)))
    assert inner(*other) == ("nvlink", slowest * 1e9)
