"""What goes wrong in the field: sleeping cards, garbled files, no KFD, other drivers, no rights."""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_amd import kfd
from probe_core.api import NotApplicable

GIB = 1 << 30


def laptop(tree: Any) -> None:
    """A sleeping RX 6800M beside a Cezanne APU."""
    tree.card("0000:03:00.0", "0x73df", status="suspended", drm=(0, 128))
    for trap in ("mem_info_vram_total", "mem_info_vram_used", "unique_id", "product_name",
                 "current_link_speed", "gpu_metrics", "mem_info_vram_vendor"):  # fmt: skip
        os.mkfifo(tree.root / "sys/devices/pci0000:00/0000:03:00.0" / trap)
    tree.card("0000:07:00.0", "0x1638", mem_info_vram_total=512 << 20, mem_info_gtt_total=7 * GIB)
    tree.kfd_node(1, {"heap_type": 1, "size_in_bytes": 12 * GIB}, simd_count=80, simd_per_cu=2,
              gfx_target_version=100301, location_id=0x300, unique_id=0xABC)  # fmt: skip
    tree.kfd_node(2, simd_count=32, simd_per_cu=4, gfx_target_version=90012, location_id=0x700)


@pytest.mark.parametrize(
    ("unique_id", "uuid"),
    [("0", None), ("-1", None), ("x", None), ("", None), ("1", "GPU-0000000000000001"),
     ("0xffffffffffffffff", "GPU-ffffffffffffffff"), ("10000000000000000", None)],
)  # fmt: skip
def test_the_uuid_of_a_card_has_sixteen_digits(tree: Any, unique_id: str, uuid: str | None) -> None:
    tree.card("0000:03:00.0", "0x744c", drm=(0, 128), unique_id=unique_id)
    [card] = tree.devices().values()
    assert card["ids"] == ["pci:0000:03:00.0", *([f"uuid:{uuid}"] if uuid else [])]


def test_a_sleeping_card_is_known_from_kernel_memory_alone(tree: Any) -> None:
    laptop(tree)
    card, apu = tree.devices().values()
    assert (card["power_state"], apu["power_state"]) == ("suspended", "active")
    assert (card["gfx"], card["units"]) == ("gfx1031", 40)
    assert card["memory"] == {
        "kind": "dedicated", "total": 12 * GIB, "usable": 12 * GIB, "parts": {"vram": 12 * GIB},
    }  # fmt: skip
    assert card["ids"] == ["pci:0000:03:00.0", "uuid:GPU-0000000000000abc"]
    assert "not woken" in card["unknown"]["memory.used"]
    assert "not woken" in card["unknown"]["links"]
    assert "not woken" in card["unknown"]["name"]
    assert (apu["gfx"], apu["memory"]["kind"]) == ("gfx90c", "unified")


