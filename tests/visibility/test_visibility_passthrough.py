"""A device that a kernel driver reserves for a guest: no runtime shows it, numbers pass over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import visibility_nodes as nodes

from probe_core.model.ids import PASSTHROUGH_DRIVERS, is_passthrough_driver
from probe_core.pipeline.conclude import choose
from probe_core.selection import select
from probe_core.selection.environment import confine
from probe_core.visibility import annotate, see

ROOT = Path(__file__).resolve().parents[2]
DRIVERS = [*PASSTHROUGH_DRIVERS, "xe-vfio-pci", "nvgrace_gpu_vfio_pci", "mlx5_vfio_pci"]
MAKERS = {"nvidia": nodes.nvidia, "amd": nodes.amd, "intel": nodes.intel}
NATIVE = {"nvidia": "cuda", "amd": "hip", "intel": "level-zero"}


def node(vendor: str, driver: str) -> list[Any]:
    """Three GPUs of one vendor, the first of which a driver holds."""
    first = MAKERS[vendor](1) | {"driver": {"name": driver}, "seen_by": [vendor]}
    return [first, *(MAKERS[vendor](slot) | {"seen_by": [vendor]} for slot in (2, 3))]


@pytest.mark.parametrize("driver", DRIVERS)
def test_drivers_that_reserve_a_device(driver: str) -> None:
    assert is_passthrough_driver(driver)
    assert is_passthrough_driver(driver, "nvidia")


@pytest.mark.parametrize(
    "driver", [None, "", "nvidia", "amdgpu", "i915", "xe", "nouveau", "vfio", "vfio-platform"]
)
def test_drivers_that_do_not(driver: str | None) -> None:
    assert not is_passthrough_driver(driver, "nvidia")


def test_libtpu_drives_tpus_through_vfio() -> None:
    assert not is_passthrough_driver("vfio-pci", "google")
    assert is_passthrough_driver("pciback", "google"), "Xen's guests may have them"


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("vendor", MAKERS)
def test_numbers_pass_over_it(vendor: str, driver: str) -> None:
    devices = node(vendor, driver)
    views = see(devices, {})
    view = views[NATIVE[vendor]][0]
    assert nodes.slots(view.visible) == [2, 3]
    entry = view.entry(nodes.pci(1))
    assert (entry["visible"], entry["index"], entry.get("variable")) == (False, None, None)
    assert driver in str(entry["reason"])
    for name in ("vulkan", "ggml-vulkan", "sycl", "opencl", "tinygrad", "nvidia-container"):
        assert all(nodes.slots(other.visible)[:1] != [1] for other in views.get(name, ()))


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("vendor", MAKERS)
def test_it_is_not_primary_however_fast(vendor: str, driver: str) -> None:
    devices = node(vendor, driver)
    devices[0]["fp16"] = 1000.0
    annotate(devices, see(devices, {}))
    primary = choose(devices, {vendor: 500})
    assert primary is not None
    assert primary["id"] == nodes.pci(2)
    assert choose(devices[:1], {vendor: 500}) is None


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_request_takes_the_others(driver: str) -> None:
    devices = node("nvidia", driver)
    annotate(devices, see(devices, {}))
    document: Any = nodes.report(devices)
    assert nodes.slots(select(document, "0").ids) == [2]
    unnamed = [device | {"ids": [device["id"]]} for device in devices]
    changes = confine(nodes.report(unnamed), unnamed[2:], {})
    assert changes["CUDA_VISIBLE_DEVICES"] == "1"


HOME = ROOT / "probe_core" / "model" / "ids.py"
"""Where the list stands."""


def test_no_other_list_of_such_drivers_is_in_the_core() -> None:
    files = (path for path in (ROOT / "probe_core").rglob("*.py") if path != HOME)
    assert [str(path) for path in files if '"pci-stub"' in path.read_text("utf-8")] == []
