"""Whatever the files of a machine with NVIDIA's GPUs hold, the prober answers; see tests/fuzz."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest
from foreign import CHANCES, Chance, devices_in, files_of, write_files
from hypothesis import given

from probe_core.api import Machine, Request
from probe_core.probers import bus
from probe_core.sysfs.pci import normal_id
from probe_nvidia.prober import probe_devices

TREE = "/sys/firmware/devicetree/base"
_EXAMPLES: dict[Path, dict[str, bytes]] = {}


def build(trees: ModuleType, root: Path) -> dict[str, bytes]:
    """Two cards, one of which the driver does not know yet, and a Jetson's device tree."""
    tree = trees.Tree(root)
    tree.add_driver()
    tree.memory(16_000_000, 12_000_000)
    tree.add_pci("0000:01:00.0", "28e0", power="suspended")
    tree.add_information("0000:01:00.0", "NVIDIA GeForce RTX 4060", "GPU-14060000")
    tree.add_pci("0000:02:00.0", "28e0", driver=None)
    tree.add_information("0000:02:00.0", "Unknown", "GPU-????", excluded=True)
    tree.file(f"{TREE}/compatible", "nvidia,p3737-0000+p3701-0000\0nvidia,tegra234\0")
    tree.file(f"{TREE}/model", "NVIDIA Jetson AGX Orin\0")
    return files_of(root)


@pytest.mark.heavy
@given(CHANCES)
def test_files(trees: ModuleType, tmp_path: Path, chance: Chance) -> None:
    root = tmp_path / "root"
    if root not in _EXAMPLES:
        root.mkdir()
        _EXAMPLES[root] = build(trees, root)
    machine = Machine(str(write_files(root, chance.files(_EXAMPLES[root]))))
    seen = bus.probe_devices(Request(machine)) if chance.random() < 0.8 else ()
    devices_in(probe_devices(Request(machine, tuple(seen) if isinstance(seen, list) else ())))


@given(CHANCES)
def test_addresses(chance: Chance) -> None:
    text = chance.words(["0000", "00000000", "3B", "00", ":", ":", "."], "")
    identity = normal_id(text)
    assert identity is None or re.fullmatch(r"pci:[0-9a-f]{4,8}:..:[01].\.[0-7]", identity)
