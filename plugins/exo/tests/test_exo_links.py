"""Thunderbolt and RDMA: Linux's /sys, a Mac's JSON, and neighbours in a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from probe_core.machine import Machine
from probe_exo import node_links
from probe_exo.links import NodeLinks, RdmaPort, ThunderboltPort, neighbours
from probe_exo.mac import parse_interfaces, parse_ports

Make = Callable[[dict[str, str]], Machine]

BUS = "/sys/bus/thunderbolt/devices"


def test_another_host_on_the_bus_is_a_neighbour(machine: Make) -> None:
    here = machine(
        {
            f"{BUS}/domain0/security": "user\n",
            f"{BUS}/0-0/unique_id": "aaaa\n",
            f"{BUS}/0-1/unique_id": "bbbb\n",
            f"{BUS}/0-1/tx_speed": "20.0 Gb/s\n",
            f"{BUS}/0-1/tx_lanes": "2\n",
            f"{BUS}/0-1.0/key": "network\n",
            f"{BUS}/0-3/unique_id": "dock\n",
            f"{BUS}/0-3/tx_speed": "20.0 Gb/s\n",
        }
    )
    assert node_links(here).thunderbolt == (ThunderboltPort("aaaa", "bbbb", None, 40.0),)


def test_rdma_ports_tell_state_and_rate(machine: Make) -> None:
    folder = "/sys/class/infiniband/mlx5_0/ports"
    here = machine(
        {
            f"{folder}/1/state": "4: ACTIVE\n",
            f"{folder}/1/rate": "100 Gb/sec (4X EDR)\n",
            f"{folder}/2/state": "1: DOWN\n",
            f"{folder}/2/rate": "\n",
        }
    )
    assert node_links(here).rdma == (
        RdmaPort("mlx5_0/1", True, 100.0),
        RdmaPort("mlx5_0/2", False, None),
    )


def test_a_machine_without_either_has_none(machine: Make) -> None:
    assert node_links(machine({"/x": ""})) == NodeLinks((), (), None)


PORTS = """\
Hardware Port: Wi-Fi
Device: en0
Ethernet Address: 00:00:00:00:00:01

Hardware Port: Thunderbolt 1
Device: en2
"""
SPEED = "Up to 80 Gb/s"
PROFILE = {
    "SPThunderboltDataType": [
        {
            "domain_uuid_key": "AAAA",
            "receptacle_1_tag": {"receptacle_id_key": "1", "current_speed_key": SPEED},
            "_items": [{"device_name_key": "hub"}, {"domain_uuid_key": "BBBB"}],
        },
        {"domain_uuid_key": "CCCC", "receptacle_1_tag": {"receptacle_id_key": "2"}},
        {"device_name_key": "no uuid"},
        "text",
    ]
}


def test_a_macs_ports() -> None:
    interfaces = parse_interfaces(PORTS)
    assert interfaces == {"Wi-Fi": "en0", "Thunderbolt 1": "en2"}
    assert parse_ports(json.dumps(PROFILE), interfaces) == [
        ("AAAA", "BBBB", "rdma_en2", 80.0),
        ("CCCC", None, None, None),
    ]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"SPThunderboltDataType": 7}', "[" * 100_000])
def test_a_mac_that_prints_something_else_has_no_ports(text: str) -> None:
    assert parse_ports(text, {}) == []


def port(uuid: str, peer: str | None, gbits: float | None = 40.0) -> ThunderboltPort:
    return ThunderboltPort(uuid, peer, None, gbits)


def test_neighbours_find_each_other_by_uuid() -> None:
    nodes = {
        "mini": NodeLinks((port("a", "b", 80.0), port("a2", "nobody")), rdma_enabled=True),
        "studio": NodeLinks((port("b", "a", 80.0), port("b2", "c")), rdma_enabled=True),
        "air": NodeLinks((port("c", "b2"),), rdma_enabled=False),
    }
    found = {pair: link.kind for pair, link in neighbours(nodes).items()}
    assert found == {("mini", "studio"): "rdma", ("air", "studio"): "thunderbolt4"}


def test_without_rdma_the_speed_decides() -> None:
    nodes = {"a": NodeLinks((port("1", "2", 80.0),)), "b": NodeLinks((port("2", "1", 80.0),))}
    assert [link.kind for link in neighbours(nodes).values()] == ["thunderbolt5"]
