"""The node's own figures, the processors of each package, and the order of what is sampled."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.machine import Machine
from probe_core.sampling import roster
from probe_core.sampling.node import Host, NodeSampler, _groups
from probe_core.sampling.roster import Roster
from probe_core.testing import Tree


def link(tree: Tree, name: str, kind: int, received: int, physical: bool = True) -> None:
    folder = f"/sys/class/net/{name}"
    tree.file(f"{folder}/type", kind)
    tree.file(f"{folder}/statistics/rx_bytes", received)
    tree.file(f"{folder}/statistics/tx_bytes", 10 * received)
    if physical:
        tree.file(f"{folder}/device/vendor", 1)


def port(tree: Tree, name: str, **counters: int) -> None:
    adapter, _, number = name.partition("/")
    for counter, words in counters.items():
        tree.file(f"/sys/class/infiniband/{adapter}/ports/{number}/counters/{counter}", words)


def links(tree: Tree, seconds: float, monkeypatch: pytest.MonkeyPatch, *grown: Any) -> list[Any]:
    """Return what flowed in some seconds in which counters became what `grown` says."""
    now = [100.0]
    monkeypatch.setattr("probe_core.sysfs.rates.monotonic", lambda: now[0])
    sampler = NodeSampler(tree.machine())
    assert sampler.sample()["unknown"]["busy"] == "/proc/stat cannot be read"
    now[0] += seconds
    for change in grown:
        change()
    found = sampler.sample()["links"]
    return [(*(one[key] for key in ("kind", "name", "received", "sent")),) for one in found]


def test_ports_and_interfaces_with_hardware_are_the_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(tmp_path)
    link(tree, "eth0", 1, 1000)
    link(tree, "ib0", 32, 1000)
    link(tree, "lo", 772, 1000)
    tree.file("/sys/class/net/eth1/type", "1\n")
    tree.file("/sys/class/net/eth1/device/vendor", "0x8086\n")
    tree.file("/sys/class/net/eth1/statistics/rx_bytes", "1\n")  # and none that was sent
    link(tree, "bridge0", 1, 1000, physical=False)
    port(tree, "mlx5_0/1", port_rcv_data=100, port_xmit_data=200)
    port(tree, "mlx5_0/2", port_rcv_data=100)
    port(tree, "mlx5_1/1", port_xmit_data=100)
    grown = (
        lambda: link(tree, "eth0", 1, 1500),
        lambda: port(tree, "mlx5_0/1", port_rcv_data=150, port_xmit_data=300),
    )
    assert links(tree, 2.0, monkeypatch, *grown) == [
        ("ethernet", "eth0", 250.0, 2500.0),
        ("ipoib", "ib0", 0.0, 0.0),
        ("infiniband", "mlx5_0/1", 100.0, 200.0),  # counted in words of four bytes
    ]


@pytest.mark.parametrize("physical", [True, False])
def test_many_interfaces_are_the_first_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, physical: bool
) -> None:
    """In a container no interface has hardware behind it: then those without count."""
    tree = Tree(tmp_path)
    for number in range(34):
        link(tree, f"eth{number:02}", 1, number, physical)
        port(tree, f"mlx5_{number:02}/1", port_rcv_data=1, port_xmit_data=1)
    names = [name for _, name, *_ in links(tree, 1.0, monkeypatch)]
    assert names == [
        *(f"eth{n:02}" for n in range(32)),
        *(f"mlx5_{n:02}/1" for n in range(32)),
    ]


def test_the_share_of_time_in_which_the_node_worked(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    sampler, shares = NodeSampler(tree.machine()), []
    for busy, idle in ((10, 90), (40, 160), (40, 160), (30, 270)):
        tree.file("/proc/stat", f"cpu0 {busy} 0 0 {idle}\n")
        sample = sampler.sample()
        shares.append(sample.get("busy", sample["unknown"].get("busy")))
    assert shares == ["a rate needs two readings", 0.3, "a rate needs two readings", 0.0]


def test_what_cannot_be_read_at_all_has_the_reason(tmp_path: Path) -> None:
    class Broken(Machine):
        def read(self, path: str, limit: int = 0) -> str | None:
            raise OverflowError(path)

    host = Host(Machine(str(tmp_path)), [{"kind": "cpu"}, {"kind": "gpu"}])
    assert [sample["device"] for sample in host.sample()] == ["cpu:0", "node:self"]
    host._cpus._machine = host._node._machine = Broken(str(tmp_path))
    assert host.sample() == [
        {"device": device, "status": "unavailable", "reason": "OverflowError: /proc/stat"}
        for device in ("cpu:0", "node:self")
    ]


@pytest.mark.parametrize(
    ("sockets", "packages", "groups"),
    [
        ("01", 2, [[0], [1]]),
        ("01", 1, [[0, 1]]),  # clusters of a system-on-chip are one device
        ("00", 1, [[0, 1]]),
        ("01", 3, [[], [], []]),
        ("00", 2, [[], []]),
    ],
)
def test_each_package_has_its_processors(
    tmp_path: Path, sockets: str, packages: int, groups: Sequence[Sequence[int]]
) -> None:
    tree = Tree(tmp_path)
    tree.file("/sys/devices/system/cpu/online", "0-1\n")
    for cpu, socket in enumerate(sockets):
        own = [str(n) for n, other in enumerate(sockets) if other == socket]
        folder = f"/sys/devices/system/cpu/cpu{cpu}/topology"
        tree.file(f"{folder}/package_cpus_list", ",".join(own) + "\n")
    assert [[*group] for group in _groups(tree.machine(), packages)] == groups


def test_elsewhere_all_processors_are_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    class Times(tuple[float, ...]):
        idle = 1.0

    times = [Times((1.0, 2.0)), Times((3.0, 4.0))]
    monkeypatch.setitem(sys.modules, "psutil", SimpleNamespace(cpu_times=lambda percpu: times))
    assert _groups(Machine(os="darwin"), 1) == [[0, 1]]
    assert _groups(Machine(os="darwin"), 2) == [[], []]


def order(kinds: Iterable[str | None]) -> list[str | None]:
    devices = Roster(Machine("/nowhere"))
    for number, kind in enumerate(kinds):
        devices.add([f"pci:0000:0{number}:00.0"], kind, listed=True)
    devices.add(["node:self"], None, listed=False)
    assert devices.add(["no id"], "gpu", listed=True) is None
    assert devices.entries[-1].id == "node:self"
    return [entry.kind for entry in devices.entries[:-1]]


def test_devices_stand_in_the_order_of_a_report() -> None:
    kinds = ["display", "toaster", "coprocessor", "cpu", "npu", None, "accelerator", "gpu"]
    assert order(kinds) == [
        None,  # a part of a GPU
        *("gpu", "accelerator", "npu", "cpu", "coprocessor", "display", "toaster"),
    ]


def test_devices_beyond_the_most_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert roster.MAX_ENTRIES == 1024
    monkeypatch.setattr(roster, "MAX_ENTRIES", 3)
    devices = Roster(Machine("/nowhere"))
    added = [devices.add([f"x:{number}"], "gpu", listed=True) for number in range(5)]
    assert [entry is not None for entry in added] == [True, True, True, False, False]
    assert devices.add(["x:1", "y:1"], "gpu", listed=True) is devices.get("y:1") is added[1]
