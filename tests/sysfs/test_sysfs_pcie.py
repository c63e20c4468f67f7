"""A PCIe link is the slowest hop to the host, with the device's own beside it."""

from __future__ import annotations

from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from trees import Tree

from probe_core.api import Request
from probe_core.probers import bus
from probe_core.sysfs import pcie

BEHIND_A_NARROW_UPLINK = {
    "kind": "pcie", "peer": None, "width": 4, "gts": 8.0, "generation": 3,
    "bandwidth": 3_938_461_538, "local_width": 16, "local_gts": 16.0, "local_generation": 4,
    "local_bandwidth": 31_507_692_307, "local_max_width": 16, "local_max_gts": 32.0,
    "limited_by": "0000:01:00.0",
}  # fmt: skip


def behind_a_narrow_uplink(tree: Tree, ids: str, **options: Any) -> str:
    """Add an x16 card behind a switch that reaches the root port with four lanes."""
    under = tree.switch(uplink=(4, 8.0))
    return tree.pci("0000:03:00.0", ids, under=under, link=(16, 16.0), max_link=(16, 32.0))


@pytest.mark.parametrize("ids", ["10de:2330", "1002:744c", "8086:e20b", "1e60:2864"])
def test_narrow_uplink_limits_a_wide_card_of_any_vendor(ids: str, tree: Tree) -> None:
    folder = behind_a_narrow_uplink(tree, ids)
    assert pcie.links(tree.machine(), folder) == [BEHIND_A_NARROW_UPLINK]
    (device,) = bus.probe_devices(Request(tree.machine()))  # type: ignore[misc]
    assert device["links"] == [BEHIND_A_NARROW_UPLINK]


def test_card_in_a_slot_is_its_own_slowest_hop(tree: Tree) -> None:
    port = tree.bridge("0000:00:01.0", link=(16, 16.0), max_link=(16, 32.0))
    folder = tree.pci("0000:01:00.0", "10de:2684", under=port, link=(8, 16.0), max_link=(16, 16.0))
    assert pcie.links(tree.machine(), folder) == [
        {
            "kind": "pcie", "peer": None, "width": 8, "gts": 16.0, "generation": 4,
            "bandwidth": 15_753_846_153, "max_width": 16, "max_gts": 16.0, "local_width": 8,
            "local_gts": 16.0, "local_generation": 4, "local_bandwidth": 15_753_846_153,
            "local_max_width": 16, "local_max_gts": 16.0,
        }
    ]  # fmt: skip


def test_a_link_of_one_lane(tree: Tree) -> None:
    (link,) = pcie.links(tree.machine(), tree.pci("0000:01:00.0", "10de:2684", link=(1, 2.5)))
    assert (link["width"], link["generation"]) == (1, 1)


def test_emulated_root_port_has_no_say(tree: Tree) -> None:
    """Both ends of a link agree; QEMU's port may tell figures of its own."""
    port = tree.bridge("0000:00:02.0", "1b36:000c", link=(1, 2.5))
    folder = tree.pci("0000:01:00.0", "10de:2684", under=port, link=(16, 16.0))
    assert [hop.width for hop in pcie.hops(tree.machine(), folder)] == [16]


def test_of_two_slow_hops_the_nearer_counts(tree: Tree) -> None:
    folder = tree.pci(
        "0000:03:00.0", "10de:2684", under=tree.switch(uplink=(4, 8.0)), link=(4, 8.0)
    )
    (link,) = pcie.links(tree.machine(), folder)
    assert "limited_by" not in link


@pytest.mark.parametrize(
    ("gts", "width", "generation", "bandwidth"),
    [
        (2.5, 16, 1, 4_000_000_000),
        (5.0, 16, 2, 8_000_000_000),
        (8.0, 16, 3, 15_753_846_153),
        (16.0, 16, 4, 31_507_692_307),
        (32.0, 16, 5, 63_015_384_615),
        (64.0, 16, 6, 121_000_000_000),
        (128.0, 16, 7, 242_000_000_000),
    ],
)
def test_rates_of_the_generations(gts: float, width: int, generation: int, bandwidth: int) -> None:
    hop = pcie.Hop("0000:01:00.0", width, gts)
    assert (hop.generation, hop.bandwidth) == (generation, bandwidth)


@pytest.mark.parametrize(
    ("speed", "width"),
    [
        ("Unknown", "63"),  # fell off the bus
        ("Unknown", "0"),
        ("16.0 GT/s PCIe", "255"),
        ("16.0 GT/s PCIe", ""),
        ("3.0 GT/s PCIe", "16"),
        ("nan GT/s PCIe", "16"),
        ("16.0", "16"),
        ("9" * 5000, "9" * 5000),
        ("", "-16"),
    ],
)
def test_figures_that_are_none(speed: str, width: str, tree: Tree) -> None:
    folder = tree.pci("0000:01:00.0", "10de:2684", under=tree.switch(uplink=(16, 16.0)))
    tree.file(f"{folder}/current_link_speed", speed)
    tree.file(f"{folder}/current_link_width", width)
    assert pcie.links(tree.machine(), folder) == []


