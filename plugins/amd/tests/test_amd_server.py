"""Servers: eight MI300X, an MI300X cut into partitions, an MI250X, an MI300A; after real dumps.

The KFD figures follow the dumps in the test data of ROCm/k8s-device-plugin.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from probe_amd import kfd
from probe_amd.prober import probe_devices
from probe_core.api import Machine, Request
from probe_core.probers.bus import Scan

GIB = 1 << 30
VRAM = 206_141_652_992
BUSES = (0x05, 0x27, 0x47, 0x65, 0x85, 0xA7, 0xC7, 0xE5)
HBM3 = {"heap_type": 1, "size_in_bytes": VRAM, "width": 8192, "mem_clk_max": 1300}


def mi300x(tree: Any, bus: int, **files: object) -> None:
    tree.card(
        f"0000:{bus:02x}:00.0", "0x74a1", pci_class="0x120000", numa_node=int(bus > 0x80),
        product_name="AMD Instinct MI300X OAM", unique_id=f"{bus:016x}",
        mem_info_vram_total=VRAM, mem_info_vram_used=300 << 20, mem_info_gtt_total=1024 * GIB,
        current_link_speed="32.0 GT/s PCIe", current_link_width=16, **files,
    )  # fmt: skip


def gfx942(tree: Any, number: int, location: int, simds: int, minor: int, **more: Any) -> None:
    tree.kfd_node(
        number, more.pop("bank", HBM3), simd_count=simds, simd_per_cu=4, gfx_target_version=90402,
        location_id=location, domain=0, drm_render_minor=minor, max_engine_clk_fcompute=2100,
        **more,
    )  # fmt: skip


class Counting(Machine):
    """A machine that counts how often each file is read."""

    __slots__ = ("reads",)

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.reads: Counter[str] = Counter()

    def read_bytes(self, path: str, limit: int = 1 << 20) -> bytes:
        self.reads[path] += 1
        return super().read_bytes(path, limit)


def test_each_file_is_read_once_and_none_that_the_bus_prober_has_read(tree: Any) -> None:
    build_eight(tree)
    for place in range(8):
        tree.file(f"{kfd.NODES}/{place + 2}/gpu_id", 100 + place)
        tree.file(f"{kfd.PROCESSES}/7/vram_{100 + place}", place)
    bus = [*Scan(tree.machine()).answer()]  # type: ignore[misc]
    machine = Counting(str(tree.root))
    cards = list(probe_devices(Request(machine, bus)))  # type: ignore[arg-type]
    assert [(card["processes"], len(card["links"])) for card in cards] == [(0, 8), *[(1, 8)] * 7]
    assert max(machine.reads.values()) == 1
    assert not [path for path in machine.reads if path.endswith(("_link_speed", "numa_node"))]


@pytest.fixture
def eight(tree: Any) -> list[dict[str, Any]]:
    build_eight(tree)
    return list(tree.devices().values())


def build_eight(tree: Any) -> None:
    tree.file("/sys/module/amdgpu/version", "6.8.5")
    tree.file("/opt/rocm/.info/version", "6.3.1-48")
    for place, bus in enumerate(BUSES):
        mi300x(tree, bus)
        gfx942(tree, place + 2, bus << 8, 1216, 128 + 8 * place, num_xcc=8, unique_id=bus)
        tree.io_link(place + 2, 0, type=2, node_to=0, min_bandwidth=312, max_bandwidth=64000)
        for name, peer in enumerate(other for other in range(8) if other != place):
            tree.io_link(place + 2, name + 1, type=11, node_to=peer + 2,
                         min_bandwidth=64000, max_bandwidth=64000)  # fmt: skip
    tree.cpu_node(0)
    tree.cpu_node(1)


def test_eight_cards_with_name_units_and_bandwidth(eight: list[dict[str, Any]]) -> None:
    assert len(eight) == 8
    for card in eight:
        assert card["name"] == "AMD Instinct MI300X OAM"
        assert (card["gfx"], card["units"], card["cores"]) == ("gfx942", 304, 19456)
        assert card["bandwidth"] == 5_324_800_000_000
        assert card["memory"]["kind"] == "dedicated"
        assert card["memory"]["usable"] == VRAM
        assert card["extra"]["xcds"] == 8
    assert [card["node_index"]["kfd"] for card in eight] == list(range(8))
    assert [card["numa_node"] for card in eight] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_versions_of_the_module_and_of_rocm(eight: list[dict[str, Any]]) -> None:
    assert eight[0]["driver"] == {
        "name": "amdgpu", "version": "6.8.5", "version_of": "module", "rocm": "6.3.1-48",
    }  # fmt: skip


def test_every_card_has_seven_xgmi_peers_and_one_pcie_link(eight: list[dict[str, Any]]) -> None:
    pcie, *xgmi = eight[0]["links"]
    assert (pcie["kind"], pcie["generation"], pcie["width"]) == ("pcie", 5, 16)
    assert [link["peer"] for link in xgmi] == [f"pci:0000:{bus:02x}:00.0" for bus in BUSES[1:]]
    assert xgmi[0] == {
        "kind": "xgmi", "peer": "pci:0000:27:00.0", "bandwidth": 64_000_000_000, "count": 1,
    }  # fmt: skip


@pytest.fixture
def cpx(tree: Any) -> list[dict[str, Any]]:
    mi300x(tree, 0x05, current_compute_partition="CPX", current_memory_partition="NPS1")
    for part in range(8):
        bank = HBM3 | {"size_in_bytes": VRAM // 8}
        gfx942(tree, 2 + part, 0x500 + part, 152, 128 + part, num_xcc=1, unique_id=5, bank=bank)
        tree.io_link(2 + part, 0, type=11, node_to=2 + (part + 1) % 8,
                     min_bandwidth=819200, max_bandwidth=819200)  # fmt: skip
    return list(tree.devices().values())


def test_partitions_are_children_of_one_card(cpx: list[dict[str, Any]]) -> None:
    card, *parts = cpx
    assert card["ids"] == ["pci:0000:05:00.0", "uuid:GPU-0000000000000005"]
    assert [part["ids"] for part in parts] == [[f"amd:0000:05:00.0/xcp{n}"] for n in range(8)]
    assert {part["parent"] for part in parts} == {"pci:0000:05:00.0"}
    assert "backends" not in card
    assert [part["backends"] for part in parts] == [["hip"]] * 8
    assert [part["node_index"] for part in parts] == [
        {"kfd": n, "drm_render": 128 + n} for n in range(8)
    ]


def test_partitions_get_their_share_and_the_card_the_whole(cpx: list[dict[str, Any]]) -> None:
    card, part = cpx[:2]
    assert card["units"] == 304
    assert part["units"] == 38
    assert part["share"] == {"units": 38, "of": 304}
    assert card["memory"]["total"] == VRAM
    assert part["memory"]["total"] == part["memory"]["usable"] == VRAM // 8
    assert part["unknown"]["bandwidth"] == "a partition shares the card's memory bus"
    assert card["extra"] == {
        "memory_sources": {"vram": "mem_info_vram_total", "gtt": "mem_info_gtt_total"},
        "clock_source": "driver maximum (KFD max_engine_clk_fcompute)",
        "xcds": 8, "compute_partition": "CPX", "memory_partition": "NPS1",
    }  # fmt: skip


def test_a_partitioned_card_is_no_peer_of_itself(cpx: list[dict[str, Any]]) -> None:
    assert [link["kind"] for link in cpx[0]["links"]] == ["pcie"]


def test_virtual_functions_are_cards_not_partitions(tree: Any) -> None:
    for function in (0, 1):
        tree.card(f"0000:05:00.{function}", "0x74b5", mem_info_vram_total=VRAM)
        gfx942(tree, 2 + function, 0x500 + function, 1216, 128 + function)
    assert [one["units"] for one in tree.devices().values()] == [304, 304]


def test_mi250x_is_two_devices_of_110_units(tree: Any) -> None:
    bank = {"heap_type": 1, "size_in_bytes": 64 * GIB, "width": 4096, "mem_clk_max": 1600}
    for number, bus in ((4, 0xC1), (5, 0xC6)):
        tree.card(f"0000:{bus:02x}:00.0", "0x7408", mem_info_vram_total=64 * GIB)
        tree.kfd_node(number, bank, simd_count=440, simd_per_cu=4, gfx_target_version=90010,
                  location_id=bus << 8, unique_id=bus)  # fmt: skip
        tree.io_link(number, 0, type=11, node_to=9 - number, min_bandwidth=50000,
                     max_bandwidth=200000)  # fmt: skip
    first, second = tree.devices().values()
    assert (first["gfx"], first["units"], first["bandwidth"]) == ("gfx90a", 110, 1_638_400_000_000)
    assert first["links"] == [
        {"kind": "xgmi", "peer": second["ids"][0], "bandwidth": 200_000_000_000, "count": 4},
    ]  # fmt: skip


def test_a_peer_behind_another_card_has_no_wire_of_its_own(tree: Any) -> None:
    """Of several entries of one peer the widest is the wire; 15 is a wire's weight."""
    places = (0xC1, 0xC6, 0xC9)
    for number, bus in enumerate(places, 4):
        tree.card(f"0000:{bus:02x}:00.0", "0x7408", mem_info_vram_total=64 * GIB)
        tree.kfd_node(number, simd_count=440, simd_per_cu=4, gfx_target_version=90010,
                      location_id=bus << 8, unique_id=bus)  # fmt: skip
    wires = (
        (5, 15, 25000, 50000),
        (5, 15, 50000, 200000),
        (5, 15, 0, 50000),
        (6, 30, 50000, 50000),
    )
    for at, (peer, weight, single, total) in enumerate(wires):
        tree.io_link(4, at, type=11, node_to=peer, weight=weight, min_bandwidth=single,
                     max_bandwidth=total)  # fmt: skip
    first, second, third = tree.devices().values()
    assert first["links"] == [
        {"kind": "xgmi", "peer": second["ids"][0], "bandwidth": 200_000_000_000, "count": 4},
        {"kind": "xgmi", "peer": third["ids"][0], "count": 0},
    ]


