"""ZE_AFFINITY_MASK under each hierarchy, and ONEAPI_DEVICE_SELECTOR over it."""

from __future__ import annotations

from typing import Any

import pytest
import visibility_nodes as nodes
from hypothesis import given, settings
from hypothesis import strategies as st

from probe_core.visibility import oneapi, see

FOUR = [nodes.intel(slot) for slot in range(1, 5)]
TILED = [
    nodes.intel(slot, name="Intel Data Center GPU Max 1550", code="0bd5", extra={"tiles": 4})
    for slot in range(1, 3)
]

COMPOSITE = [
    (None, [1, 2, 3, 4]),
    ("", [1, 2, 3, 4]),
    ("default", [1, 2, 3, 4]),
    ("0", [1]),
    ("0,1", [1, 2]),
    ("0, 1", [1, 2]),
    ("1,0", [1, 2]),  # the order is the driver's
    ("3,3", [4]),
    ("0,9,2", [1, 3]),  # a bad entry is skipped
    ("9", []),
    ("-1", []),
    ("-1,0", [1]),
    ("x,2", [3]),
    ("0,,2", [1, 3]),
    ("0,", [1]),
    ("1abc", [2]),
    ("0x2", [3]),
    ("02", [3]),
    ("4294967296", [1]),  # stored in 32 bits
    ("0.0", [1]),  # its only tile
    ("0.1", []),
    ("0.x", []),
    ("0.1,1", [2]),
    ("0.", [1]),
    (".0", []),
    ("1.0.0", []),
    ("GPU-1", []),
]


@pytest.mark.parametrize(("value", "expected"), COMPOSITE)
def test_composite(value: str | None, expected: list[int]) -> None:
    assert nodes.slots(oneapi.level_zero_visible(value, FOUR).ids) == expected


# The examples of the specification, two parents of four tiles: (mask, hierarchy) and the parents
# of the handles that zeDeviceGet gives.
SPEC = [
    ("COMPOSITE", "0,1", [1, 2]),
    ("COMPOSITE", "0", [1]),
    ("COMPOSITE", "1", [2]),
    ("COMPOSITE", "0.0", [1]),
    ("COMPOSITE", "1.1,1.2", [2]),
    ("COMPOSITE", "0.2,1.3,1.0,0.3", [1, 2]),
    ("COMPOSITE", "0.4", []),
    ("FLAT", "0,1,2,3,4,5,6,7", [1, 1, 1, 1, 2, 2, 2, 2]),
    ("FLAT", None, [1, 1, 1, 1, 2, 2, 2, 2]),
    ("FLAT", "0", [1]),
    ("FLAT", "1", [1]),
    ("FLAT", "0,4", [1, 2]),
    ("FLAT", "1,2,7", [1, 1, 2]),
    ("FLAT", "7,2,1", [1, 1, 2]),
    ("FLAT", "0.0", []),
    ("FLAT", "8", []),
    ("COMBINED", "4", [2]),
    ("COMBINED", "1.1", []),
    (None, "4", [2]),  # Data Center GPU Max is flat by default
    ("flat", "4", [2]),  # no known value: the default
]


@pytest.mark.parametrize(("hierarchy", "mask", "expected"), SPEC)
def test_hierarchies(hierarchy: str | None, mask: str | None, expected: list[int]) -> None:
    environ = {"ZE_AFFINITY_MASK": mask, "ZE_FLAT_DEVICE_HIERARCHY": hierarchy}
    view = oneapi.see_level_zero(TILED, {k: v for k, v in environ.items() if v is not None})
    assert nodes.slots(view.masks[0].ids) == expected


def test_other_families_are_composite_by_default() -> None:
    assert oneapi.see_level_zero(FOUR, {"ZE_AFFINITY_MASK": "1.0"}).visible == ["pci:0000:02:00.0"]
    flat = {"ZE_AFFINITY_MASK": "1.0", "ZE_FLAT_DEVICE_HIERARCHY": "FLAT"}
    assert oneapi.see_level_zero(FOUR, flat).visible == []