def test_integrated_device_has_no_link(tree: Tree) -> None:
    folder = tree.pci("0000:00:02.0", "8086:a780")
    assert pcie.links(tree.machine(), folder) == []
    assert pcie.links(tree.machine(), "/sys/devices/none") == []


class Opened:
    """The names of the files that were opened below a device."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []

        def spy(path: str) -> FileIO:
            self.paths.append(path)
            return FileIO(path)

        monkeypatch.setattr("probe_core.machine.FileIO", spy)

    def names(self) -> set[str]:
        return {Path(path).name for path in self.paths}


@pytest.mark.parametrize("status", ["suspended", "suspending", "resuming"])
def test_link_of_a_sleeping_card_is_not_read(
    status: str, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    under = tree.switch(uplink=(4, 8.0))
    folder = tree.pci("0000:03:00.0", "10de:2684", under=under, power=status, link=(16, 16.0))
    opened = Opened(monkeypatch)
    assert pcie.links(tree.machine(), folder) == []
    assert opened.names() == {"runtime_status"}


def test_link_of_a_sleeping_bridge_is_not_read(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = behind_a_narrow_uplink(tree, "10de:2684")
    upstream = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
    tree.file(f"{upstream}/power/runtime_status", "suspended\n")
    opened = Opened(monkeypatch)
    (hop,) = pcie.hops(tree.machine(), folder)
    assert hop.address == "0000:03:00.0"
    assert not any("link" in Path(path).name for path in opened.paths if "01:00.0/c" in path)


def test_intel_card_is_read_above_its_own_switch(tree: Tree) -> None:
    port = tree.bridge("0000:00:01.0", "8086:a70d", link=(8, 16.0))
    up = tree.bridge("0000:01:00.0", "8086:4fa1", under=port, link=(8, 16.0))
    down = tree.bridge("0000:02:01.0", "8086:4fa4", under=up, link=(1, 2.5))
    folder = tree.pci("0000:03:00.0", "8086:56a0", under=down, link=(1, 2.5))
    (hop,) = pcie.hops(tree.machine(), folder)
    assert (hop.address, hop.width, hop.gts) == ("0000:01:00.0", 8, 16.0)


@pytest.mark.parametrize("depth", [0, 1])
def test_constant_inside_an_intel_card_is_not_believed(depth: int, tree: Tree) -> None:
    """A guest sees the function without the card's switch, alone or below an emulated port."""
    under = tree.bridge("0000:00:02.0", "1b36:000c", link=(16, 16.0)) if depth else None
    options: dict[str, Any] = {"under": under} if under else {}
    folder = tree.pci("0000:01:00.0", "8086:56a0", link=(1, 2.5), **options)
    assert pcie.links(tree.machine(), folder) == []


def test_chain_of_bridges_without_end_is_bounded(tree: Tree) -> None:
    under = "/sys/devices/pci0000:00"
    for bus_number in range(40):
        under = tree.bridge(f"0000:{bus_number:02x}:00.0", under=under, link=(16, 16.0))
    assert len(pcie.route(tree.machine(), under)) == pcie.MAX_DEPTH


def test_bridges_above_a_card_are_told_up_to_the_root_port(tree: Tree) -> None:
    under = tree.switch(uplink=(16, 16.0))
    tree.pci("0000:03:00.0", "10de:2330", under=under, link=(16, 16.0))
    tree.pci("0000:00:02.0", "8086:a780")
    on_the_bus, behind = bus.probe_devices(Request(tree.machine()))  # type: ignore[misc]
    assert behind["bridges"] == ["0000:02:00.0", "0000:01:00.0", "0000:00:01.0"]
    assert "bridges" not in on_the_bus


def test_bridges_of_a_card_that_sleeps_are_known(tree: Tree) -> None:
    under = tree.switch(uplink=(16, 16.0))
    folder = tree.pci("0000:03:00.0", "10de:2330", under=under, power="suspended")
    assert pcie.bridges(tree.machine(), folder)[-1] == "0000:00:01.0"
    assert pcie.links(tree.machine(), folder) == []


def test_bridges_on_a_card_with_its_own_switch_are_listed(tree: Tree) -> None:
    """Their links are constants and left out, but they are where the card hangs."""
    port = tree.bridge("0000:00:01.0", link=(16, 16.0))
    up = tree.bridge("0000:01:00.0", "8086:4fa1", under=port, link=(16, 16.0))
    down = tree.bridge("0000:02:01.0", "8086:4fa4", under=up, link=(1, 2.5))
    folder = tree.pci("0000:03:00.0", "8086:56a0", under=down, link=(1, 2.5))
    assert pcie.bridges(tree.machine(), folder) == [
        "0000:02:01.0",
        "0000:01:00.0",
        "0000:00:01.0",
    ]
