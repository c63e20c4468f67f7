"""Thunderbolt and RDMA: Linux's /sys, a Mac's JSON, and neighbours in a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from probe_core.machine import Machine
from probe_exo import NetworkLink, node_interfaces, node_links
from probe_exo.links import NodeLinks, RdmaPort, ThunderboltPort, mac_interfaces, neighbours
from probe_exo.mac import InterfaceTexts, parse_interfaces, parse_ports

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


@pytest.mark.parametrize("absent", ["0-0/unique_id", "0-1/unique_id", "0-1.0/key"])
def test_a_neighbour_has_both_ends(machine: Make, absent: str) -> None:
    files = {
        "domain0/security": "user\n",
        "0-0/unique_id": "aaaa\n",
        "0-1/unique_id": "bbbb\n",
        "0-1.0/key": "network\n",
    }
    left = {f"{BUS}/{name}": text for name, text in files.items() if name != absent}
    assert node_links(machine(left)).thunderbolt == ()


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


def test_a_port_has_the_device_that_follows_it() -> None:
    text = "Device: en9\nHardware Port: Wi-Fi\nEthernet Address: 00:01\nDevice: en0\nDevice: en1\n"
    assert parse_interfaces(text) == {"Wi-Fi": "en0"}


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


NETWORK = {
    "/sys/class/net/lo/type": "772\n",
    "/sys/class/net/wlan0/type": "1\n",
    "/sys/class/net/wlan0/phy80211/name": "phy0\n",
    "/sys/class/net/wlan0/device/vendor": "0x8086\n",
    "/sys/class/net/eth0/type": "1\n",
    "/sys/class/net/eth0/device/vendor": "0x15b3\n",
    "/sys/class/net/eth0/device/net/eth0/type": "1\n",
    "/sys/class/net/eth0/speed": "100000\n",
    "/sys/class/net/eth1/type": "1\n",
    "/sys/class/net/eth1/device/vendor": "0x8086\n",
    "/sys/class/net/eth1/speed": "-1\n",
    "/sys/class/net/docker0/type": "1\n",
    "/sys/class/net/docker0/speed": "10000\n",
    "/sys/class/net/bonding_masters": "bond0\n",
    "/sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "/sys/class/infiniband/mlx5_0/ports/1/rate": "100 Gb/sec (4X EDR)\n",
    "/sys/class/infiniband/mlx5_0/device/net/eth0/type": "1\n",
}


@pytest.mark.parametrize(
    ("lane", "mbits", "generation"), [("20.0", 40_000.0, 4), ("40.0", 80_000.0, 5)]
)
def test_interfaces_have_kind_speed_generation_and_rdma(
    machine: Make, lane: str, mbits: float, generation: int
) -> None:
    cable = {
        f"{BUS}/0-0/unique_id": "aaaa\n",
        f"{BUS}/0-1/unique_id": "bbbb\n",
        f"{BUS}/0-1/tx_speed": f"{lane} Gb/s\n",
        f"{BUS}/0-1/tx_lanes": "2\n",
        f"{BUS}/0-1.0/key": "network\n",
    }
    here = machine(NETWORK | cable | {"/sys/class/net/tb0/type": "1\n"})
    root = Path(here.root)
    (root / "sys/class/net/tb0/device").symlink_to(root / f".{BUS}/0-1.0")
    driver = root / "sys/bus/thunderbolt/drivers/thunderbolt-net"
    driver.mkdir(parents=True)
    (root / f".{BUS}/0-1.0/driver").symlink_to("../../drivers/thunderbolt-net")
    assert node_interfaces(here) == {
        "lo": NetworkLink("unknown", None),
        "wlan0": NetworkLink("wifi", None),
        "eth0": NetworkLink("ethernet", 100_000.0, None, "mlx5_0"),
        "eth1": NetworkLink("ethernet", None),
        "docker0": NetworkLink("unknown", None),
        "tb0": NetworkLink("thunderbolt", mbits, generation),
    }


IFCONFIG = """\
en0: flags=8863<UP,BROADCAST> mtu 1500
\tether 00:00:00:00:00:01
\tmedia: autoselect (10Gbase-T <full-duplex>)
\tstatus: active
en1: flags=8863<UP> mtu 1500
\tmedia: autoselect
en2: flags=8863<UP> mtu 1500
\tmedia: autoselect <full-duplex>
en7: flags=8863<UP> mtu 1500
\tmedia: autoselect (2500Base-T <full-duplex>)
"""
LISTED = """\
Hardware Port: Ethernet
Device: en0

Hardware Port: Wi-Fi
Device: en1

Hardware Port: Thunderbolt 1
Device: en2

Hardware Port: USB 10/100/1G/2.5G LAN
Device: en7

Hardware Port: Thunderbolt Bridge
Device: bridge0
"""


def cable(speed: str) -> str:
    tag = {"receptacle_id_key": "1", "current_speed_key": speed}
    return json.dumps(
        {"SPThunderboltDataType": [{"domain_uuid_key": "A", "receptacle_1_tag": tag}]}
    )


@pytest.mark.parametrize(
    ("speed", "rdma", "link"),
    [
        ("Up to 80 Gb/s", True, NetworkLink("thunderbolt", 80_000.0, 5, "rdma_en2")),
        ("Up to 80 Gb/s", False, NetworkLink("thunderbolt", 80_000.0, 5)),
        ("Up to 80 Gb/s", None, NetworkLink("thunderbolt", 80_000.0, 5)),
        # Thunderbolt 4 has no RDMA (exo issues 1813, 2063).
        ("Up to 40 Gb/s", True, NetworkLink("thunderbolt", 40_000.0, 4)),
        ("fast", True, NetworkLink("thunderbolt", None)),
    ],
)
def test_a_macs_interfaces(speed: str, rdma: bool | None, link: NetworkLink) -> None:
    assert mac_interfaces(InterfaceTexts(LISTED, IFCONFIG, cable(speed), rdma)) == {
        "en0": NetworkLink("ethernet", 10_000.0),
        "en1": NetworkLink("wifi", None),
        "en2": link,
        "en7": NetworkLink("ethernet", 2_500.0),
        "bridge0": NetworkLink("unknown", None),
    }


def test_a_mac_that_says_nothing_has_no_interfaces() -> None:
    assert mac_interfaces(InterfaceTexts("", "", "", None)) == {}
