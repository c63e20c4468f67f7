"""Device nodes of NPUs and other accelerators, and the module that one without driver lacks."""

from __future__ import annotations

from typing import Any

import pytest
from trees import Tree

from probe_core.api import Request
from probe_core.probers import bus

XDNA, HAILO, CORAL = "1022:17f0", "1e60:2864", "1ac1:089a"


def seen(tree: Tree) -> Any:
    (device,) = bus.probe_devices(Request(tree.machine()))  # type: ignore[misc]
    return device


@pytest.mark.parametrize(
    ("ids", "driver", "files", "nodes"),
    [
        (XDNA, "amdxdna", {"accel": 0}, ["/dev/accel/accel0"]),
        (HAILO, "hailo", {"hailo_chardev__hailo1__dev": "510:1"}, ["/dev/hailo1"]),
        (CORAL, "apex", {"apex__apex_0__dev": "120:0"}, ["/dev/apex_0"]),
        (HAILO, "hailo", {}, None),
        (HAILO, "vfio-pci", {}, None),
    ],
)
def test_nodes(
    tree: Tree, ids: str, driver: str, files: dict[str, Any], nodes: list[str] | None
) -> None:
    tree.pci("0000:01:00.0", ids, pci_class="120000", driver=driver, **files)
    device = seen(tree)
    assert device.get("nodes") == nodes
    assert "step_facts" not in device


@pytest.mark.parametrize(
    ("ids", "module"), [(XDNA, "amdxdna"), (HAILO, "hailo_pci"), (CORAL, "apex")]
)
def test_npu_without_driver(tree: Tree, ids: str, module: str) -> None:
    tree.pci("0000:01:00.0", ids, pci_class="120000")
    (fact,) = seen(tree)["step_facts"]
    assert (fact["step"], fact["status"], fact["code"]) == ("driver", "broken", "npu-no-module")
    assert fact["evidence"].endswith(f"driver is absent, and so is /sys/module/{module}")
    tree.file(f"/sys/module/{module}/refcnt", 0)
    assert "step_facts" not in seen(tree)


def test_gpu_of_the_bus_is_left_to_its_own_prober(tree: Tree) -> None:
    """An AMD GPU that was not granted has no render node here: its own prober tells which count."""
    tree.pci("0000:01:00.0", "1002:744c", driver="amdgpu", drm=(0, 128))
    assert "nodes" not in seen(tree)
