"""What limits a GPU: an APU's carve-out and TTM's pages, a card's power limit; and hanging ones."""

from __future__ import annotations

from io import FileIO
from typing import Any

import pytest

from probe_amd.prober import probe_devices
from probe_core.api import Machine, NotApplicable, Request

GIB = 1 << 30
TTM = "/sys/module/ttm/parameters"


def apu(tree: Any, device: str = "0x15bf", **files: Any) -> dict[str, Any]:
    """Add a Phoenix APU with a carve-out of 512 MiB; returns its sighting."""
    tree.memory(32_000_000, 30_000_000)
    files = {"mem_info_gtt_total": 15 * GIB, "mem_info_vram_total": 512 << 20, **files}
    tree.card("0000:c5:00.0", device, **{k: v for k, v in files.items() if v is not None})
    (sighting,) = tree.devices().values()
    assert isinstance(sighting, dict)
    return sighting


@pytest.mark.parametrize("device", ["0x15bf", "0x164e", "0x1638", "0x15dd", "0x9874", "0x1586"])
def test_apu_without_kfd_and_discovery_is_known_by_its_id(tree: Any, device: str) -> None:
    memory = apu(tree, device)["memory"]
    assert memory["kind"] == "unified"
    assert memory["total"] == (512 << 20) + 15 * GIB
    assert memory["parts"] == {"vram": 512 << 20, "gtt": 15 * GIB, "system": 32_000_000 * 1024}


@pytest.mark.parametrize("device", ["0x67df", "0x744c", "0x7550", "0x6798", "0x740f"])
def test_card_without_kfd_and_vendor_of_memory_is_known_by_its_id(tree: Any, device: str) -> None:
    memory = apu(tree, device, mem_info_vram_total=8 * GIB)["memory"]
    assert (memory["kind"], memory["total"], memory["usable"]) == ("dedicated", 8 * GIB, 8 * GIB)


def test_carve_out_alone_is_never_the_total(tree: Any) -> None:
    sighting = apu(tree, mem_info_gtt_total=None)
    assert "total" not in sighting["memory"]
    assert sighting["memory"]["parts"]["vram"] == 512 << 20
    assert "carve-out alone" in sighting["unknown"]["memory.total"]


def test_ttm_limits_what_of_gtt_can_be_used(tree: Any) -> None:
    tree.file(f"{TTM}/pages_limit", 2_097_152)
    tree.file(f"{TTM}/page_pool_size", 1_048_576)
    sighting = apu(tree, mem_info_gtt_used=1 * GIB, mem_info_vram_used=0)
    memory = sighting["memory"]
    assert memory["total"] == (512 << 20) + 15 * GIB
    assert memory["usable"] == (512 << 20) + 8 * GIB
    assert memory["free"] == (512 << 20) + 7 * GIB
    assert memory["parts"]["limit"] == 8 * GIB
    assert sighting["extra"]["ttm"] == {"pages_limit": 8 * GIB, "page_pool_size": 4 * GIB}


def test_ttm_limit_above_gtt_limits_nothing(tree: Any) -> None:
    tree.file(f"{TTM}/pages_limit", 0)
    sighting = apu(tree)
    assert "ttm" not in sighting["extra"]
    assert "limit" not in sighting["memory"]["parts"]
    tree.file(f"{TTM}/pages_limit", 7_812_500)
    memory = apu(tree)["memory"]
    assert memory["usable"] == memory["total"] == (512 << 20) + 15 * GIB
    assert "limit" not in memory["parts"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        # Free is what the system has, where GTT would allow more.
        (
            {"mem_info_gtt_used": GIB, "mem_info_vram_used": 0, "available": 5 << 20},
            {"used": GIB, "free": (512 << 20) + 5 * GIB},
        ),
        ({"mem_info_gtt_used": 15 * GIB, "mem_info_vram_used": 512 << 20}, {"free": 0}),
        ({"mem_info_gtt_used": 15 * GIB + 1, "mem_info_vram_used": 0}, {"free": None}),
        ({"mem_info_gtt_used": GIB, "mem_info_vram_used": None}, {"used": None, "free": None}),
        ({"mem_info_gtt_used": -1, "mem_info_vram_used": 0}, {"used": None}),
        ({"mem_info_gtt_total": 0}, {"total": None, "usable": None}),
        ({"mem_info_vram_total": 0}, {"total": None, "usable": None}),
        # TTM gives out so many pages: none of them is a limit only below GTT.
        ({"pages_limit": 15 * 262_144}, {"usable": (512 << 20) + 15 * GIB}),
        ({"pages_limit": 15 * 262_144 - 1}, {"usable": (512 << 20) + 15 * GIB - 4096}),
        ({"pages_limit": 0}, {"usable": (512 << 20) + 15 * GIB}),
        (
            {
                "pages_limit": 2 * 262_144, "mem_info_gtt_used": 14 * GIB,
                "mem_info_vram_used": 0, "available": 29 << 20,
            },
            {"usable": (512 << 20) + 2 * GIB, "free": 512 << 20},
        ),
    ],
)  # fmt: skip
def test_what_programs_can_use_of_an_apus_memory(
    tree: Any, files: dict[str, int | None], expected: dict[str, int | None]
) -> None:
    available, limit = files.pop("available", None), files.pop("pages_limit", None)
    if limit is not None:
        tree.file(f"{TTM}/pages_limit", limit)
    if available is not None:
        apu_memory = f"MemTotal: 32000000 kB\nMemAvailable: {available} kB\n"
    memory = apu(tree, **files)["memory"]
    if available is not None:
        tree.file("/proc/meminfo", apu_memory)
        (sighting,) = tree.devices().values()
        memory = sighting["memory"]
    assert {name: memory.get(name) for name in expected} == expected


