"""Boards in a container: /sys/firmware is masked, and links to the device tree lead nowhere.

Compatibles follow the kernel's device trees of the boards that the tests name.
"""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from trees import Tree

import probe_core
from probe_core.api import Machine, Request
from probe_core.probers import bus
from probe_core.sysfs import devicetree


def masked(tree: Tree, *nodes: tuple[str, str, tuple[str, ...]], root: tuple[str, ...]) -> None:
    """Add (device, node, compatibles) and mask the firmware's folder as Docker does."""
    tree.node("", *root)
    for device, path, names in nodes:
        tree.node(path, *names)
        tree.platform(device, path, power=None)
    firmware = tree.root / "sys/firmware"
    shutil.rmtree(firmware)
    firmware.mkdir()


def seen(tree: Tree) -> list[Any]:
    found = bus.probe_devices(Request(Machine(str(tree.root), arch="aarch64")))
    assert isinstance(found, list), found
    return found


ROCK = (
    ("fb000000.gpu", "/gpu@fb000000", ("rockchip,rk3588-mali", "arm,mali-valhall-csf")),
    ("fdab0000.npu", "/npu@fdab0000", ("rockchip,rk3588-rknpu",)),
    ("pinctrl", "/pinctrl", ("rockchip,rk3588-pinctrl",)),
)


def test_rockchips_gpu_and_npu_are_known_from_uevents(tree: Tree) -> None:
    masked(tree, *ROCK, root=("radxa,rock-5b", "rockchip,rk3588"))
    gpu, npu = seen(tree)
    assert (gpu["ids"], gpu["kind"], gpu["vendor"]) == (["dt:/gpu@fb000000"], "gpu", "arm")
    assert gpu["dt"] == ["rockchip,rk3588", "rockchip,rk3588-mali", "arm,mali-valhall-csf"]
    assert (npu["ids"], npu["kind"]) == (["dt:/npu@fdab0000"], "npu")


def test_raspberry_pi_5(tree: Tree) -> None:
    masked(
        tree,
        ("1002000000.v3d", "/axi/gpu@1002000000", ("brcm,2712-v3d",)),
        ("soc:firmware", "/soc/firmware", ("raspberrypi,bcm2835-firmware",)),
        root=("raspberrypi,5-model-b", "brcm,bcm2712"),
    )
    (gpu,) = seen(tree)
    assert (gpu["vendor"], gpu["dt"]) == ("broadcom", ["brcm,2712-v3d"])


def test_links_that_lead_nowhere_are_not_needed(tree: Tree) -> None:
    """Without ``of_node`` at all, the uevent alone names the node."""
    masked(tree, *ROCK, root=("radxa,rock-5b", "rockchip,rk3588"))
    (tree.root / "sys/devices/platform/fb000000.gpu/of_node").unlink()
    assert seen(tree)[0]["ids"] == ["dt:/gpu@fb000000"]


@pytest.mark.parametrize(
    ("block", "soc"),
    [
        ("rockchip,rk3588-cru", "rockchip,rk3588"),
        ("qcom,sm8550-tlmm", "qcom,sm8550"),
        ("mediatek,mt8195-topckgen", "mediatek,mt8195"),
        ("allwinner,sun50i-h6-ccu", "allwinner,sun50i-h6"),
        ("fsl,imx8mp-iomuxc", "fsl,imx8mp"),
        ("qcom,sm8550-lpass-lpi-pinctrl", None),
        ("pinctrl-single", None),
        ("-tlmm", None),
        ("rockchip,rk3588-dw-mshc", None),
    ],
)
def test_soc_by_its_blocks(tree: Tree, block: str, soc: str | None) -> None:
    masked(tree, ("a", "/a", (block,)), root=("vendor,board", "vendor,soc"))
    assert devicetree.board(Machine(str(tree.root))) == ([soc] if soc else [])


def test_soc_of_a_tree_in_sight_is_the_trees(tree: Tree) -> None:
    tree.node("", "radxa,rock-5b", "rockchip,rk3588")
    tree.node("/pinctrl", "rockchip,rk3568-pinctrl")
    tree.platform("pinctrl", "/pinctrl")
    assert devicetree.board(tree.machine()) == ["radxa,rock-5b", "rockchip,rk3588"]


def chip(tree: Tree) -> dict[str, Any]:
    pytest.importorskip("probe_chipdb")
    machine = Machine(str(tree.root), arch="aarch64")
    document = probe_core.probe(machine=machine, only=["bus"]).to_json()
    device: dict[str, Any] = document["devices"][0]
    return device


def adreno(tree: Tree, *, container: bool, soc: str = "qcom,sm8550") -> str:
    path = "/soc/qcom,kgsl-3d0@3d00000"
    tree.node("", f"{soc}-mtp", soc)
    tree.node(path, "qcom,kgsl-3d0", "qcom,kgsl")
    tree.node("/soc/tlmm", f"{soc}-tlmm")
    tree.platform("f000000.pinctrl", "/soc/tlmm", power=None)
    folder = tree.platform("3d00000.qcom,kgsl-3d0", path, driver="kgsl-3d", power=None)
    tree.file(f"{folder}/kgsl/kgsl-3d0/dev", "505:0\n")
    if container:
        shutil.rmtree(tree.root / "sys/firmware")
        (tree.root / "sys/firmware").mkdir()
    return folder


@pytest.mark.parametrize("container", [False, True])
def test_qualcomms_own_driver_on_a_known_soc_gets_its_chip(tree: Tree, container: bool) -> None:
    adreno(tree, container=container)
    device = chip(tree)
    assert (device["vendor"], device["chip"]["id"]) == ("qualcomm", "qualcomm/adreno-740")
    assert device["nodes"] == ["/dev/kgsl-3d0"]


def test_qualcomms_own_driver_names_the_model(tree: Tree) -> None:
    folder = adreno(tree, container=False, soc="qcom,kona")
    tree.file(f"{folder}/kgsl/kgsl-3d0/gpu_model", "Adreno650v2\n")
    assert chip(tree)["chip"]["id"] == "qualcomm/adreno-650"


def test_qualcomms_own_driver_on_an_unknown_soc_gets_none(tree: Tree) -> None:
    adreno(tree, container=False, soc="qcom,sm9999")
    assert chip(tree)["chip"]["id"] is None


@pytest.mark.parametrize("container", [False, True])
@pytest.mark.parametrize(
    ("soc", "name"),
    [
        ("rockchip,rk3588", "arm/rk3588-mali-g610mp4"),
        ("mediatek,mt8195", "arm/mt8195-mali-g57mc5"),
        ("vendor,unheard-of", None),
    ],
)
def test_arms_own_driver_on_a_known_soc_gets_its_chip(
    tree: Tree, soc: str, name: str | None, container: bool
) -> None:
    """A vendor's tree names the design alone: which SoC it is in, the board says."""
    tree.node("", "maker,board", soc)
    tree.node("/gpu@1", "arm,mali-bifrost")
    tree.node("/pinctrl", f"{soc}-pinctrl")
    tree.platform("pinctrl", "/pinctrl", power=None)
    tree.platform("1.gpu", "/gpu@1", driver="mali", power=None)
    if container:
        shutil.rmtree(tree.root / "sys/firmware")
        (tree.root / "sys/firmware").mkdir()
    assert chip(tree)["chip"]["id"] == name
