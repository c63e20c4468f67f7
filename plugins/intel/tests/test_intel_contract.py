"""The contract, on a machine with a card, the processor's GPU and NPU, and two Gaudis."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from probe_core.testing import Case, Machine, ProberContract

GAUDI = {"vendor": "0x1da3", "pci_class": "0x120000"}
NPU = {"pci_class": "0x120000", "status": "suspended"}


@pytest.mark.heavy
class TestIntel(ProberContract):
    name = "intel"
    target = "probe_intel.prober"
    project = Path(__file__).parents[1]

    @pytest.fixture(autouse=True)
    def builder(self, new_tree: Any) -> None:
        self.new_tree = new_tree

    def hardware(self, root: Path) -> Case:
        tree = self.new_tree(root)
        card = tree.function(
            "0000:03:00.0", "0xe20b", "xe", under=tree.behind_switch(),
            subsystem_vendor="0x8086", subsystem_device="0x1100",
            resource="0x0000004000000000 0x00000043ffffffff 0x000000000014220c\n" * 7,
        )  # fmt: skip
        tree.file(f"{card}/tile0/gt0/freq0/rp0_freq", 2850)
        tree.file(f"{card}/tile0/gt0/freq0/max_freq", 2400)
        tree.file(f"{card}/drm/renderD128/dev", "226:128")
        tree.file("/sys/fs/cgroup/dmem.capacity", "drm/0000:03:00.0/vram0 12674138112")
        own = tree.function("0000:00:02.0", "0x7d55", "i915")
        tree.file(f"{own}/drm/card0/gt_RP0_freq_mhz", 2250)
        tree.function("0000:00:0b.0", "0x7d1d", "intel_vpu", npu_max_frequency_mhz=1400, **NPU)
        for bus in (0x33, 0x34):
            tree.function(f"0000:{bus}:00.0", "0x1020", "habanalabs", clk_max_freq_mhz=1650,
                          status="Operational", **GAUDI)  # fmt: skip
        return Case(Machine(str(root)))

    def sampled(self, root: Path) -> Case:
        case = self.hardware(root)
        folder = root / "sys/bus/pci/devices/0000:03:00.0"
        (folder / "tile0/gt0/freq0/act_freq").write_text("1200\n")
        (folder / "tile0/gt0/gtidle").mkdir()
        (folder / "tile0/gt0/gtidle/idle_residency_ms").write_text("1000\n")
        return case

    def lacking(self, root: Path) -> Mapping[str, Case]:
        tree = self.new_tree(root)
        tree.behind_switch()
        tree.function("0000:33:00.1", "0x1021", None, vendor="0x1da3", pci_class="0x020000")
        return {"Intel's bridges and a Gaudi's network function": Case(Machine(str(root)))}

    def broken(self, root: Path) -> Mapping[str, Case]:
        card, engine, gaudi = (self.new_tree(root / name) for name in ("card", "npu", "gaudi"))
        card.function("0000:03:00.0", "0xe20b", None)
        card.file("/sys/module/xe/refcnt", 0)
        engine.function("0000:00:0b.0", "0x7d1d", None, **NPU)
        folder = gaudi.function("0000:33:00.0", "0x1020", "habanalabs", **GAUDI)
        gaudi.file(f"{folder}/status", "Malfunction")
        return {tree.root.name: Case(Machine(str(tree.root))) for tree in (card, engine, gaudi)}

    def test_all_that_is_there_is_found(self, tmp_path: Path) -> None:
        assert len(self.found(tmp_path)[1].sightings) == 5
