"""GPUs without memory of their own, and discrete GPUs that only look like one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from probe_core.machine import Machine
from probe_nvidia.live import _memory

Ask = Callable[..., dict[str, Any]]

BASE = "/sys/firmware/devicetree/base"
MODEL = "NVIDIA Jetson AGX Orin Developer Kit"
NAMES = ("nvidia,p3737-0000+p3701-0005", "nvidia,p3701-0005", "nvidia,tegra234")


def jetson(tree: Any, power: str = "active") -> None:
    tree.node("", *NAMES)
    tree.file(f"{BASE}/model", MODEL + "\0")
    tree.node("/bus@0/gpu@17000000", "nvidia,ga10b")
    tree.platform("17000000.gpu", "/bus@0/gpu@17000000", driver="gk20a", power=power)
    tree.memory(64_349_316, 60_000_000)
    tree.file("/dev/nvhost-gpu", "")


@pytest.mark.heavy
def test_gb10_has_the_systems_memory(ask: Ask, trees: ModuleType, tmp_path: Path) -> None:
    tree = trees.Tree(tmp_path)
    tree.add_driver()
    tree.add_pci("000f:01:00.0", "2e12")
    tree.memory(127_600_748, 118_566_368)
    (gpu,) = ask("gb10", tmp_path)["devices"]
    assert gpu["ids"] == ["pci:000f:01:00.0", "uuid:GPU-f1000000-0000-4000-8000-000000000000"]
    assert gpu["memory"] == {
        "kind": "unified",
        "total": 130663165952,
        "free": 121411960832,
        "parts": {"system": 130663165952},
    }
    assert gpu["units"] == 48
    assert "links" not in gpu
    assert "memory.total" not in gpu["unknown"]


@pytest.mark.heavy
def test_carve_out_is_a_part_not_the_whole(ask: Ask, trees: ModuleType, tmp_path: Path) -> None:
    trees.Tree(tmp_path).memory(127_600_748, 118_566_368)
    trees.Tree(tmp_path).add_pci("0000:01:00.0", "2e2a")
    profile = "gpu\nname N1X\npci 00000000:01:00.0 0x2E2A10DE 0\ncc 12.1\nmemory 8522825728 0 1 1\n"
    (gpu,) = ask(profile, tmp_path)["devices"]
    assert gpu["memory"]["total"] == 130663165952
    assert gpu["memory"]["parts"] == {"system": 130663165952, "vram": 8522825728}


@pytest.mark.parametrize("code", [3, 4, 999])
def test_discrete_card_never_gets_host_memory(
    ask: Ask, trees: ModuleType, tmp_path: Path, code: int
) -> None:
    trees.Tree(tmp_path).memory(127_600_748, 118_566_368)
    trees.Tree(tmp_path).add_pci("0000:01:00.0", "1eb8")
    profile = "gpu\nname Tesla T4\npci 00000000:01:00.0 0x1EB810DE 0\ncc 7.5\ncores 2560\n"
    profile += f"on nvmlDeviceGetMemoryInfo_v2 {code}\n"
    (gpu,) = ask(profile, tmp_path)["devices"]
    assert "memory" not in gpu
    assert gpu["unknown"]["memory.total"].endswith("from nvmlDeviceGetMemoryInfo")


@pytest.mark.heavy
def test_integrated_without_meminfo_says_why(ask: Ask) -> None:
    (gpu,) = ask("gb10")["devices"]
    assert gpu["memory"] == {"kind": "unified", "parts": {}}
    assert gpu["unknown"]["memory.total"] == "it is the system's, and /proc/meminfo has no MemTotal"


@pytest.mark.heavy
def test_orin_through_nvml(ask: Ask, trees: ModuleType, tmp_path: Path) -> None:
    jetson(trees.Tree(tmp_path))
    (gpu,) = ask("orin", tmp_path)["devices"]
    assert gpu["ids"] == ["dt:/bus@0/gpu@17000000"]
    assert gpu["name"] == "Orin (nvgpu)"
    assert gpu["extra"] == {"model": MODEL}
    assert gpu["dt"] == [*NAMES, "nvidia,ga10b"]
    assert gpu["compute_capability"] == "8.7"
    assert gpu["memory"]["total"] == 65893699584
    assert gpu["memory"]["kind"] == "unified"
    assert gpu["driver"] == {"name": "nvidia", "version": "540.4.0", "cuda": "12.6"}
    assert "memory.total" not in gpu["unknown"]
    assert gpu["unknown"]["units"] == "NVML gives neither SMs nor cores"


def test_jetson_without_nvml_is_no_failure(ask: Ask, trees: ModuleType, tmp_path: Path) -> None:
    jetson(trees.Tree(tmp_path))
    said = ask(None, tmp_path)
    assert said["devices"] == [
        {
            "ids": ["dt:/bus@0/gpu@17000000"],
            "kind": "gpu",
            "vendor": "nvidia",
            "dt": [*NAMES, "nvidia,ga10b"],
            "compute_capability": "8.7",
            "backends": ["cuda"],
            "memory": {
                "kind": "unified",
                "total": 65893699584,
                "free": 61440000000,
                "parts": {"system": 65893699584},
            },
            "unknown": {
                "units": "this Jetson has no NVML",
                "clocks.max_mhz": "this Jetson has no NVML",
            },
            "name": MODEL,
            "step_facts": [
                {
                    "step": "driver",
                    "status": "ok",
                    "evidence": "the driver gk20a serves the GPU",
                },
                {
                    "step": "library",
                    "status": "not_applicable",
                    "evidence": "this Jetson has no NVML, and CUDA needs none",
                },
            ],
        }
    ]
    assert "error" not in said


def test_sleeping_jetson_is_not_woken(ask: Ask, trees: ModuleType, tmp_path: Path) -> None:
    jetson(trees.Tree(tmp_path), power="suspended")
    said = ask("orin", tmp_path, modules=True)
    assert said["modules"] == []
    assert said["devices"][0]["name"] == MODEL


def test_memory_that_is_free_beyond_all_there_is_counts_as_unused(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 8 kB\nMemAvailable: 9 kB\n")
    memory = _memory(None, Machine(str(tmp_path)), integrated=True)  # type: ignore[arg-type]
    assert memory == {"total": 8192, "used": 0}
