"""Words for how near two devices are: tables that nvidia-smi printed, the edge of each word."""

from __future__ import annotations

from typing import Any

import pytest

from probe_core.model.distance import (
    Place,
    bridge_noun,
    distance,
    interconnect,
    located,
    matrix,
    meanings,
    network_places,
    only_node,
    place_of,
    shared_bridges,
)


def below(root: str, *bridges: str, node: int | None = 0, name: str = "", links: Any = ()) -> Place:
    return Place(name or f"pci:{root}{''.join(bridges)}", (f"pci{root}", *bridges), node, links)


NV6 = ({"kind": "nvlink", "count": 6, "to": "switch"},)


@pytest.mark.parametrize(
    ("depth", "noun"),
    [(0, "root port"), (1, "PCIe switch"), (2, "PCIe port"), (3, "PCIe switch"), (4, "PCIe port")],
)
def test_what_a_bridge_is_called(depth: int, noun: str) -> None:
    assert bridge_noun(depth) == noun


def test_the_published_table_of_a_dgx_2() -> None:
    """Rows of `nvidia-smi topo -m` in github.com/NVIDIA/nccl-tests/issues/78.

    Two GPUs and a network card are below a switch, two such switches below another one, and each
    package has two of these.
    """

    def card(package: int, tree: int, leaf: int, slot: int, links: Any = ()) -> Place:
        root = f"0000:{package}{tree}"
        bridges = (f"{root}:00.0", f"{root}:up", f"{root}:{leaf}", f"{root}:{leaf}:up")
        name = f"{package}{tree}{leaf}{slot}"
        port = f"{root}:{leaf}:{slot}"
        return below(root, *bridges, port, node=package, name=name, links=links)

    leaves = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0)]
    gpus = [card(*leaf, slot, NV6) for leaf in leaves for slot in (0, 1)]
    nics = [card(*leaf, 2) for leaf in leaves]
    table = matrix([*gpus, *nics])
    rows = {at: " ".join(table[at][len(gpus) :]) for at in (0, 1, 2, 3, 4)}
    assert rows == {
        0: "PIX PXB NODE NODE SYS SYS SYS",
        1: "PIX PXB NODE NODE SYS SYS SYS",
        2: "PXB PIX NODE NODE SYS SYS SYS",
        3: "PXB PIX NODE NODE SYS SYS SYS",
        4: "NODE NODE PIX PXB SYS SYS SYS",
    }
    assert set(table[0][: len(gpus)]) == {"X", "NV6"}


