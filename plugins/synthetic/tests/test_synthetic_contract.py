"""The synthetic prober keeps the contract that all probers keep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from probe_core.testing import Case, Machine, ProberContract

DEVICES = [
    {"ids": ["uuid:GPU-1", "pci:0000:01:00.0"], "kind": "gpu", "name": "One", "units": 8},
    {"ids": ["synthetic:2"], "kind": "npu", "unknown": {"memory.total": "not told"}},
]


@pytest.mark.heavy
class TestSynthetic(ProberContract):
    name = "synthetic"
    target = "probe_synthetic.prober"
    project = Path(__file__).parents[1]

    def hardware(self, root: Path) -> Case:
        (root / "devices.json").write_text(json.dumps(DEVICES))
        return Case(Machine(str(root), {"PROBE_SYNTHETIC": "/devices.json"}))

    def broken(self, root: Path) -> Mapping[str, Case]:
        (root / "broken.json").write_text("{")
        return {
            "no file": Case(Machine(str(root), {"PROBE_SYNTHETIC": "/missing.json"})),
            "no JSON": Case(Machine(str(root), {"PROBE_SYNTHETIC": "/broken.json"})),
        }
