"""The contract, on a workstation with two cards, one asleep, beside the processor's own GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from probe_core.testing import Case, Machine, ProberContract

GIB = 1 << 30
VRAM = 25753026560


class TestAmd(ProberContract):
    name = "amd"
    target = "probe_amd.prober"
    project = Path(__file__).parents[1]

    @pytest.fixture(autouse=True)
    def builder(self, new_tree: Any) -> None:
        self.new_tree = new_tree

    def hardware(self, root: Path) -> Case:
        tree = self.new_tree(root)
        tree.memory(65_000_000, 50_000_000)
        link = {"current_link_speed": "16.0 GT/s PCIe", "current_link_width": 16}
        for bus, minor, status in ((0x03, 128, "active"), (0x07, 129, "suspended")):
            tree.card(
                f"0000:{bus:02x}:00.0", "0x744c", status=status, drm=(minor - 128, minor),
                mem_info_vram_total=VRAM, mem_info_vram_used=GIB, mem_info_gtt_total=32 * GIB,
                mem_info_vram_vendor="hynix", unique_id=f"7cf5f4d4a1b2c3{bus:02x}", **link,
            )  # fmt: skip
            tree.kfd_node(
                minor - 127, {"heap_type": 1, "size_in_bytes": VRAM, "width": 384,
                "mem_clk_max": 1249}, simd_count=192, simd_per_cu=2, gfx_target_version=110000,
                location_id=bus << 8, drm_render_minor=minor, max_engine_clk_fcompute=2482,
            )  # fmt: skip
            tree.io_link(minor - 127, 0, type=2, node_to=0, max_bandwidth=32000)
        tree.card("0000:16:00.0", "0x164e", drm=(2, 130), mem_info_vram_total=512 << 20,
                  mem_info_gtt_total=31 * GIB, mem_info_vram_vendor="unknown")  # fmt: skip
        tree.kfd_node(3, simd_count=4, simd_per_cu=2, gfx_target_version=100306, location_id=0x1600,
                  max_engine_clk_fcompute=2200, drm_render_minor=130)  # fmt: skip
        tree.cpu_node(0)
        return Case(Machine(str(root)))

    def sampled(self, root: Path) -> Case:
        case = self.hardware(root)
        folder = root / "sys/bus/pci/devices/0000:03:00.0"
        figures = {
            "gpu_busy_percent": 50,
            "hwmon/hwmon3/temp1_input": 51000,
            "hwmon/hwmon3/temp1_label": "edge",
            "hwmon/hwmon3/power1_average": 90_000_000,
        }
        for name, content in figures.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"{content}\n")
        return case

    def lacking(self, root: Path) -> Mapping[str, Case]:
        tree = self.new_tree(root)
        tree.card("0000:00:02.0", "0x7d55", vendor="0x8086", driver="i915")
        tree.card("0000:03:00.1", "0xab30", driver="snd_hda_intel", pci_class="0x040300")
        tree.cpu_node(0)
        return {"a processor in KFD, a sound function, another's GPU": Case(Machine(str(root)))}

    def broken(self, root: Path) -> Mapping[str, Case]:
        cases = {}
        for driver in (None, "radeon"):
            tree = self.new_tree(root / str(driver))
            tree.file("/sys/module/amdgpu/refcnt", 0)
            tree.card("0000:03:00.0", "0x744c", driver=driver)
            cases[f"driver {driver}"] = Case(Machine(str(tree.root)))
        return cases

    def test_all_that_is_there_is_found(self, tmp_path: Path) -> None:
        assert len(self.found(tmp_path)[1].sightings) == 3
