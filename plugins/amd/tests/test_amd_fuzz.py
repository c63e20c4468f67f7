"""Whatever the files of a machine with AMD's GPUs hold, the prober answers; see tests/fuzz."""

from __future__ import annotations

from typing import Any

import pytest
from foreign import CHANCES, Chance, devices_in, files_of, write_files
from hypothesis import given

from probe_amd import gfx, kfd
from probe_amd.prober import probe_devices
from probe_core.api import Machine, Request
from probe_core.probers import bus

PROPERTIES = b"simd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\nlocation_id 1280\n"
BANK = {"heap_type": 1, "size_in_bytes": 1 << 34, "width": 8192, "mem_clk_max": 1300}


def build(tree: Any) -> dict[str, bytes]:
    """A partitioned card, a card that sleeps, and an APU."""
    tree.memory(64_000_000, 50_000_000)
    for address, status in (("0000:05:00.0", "active"), ("0000:08:00.0", "suspended")):
        tree.card(
            address, "0x74a1", drm=(1, 128), status=status, product_name="MI300X", unique_id="5",
            mem_info_vram_total=1 << 34, mem_info_vram_used=1 << 20, mem_info_gtt_total=1 << 33,
            current_link_speed="32.0 GT/s PCIe", current_link_width=16, numa_node=0,
            current_compute_partition="CPX",
        )  # fmt: skip
    apu = tree.card("0000:c1:00.0", "0x1586", mem_info_vram_total=1 << 29, mem_info_gtt_total=1)
    for name, number in (("major", 11), ("minor", 5), ("revision", 1)):
        tree.file(f"{apu}/ip_discovery/die/0/GC/0/{name}", number)
    tree.cpu_node()
    for number in (2, 3):
        tree.kfd_node(
            number, BANK, simd_count=152, simd_per_cu=4, gfx_target_version=90402,
            location_id=0x500 + number - 2, unique_id=5, max_engine_clk_fcompute=2100,
        )  # fmt: skip
        tree.io_link(number, 0, type=11, node_to=5 - number, min_bandwidth=1, max_bandwidth=7)
        tree.file(f"/sys/class/kfd/kfd/topology/nodes/{number}/gpu_id", 77)
    tree.file("/sys/class/kfd/kfd/proc/1/vram_77", 4096)
    return files_of(tree.root)


@pytest.mark.heavy
@given(CHANCES)
def test_files(tree: Any, chance: Chance) -> None:
    tree.examples = getattr(tree, "examples", None) or build(tree)
    machine = Machine(str(write_files(tree.root, chance.files(tree.examples))))
    seen = bus.probe_devices(Request(machine)) if chance.random() < 0.5 else ()
    devices_in(probe_devices(Request(machine, tuple(seen) if isinstance(seen, list) else ())))


@given(CHANCES)
def test_properties(chance: Chance) -> None:
    found = kfd.parse(chance.mutate(PROPERTIES).decode("utf-8", "replace"))
    assert all(value >= 0 for value in found.values())
    node = kfd.Node(0, 0, "", found)
    assert node.address
    assert node.units is None or node.units > 0
    assert gfx.from_target(found.get("gfx_target_version", 0)).startswith("gfx")
