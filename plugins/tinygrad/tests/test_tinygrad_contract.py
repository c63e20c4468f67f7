"""The contract, with a tinygrad whose backends open two GPUs and the processor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from probe_core.testing import Case, Machine, ProberContract

BUS = [
    {
        "ids": [f"pci:0000:0{bus}:00.0"],
        "kind": "gpu",
        "vendor": "nvidia",
        "pci": {"id": "10de:2684"},
    }
    for bus in (1, 2)
]
TWO_GPUS = """
class Info: pass
def row(bus):
    row = Info(); row.valid = 1; row.pci_info = Info()
    row.pci_info.domain, row.pci_info.bus, row.pci_info.slot, row.pci_info.function = 0, bus, 0, 0
    return row
NVKIface.gpus_info = [row(1), row(2)]
"""


@pytest.mark.heavy
class TestTinygrad(ProberContract):
    name = "tinygrad"
    target = "probe_tinygrad.prober"
    project = Path(__file__).parents[1]
    may = frozenset({"process", "temporary"})

    @pytest.fixture(autouse=True)
    def builder(self, new_fake: Any) -> None:
        self.new_fake = new_fake

    def hardware(self, root: Path) -> Case:
        return self.case(root, open_NV=TWO_GPUS)

    def broken(self, root: Path) -> Mapping[str, Case]:
        fails = "raise OSError('nothing here')"
        return {
            "it cannot be imported": self.case(root / "import", __init__="import numpy_is_missing"),
            "no backend opens": self.case(root / "none", open_NV=fails, open_CPU=fails),
        }

    def case(self, root: Path, **modules: str) -> Case:
        # Beside the machine: Python writes bytecode where it imports, unless it is told not to.
        fake = self.new_fake(root.with_name(f"{root.name}-site")).install("NV", "CPU")
        for name, text in modules.items():
            fake.write(name, text)
        return Case(Machine(str(root)), BUS, live=True, sys_path=[fake.root])

    def test_all_that_is_there_is_found(self, tmp_path: Path) -> None:
        assert len(self.found(tmp_path)[1].sightings) == 3
