"""Links of a node to others: what /sys lists of interfaces, RDMA ports and Thunderbolt."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from reports import report_of, validated
from trees import Tree

import probe_core
from probe_core import background
from probe_core.pipeline import node as module
from probe_core.pipeline.node import network
from probe_core.probers.records import RECORDS
from probe_core.recording import open_machine
from probe_core.recording.anonymise import Anonymiser
from probe_core.recording.declared import check_records
from probe_core.recording.document import write
from probe_core.recording.gather import gather

OWN = "c0a80101-0001-0203-0405-060708090a0b"
PEER = "c0a80102-0001-0203-0405-060708090a0b"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "root")


def interface(tree: Tree, device: str, name: str, **files: object) -> str:
    folder = f"{device}/net/{name}"
    for file, content in {"type": 1, "operstate": "up\n", "mtu": 1500, **files}.items():
        tree.file(f"{folder}/{file}", content)
    tree.link(f"{folder}/device", device)
    tree.link(f"/sys/class/net/{name}", folder)
    return folder


def nic(tree: Tree, address: str, name: str, power: str = "active", **files: object) -> str:
    device = tree.pci(
        address, "15b3:1021", pci_class="020000", driver="mlx5_core", power=power, numa_node=1
    )
    interface(tree, device, name, **files)
    return device


def port(tree: Tree, device: str, name: str, state: str, rate: str, layer: str) -> None:
    folder = f"{device}/infiniband/{name}"
    for file, content in {"state": state, "rate": rate, "link_layer": layer}.items():
        tree.file(f"{folder}/ports/1/{file}", f"{content}\n")
    tree.link(f"{folder}/device", device)
    tree.link(f"/sys/class/infiniband/{name}", folder)


def thunderbolt(tree: Tree, speed: str = "20.0 Gb/s") -> None:
    bus, domain = "/sys/bus/thunderbolt/devices", "/sys/devices/pci0000:00/0000:00:0d.2/domain0"
    files: dict[str, dict[str, object]] = {
        "0-0": {"unique_id": f"{OWN}\n"},
        "0-0/0-1": {"unique_id": f"{PEER}\n", "tx_speed": f"{speed}\n", "tx_lanes": 2},
        "0-0/0-1/0-1.0": {"key": "network\n"},
        "0-0/0-3": {"unique_id": "a dock\n", "tx_speed": "20.0 Gb/s\n", "tx_lanes": 2},
    }
    for name, contents in files.items():
        for file, content in contents.items():
            tree.file(f"{domain}/{name}/{file}", content)
        tree.link(f"{bus}/{name.rpartition('/')[2]}", f"{domain}/{name}")


def links(tree: Tree, **arguments: Any) -> dict[str, Any]:
    return {link["name"]: link for link in network(tree.machine(), **arguments)}


def test_an_interface_has_its_speed_and_its_place(tree: Tree) -> None:
    nic(tree, "0000:81:00.0", "ens1np0", speed=400000)
    assert network(tree.machine()) == [
        {
            "name": "ens1np0",
            "kind": "ethernet",
            "state": "up",
            "bandwidth": 50_000_000_000,
            "reason": None,
            "mtu": 1500,
            "driver": "mlx5_core",
            "device": "pci:0000:81:00.0",
            "numa_node": 1,
        }
    ]


@pytest.mark.parametrize(
    ("files", "power", "reason"),
    [
        ({"operstate": "down\n", "speed": -1}, "active", "the link is down"),
        ({"speed": 1000}, "suspended", "the device is suspended"),
        ({"speed": -1}, "active", "the driver reports no speed"),
        ({"speed": 4294967295}, "active", "the driver reports no speed"),
        ({}, "active", "the driver reports no speed"),
        ({"speed": "fast\n"}, "active", "the driver reports no speed"),
    ],
)
def test_a_speed_that_is_not_known_has_its_reason(
    tree: Tree, files: dict[str, object], power: str, reason: str
) -> None:
    nic(tree, "0000:81:00.0", "eth0", power, **files)
    link = links(tree)["eth0"]
    assert (link["bandwidth"], link["reason"]) == (None, reason)


def test_the_bridges_above_a_card_are_listed(tree: Tree) -> None:
    below = tree.switch(uplink=(16, 32.0))
    device = tree.pci("0000:03:00.0", "15b3:1021", pci_class="020000", under=below)
    interface(tree, device, "eth0")
    port(tree, device, "mlx5_0", "4: ACTIVE", "400 Gb/sec (4X NDR)", "Ethernet")
    nic(tree, "0000:09:00.0", "eth1")
    found = {link["name"]: link.get("bridges") for link in network(tree.machine())}
    chain = ["0000:02:00.0", "0000:01:00.0", "0000:00:01.0"]
    assert found == {"eth0": chain, "mlx5_0/1": chain, "eth1": None}


def test_kinds_are_told_apart(tree: Tree) -> None:
    nic(tree, "0000:01:00.0", "ib0", type=32, speed=200000)
    nic(tree, "0000:02:00.0", "wlan0")
    tree.file("/sys/devices/pci0000:00/0000:02:00.0/net/wlan0/phy80211/name", "phy0\n")
    nic(tree, "0000:03:00.0", "odd0", type=65534)
    tree.file("/sys/devices/virtual/net/docker0/type", 1)
    tree.link("/sys/class/net/docker0", "/sys/devices/virtual/net/docker0")
    assert {name: link["kind"] for name, link in links(tree).items()} == {
        "ib0": "infiniband",
        "odd0": "other",
        "wlan0": "wifi",
    }


def test_virtual_functions_are_left_out(tree: Tree) -> None:
    card = nic(tree, "0000:81:00.0", "ens1", speed=100000)
    part = nic(tree, "0000:81:00.1", "ens1v0", speed=100000)
    tree.link(f"{part}/physfn", card)
    assert list(links(tree)) == ["ens1"]


def test_a_virtual_function_whose_card_is_elsewhere_counts(tree: Tree) -> None:
    """Of a container's interfaces: the card's own is in the host's namespace."""
    card = tree.pci("0000:81:00.0", "15b3:1021", pci_class="020000", driver="mlx5_core")
    part = nic(tree, "0000:81:00.1", "eth0", speed=100000)
    tree.link(f"{part}/physfn", card)
    assert links(tree)["eth0"]["bandwidth"] == 12_500_000_000


