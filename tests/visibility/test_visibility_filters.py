"""Variables of the Vulkan loader and of ggml: which manifests pass, and which numbers name what."""

from __future__ import annotations

from typing import Any

import pytest
import visibility_nodes as nodes

from probe_core.visibility.vulkan import ggml_visible, see_vulkan
from probe_core.visibility.vulkan_drivers import Filters, matches


@pytest.mark.parametrize(
    ("name", "globs", "expected"),
    [
        ("NVIDIA_icd.json", ["nvidia_icd.json"], True),
        ("nvidia_icd.json", ["nvidia"], False),
        ("nvidia_icd.json", ["nvidia*"], True),
        ("nvidia_icd.json", ["*icd.json"], True),
        ("nvidia_icd.json", ["icd.json"], False),
        ("nvidia_icd.json", ["*vidia*"], True),
        ("nvidia_icd.json", ["*vidia"], False),
        ("nvidia_icd.json", ["vidia*"], False),
        ("a", ["~all~"], True),
        ("a", ["*"], True),
        ("a", ["**"], True),
        ("a", ["b", "a"], True),
        ("a", [], False),
    ],
)
def test_globs_of_the_loader(name: str, globs: list[str], expected: bool) -> None:
    assert matches(name, globs) is expected


FILES, SELECT, DISABLE = (
    "VK_DRIVER_FILES", "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"
)  # fmt: skip


@pytest.mark.parametrize(
    ("environ", "nvidia", "amd", "nouveau", "software"),
    [
        ({}, True, True, True, True),
        ({FILES: "/x/nvidia_icd.json"}, True, False, True, False),
        ({FILES: "/x/radeon_icd.json:/y/lvp_icd.json"}, False, True, False, True),
        ({FILES: "\\x\\amd.json"}, False, True, False, False),
        ({FILES: "/x/my.json"}, None, None, None, False),
        ({FILES: "/x/my.json", DISABLE: "my*"}, False, False, False, False),
        ({"VK_ICD_FILENAMES": "/x/nvidia_icd.json"}, True, False, True, False),
        ({SELECT: "nvidia*"}, True, False, False, False),
        ({SELECT: "*nouveau*"}, False, False, True, False),
        ({SELECT: "*radeon*,lvp*"}, False, True, False, True),
        ({SELECT: "my*"}, None, None, None, False),
        ({SELECT: "*"}, True, True, True, True),
        ({DISABLE: "*nvidia*"}, False, True, True, True),
        ({DISABLE: "*nouveau*"}, True, True, False, True),
        ({DISABLE: "*"}, False, False, False, False),
        ({DISABLE: "*", SELECT: "nvidia*"}, True, False, False, False),
        ({DISABLE: "radeon_icd.x86_64.json"}, True, None, True, True),
        ({SELECT: ""}, True, True, True, True),
    ],
)
def test_drivers_that_the_environment_leaves(
    environ: dict[str, str], nvidia: Any, amd: Any, nouveau: Any, software: bool
) -> None:
    filters = Filters(environ)
    found = [filters.leave(*asked) for asked in (
        ("nvidia", "nvidia"), ("amd", "amdgpu"), ("nvidia", "nouveau")
    )]  # fmt: skip
    assert (*found, filters.may_leave_software()) == (nvidia, amd, nouveau, software)


def test_the_variable_that_decides() -> None:
    environ = {SELECT: "a", DISABLE: "b", "VK_ICD_FILENAMES": "c", FILES: "d"}
    for variable in (FILES, "VK_ICD_FILENAMES", SELECT, DISABLE):
        filters = Filters(environ)
        assert (filters.variable, filters.value) == (variable, environ.pop(variable))
    assert (Filters({}).variable, Filters({}).value) == ("", "")


