"""Nobody wakes a sleeping GPU, loads a library for a recording, or asks where nothing is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from probe_core.api import Machine, NotApplicable, Request
from probe_core.probers import bus
from probe_nvidia.prober import probe_devices

Ask = Callable[..., dict[str, Any]]
Steps = Callable[[dict[str, Any]], dict[str, tuple[str, str | None]]]

GPU = "0000:01:00.0"
UUID = "GPU-14060000-0000-4000-8000-000000000000"
NAME = "NVIDIA GeForce RTX 4060 Laptop GPU"


@pytest.fixture
def laptop(trees: ModuleType, tmp_path: Path) -> Any:
    tree = trees.Tree(tmp_path)
    tree.add_driver("595.45.04")
    tree.add_pci(GPU, "28e0", power="suspended")
    tree.add_information(GPU, NAME, UUID)
    return tree


def test_sleeping_gpu_is_described_without_the_library(
    ask: Ask, laptop: Any, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    said = ask("laptop", tmp_path, log=log)
    assert not log.exists()
    assert said["modules"] == []
    why = f"pci:{GPU} sleeps, and a query would wake it"
    unread = ["memory.total", "memory.free", "compute_capability", "units", "clocks.max_mhz"]
    assert said["devices"] == [
        {
            "ids": [f"pci:{GPU}", f"uuid:{UUID}"],
            "kind": "gpu",
            "vendor": "nvidia",
            "name": NAME,
            "driver": {"name": "nvidia", "version": "595.45.04"},
            "backends": ["cuda"],
            "unknown": dict.fromkeys(unread, why),
            "nodes": ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"],
            "step_facts": [
                {"step": "responding", "status": "unknown", "evidence": why, "code": "asleep"}
            ],
        }
    ]
    (finding,) = said["findings"]
    assert (finding["code"], finding["severity"]) == ("gpu-asleep", "info")
    assert "--active" in finding["fix"]


@pytest.mark.heavy
def test_older_drivers_file_would_wake_it(
    ask: Ask, laptop: Any, steps: Steps, tmp_path: Path
) -> None:
    """Before 590 nv_procfs_read_gpu_info takes a power reference, which resumes the GPU."""
    laptop.add_driver("580.95.05")
    (gpu,) = ask("laptop", tmp_path)["devices"]
    assert gpu["ids"] == [f"pci:{GPU}"]
    assert "name" not in gpu
    assert gpu["nodes"] == ["/dev/nvidiactl", "/dev/nvidia-uvm"]
    assert steps(gpu) == {"responding": ("unknown", "asleep")}
    awake = ask("laptop", tmp_path, active=True)["devices"][0]
    assert awake["nodes"][0] == "/dev/nvidia0"


def test_active_probe_may_wake_it(ask: Ask, laptop: Any, tmp_path: Path) -> None:
    said = ask("laptop", tmp_path, active=True)
    assert said["devices"][0]["memory"]["total"] == 8585740288
    assert said["findings"] == []


@pytest.mark.heavy
def test_one_sleeping_gpu_keeps_all_from_being_asked(ask: Ask, laptop: Any, tmp_path: Path) -> None:
    laptop.add_pci("0000:41:00.0", "2684")
    laptop.add_information("0000:41:00.0", "NVIDIA GeForce RTX 4090", None)
    said = ask("laptop", tmp_path, modules=True)
    assert said["modules"] == []
    assert [gpu["ids"] for gpu in said["devices"]] == [
        [f"pci:{GPU}", f"uuid:{UUID}"],
        ["pci:0000:41:00.0"],
    ]


def test_card_of_a_virtual_machine_sleeps_on(ask: Ask, trees: ModuleType, tmp_path: Path) -> None:
    tree = trees.Tree(tmp_path)
    tree.add_driver()
    tree.add_pci(GPU, "28e0")
    tree.add_pci("0000:05:00.0", "2204", driver="vfio-pci", power="suspended")
    said = ask("laptop", tmp_path)
    assert [gpu["ids"][0] for gpu in said["devices"]] == [f"pci:{GPU}"]
    assert said["devices"][0]["units"] == 24
    assert said["findings"] == []


def test_recorded_machine_needs_no_library(laptop: Any, tmp_path: Path) -> None:
    machine = Machine(str(tmp_path))
    seen = bus.probe_devices(Request(machine))
    assert not isinstance(seen, NotApplicable)
    answer = probe_devices(Request(machine, seen, active=True))
    assert not isinstance(answer, NotApplicable)
    (gpu,) = answer
    assert gpu["ids"] == [f"pci:{GPU}", f"uuid:{UUID}"]
    assert gpu["unknown"]["units"] == "the machine is a recording, so its driver cannot be queried"


def test_recording_with_eight(trees: ModuleType, tmp_path: Path) -> None:
    trees.eight_h100(tmp_path)
    answer = probe_devices(Request(Machine(str(tmp_path))))
    assert not isinstance(answer, NotApplicable)
    assert [gpu["name"] for gpu in answer] == ["NVIDIA H100 80GB HBM3"] * 8


def test_nothing_here(ask: Ask, tmp_path: Path) -> None:
    said = ask("t4", tmp_path, modules=True)
    assert said["not_applicable"] == "no NVIDIA device on the bus, no NVIDIA driver"
    assert said["modules"] == []


@pytest.mark.heavy
def test_another_vendors_gpu_in_wsl(ask: Ask, trees: ModuleType, tmp_path: Path) -> None:
    trees.Tree(tmp_path).file("/dev/dxg", "")
    assert "libnvidia-ml.so.1" in ask(None, tmp_path)["not_applicable"]


@pytest.mark.heavy
def test_windows_without_the_driver(ask: Ask, tmp_path: Path) -> None:
    assert "nvml.dll" in ask(None, tmp_path, system="windows")["not_applicable"]


@pytest.mark.heavy
def test_wsl_keeps_its_library_apart(
    ask: Ask, library: Path, trees: ModuleType, tmp_path: Path
) -> None:
    trees.Tree(tmp_path).file("/dev/dxg", "")
    there = tmp_path / "usr/lib/wsl/lib/libnvidia-ml.so.1"
    there.parent.mkdir(parents=True)
    there.symlink_to(library)
    said = ask("t4", tmp_path, loader=False)
    assert [gpu["name"] for gpu in said["devices"]] == ["Tesla T4"]