def test_rdma_ports_have_state_layer_and_rate(tree: Tree) -> None:
    first = nic(tree, "0000:81:00.0", "ib0", type=32)
    port(tree, first, "mlx5_0", "4: ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand")
    bare = tree.pci("0000:82:00.0", "15b3:1021", pci_class="020700", driver="mlx5_core")
    port(tree, bare, "mlx5_1", "1: DOWN", "2.5 Gb/sec (1X SDR)", "Ethernet")
    ports = links(tree)
    assert ports["mlx5_0/1"] == {
        "name": "mlx5_0/1",
        "kind": "rdma",
        "state": "up",
        "bandwidth": 50_000_000_000,
        "reason": None,
        "layer": "infiniband",
        "driver": "mlx5_core",
        "device": "pci:0000:81:00.0",
        "numa_node": 1,
        "interface": "ib0",
    }
    down = ports["mlx5_1/1"]
    assert (down["state"], down["bandwidth"], down["reason"]) == ("down", None, "the link is down")
    assert "interface" not in down


@pytest.mark.parametrize("name", ["x-1", "0-0", "0-", "01", "0-a_b", "-1", "0-1"])
def test_a_connection_of_thunderbolt_is_known_by_its_name(name: str, tree: Tree) -> None:
    for entry in (name, f"{name}.0"):
        tree.file(f"/sys/bus/thunderbolt/devices/{entry}/tx_speed", "20.0 Gb/s")
    found = [link["name"] for link in network(tree.machine())]
    assert found == ([name] if name == "0-1" else [])


def test_thunderbolt_hosts_are_links_and_docks_are_none(tree: Tree) -> None:
    thunderbolt(tree)
    assert network(tree.machine()) == [
        {
            "name": "0-1",
            "kind": "thunderbolt",
            "state": "up",
            "bandwidth": 5_000_000_000,
            "reason": None,
            "id": OWN,
            "peer": PEER,
        }
    ]
    lanes = tree.root / "sys/devices/pci0000:00/0000:00:0d.2/domain0/0-0/0-1/tx_lanes"
    lanes.unlink()  # of one at least it surely is
    assert network(tree.machine())[0]["bandwidth"] == 2_500_000_000
    thunderbolt(tree, "fast")
    assert network(tree.machine())[0]["reason"] == "the driver reports no speed"