IDS = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        (None, ["a", "b", "c"]),
        ("", []),
        (",", []),
        ("0", ["a"]),
        ("2,0", ["c", "a"]),
        ("2 1", ["c", "b"]),
        ("1,1", ["b", "b"]),
        ("0x1", ["a"]),
        ("1,x,2", ["b"]),
        ("1;2", ["b"]),
        ("1,99999999999999999999", ["b"]),
        ("3", []),
        ("0,3", []),
        ("-1", []),
    ],
)
def test_numbers_of_ggml(value: str | None, ids: list[str]) -> None:
    assert ggml_visible(value, IDS).ids == ids


def test_a_number_that_may_be_a_software_renderers() -> None:
    mask = ggml_visible("0,3", IDS, software=True)
    assert (mask.ids, list(mask.maybe), mask.code) == ([], ["a"], "variable-breaks")
    assert ggml_visible("0,4", IDS, software=True).maybe == {}
    assert ggml_visible("0,2", IDS, software=True).ids == ["a", "c"]


def shown(**environ: str) -> list[int]:
    devices = [
        {**nodes.nvidia(number), "pci": {"id": model}}
        for number, model in ((1, "10de:2684"), (2, "10de:2204"), (3, "10de:2330"))
    ]
    view = see_vulkan(devices, environ)
    return nodes.slots(view.masks[0].ids)


@pytest.mark.parametrize(
    ("environ", "slots"),
    [
        ({}, [1, 2, 3]),
        ({"VK_LOADER_DEVICE_SELECT": "10de:2330"}, [3, 1, 2]),
        ({"VK_LOADER_DEVICE_SELECT": "0x10de:0x2204"}, [2, 1, 3]),
        ({"VK_LOADER_DEVICE_SELECT": "10de"}, [1, 2, 3]),
        ({"VK_LOADER_DEVICE_SELECT": "10de:"}, [1, 2, 3]),
        ({"VK_LOADER_DEVICE_ID_FILTER": "0x2684"}, [1]),
        ({"VK_LOADER_DEVICE_ID_FILTER": "0x2204-0x2330"}, [2, 3]),
        ({"VK_LOADER_DEVICE_ID_FILTER": "0x2205-0x232f"}, []),
        ({"VK_LOADER_DEVICE_ID_FILTER": "9860,0x2204"}, [1, 2]),
        ({"VK_LOADER_DEVICE_ID_FILTER": ","}, [1, 2, 3]),
        ({"VK_LOADER_VENDOR_ID_FILTER": "0x10de"}, [1, 2, 3]),
        ({"VK_LOADER_VENDOR_ID_FILTER": "0x1002"}, []),
        ({"MESA_VK_DEVICE_SELECT": "10de:2330"}, [3, 1, 2]),
        ({"MESA_VK_DEVICE_SELECT": "10de:2330!"}, [3]),
        ({"MESA_VK_DEVICE_SELECT": "10de:2330!", "NODEVICE_SELECT": "1"}, [1, 2, 3]),
        ({"MESA_VK_DEVICE_SELECT": "10de:ffff!"}, [1, 2, 3]),
        ({"VK_LOADER_DRIVER_ID_FILTER": "4"}, []),
    ],
)
def test_the_gpus_that_the_loader_shows(environ: dict[str, str], slots: list[int]) -> None:
    assert shown(**environ) == slots


@pytest.mark.parametrize(("capability", "shown"), [("8.0", False), ("10.0", False), ("12.0", None)])
def test_a_card_in_mig_mode_has_vulkan_by_profiles_for_graphics_alone(
    capability: str, shown: bool | None
) -> None:
    cut = nodes.nvidia(1, extra={"mig": True}, compute_capability=capability)
    view = see_vulkan([cut, nodes.nvidia(2, extra={"mig": False})], {})
    entry = view.entry("pci:0000:01:00.0")
    assert (entry["visible"], entry["index"]) == (shown, None)
    assert "profiles with +gfx" in entry["reason"]
    assert view.entry("pci:0000:02:00.0")["visible"] is True