def test_mi300a_counts_its_memory_once(tree: Any) -> None:
    tree.memory(132_000_000, 120_000_000)
    tree.card("0000:01:00.0", "0x74a0", mem_info_vram_total=126 * GIB, mem_info_vram_used=GIB,
              mem_info_gtt_total=126 * GIB, mem_info_gtt_used=0)  # fmt: skip
    gfx942(tree, 1, 0x100, 912, 128)
    (apu,) = tree.devices().values()
    assert apu["units"] == 228
    assert (apu["memory"]["kind"], apu["memory"]["total"]) == ("unified", 126 * GIB)
    assert apu["memory"]["free"] == 125 * GIB


def test_vega_10_in_another_domain(tree: Any) -> None:
    """Old kernels write no gfx target and no domain; the rest still counts."""
    tree.card("10000:19:00.0", "0x6860", mem_info_vram_total=17163091968)
    bank = {"heap_type": 1, "size_in_bytes": 17163091968, "width": 2048, "mem_clk_max": 945}
    tree.kfd_node(1, bank, simd_count=256, simd_per_cu=4, location_id=6400, domain=0x10000,
              unique_id=14073402507705256556, max_engine_clk_fcompute=1500)  # fmt: skip
    (card,) = tree.devices().values()
    assert card["ids"] == ["pci:10000:19:00.0", "uuid:GPU-c34ec50444dd0a6c"]
    assert (card["units"], card["memory"]["kind"]) == (64, "dedicated")
    assert card["unknown"]["gfx"] == "KFD leaves it out, and there is no IP discovery table"
    assert card["unknown"]["bandwidth"].startswith("the memory's kind at 2048 bit is not known")
