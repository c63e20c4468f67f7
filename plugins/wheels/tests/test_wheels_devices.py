"""What code for a device must fit: capabilities, processors and drivers, from reports alone."""

from __future__ import annotations

from typing import Any

import pytest

from probe_core.machine import Machine
from probe_core.testing import Tree
from probe_wheels.devices import Gpu, gpus_of, module_driver


def device(**fields: Any) -> dict[str, Any]:
    known = {
        **{"id": "pci:0000:01:00.0", "ids": ["pci:0000:01:00.0"], "kind": "gpu", "name": "Card"},
        **{
            "vendor": "nvidia",
            "arch": None,
            "parent": None,
            "chip": {"id": None, "candidates": []},
        },
        **{"driver": {"name": "nvidia", "version": "580.95.05"}, "readiness": None},
        **{"visibility": {}, "power_state": None, "memory": {"kind": "dedicated"}, "backends": {}},
        **{"node_index": {}, "links": [], "sources": {}},
    }
    return {**known, **fields}


def gpu(os: str = "linux", node: str = "x86_64", environ: Any = None, **fields: Any) -> Gpu:
    report: Any = {"devices": [device(**fields)], "primary": None, "node": {"os": os, "arch": node}}
    (found,) = gpus_of(report, environ or {})
    return found


@pytest.mark.parametrize(
    ("shown", "usable"), [((True, False), True), ((False, None), None), ((False, False), False)]
)
def test_a_card_in_mig_mode_can_be_used_if_an_instance_can(
    shown: tuple[bool | None, ...], usable: bool | None
) -> None:
    def seen(visible: bool | None, code: str) -> Any:
        return {"cuda": {"visible": visible, "index": None, "reason": "", "code": code}}

    card = device(compute_capability="8.0", visibility=seen(False, "mig-mode"))
    ready = {"id": "", "parent": card["id"], "readiness": {"state": "ready", "steps": []}}
    parts = [
        device(**{**ready, "id": f"uuid:MIG-{n}", "visibility": seen(visible, "x")})
        for n, visible in enumerate(shown)
    ]
    node = {"os": "linux", "arch": "x86_64"}
    report: Any = {"devices": [card, *parts], "primary": "uuid:MIG-0", "node": node}
    (found,) = gpus_of(report, {})
    assert (found.id, found.usable, found.primary) == (card["id"], usable, True)


def chip(*names: str) -> dict[str, Any]:
    if len(names) == 1:
        return {"chip": {"id": names[0], "candidates": []}}
    return {"chip": {"id": None, "candidates": list(names)}}


@pytest.mark.parametrize(
    ("capability", "is_tegra"),
    [("3.2", True), ("5.3", True), ("6.2", True), ("7.2", True), ("8.7", True)]
    + [(text, False) for text in ("3.0", "5.2", "6.1", "7.0", "7.5", "8.6", "8.9", "9.0", "11.0")],
)
def test_drivers_of_tegra_have_numbers_of_their_own(capability: str, is_tegra: bool) -> None:
    found = gpu(compute_capability=capability)
    assert found.driver == (() if is_tegra else (580, 95, 5))
    major, minor = map(int, capability.split("."))
    assert (found.capabilities, found.target) == (((major, minor),), f"sm_{major}{minor}")


@pytest.mark.parametrize(
    ("os", "driver", "expected"),
    [
        ("linux", {"name": "nvidia", "version": "580.95"}, (580, 95)),
        ("linux", {"name": "nvidia", "version": "580"}, ()),
        ("linux", {"name": "nvidia", "version": "6.8.0", "version_of": "kernel"}, ()),
        ("linux", {"name": "nouveau", "version": "1.4"}, ()),
        ("linux", {"version": "580.95"}, (580, 95)),
        ("linux", None, ()),
        ("windows", {"name": "nvlddmkm", "version": "32.0.15.6094"}, (560, 94)),
        ("windows", {"name": "nvlddmkm", "version": "32.0.15.94"}, (500, 94)),
        ("windows", {"name": "nvlddmkm", "version": "560.94"}, (560, 94)),
        ("linux", {"name": "nvidia", "version": "32.0.15.6094"}, (32, 0, 15, 6094)),
    ],
)
def test_the_version_of_nvidias_driver(os: str, driver: Any, expected: tuple[int, ...]) -> None:
    assert gpu(os=os, driver=driver, compute_capability="8.9").driver == expected


