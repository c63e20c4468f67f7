"""Jetson modules with and without NVML, on the host and in Docker, which masks /sys/firmware."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import probe_chipdb
from probe_core import testing
from probe_core.api import NotApplicable, Request
from probe_core.probers import bus
from probe_nvidia import tegra
from probe_nvidia.prober import probe_devices

Ask = Callable[..., dict[str, Any]]
Steps = Callable[[dict[str, Any]], dict[str, tuple[str, str | None]]]

# GPU node, its compatibles in NVIDIA's Linux for Tegra, the SoC, its compute capability.
MODULES = [
    ("/gpu@57000000", ("nvidia,tegra210-gm20b", "nvidia,gm20b"), "nvidia,tegra210", "5.3"),
    ("/gp10b", ("nvidia,tegra186-gp10b", "nvidia,gp10b"), "nvidia,tegra186", "6.2"),
    ("/gv11b", ("nvidia,gv11b",), "nvidia,tegra194", "7.2"),
    ("/bus@0/gpu@17000000", ("nvidia,ga10b",), "nvidia,tegra234", "8.7"),
]


def uevent(node: str, *compatibles: str) -> str:
    lines = [f"OF_NAME={node.rpartition('/')[2].partition('@')[0]}", f"OF_FULLNAME={node}"]
    lines += [f"OF_COMPATIBLE_{n}={name}" for n, name in enumerate(compatibles)]
    return "\n".join([*lines, f"OF_COMPATIBLE_N={len(compatibles)}"])


def in_docker(root: Path, node: str, names: tuple[str, ...], **files: object) -> testing.Tree:
    """Return a module as a container shows it: /sys/firmware is an empty folder."""
    tree = testing.Tree(root, arch="aarch64")
    tree.memory(64_349_316, 60_000_000)
    tree.file("/.dockerenv", "")
    (root / "sys/firmware").mkdir(parents=True)
    tree.platform("17000000.gpu", driver="gk20a", uevent=uevent(node, *names), **files)
    return tree


def found(tree: testing.Tree) -> list[dict[str, Any]]:
    machine = tree.machine()
    seen = bus.probe_devices(Request(machine))
    assert not isinstance(seen, NotApplicable)
    answer = probe_devices(Request(machine, seen))
    assert not isinstance(answer, NotApplicable)
    return list(answer)


@pytest.mark.parametrize(("node", "names", "soc", "capability"), MODULES)
def test_masked_tree(
    tmp_path: Path, node: str, names: tuple[str, ...], soc: str, capability: str, steps: Steps
) -> None:
    tree = in_docker(tmp_path, node, names)
    (gpu,) = found(tree)
    assert (gpu["ids"], gpu["compute_capability"]) == ([f"dt:{node}"], capability)
    own = [soc] if names[0].startswith(f"{soc}-") else []  # the GPU's own name has the SoC's
    assert gpu["dt"] == [*names, *own]
    assert gpu["memory"]["total"] == 65893699584
    assert "name" not in gpu
    assert steps(gpu)["driver"] == ("ok", None)
    # Other devices of the SoC are called after it.
    tree.platform("2200000.gpio", uevent=uevent("/bus@0/gpio@2200000", f"{soc}-gpio"))
    tree.file("/sys/devices/soc0/machine", "NVIDIA Jetson AGX Orin Developer Kit\n")
    (gpu,) = found(tree)
    assert gpu["dt"] == [*names, soc]
    assert gpu["name"] == "NVIDIA Jetson AGX Orin Developer Kit"


def test_masked_tree_is_live_and_has_no_nvml(ask: Ask, steps: Steps, tmp_path: Path) -> None:
    """JetPack 5 in Docker; CDI sets NVIDIA_VISIBLE_DEVICES=void there, too."""
    node, names, *_ = MODULES[3]
    tree = in_docker(tmp_path, node, names)
    tree.file("/dev/nvhost-gpu", "")
    environ = {"NVIDIA_VISIBLE_DEVICES": "void"}
    said = ask(None, tmp_path, environ=environ, arch="aarch64")
    (gpu,) = said["devices"]
    assert "error" not in said
    assert steps(gpu) == {"driver": ("ok", None), "library": ("not_applicable", None)}
    assert "nodes" not in gpu


@pytest.mark.heavy
@pytest.mark.parametrize("code", [3, 9, 13])
def test_stub_of_the_toolkit_is_no_nvml(
    ask: Ask, trees: ModuleType, tmp_path: Path, code: int
) -> None:
    tree = trees.Tree(tmp_path)
    tree.node("", "nvidia,p2972-0000", "nvidia,tegra194")
    tree.node("/gv11b", "nvidia,gv11b")
    tree.platform("17000000.gv11b", "/gv11b", driver="gk20a")
    said = ask(f"on nvmlInit {code}\n", tmp_path)
    assert [gpu["ids"] for gpu in said["devices"]] == [["dt:/gv11b"]]
    assert "error" not in said


def test_module_without_its_driver(
    ask: Ask, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    tree = trees.Tree(tmp_path)
    tree.node("", "nvidia,p3737-0000+p3701-0005", "nvidia,tegra234")
    tree.node("/gpu@17000000", "nvidia,ga10b")
    tree.platform("17000000.gpu", "/gpu@17000000")
    (gpu,) = ask("on nvmlInit 9\n", tmp_path)["devices"]
    assert steps(gpu)["driver"] == ("broken", "jetson-no-nvgpu")


def test_server_with_an_arm_cpu_is_no_jetson(trees: ModuleType, tmp_path: Path) -> None:
    tree = trees.Tree(tmp_path, arch="aarch64")
    tree.add_driver()
    tree.add_pci("0009:01:00.0", "2342")
    tree.file("/sys/firmware/acpi/tables/FACP", "")
    tree.platform("2200000.gpio", uevent=uevent("/gpio@2200000", "nvidia,tegra234-gpio"))
    (gpu,) = found(tree)
    assert gpu["ids"] == ["pci:0009:01:00.0"]
    assert "dt" not in gpu


def test_tables_agree() -> None:
    assert set(tegra.GPU_CAPABILITY.values()) < set(tegra.COMPUTE_CAPABILITY.values())


@pytest.mark.parametrize(
    ("names", "model"),
    [
        (
            ("nvidia,p3737-0000+p3701-0005", "nvidia,p3701-0005", "nvidia,tegra234"),
            "NVIDIA Jetson AGX Orin Developer Kit",
        ),
        (
            ("nvidia,p3737-0000+p3701-0004", "nvidia,p3701-0004", "nvidia,tegra234"),
            "NVIDIA Jetson AGX Orin Developer Kit",
        ),
        (
            ("nvidia,p3737-0000+p3701-0000", "nvidia,p3701-0000", "nvidia,tegra234"),
            "NVIDIA Jetson AGX Orin Developer Kit",
        ),
        (
            ("nvidia,p3768-0000+p3767-0005", "nvidia,p3767-0005", "nvidia,tegra234"),
            "NVIDIA Jetson Orin Nano Developer Kit",
        ),
        (
            ("nvidia,p3509-0000+p3668-0000", "nvidia,p3668-0000", "nvidia,tegra194"),
            "NVIDIA Jetson Xavier NX Developer Kit",
        ),
        (("nvidia,p2972-0000", "nvidia,tegra194"), "NVIDIA Jetson AGX Xavier Developer Kit"),
        (("nvidia,p2771-0000", "nvidia,tegra186"), "NVIDIA Jetson TX2 Developer Kit"),
        (("nvidia,p3450-0000", "nvidia,tegra210"), "NVIDIA Jetson Nano Developer Kit"),
        (
            ("nvidia,p4071-0000+p3834-0008", "nvidia,p3834-0008", "nvidia,tegra264"),
            "NVIDIA Jetson AGX Thor Developer Kit",
        ),
    ],
)
def test_module_and_its_developer_kit_are_no_conflict(names: tuple[str, ...], model: str) -> None:
    match = probe_chipdb.load().match(dt=names, vendor="nvidia", name=model)
    assert match.conflicts == ()
    assert match.chip is not None