@pytest.mark.parametrize(
    ("code", "visible"),
    [("0bcf", 1), ("0bd0", 0), ("0bdf", 0), ("0be0", 1), ("0b69", 0), ("0b6a", 1), ("0b6e", 0)],
)
def test_families_whose_tiles_are_devices_by_default(code: str, visible: int) -> None:
    card = nodes.intel(1, code=code, extra={"tiles": 2})
    assert len(oneapi.see_level_zero([card], {"ZE_AFFINITY_MASK": "0.1"}).visible) == visible


def test_integrated_gpus_come_last_unless_asked() -> None:
    devices = [nodes.intel(0, memory={"kind": "shared"}), nodes.intel(3)]
    assert nodes.slots(oneapi.see_level_zero(devices, {}).visible) == [3, 0]
    pci = {"ZE_ENABLE_PCI_ID_DEVICE_ORDER": "1", "ZE_AFFINITY_MASK": "0"}
    assert nodes.slots(oneapi.see_level_zero(devices, pci).visible) == [0]


def test_a_tile_gives_its_device_the_first_index() -> None:
    view = oneapi.see_level_zero(TILED, {"ZE_AFFINITY_MASK": "2,3,5"})
    assert [view.entry(name)["index"] for name in view.pool] == [0, 2]


SELECTORS: list[tuple[str | None, list[int]]] = [
    (None, [1, 2, 3, 4]),
    ("", [1, 2, 3, 4]),
    ("level_zero:*", [1, 2, 3, 4]),
    ("*:*", [1, 2, 3, 4]),
    ("*:gpu", [1, 2, 3, 4]),
    ("level_zero:gpu", [1, 2, 3, 4]),
    ("LEVEL_ZERO:GPU", [1, 2, 3, 4]),
    ("level_zero:1", [2]),
    ("level_zero:2,0", [1, 3]),
    ("level_zero:0;level_zero:3", [1, 4]),
    ("level_zero:9", []),
    ("level_zero:cpu", []),
    ("cuda:*", []),
    ("opencl:cpu", []),
    ("!level_zero:0", [2, 3, 4]),
    ("!level_zero:0,1;!level_zero:3", [3]),
    ("!*:*", []),
    ("!cuda:*", [1, 2, 3, 4]),
    ("level_zero:*;!level_zero:2", [1, 2, 4]),
    ("!level_zero:2;level_zero:*", []),  # refused: discards come last
    ("level_zero:0,1;!level_zero:1", [1]),
    ("level_zero", []),  # refused
    ("level_zero:", []),
    (":gpu", []),
    ("gpu", []),
    ("vulkan:0", []),
    ("level_zero:x", []),
    ("level_zero:0:1", []),
    ("level_zero:0.0", []),  # no tiles to partition
    ("level_zero:gpu.0", []),
    ("level_zero:*.0", []),
    ("level_zero:1abc", [2]),
    ("level_zero:a", []),
    ("level_zero:0.0.0.0", []),
    (";", []),
]


@pytest.mark.parametrize(("value", "expected"), SELECTORS)
def test_selector(value: str | None, expected: list[int]) -> None:
    environ = {} if value is None else {"ONEAPI_DEVICE_SELECTOR": value}
    assert nodes.slots(see(FOUR, environ)["sycl"][0].visible) == expected


def test_the_selector_counts_what_the_mask_left() -> None:
    environ = {"ZE_AFFINITY_MASK": "1,3", "ONEAPI_DEVICE_SELECTOR": "level_zero:1"}
    view = see(FOUR, environ)["sycl"][0]
    assert nodes.slots(view.visible) == [4]
    assert view.entry("pci:0000:01:00.0")["variable"] == "ZE_AFFINITY_MASK"
    assert view.entry("pci:0000:02:00.0")["variable"] == "ONEAPI_DEVICE_SELECTOR"