def test_anonymous_reports_hold_no_ids(tree: Tree) -> None:
    thunderbolt(tree)
    nic(tree, "0000:81:00.0", "enx0242ac110002")
    text = json.dumps(report_of(tree.machine(), anonymous=True)["node"]["network"])
    assert OWN not in text
    assert PEER not in text
    assert "0242ac110002" not in text
    assert '"enx"' in text
    assert "0242ac110002" in json.dumps(report_of(tree.machine())["node"])


@pytest.mark.heavy
def test_a_recording_gives_the_same_links_without_identities(tree: Tree, tmp_path: Path) -> None:
    card = nic(tree, "0000:81:00.0", "ib0", type=32, speed=400000)
    port(tree, card, "mlx5_0", "4: ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand")
    nic(tree, "0000:82:00.0", "enx0242ac110002", speed=1000)
    thunderbolt(tree)
    tree.file("/sys/devices/virtual/net/wg-project/type", 65534)
    tree.link("/sys/class/net/wg-project", "/sys/devices/virtual/net/wg-project")
    declarations = [check_records(records)[0] for records in RECORDS.values()]
    taken = gather(tree.machine(), "invented", declarations, Anonymiser(b"s" * 16)).recording
    path = tmp_path / "machine.json"
    path.write_text(write(taken))
    for identity in ("0242ac110002", "wg-project", OWN, PEER):
        assert identity not in path.read_text()
    with open_machine(str(path)) as machine:
        after: Any = {link["name"]: link for link in network(machine)}
    before: Any = links(tree)
    del before["enx0242ac110002"]
    for key in ("id", "peer"):
        assert after["0-1"].pop(key) != before["0-1"].pop(key)
    assert after == before


def test_a_driver_that_never_answers_costs_its_speed_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where another process holds the kernel's lock of all interfaces, reads of `speed` hang."""
    monkeypatch.setattr(module, "_waits", None)
    release = threading.Event()

    def stuck() -> Any:
        release.wait(30)
        return (None, "late"), None

    rows: list[Any] = [{"name": name, "state": "up"} for name in ("a", "b")]
    begin = time.monotonic()
    module._ask(rows, [lambda: ((1.0, None), None), stuck], live=True)()
    release.set()
    assert time.monotonic() - begin < 10
    assert [(row["bandwidth"], row["reason"]) for row in rows] == [
        (1.0, None),
        (None, "the kernel did not answer within 0.2 s"),
    ]


def test_without_room_for_a_thread_no_driver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's own thread would wait for as long as a driver hangs."""

    def full(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(background, "start_thread", full)
    monkeypatch.setattr(module, "_waits", None)
    asked: list[object] = []
    rows: list[Any] = [{"name": "a", "state": "up"}]
    module._ask(rows, [lambda: ((1.0, None), asked.append(1))], live=True)()
    assert (rows[0]["bandwidth"], asked) == (None, [])


def test_a_driver_that_never_answers_keeps_a_thread_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LIMIT_S", 0.05)
    monkeypatch.setattr(module, "_waits", None)  # an earlier test's thread may still end
    release, asked = threading.Event(), threading.Semaphore(0)

    def stuck() -> Any:
        asked.release()
        release.wait(30)
        return (1.0, None), None

    for _ in range(3):
        rows: list[Any] = [{"name": "a", "state": "up"}]
        module._ask(rows, [stuck], live=True)()
        assert rows[0]["reason"] == "the kernel did not answer within 0.05 s"
    assert asked.acquire(timeout=10)
    assert not asked.acquire(blocking=False)
    release.set()
    monkeypatch.setattr(module, "LIMIT_S", 10)
    for _ in range(1000):
        module._ask(rows, [lambda: ((1.0, None), None)], live=True)()
        if rows[0]["bandwidth"] == 1.0:
            break
        time.sleep(0.01)
    assert rows[0]["bandwidth"] == 1.0


@pytest.mark.heavy
def test_a_node_of_thousands_of_interfaces_is_bounded(tree: Tree) -> None:
    for number in range(module.MAX_LINKS + 20):
        nic(tree, f"0000:{number:02x}:00.0", f"eth{number}", speed=1000)
    report = report_of(tree.machine())
    assert len(report["node"]["network"]) == module.MAX_LINKS
    validated(report)


def test_links_come_through_a_static_report(tree: Tree, tmp_path: Path) -> None:
    nic(tree, "0000:81:00.0", "eth0", speed=25000)
    path = tmp_path / "static.json"
    path.write_text(json.dumps(report_of(tree.machine())))
    report = probe_core.probe(static=str(path))
    (link,) = report.node.network
    assert link["bandwidth"] == 3_125_000_000
