"""What the kernel driver's files say, read exactly."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import probe_nvidia
from probe_core.api import Machine
from probe_core.sysfs.pci import normal_id
from probe_nvidia import scene
from probe_nvidia.device import CORES_PER_SM
from probe_nvidia.files import INTEGRATED, card
from probe_nvidia.tegra import COMPUTE_CAPABILITY, _driver, _soc_by_devices


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


@pytest.mark.parametrize(
    ("text", "minor"),
    [("0", 0), ("9999", 9999), ("10000", None), ("", None), ("-1", None), ("0x1", None)],
)
def test_the_number_of_a_node(text: str, minor: int | None) -> None:
    assert scene.DriverCard({"Device Minor": text}).minor == minor
    assert scene.DriverCard({}).minor is None


def test_the_driver_of_a_module(trees: ModuleType, tmp_path: Path) -> None:
    machine = Machine(str(tmp_path))
    assert _driver(machine, {"driver": {"name": "gk20a"}}) == "gk20a"
    assert _driver(machine, {"driver": None}) is None
    trees.Tree(tmp_path).file("/sys/module/nvgpu/version", "1\n")
    assert _driver(machine, {}) == "nvgpu"


def test_devices_that_name_the_soc_of_a_masked_tree(trees: ModuleType, tmp_path: Path) -> None:
    tree = trees.Tree(tmp_path)

    def named(arch: str = "aarch64") -> list[str]:
        return _soc_by_devices(Machine(str(tmp_path), arch=arch))

    for number in range(60):
        uevent = f"OF_COMPATIBLE_0=acme,x{number}\n"
        tree.file(f"/sys/bus/platform/devices/a{number:02}/uevent", uevent)
    assert named() == []
    uevent = "OF_COMPATIBLE_0=acme,x\nOF_COMPATIBLE_1=nvidia,tegra234-gpio\n"
    tree.file("/sys/bus/platform/devices/z/uevent", uevent)
    assert (named(), named("x86_64")) == (["nvidia,tegra234"], [])
    tree.node("", "acme,board")
    assert named() == []


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


@pytest.mark.parametrize(
    ("driver", "has_file", "is_served"),
    [
        ("nvidia", True, True),
        ("nvidia", False, True),
        (None, True, True),  # no bus prober said what holds it, and the driver has a file of it
        (None, False, False),
        ("nouveau", True, False),
        ("vfio-pci", False, False),
    ],
)
def test_only_what_the_driver_serves_has_its_version_and_nodes(
    driver: str | None, has_file: bool, is_served: bool
) -> None:
    identity = "pci:0000:01:00.0"
    file = SimpleNamespace(uuid="GPU-1", model="NVIDIA H100")
    here: Any = SimpleNamespace(
        proc={identity: file} if has_file else {},
        cards={identity: {"driver": {"name": driver}} if driver else {}},
        version="580.95.05",
        nodes=lambda name: ["/dev/nvidia0"],
    )
    expected = {
        "ids": [identity, "uuid:GPU-1"] if has_file else [identity],
        "kind": "gpu",
        "vendor": "nvidia",
        "unknown": {"units": "why"},
        **({"name": "NVIDIA H100"} if has_file else {}),
    }
    if is_served:
        expected |= {"driver": {"name": "nvidia", "version": "580.95.05"}}
        expected |= {"nodes": ["/dev/nvidia0"]}
    assert card(here, identity, "why", ["units"]) == expected
