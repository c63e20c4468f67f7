"""A desktop with an RX 7900 XTX beside the Ryzen 7000's own small GPU; figures of real ones."""

from __future__ import annotations

from typing import Any

import pytest

GIB = 1 << 30
NAVI31, RAPHAEL = "pci:0000:03:00.0", "pci:0000:16:00.0"


@pytest.fixture
def devices(tree: Any) -> dict[str, dict[str, Any]]:
    tree.memory(65_000_000, 50_000_000)
    port = "/sys/devices/pci0000:00/0000:00:01.1"
    switch = f"{port}/0000:01:00.0"
    hop = {"max_link_speed": "16.0 GT/s PCIe", "max_link_width": 16}
    tree.card("0000:01:00.0", "0x1478", driver="pcieport", pci_class="0x060400", under=port,
              current_link_speed="8.0 GT/s PCIe", current_link_width=8, **hop)  # fmt: skip
    tree.card("0000:02:00.0", "0x1479", driver="pcieport", pci_class="0x060400", under=switch,
              current_link_speed="16.0 GT/s PCIe", current_link_width=16, **hop)  # fmt: skip
    tree.card(
        "0000:03:00.0", "0x744c", drm=(1, 128), under=f"{switch}/0000:02:00.0",
        subsystem_vendor="0x1eae", subsystem_device="0x7901", numa_node=-1,
        mem_info_vram_total=25753026560, mem_info_vram_used=1073741824,
        mem_info_gtt_total=32 * GIB, mem_info_vram_vendor="hynix", unique_id="0x7cf5f4d4a1b2c3d4",
        current_link_speed="16.0 GT/s PCIe", current_link_width=16, **hop,
    )  # fmt: skip
    tree.card(
        "0000:16:00.0", "0x164e", drm=(0, 129), mem_info_vram_total=512 << 20,
        mem_info_vram_used=100 << 20, mem_info_gtt_total=31 * GIB, mem_info_gtt_used=1 * GIB,
        mem_info_vram_vendor="unknown",
    )  # fmt: skip
    tree.cpu_node(0)
    tree.kfd_node(
        1, {"heap_type": 1, "size_in_bytes": 25753026560, "width": 384, "mem_clk_max": 1249},
        simd_count=192, simd_per_cu=2, gfx_target_version=110000, vendor_id=4098, device_id=29772,
        location_id=768, domain=0, drm_render_minor=128, max_engine_clk_fcompute=2482,
        unique_id=9004149066219862957, num_xcc=1,
    )  # fmt: skip
    tree.kfd_node(
        2, {"heap_type": 1, "size_in_bytes": 512 << 20, "width": 128, "mem_clk_max": 2400},
        simd_count=4, simd_per_cu=2, gfx_target_version=100306, location_id=0x1600,
        max_engine_clk_fcompute=2200, drm_render_minor=129,
    )  # fmt: skip
    found: dict[str, dict[str, Any]] = tree.devices()
    return found


def test_both_gpus_are_there_and_the_bridges_are_not(devices: dict[str, Any]) -> None:
    assert list(devices) == [NAVI31, RAPHAEL]


def test_card_has_its_identity(devices: dict[str, Any]) -> None:
    card = devices[NAVI31]
    assert card["ids"] == [NAVI31, "uuid:GPU-7cf5f4d4a1b2c3d4"]
    assert card["pci"] == {
        "id": "1002:744c", "subsystem": "1eae:7901", "revision": "c8", "class": "030000",
    }  # fmt: skip
    assert card["driver"] == {"name": "amdgpu", "version": "6.12.9", "version_of": "kernel"}
    assert card["power_state"] == "active"
    assert "numa_node" not in card
    assert card["unknown"]["name"] == "amdgpu gives no product name"


def test_card_has_its_counts_and_clocks(devices: dict[str, Any]) -> None:
    card = devices[NAVI31]
    assert (card["gfx"], card["units"], card["cores"]) == ("gfx1100", 96, 6144)
    assert card["clocks"] == {"max_mhz": 2482, "memory_max_mhz": 1249}
    assert card["extra"]["clock_source"].startswith("driver maximum")
    assert card["bus_width_bits"] == 384
    assert card["bandwidth"] == 384 * 1249 * 16 * 1_000_000 // 8 == 959_232_000_000