def test_the_published_table_of_four_gpus_in_slots_of_their_own() -> None:
    """A table of four GPUs and two cards of two ports: ports of a card share its root port."""
    gpus = [below(f"0000:{at}0", f"0000:{at}0:01.0", node=at // 2) for at in range(4)]
    ports = [
        below(f"0000:{bus}", f"0000:{bus}:01.0", node=node, name=f"{bus}.{port}")
        for bus, node in (("05", 0), ("85", 1))
        for port in (0, 1)
    ]
    assert [" ".join(row) for row in matrix([*gpus, *ports])] == [
        "X NODE SYS SYS NODE NODE SYS SYS",
        "NODE X SYS SYS NODE NODE SYS SYS",
        "SYS SYS X NODE SYS SYS NODE NODE",
        "SYS SYS NODE X SYS SYS NODE NODE",
        "NODE NODE SYS SYS X PIX SYS SYS",
        "NODE NODE SYS SYS PIX X SYS SYS",
        "SYS SYS NODE NODE SYS SYS X PIX",
        "SYS SYS NODE NODE SYS SYS PIX X",
    ]


def test_links_between_two_devices_count_before_what_is_below() -> None:
    first = below("0000:00", name="a", links=({"kind": "xgmi", "peer": "b"},))
    second = below("0000:00", name="b", links=({"kind": "xgmi", "peer": "a"},))
    assert distance(first, second) == "XGMI1"
    assert distance(first, below("0000:00", name="c")) == "PHB"
    assert meanings([("X", "XGMI1", "PHB")]) == [
        "XGMI1: one xGMI link",
        "PHB: the host bridge of a CPU",
    ]


def test_a_peer_beyond_other_devices_is_no_direct_one() -> None:
    first = below("0000:00", name="a", links=({"kind": "xgmi", "peer": "b", "count": 0},))
    second = below("0000:20", name="b", node=0, links=({"kind": "xgmi", "peer": "a", "count": 0},))
    assert distance(first, second) == "XGMI"
    assert meanings([("X", "XGMI", "NODE")]) == [
        "XGMI: xGMI through other GPUs",
        "NODE: within a NUMA node",
    ]


def test_equal_names_below_different_bridges_are_not_shared() -> None:
    first = below("0000:00", "0000:00:01.0", "x", "same", name="a")
    second = below("0000:00", "0000:00:02.0", "y", "same", name="b")
    assert distance(first, second) == "PHB"


def test_what_is_not_known_is_a_dash_and_not_far() -> None:
    nowhere, somewhere = Place("a"), Place("b", numa_node=0)
    assert distance(nowhere, somewhere) == "–"
    assert [distance(*located([nowhere, somewhere], only)) for only in (0, None)] == ["NODE", "–"]


def test_a_device_that_nobody_saw_on_the_bus_has_no_route() -> None:
    device: Any = {"id": "pci:0000:01:00.0", "seen_by": ["nvidia"], "links": []}
    assert place_of(device).route == ()
    on_the_bus: Any = {**device, "seen_by": ["bus"]}
    assert place_of(on_the_bus).route == ("pci0000:01",)
    below_a_port: Any = {**device, "bridges": ["0000:00:01.0"]}
    assert place_of(below_a_port).route == ("pci0000:00", "0000:00:01.0")


def test_ports_and_interfaces_of_one_card_are_one() -> None:
    links = [
        {"name": "eth0", "kind": "ethernet", "device": "pci:0000:04:00.0", "numa_node": 1},
        {"name": "usb0", "kind": "ethernet"},
        {"name": "mlx5_0/1", "kind": "rdma", "device": "pci:0000:04:00.0", "numa_node": 1},
    ]
    report: Any = {"node": {"network": links}}
    ((label, names, place),) = network_places(report)
    assert (label, names) == ("NIC 0", ("mlx5_0/1", "eth0"))
    assert place == Place("pci:0000:04:00.0", ("pci0000:04",), 1)


def cpu(vendor: str, family: int, model: int, node: int) -> dict[str, Any]:
    facts = {"family": family, "model": model}
    return {"kind": "cpu", "vendor": vendor, "numa_node": node, "cpu": facts}


@pytest.mark.parametrize(
    ("vendor", "family", "model", "link"),
    [
        ("intel", 6, 143, "UPI"),  # Sapphire Rapids
        ("intel", 6, 85, "UPI"),  # Skylake-SP
        ("intel", 6, 79, "QPI"),  # Broadwell-EP
        ("intel", 15, 143, None),  # NetBurst
        ("amd", 23, 1, "xGMI"),  # Naples, the first
        ("amd", 22, 1, None),
        ("amd", 25, 17, "xGMI"),  # Genoa
        ("amd", 21, 1, None),  # Bulldozer: HyperTransport
        ("arm", 8, 1, None),
    ],
)
def test_what_links_packages(vendor: str, family: int, model: int, link: str | None) -> None:
    pair: Any = {"devices": [cpu(vendor, family, model, node) for node in (0, 1)]}
    assert interconnect(pair) == link
    assert only_node(pair) is None
    alone: Any = {"devices": pair["devices"][1:]}
    assert interconnect(alone) is None
    assert only_node(alone) == 1


def test_only_bridges_that_branch_are_groups() -> None:
    places = [below("0000:00", "port", "up", f"down{at}", name=f"{at}") for at in range(2)]
    (group,), alone = shared_bridges([*places, below("0000:00", "other", name="c")])
    assert (group.address, group.depth, group.groups) == ("up", 1, ())
    assert [place.id for place in (*group.places, *alone)] == ["0", "1", "c"]
