"""What the kernel driver's files say, read exactly."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

import probe_nvidia
from probe_core.api import Machine
from probe_core.sysfs.pci import normal_id
from probe_nvidia import scene
from probe_nvidia.device import CORES_PER_SM
from probe_nvidia.files import INTEGRATED
from probe_nvidia.tegra import COMPUTE_CAPABILITY


@pytest.mark.parametrize(
    ("address", "identity"),
    [
        ("00000000:3B:00.0", "pci:0000:3b:00.0"),
        ("0000000F:01:00.0", "pci:000f:01:00.0"),
        ("00010000:E1:00.0", "pci:10000:e1:00.0"),
        ("0000:02:01.7", "pci:0000:02:01.7"),
        ("FFFFFFFF:FF:1F.0", None),
        ("0000:02:00", None),
        ("", None),
        ("x:y:z.0", None),
        ("-1:01:-1.-1", None),
        ("0_0:01:00.+1", None),
    ],
)
def test_pci_identity(address: str, identity: str | None) -> None:
    assert normal_id(address) == identity


def version_of(tmp_path: Path, text: str) -> str | None:
    folder = tmp_path / "proc/driver/nvidia"
    folder.mkdir(parents=True)
    (folder / "version").write_text(text)
    return scene.driver_version(Machine(str(tmp_path)))


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22", "550.54.14"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Rel", "580.95.05"),
        ("", None),
        ("something else", None),
    ],
)
def test_driver_version(tmp_path: Path, line: str, version: str | None) -> None:
    gcc = "\nGCC version:  gcc version 12.3.0\n"
    assert version_of(tmp_path, line + gcc) == version


def test_unused_and_excluded_gpus(trees: ModuleType, tmp_path: Path) -> None:
    tree = trees.Tree(tmp_path)
    tree.add_information("0000:01:00.0", "Unknown", "GPU-????????-????-????-????-????????????")
    tree.add_information("0000:02:00.0", "Tesla T4", None, excluded=True)
    tree.file("/proc/driver/nvidia/gpus/nonsense/information", "Model: x\n")
    found = scene.driver_cards(Machine(str(tmp_path)))
    facts = {i: (card.model, card.uuid, card.excluded) for i, card in found.items()}
    assert facts == {
        "pci:0000:01:00.0": (None, None, False),
        "pci:0000:02:00.0": ("Tesla T4", None, True),
    }


def test_tables_agree() -> None:
    assert set(COMPUTE_CAPABILITY.values()) <= INTEGRATED <= set(CORES_PER_SM)


def test_manifest() -> None:
    path = Path(probe_nvidia.__path__[0]) / "prober.json"
    prober = json.loads(path.read_text())["probers"]["nvidia"]
    assert (prober["priority"], prober["deadline_s"], prober["active"]) == (500, 15.0, False)
    assert [alternative["os"] for alternative in prober["when"]] == [
        ["linux"],
        ["linux"],
        ["windows"],
    ]