def test_cards_memory_is_its_vram_alone(devices: dict[str, Any]) -> None:
    assert devices[NAVI31]["memory"] == {
        "kind": "dedicated", "total": 25753026560, "used": 1 * GIB, "free": 25753026560 - GIB,
        "usable": 25753026560, "parts": {"vram": 25753026560, "gtt": 32 * GIB},
    }  # fmt: skip


def test_link_is_the_slowest_hop_not_the_cards_own_switch(devices: dict[str, Any]) -> None:
    (link,) = devices[NAVI31]["links"]
    assert link == {
        "kind": "pcie", "peer": None, "width": 8, "gts": 8.0, "generation": 3,
        "bandwidth": 7_876_923_076, "max_width": 16, "max_gts": 16.0,
        "local_width": 16, "local_gts": 16.0, "local_generation": 4,
        "local_bandwidth": 31_507_692_307, "local_max_width": 16, "local_max_gts": 16.0,
        "limited_by": "0000:01:00.0",
    }  # fmt: skip


def test_integrated_gpu_reaches_its_carve_out_and_gtt(devices: dict[str, Any]) -> None:
    memory = devices[RAPHAEL]["memory"]
    assert memory["kind"] == "unified"
    assert memory["parts"] == {
        "vram": 512 << 20, "gtt": 31 * GIB, "system": 65_000_000 * 1024,
    }  # fmt: skip
    assert memory["total"] == memory["usable"] == (512 << 20) + 31 * GIB
    assert memory["used"] == (100 << 20) + GIB
    assert memory["free"] == (412 << 20) + 30 * GIB
    assert devices[RAPHAEL]["extra"]["memory_sources"] == {
        "vram": "mem_info_vram_total", "gtt": "mem_info_gtt_total", "system": "/proc/meminfo",
    }  # fmt: skip


def test_integrated_gpu_has_no_guessed_bandwidth(devices: dict[str, Any]) -> None:
    assert "bandwidth" not in devices[RAPHAEL]
    assert "APU's memory rate" in devices[RAPHAEL]["unknown"]["bandwidth"]


def test_orders_of_drm_and_kfd_are_kept_apart(devices: dict[str, Any]) -> None:
    assert devices[NAVI31]["node_index"] == {"drm_card": 1, "drm_render": 128, "kfd": 0}
    assert devices[RAPHAEL]["node_index"] == {"drm_card": 0, "drm_render": 129, "kfd": 1}


def test_free_memory_of_an_apu_never_exceeds_what_the_system_has(tree: Any) -> None:
    tree.memory(16_000_000, 1_000_000)
    tree.card("0000:04:00.0", "0x163f", mem_info_vram_total=GIB, mem_info_vram_used=0,
              mem_info_gtt_total=8 * GIB, mem_info_gtt_used=0)  # fmt: skip
    tree.kfd_node(1, simd_count=16, simd_per_cu=2, gfx_target_version=100303, location_id=0x400)
    (deck,) = tree.devices().values()  # a Steam Deck's Van Gogh
    assert (deck["gfx"], deck["units"]) == ("gfx1033", 8)
    assert deck["memory"]["free"] == GIB + 1_000_000 * 1024
    assert deck["memory"]["used"] == 0


def test_a_switch_with_a_narrow_uplink_limits_the_card_behind_it(tree: Any) -> None:
    tree.card("0000:03:00.0", "0x744c", under=tree.switch(uplink=(4, 8.0)), link=(16, 16.0),
              max_link=(16, 16.0))  # fmt: skip
    (card,) = tree.devices().values()
    assert card["links"] == [{
        "kind": "pcie", "peer": None, "width": 4, "gts": 8.0, "generation": 3,
        "bandwidth": 3_938_461_538, "local_width": 16, "local_gts": 16.0, "local_generation": 4,
        "local_bandwidth": 31_507_692_307, "local_max_width": 16, "local_max_gts": 16.0,
        "limited_by": "0000:01:00.0",
    }]  # fmt: skip
