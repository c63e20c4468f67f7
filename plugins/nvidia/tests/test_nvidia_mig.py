"""MIG instances are children of their GPU, with their own share of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Ask = Callable[..., dict[str, Any]]

PARENT = "pci:0000:3b:00.0"


def instance(
    number: int, index: int, gi: int, profile: str, units: int, mib: int
) -> dict[str, Any]:
    total = mib << 20
    return {
        "ids": [f"uuid:MIG-e000000{number}-0000-5000-8000-000000000000"],
        "kind": "gpu",
        "vendor": "nvidia",
        "parent": PARENT,
        "backends": ["cuda"],
        "name": f"NVIDIA A100-SXM4-40GB MIG {profile}",
        "profile": profile,
        "compute_capability": "8.0",
        "memory": {
            "kind": "dedicated",
            "total": total,
            "free": total - 20971520,
            "used": 20971520,
            "usable": total,
            "parts": {"vram": total},
        },
        "driver": {"name": "nvidia", "version": "580.95.05", "cuda": "13.0"},
        "clocks": {"max_mhz": 1410, "memory_max_mhz": 1215},
        "extra": {"mig_index": index, "gpu_instance": gi, "compute_instance": 0},
        "units": units,
        "cores": units * 64,
        "share": {"units": units, "of": 108},
        "power_state": "active",
        "nodes": ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"],
        "step_facts": [
            {
                "step": "library",
                "status": "ok",
                "evidence": "nvmlInit succeeded, driver 580.95.05",
            },
            {"step": "responding", "status": "ok", "evidence": "NVML answered 6 queries"},
            {
                "step": "granted",
                "status": "ok",
                "evidence": f"NVML lists it as MIG instance {index} of {PARENT}",
            },
        ],
    }


def test_instances_at_sparse_indexes(ask: Ask) -> None:
    said = ask("a100-mig")
    parent, *children = said["devices"]
    assert parent["ids"][0] == PARENT
    assert parent["units"] == 108
    assert parent["extra"]["mig"] == "enabled"
    assert children == [
        instance(1, 0, 2, "3g.20gb", 42, 19968),
        instance(2, 2, 3, "2g.10gb", 28, 9856),
        instance(3, 5, 9, "1g.5gb", 14, 4864),
    ]
    assert said["findings"] == []


@pytest.mark.heavy
def test_mig_mode_without_instances_is_said(ask: Ask) -> None:
    said = ask("a100-mig-empty")
    assert len(said["devices"]) == 1
    (finding,) = said["findings"]
    assert (finding["code"], finding["device"]) == ("mig-without-instances", PARENT)


@pytest.mark.heavy
def test_instances_of_drivers_before_470(ask: Ask) -> None:
    parent, child = ask("a100-mig-old")["devices"]
    assert child["ids"] == ["uuid:MIG-GPU-d1000000-0000-4000-8000-000000000000/7/0"]
    assert child["parent"] == PARENT
    # This driver does not tell the instance's memory, but its attributes do.
    assert child["memory"] == {
        "kind": "dedicated",
        "total": 5100273664,
        "parts": {"vram": 5100273664},
    }
    assert "reserved" not in parent["memory"]["parts"]


def test_one_broken_instance_does_not_hide_the_others(ask: Ask, fake: Any) -> None:
    text = (fake.PROFILES / "a100-mig.profile").read_text()
    text = text.replace(
        "instance 3 0", "instance 3 0\non nvmlDeviceGetUUID 999\non nvmlDeviceGetName 999"
    )
    _, first, second, third = ask(text)["devices"]
    assert second["ids"] == [f"nvidia:{PARENT}/mig2"]
    assert second["unknown"] == {
        "uuid": "NVML_ERROR_UNKNOWN from nvmlDeviceGetUUID",
        "name": "NVML_ERROR_UNKNOWN from nvmlDeviceGetName",
    }
    assert second["units"] == 28
    assert [first["units"], third["units"]] == [42, 14]


def test_gpu_without_mig_is_not_asked_for_instances(ask: Ask, tmp_path: Any) -> None:
    log = tmp_path / "calls"
    ask("t4", log=log)
    assert "nvmlDeviceGetMaxMigDeviceCount" not in log.read_text().split()
