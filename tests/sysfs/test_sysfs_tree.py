"""Device-tree nodes and uevents, also where a container hides /sys/firmware."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import pytest
from trees import Tree

from probe_core.api import Request
from probe_core.probers import bus
from probe_core.sysfs import devicetree, meminfo, uevent
from probe_core.sysfs.sighting import Draft

NAMES = ["rockchip,rk3588-mali", "arm,mali-valhall-csf"]


def board(tree: Tree) -> str:
    tree.arch = "aarch64"
    tree.node("", "radxa,rock-5b", "rockchip,rk3588")
    tree.file(f"{devicetree.TREE}/model", "Radxa ROCK 5B\0")
    tree.node("/gpu@fb000000", *NAMES, status="okay")
    tree.platform("serial8250")
    return tree.platform("fb000000.gpu", "/gpu@fb000000", driver="panthor", render=128)


def test_node_of_a_device(tree: Tree) -> None:
    folder = board(tree)
    machine = tree.machine()
    assert devicetree.node_path(machine, folder) == "/gpu@fb000000"
    assert devicetree.compatibles(machine, "/gpu@fb000000") == NAMES
    assert devicetree.board(machine) == ["radxa,rock-5b", "rockchip,rk3588"]
    assert devicetree.model(machine) == "Radxa ROCK 5B"
    assert devicetree.platform_devices(machine) == [
        ("/gpu@fb000000", "/sys/bus/platform/devices/fb000000.gpu")
    ]


def test_in_a_container_the_uevent_still_names_the_node(tree: Tree) -> None:
    folder = board(tree)
    before: Any = bus.probe_devices(Request(tree.machine()))
    shutil.rmtree(tree.root / "sys/firmware/devicetree")
    machine = tree.machine()
    assert devicetree.node_path(machine, folder) == "/gpu@fb000000"
    assert devicetree.compatibles(machine, "/gpu@fb000000", folder) == NAMES
    (after,) = bus.probe_devices(Request(machine))  # type: ignore[misc]
    assert after["ids"] == before[0]["ids"] == ["dt:/gpu@fb000000"]
    assert (after["vendor"], after["dt"]) == ("arm", NAMES)
    (tree.root / folder.lstrip("/") / "of_node").unlink()
    assert devicetree.node_path(machine, folder) == "/gpu@fb000000"


@pytest.mark.parametrize(
    ("status", "enabled"),
    [(None, True), ("okay", True), ("ok", True), ("disabled", False), ("fail", False)],
)
def test_nodes_that_firmware_switches_off(status: str | None, enabled: bool, tree: Tree) -> None:
    tree.node("/gpu@1", "arm,mali-t860", status=status)
    assert devicetree.enabled(tree.machine(), "/gpu@1") is enabled


def test_proc_is_the_second_place(tree: Tree) -> None:
    tree.file("/proc/device-tree/compatible", "nvidia,tegra234\0")
    assert devicetree.board(tree.machine()) == ["nvidia,tegra234"]


def test_uevent(tree: Tree) -> None:
    tree.file(
        "/sys/x/uevent",
        "DRIVER=panthor\nOF_COMPATIBLE_0=a,b\nOF_COMPATIBLE_1=c=d\nOF_COMPATIBLE_N=2\n"
        "DRIVER=other\nbroken\n=x\nOF_COMPATIBLE_3=late\n",
    )
    values = uevent.read(tree.machine(), "/sys/x")
    assert values["DRIVER"] == "panthor"
    assert uevent.listed(values, "OF_COMPATIBLE") == ["a,b", "c=d"]
    assert uevent.read(tree.machine(), "/sys/none") == {}


def test_unified_memory(tree: Tree) -> None:
    assert meminfo.unified(tree.machine()) == {"kind": "unified"}
    tree.memory(16_000_000, 12_000_000)
    assert meminfo.unified(tree.machine()) == {
        "kind": "unified", "total": 16_384_000_000, "usable": 16_384_000_000,
        "free": 12_288_000_000, "parts": {"system": 16_384_000_000},
    }  # fmt: skip
    tree.file("/proc/meminfo", "MemTotal: lots\nMemAvailable: " + "9" * 5000 + " kB\nx\n")
    assert meminfo.unified(tree.machine()) == {"kind": "unified"}


def test_draft_has_a_value_or_a_reason() -> None:
    draft = Draft(ids=["x:1"])
    draft.put("memory.parts.vram", 0)
    draft.put("memory.total", None, "no file tells it")
    draft.put("name", "", "the file is empty")
    draft.put("arch", None)
    draft.note("model", "One")
    draft.note("none", None)
    assert draft.sighting() == {
        "ids": ["x:1"],
        "memory": {"parts": {"vram": 0}},
        "extra": {"model": "One"},
        "unknown": {"memory.total": "no file tells it", "name": "the file is empty"},
    }


def test_importing_the_package_loads_none_of_its_modules() -> None:
    import subprocess

    code = (
        "import sys, probe_core.sysfs as package\n"
        "loaded = [name for name in sys.modules if name.startswith('probe_core.sysfs.')]\n"
        "assert loaded == [], loaded\n"
        "from importlib import import_module\n"
        "for name in package.__all__: import_module(f'probe_core.sysfs.{name}')\n"
        "dear = {'typing', 're', 'json', 'dataclasses', 'enum', 'contextlib'} & set(sys.modules)\n"
        "assert not dear, dear\n"
    )
    subprocess.run([sys.executable, "-S", "-c", code], check=True, env={"PYTHONPATH": "."})