def test_of_a_sleeping_card_no_file_that_could_wake_it_is_opened(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop(tree)
    opened: list[str] = []

    def spy(path: str) -> FileIO:
        opened.append(path)
        return FileIO(path)

    monkeypatch.setattr("probe_core.machine.FileIO", spy)
    tree.probe()
    touched = {Path(path).name for path in opened if "/0000:03:00.0/" in path}
    assert touched == {"vendor", "device", "revision", "class", "runtime_status"}  # fmt: skip


def test_a_sleeping_card_without_kfd_has_no_size_and_says_why(tree: Any) -> None:
    tree.card("0000:03:00.0", "0x73df", status="suspended", mem_info_vram_total=12 * GIB)
    (card,) = tree.devices().values()
    assert card["memory"] == {"kind": "dedicated"}
    assert "not woken" in card["unknown"]["memory.total"]


def test_garbled_files_cost_their_field_and_no_other_card(tree: Any) -> None:
    tree.card("0000:03:00.0", "0x744c", mem_info_vram_total="lots", unique_id="xyz",
              current_link_speed="Unknown", current_link_width=255, numa_node="?")  # fmt: skip
    tree.file("/sys/devices/pci0000:00/0000:03:00.0/power/runtime_status", "\x00\xff")
    tree.card("0000:04:00.0", "0x744c", mem_info_vram_total=24 * GIB)
    tree.kfd_node(1, simd_count=7, simd_per_cu=2, location_id=0x300, gfx_target_version=0)
    tree.file(f"{kfd.NODES}/2/properties", "simd_count many\n\nlocation_id -1\n=;\x01")
    broken, whole = tree.devices().values()
    assert broken["ids"] == ["pci:0000:03:00.0"]
    assert broken["power_state"] == "unknown"
    assert broken["unknown"]["units"] == "KFD's SIMD counts are missing or do not fit"
    assert broken["unknown"]["memory.total"].startswith("mem_info_vram_total is missing or not")
    assert broken["unknown"]["links"] == "the card's link files give no link"
    assert whole["memory"]["total"] == 24 * GIB


def test_used_beyond_total_is_left_out(tree: Any) -> None:
    tree.card("0000:04:00.0", "0x744c", mem_info_vram_total=GIB, mem_info_vram_used=2 * GIB,
              mem_info_vram_vendor="hynix")  # fmt: skip
    (card,) = tree.devices().values()
    assert card["memory"] == {
        "kind": "dedicated", "total": GIB, "usable": GIB, "parts": {"vram": GIB},
    }  # fmt: skip


def test_without_kfd_the_discovery_table_names_the_target(tree: Any) -> None:
    folder = tree.card("0000:c5:00.0", "0x1586", mem_info_vram_total=GIB,
                       mem_info_gtt_total=60 * GIB, mem_info_vram_vendor="unknown")  # fmt: skip
    for name, number in (("major", 11), ("minor", 5), ("revision", 1)):
        tree.file(f"{folder}/ip_discovery/die/0/GC/0/{name}", number)
    (strix_halo,) = tree.devices().values()
    assert strix_halo["gfx"] == "gfx1151"
    assert strix_halo["unknown"]["units"] == "KFD does not list this GPU to this process"
    assert strix_halo["memory"]["usable"] == 61 * GIB
    assert tree.steps()["pci:0000:c5:00.0"] == [("node", "broken", "kfd-missing")]


def test_nothing_tells_card_from_apu_then_nothing_is_claimed(tree: Any) -> None:
    tree.card("0000:c5:00.0", "0x9999", mem_info_vram_total=GIB, mem_info_gtt_total=60 * GIB)
    (new,) = tree.devices().values()
    assert new["memory"] == {"parts": {"vram": GIB, "gtt": 60 * GIB}}
    assert set(new["unknown"]) >= {"memory.kind", "memory.total", "gfx"}


@pytest.mark.parametrize(
    ("driver", "module", "steps"),
    [
        (None, False, []),
        (None, True, [("driver", "broken", "amdgpu-refused")]),
        ("radeon", True, [("driver", "broken", "radeon-bound")]),
        ("vfio-pci", True, []),
    ],
)
def test_driver_that_is_missing_or_another(
    tree: Any, driver: str | None, module: bool, steps: list[Any]
) -> None:
    """What the core knows better (modules on disk, passthrough) is left to it."""
    tree.card("0000:04:00.0", "0x744c", driver=driver, mem_info_vram_total=24 * GIB)
    if module:
        tree.file("/sys/module/amdgpu/refcnt", 0)
    (card,) = tree.devices().values()
    assert card.get("driver") == ({"name": driver} if driver else None)
    assert "memory" not in card
    assert "nodes" not in card
    assert (driver or "no driver") in card["unknown"]["memory.total"]
    assert tree.steps()["pci:0000:04:00.0"] == steps
    assert tree.findings() == []


def test_no_amd_gpu_is_not_applicable(tree: Any) -> None:
    tree.card("0000:01:00.0", "0x2684", vendor="0x10de", driver="nvidia")
    tree.card("0000:01:00.1", "0xab38", vendor="0x1002", pci_class="0x040300", driver="snd_hda")
    (said,) = tree.probe()
    assert isinstance(said, NotApplicable)
    assert said.reason == "no AMD GPU on the PCI bus"


def test_the_bus_probers_sightings_are_enough(tree: Any) -> None:
    """Where the bus prober looked, nobody lists the bus again."""
    tree.card("0000:04:00.0", "0x744c", mem_info_vram_total=24 * GIB)
    tree.card("0000:05:00.0", "0x744c", mem_info_vram_total=24 * GIB)
    pci = {"id": "1002:744c", "revision": "c8", "class": "030000", "subsystem": "1eae:7901"}
    bus = (
        {"ids": ["pci:0000:04:00.0"], "kind": "gpu", "pci": pci},
        {"ids": ["pci:0000:09:00.0"], "kind": "display", "pci": {"id": "1a03:2000"}},
        {"ids": ["dt:/gpu@1"], "kind": "gpu"},
    )
    (card,) = [one for one in tree.probe(bus) if "ids" in one]
    assert (card["ids"], card["pci"]) == (["pci:0000:04:00.0"], pci)


def test_compute_processes_are_counted(tree: Any) -> None:
    tree.card("0000:04:00.0", "0x744c", mem_info_vram_total=24 * GIB)
    tree.kfd_node(1, simd_count=192, simd_per_cu=2, gfx_target_version=110000, location_id=0x400)
    tree.file(f"{kfd.NODES}/1/gpu_id", 43288)
    for pid, held in ((100, 4096), (200, 0), (300, 8192)):
        tree.file(f"/sys/class/kfd/kfd/proc/{pid}/vram_43288", held)
    (card,) = tree.devices().values()
    assert card["processes"] == 2


def test_files_that_may_not_be_read_cost_their_fields_alone(tree: Any) -> None:
    """A folder in a file's place: reading fails for root as well, as a denied file does."""
    folder = tree.card("0000:04:00.0", "0x744c", mem_info_gtt_total=GIB)
    for name in ("mem_info_vram_total", "unique_id", "product_name", "current_link_speed"):
        (tree.root / folder.lstrip("/") / name).mkdir()
    tree.kfd_node(1, simd_count=192, simd_per_cu=2, gfx_target_version=110000, location_id=0x400)
    (tree.root / kfd.NODES.lstrip("/") / "1/mem_banks/0/properties").mkdir(parents=True)
    (card,) = tree.devices().values()
    assert (card["gfx"], card["units"]) == ("gfx1100", 96)
    assert card["memory"] == {"kind": "dedicated", "parts": {"gtt": GIB}}
    assert card["unknown"]["memory.total"].startswith("mem_info_vram_total is missing")


def test_a_separator_at_a_number_does_no_harm() -> None:
    assert kfd.parse("simd_count 8\x1f\nx \x1f9") == {"simd_count": 8, "x": 9}


@given(st.text(max_size=200))
def test_no_properties_file_can_raise(text: str) -> None:
    properties = kfd.parse(text)
    node = kfd.Node(1, 0, "/none", properties)
    assert node.units is None or node.units > 0
    assert node.address.count(":") == 2
    assert all(value >= 0 for value in properties.values())