def test_a_cards_use_beyond_its_memory_is_no_use(tree: Any) -> None:
    memory = apu(tree, "0x744c", mem_info_vram_total=8 * GIB, mem_info_vram_used=8 * GIB)["memory"]
    assert (memory["used"], memory["free"]) == (8 * GIB, 0)
    memory = apu(tree, "0x744c", mem_info_vram_total=8 * GIB, mem_info_vram_used=9 * GIB)["memory"]
    assert "used" not in memory
    assert "free" not in memory


@pytest.mark.parametrize(
    ("gfx", "width", "factor"),
    [
        (80003, 256, 4), (80003, 1024, 2), (80003, 1023, 4), (90000, 2048, 2), (90010, 8192, 2),
        (90402, 8192, 4), (90500, 8192, None), (90000, 256, None), (100100, 1024, None),
        (100101, 2048, 2), (100300, 256, 16), (110000, 384, 16), (120000, 256, 16),
    ],
)  # fmt: skip
def test_transfers_per_clock_by_generation_and_width(
    tree: Any, gfx: int, width: int, factor: int | None
) -> None:
    tree.card("0000:03:00.0", "0x744c", mem_info_vram_total=8 * GIB)
    tree.kfd_node(
        1, {"heap_type": 1, "size_in_bytes": 8 * GIB, "width": width, "mem_clk_max": 1000},
        simd_count=64, gfx_target_version=gfx, location_id=0x300,
    )  # fmt: skip
    (device,) = tree.devices().values()
    assert device["bus_width_bits"] == width
    assert device["clocks"]["memory_max_mhz"] == 1000
    expected = factor and width * 1000 * 1_000_000 * factor // 8
    assert device.get("bandwidth") == expected
    if factor is None:
        assert device["unknown"]["bandwidth"] == (
            f"the memory's kind at {width} bit is not known, so neither are its transfers per clock"
        )


def card(tree: Any, status: str = "active", **caps: int) -> None:
    files = {f"hwmon__hwmon3__power1_{name}": watts * 1_000_000 for name, watts in caps.items()}
    tree.card("0000:03:00.0", "0x744c", status=status, mem_info_vram_total=24 * GIB, **files)
    tree.kfd_node(1, simd_count=192, simd_per_cu=2, gfx_target_version=110000, location_id=0x300)


def test_power_limit_below_its_default_is_told(tree: Any) -> None:
    card(tree, cap=200, cap_default=327, cap_max=376)
    (device,) = tree.devices().values()
    assert device["power"] == {"limit_watts": 200, "default_watts": 327, "max_watts": 376}
    assert tree.steps()["pci:0000:03:00.0"] == [
        ("granted", "ok", None), ("responding", "broken", "power-capped"),
    ]  # fmt: skip
    assert device["step_facts"][1]["evidence"].endswith("power1_cap is 200 W, its default 327 W")


@pytest.mark.parametrize("limit", [327, 376])
def test_power_limit_at_or_above_its_default_is_healthy(tree: Any, limit: int) -> None:
    card(tree, cap=limit, cap_default=327, cap_max=376)
    assert tree.steps()["pci:0000:03:00.0"] == [("granted", "ok", None)]


def test_power_limit_of_a_sleeping_card_is_not_read(tree: Any) -> None:
    card(tree, status="suspended", cap=200, cap_default=327)
    (device,) = tree.devices().values()
    assert "power" not in device
    assert tree.steps()["pci:0000:03:00.0"] == [("granted", "ok", None)]


def two(tree: Any) -> None:
    for number, bus in ((1, 0x03), (2, 0x04)):
        tree.card(f"0000:{bus:02x}:00.0", "0x744c", mem_info_vram_total=24 * GIB)
        tree.kfd_node(number, simd_count=192, simd_per_cu=2, gfx_target_version=110000,
                      location_id=bus << 8)  # fmt: skip


def test_each_card_is_announced_before_it_is_asked(tree: Any) -> None:
    two(tree)
    announced: list[object] = []
    request = Request(Machine(str(tree.root)), announce=lambda kind, what: announced.append(what))
    devices = probe_devices(request)
    assert not isinstance(devices, NotApplicable)
    order = [(announced[-1], device["ids"][0]) for device in devices]
    assert order == [("pci:0000:03:00.0",) * 2, ("pci:0000:04:00.0",) * 2]


def test_card_to_avoid_is_not_touched(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    two(tree)
    for number in (3, 4):
        tree.file(f"/sys/devices/pci0000:00/0000:0{number}:00.0/unique_id", "7cf5f4d4a1b2c3d4")
    opened: list[str] = []

    def spy(path: str) -> FileIO:
        opened.append(path)
        return FileIO(path)

    monkeypatch.setattr("probe_core.machine.FileIO", spy)
    avoided, asked = tree.probe(avoid=("pci:0000:03:00.0",))
    assert avoided["ids"] == ["pci:0000:03:00.0"]
    assert avoided["driver"] == {"name": "amdgpu"}
    assert [(f["step"], f["status"], f["code"]) for f in avoided["step_facts"]] == [
        ("responding", "broken", "driver-hangs"),
    ]
    assert asked["memory"]["total"] == 24 * GIB
    own = {path.rpartition("/")[2] for path in opened if "0000:03:00.0" in path}
    assert own.isdisjoint({"mem_info_vram_total", "unique_id", "product_name"})
    assert any(path.endswith("0000:04:00.0/mem_info_vram_total") for path in opened)
