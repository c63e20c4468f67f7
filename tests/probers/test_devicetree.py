"""GPU and NPU nodes of the device tree."""

from __future__ import annotations

from typing import Any

import pytest
from trees import Tree

from probe_core.api import Request
from probe_core.probers import bus
from probe_core.sysfs.devicetree import compatibles, node_path

BASE = "/sys/firmware/devicetree/base"


def node(tree: Tree, path: str, *names: str, status: str | None = None, device: str = "") -> str:
    """Add a node and the platform device made of it; returns the device's folder."""
    tree.node(path, *names, status=status)
    return tree.platform(device or path.rpartition("/")[2], path, power=None)


def seen(tree: Tree) -> Any:
    return bus.probe_devices(Request(tree.machine()))


@pytest.mark.parametrize(
    ("names", "kind", "vendor"),
    [
        (["rockchip,rk3588-mali", "arm,mali-valhall-csf"], "gpu", "arm"),
        (["allwinner,sun50i-h6-mali", "arm,mali-t720"], "gpu", "arm"),
        (["qcom,adreno-730.1", "qcom,adreno"], "gpu", "qualcomm"),
        (["brcm,2712-v3d"], "gpu", "broadcom"),
        (["nvidia,ga10b"], "gpu", "nvidia"),
        (["vivante,gc"], "gpu", "vivante"),
        (["ti,am62-gpu", "img,img-axe-1-16m", "img,img-axe"], "gpu", "imagination"),
        (["apple,agx-g13s"], "gpu", "apple"),
        (["rockchip,rk3588-rknpu"], "npu", "rockchip"),
        (["nvidia,tegra234-nvdla"], "npu", "nvidia"),
        (["arm,ethos-u65"], "npu", "arm"),
        (["brcm,bcm2712-vc6"], None, None),
        (["arm,cortex-a76"], None, None),
        ([], None, None),
    ],
)
def test_kind_of_a_node(names: list[str], kind: str | None, vendor: str | None, tree: Tree) -> None:
    node(tree, "/soc/x@1000", *names)
    found = seen(tree)
    if kind is None:
        assert found.reason == "no display, GPU or accelerator is on any bus"
    else:
        assert [(one["kind"], one["vendor"]) for one in found] == [(kind, vendor)]
        assert found[0]["ids"] == ["dt:/soc/x@1000"]
        assert found[0]["memory"] == {"kind": "unified"}


def test_disabled_node_is_no_device(tree: Tree) -> None:
    node(tree, "/gpu@1", "arm,mali-t860", status="disabled")
    assert seen(tree).reason == "no display, GPU or accelerator is on any bus"


def test_board_comes_before_a_generic_gpu_but_is_none_of_an_npu(tree: Tree) -> None:
    tree.file(f"{BASE}/compatible", "nvidia,p3737-0000+p3701-0005\0nvidia,tegra234\0")
    node(tree, "/gpu@17000000", "nvidia,ga10b")
    node(tree, "/nvdla0@15880000", "nvidia,tegra234-nvdla")
    gpu, npu = seen(tree)
    assert gpu["dt"] == ["nvidia,p3737-0000+p3701-0005", "nvidia,tegra234", "nvidia,ga10b"]
    assert npu["dt"] == ["nvidia,tegra234-nvdla"]


def test_driver_power_and_nodes(tree: Tree) -> None:
    folder = node(tree, "/gpu@fb000000", "arm,mali-valhall-csf", device="fb000000.gpu")
    tree.link(f"{folder}/driver", "/sys/bus/platform/drivers/panthor")
    tree.file(f"{folder}/power/runtime_status", "suspended\n")
    tree.link("/sys/class/drm/card1/device", folder)
    tree.link("/sys/class/drm/renderD129/device", folder)
    (device,) = seen(tree)
    assert device["driver"] == {"name": "panthor"}
    assert device["power_state"] == "suspended"
    assert device["node_index"] == {"drm_card": 1, "drm_render": 129}


def test_arms_own_driver_has_a_misc_node(tree: Tree) -> None:
    folder = node(tree, "/gpu@fb000000", "arm,mali-valhall-csf")
    tree.file(f"{folder}/misc/mali0/dev", "10:120")
    assert seen(tree)[0]["node_index"] == {"mali": 0}


def test_sub_nodes_of_a_gpu_are_not_devices(tree: Tree) -> None:
    node(tree, "/gpu@1", "arm,mali-t860")
    node(tree, "/gpu@1/opp", "arm,mali-t860-opp", device="opp")
    node(tree, "/gpu@10", "arm,mali-t860", device="second")
    assert [one["ids"] for one in seen(tree)] == [["dt:/gpu@1"], ["dt:/gpu@10"]]


def test_cores_of_a_rockchip_npu_are_one_device(tree: Tree) -> None:
    for address in ("fdab0000", "fdac0000", "fdad0000"):
        folder = node(tree, f"/npu@{address}", "rockchip,rk3588-rknn-core")
    tree.link("/sys/class/accel/accel0/device", folder)
    (device,) = seen(tree)
    assert device["units"] == 3
    assert device["node_index"] == {"accel": 0}
    assert device["ids"] == ["dt:/npu@fdad0000"]


def test_two_devices_of_one_node_are_one(tree: Tree) -> None:
    node(tree, "/gpu@1", "arm,mali-t860")
    node(tree, "/gpu@1", "arm,mali-t860", device="again")
    assert len(seen(tree)) == 1


def test_device_without_a_node_is_left_out(tree: Tree) -> None:
    tree.link("/sys/bus/platform/devices/serial", "/sys/devices/platform/serial")
    assert node_path(tree.machine(), "/sys/bus/platform/devices/serial") is None
    assert compatibles(tree.machine(), "/none") == []