def test_the_selector_takes_tiles_of_a_composite_device() -> None:
    environ = {"ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE", "ONEAPI_DEVICE_SELECTOR": "level_zero:1.3"}
    assert nodes.slots(see(TILED, environ)["sycl"][0].visible) == [2]
    environ["ONEAPI_DEVICE_SELECTOR"] = "*:*.*"
    assert nodes.slots(see(TILED, environ)["sycl"][0].visible) == [1, 2]
    environ["ONEAPI_DEVICE_SELECTOR"] = "level_zero:1.0"
    assert nodes.slots(see(TILED, environ)["sycl"][0].visible) == [2]
    environ["ONEAPI_DEVICE_SELECTOR"] = "level_zero:1.4"
    assert see(TILED, environ)["sycl"][0].visible == []


def test_sycl_numbers_each_backend_from_zero() -> None:
    devices = [nodes.intel(1), *(nodes.nvidia(slot) for slot in (2, 3))]
    views = see(devices, {"ONEAPI_DEVICE_SELECTOR": "cuda:1;level_zero:0"})["sycl"]
    assert [nodes.slots(view.visible) for view in views] == [[1], [3]]
    views = see(devices, {})["sycl"]
    places = [view.entry(name)["index"] for view in views for name in view.pool]
    assert places == [0, 0, 1]


def test_without_a_selector_the_backends_mask_decides() -> None:
    mixed = [nodes.intel(1), nodes.nvidia(2)]
    mask = {"ZE_AFFINITY_MASK": "0"}
    selector = {"ONEAPI_DEVICE_SELECTOR": "level_zero:0"}
    views = [
        see(devices, environ)["sycl"][0]
        for devices, environ in (
            (FOUR, mask),
            (FOUR, {}),
            (FOUR, selector),
            (FOUR, {**mask, **selector}),
            (FOUR, {**mask, "ONEAPI_DEVICE_SELECTOR": ""}),
            (mixed, mask),
            (mixed, selector),
        )
    ]
    assert [(view.variable, view.value, nodes.slots(view.visible)) for view in views] == [
        ("ZE_AFFINITY_MASK", "0", [1]),
        (None, None, [1, 2, 3, 4]),
        ("ONEAPI_DEVICE_SELECTOR", "level_zero:0", [1]),
        ("ONEAPI_DEVICE_SELECTOR", "level_zero:0", [1]),
        ("ZE_AFFINITY_MASK", "0", [1]),
        ("ZE_AFFINITY_MASK", "0", [1]),
        ("ONEAPI_DEVICE_SELECTOR", "level_zero:0", [1]),
    ]


def test_opencl_of_intel_follows_the_mask() -> None:
    assert nodes.slots(see(FOUR, {"ZE_AFFINITY_MASK": "2"})["opencl"][0].visible) == [3]


@pytest.mark.heavy
@given(value=st.text(alphabet="levl_zero:*,.;!0123gpucdaop ", max_size=40), mask=st.text())
@settings(max_examples=300, deadline=None)
def test_any_text_gives_some_of_the_devices(value: str, mask: str) -> None:
    views = see(FOUR, {"ONEAPI_DEVICE_SELECTOR": value, "ZE_AFFINITY_MASK": mask})
    left = views["level-zero"][0].visible
    assert set(views["sycl"][0].visible) <= set(left)
    assert left == sorted(left)


def test_selectors_parse_into_filters() -> None:
    found, fault = oneapi.parse_selector("level_zero:0,gpu;!cuda:*")
    assert fault is None
    told: list[Any] = [(one.backend, one.kind, one.number, one.discards) for one in found]
    assert told == [
        ("level_zero", None, 0, False),
        ("level_zero", "gpu", None, False),
        ("cuda", "*", None, True),
    ]
    for number, is_read in ((1 << 31) - 1, True), (1 << 31, False):
        assert (oneapi.parse_selector(f"level_zero:{number}")[1] is None) is is_read