@pytest.mark.parametrize(
    ("name", "nvrm", "expected"),
    [
        ("540.4.0\n", "", (540, 4, 0)),
        ("540\n", "NVRM version: x  550.144.03  Mon", (550, 144, 3)),
        ("", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.144.03  Mon", (550, 144, 3)),
        ("", "NVRM version: x  550  Mon", ()),
        ("", "NVRM version: x", ()),
    ],
)
def test_the_version_of_the_module(
    name: str, nvrm: str, expected: tuple[int, ...], tmp_path: Any
) -> None:
    tree = Tree(tmp_path)
    tree.file("/sys/module/nvidia/version", name)
    tree.file("/proc/driver/nvidia/version", nvrm)
    assert module_driver(Machine(str(tmp_path), {}, os="linux")) == expected
    assert module_driver(Machine(str(tmp_path / "none"), {}, os="linux")) == ()


def test_capabilities_by_the_chip() -> None:
    assert gpu(**chip("nvidia/geforce-rtx-4090")).capabilities == ((8, 9),)
    both = chip("nvidia/geforce-rtx-4090", "nvidia/geforce-rtx-3090")
    found = gpu(**both)
    assert (found.capabilities, found.target) == (((8, 6), (8, 9)), "sm_86 or sm_89")
    assert gpu(**both, compute_capability="9.0").capabilities == ((9, 0),)
    assert gpu(**chip("nvidia/none")).capabilities == ()
    assert gpu(compute_capability="9").capabilities == ()


def test_processors_of_amd() -> None:
    amd = {"vendor": "amd", "driver": {"name": "amdgpu", "version": "6.10"}}
    assert gpu(**amd, gfx="gfx1100").processor == "gfx1100"
    assert gpu(**amd, **chip("amd/radeon-rx-7900-xtx")).processor == "gfx1100"
    assert gpu(**amd, **chip("amd/instinct-mi300x")).processor == "gfx942"
    assert gpu(**amd, **chip("amd/radeon-rx-7900-xtx", "amd/radeon-rx-7600")).processor is None
    assert gpu(**amd, **chip("amd/instinct-mi350x")).processor == "gfx950"
    assert gpu(**amd, **chip("amd/firepro-w5100")).processor is None
    assert gpu(**amd, **chip("amd/instinct-mi440x")).processor is None
    assert gpu(**amd, **chip("amd/instinct-mi350x", "amd/instinct-mi300x")).processor is None
    assert gpu(**amd).processor is None
    found = gpu(**amd, gfx="gfx1100")
    assert (found.driver, found.capabilities, found.target) == ((), (), "gfx1100")
    values = [None, "", "0", " 0 ", "1"]
    environs = [{} if value is None else {"HSA_XNACK": value} for value in values]
    assert [gpu(**amd, environ=environ).xnack for environ in environs] == [
        None, False, False, False, True
    ]  # fmt: skip


def test_families_and_versions_of_intel() -> None:
    found = gpu(vendor="intel", **chip("intel/arc-b580-graphics"))
    assert (found.families, found.releases, found.target) == (("xe2",), ("20.1",), "xe2")
    family = gpu(vendor="intel", arch="xe-hpg")
    assert (family.families, family.releases) == (("xe-hpg",), ("12.55", "12.56", "12.57"))
    both = gpu(vendor="intel", **chip("intel/arc-b580-graphics", "intel/arc-a770m-graphics"))
    assert (both.families, both.releases) == (("xe-hpg", "xe2"), ("12.55", "20.1"))
    assert both.target == "xe-hpg or xe2"
    assert gpu(vendor="intel").releases == ()
    assert gpu(vendor="intel", arch="other").releases == ()
    assert gpu(vendor="apple", arch="xe2").releases == ()


def test_which_devices_count_and_in_which_order() -> None:
    devices = [
        device(id="a:1"), device(id="a:2", parent="a:1"), device(id="a:3", parent="a:9"),
        device(id="a:4", kind="display"), device(id="a:5", vendor="acme"),
        device(id="a:6", kind="accelerator"), device(id="a:7", kind="npu"),
    ]  # fmt: skip
    report: Any = {"devices": devices, "primary": "a:6", "node": {"os": "darwin", "arch": "arm64"}}
    found = gpus_of(report, {})
    assert [one.id for one in found] == ["a:6", "a:1", "a:3"]
    assert [one.primary for one in found] == [True, False, False]
    assert {(one.os, one.arch) for one in found} == {("darwin", "aarch64")}
    arches = ["amd64", "x86_64", "ppc64le"]
    assert [gpu(node=arch).arch for arch in arches] == ["x86_64", "x86_64", "ppc64le"]


def test_whose_memory_and_whose_name() -> None:
    kinds = ["dedicated", "shared", "unified", None]
    assert [gpu(memory={"kind": kind}).discrete for kind in kinds] == [True, False, False, True]
    named = chip("nvidia/geforce-rtx-4090")["chip"] | {"name": "RTX 4090"}
    assert gpu(name=None, chip=named).name == "RTX 4090"
    assert gpu(name=None).name == "pci:0000:01:00.0"


def test_devices_that_take_the_same_code_are_of_one_kind() -> None:
    one = gpu(compute_capability="8.9")
    assert one.kind == gpu(id="a:2", compute_capability="8.9").kind
    for other in (
        {"compute_capability": "8.6"}, {"compute_capability": "8.9", "name": "Other"},
        {"compute_capability": "8.9", "driver": None},
        {"compute_capability": "8.9", "os": "windows"},
        {"compute_capability": "8.9", "node": "aarch64"},
    ):  # fmt: skip
        assert one.kind != gpu(**other).kind  # type: ignore[arg-type]
