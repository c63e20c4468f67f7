"""CUDA_VISIBLE_DEVICES to the letter: each rule of the vendor's table has its case."""

from __future__ import annotations

from typing import Any

import pytest
import visibility_nodes as nodes
from hypothesis import given, settings
from hypothesis import strategies as st

from probe_core.visibility import annotate, cuda, findings, see

U = nodes.UUIDS
FOUR = nodes.h100s(4)


def seen(value: str | None, devices: list[Any] | None = None) -> list[int]:
    return list(nodes.slots(cuda.cuda_visible(value, devices or FOUR).ids))


NUMBERS = [
    (None, [1, 2, 3, 4]),
    ("", []),
    ("0", [1]),
    ("2,1", [3, 2]),
    ("0,2,-1,1", [1, 3]),
    ("-1", []),
    ("0, 1, 2, -1, 3", [1, 2, 3]),
    ("4", []),
    ("0,4,1", [1]),
    ("0,0", []),
    ("0,1,2,1", []),
    ("0,9,0", [1]),  # the repetition comes after the stop
    ("0,-1,0", [1]),
    ("1,01", []),  # the same number twice
    ("0,-0", []),
    (" 1", [2]),
    ("\t1 , 2", [2, 3]),
    ("1 ", [2]),
    ("1abc", [2]),
    ("1gpu2,2ampere", [2, 3]),
    ("2, +3, -0", [3, 4, 1]),
    ("one,two,3,4", []),
    ("3,2,two,1", [4, 3]),
    ("+", []),
    ("- 1", []),
    ("+-1", []),
    (",0", []),
    ("0,", [1]),
    ("0,,1", [1]),
    (" ", []),
    (",", []),
    ("010", []),  # ten, not eight
    ("002", [3]),
    ("0x1", [1]),  # base 10: the zero counts
    ("1.5", [2]),
    ("0;1", [1]),
    ("0 1", [1]),
    ("99999999999999999999", []),
    ("4294967296", [1]),
    ("-4294967296", [1]),
    ("NoDevFiles", []),
    ("all", []),
    ("none", []),
    ("\u0661", []),  # a digit to Python, not to C
    ("0\u00a0", [1]),
    ("\udcff", []),
]


@pytest.mark.parametrize(("value", "expected"), NUMBERS)
def test_numbers(value: str | None, expected: list[int]) -> None:
    assert seen(value) == expected


def test_ten_is_ten() -> None:
    twelve = [nodes.nvidia(slot) for slot in range(1, 13)]
    assert seen("010", twelve) == [11]


EIGHT = nodes.h100s(8)
BY_UUID = [
    ("GPU-9e8d35e3", [2]),
    ("GPU-e4,GPU-9e8d35e3", [3, 2]),
    ("GPU-9e8d35e3,GPU-1,GPU-47", [2, 8, 6]),
    (U[7], [8]),
    (",".join(U), [1, 2, 3, 4, 5, 6, 7, 8]),
    ("GPU-123,GPU-9e8d35e3", []),
    ("GPU-9e8d35e3,GPU-123,GPU-47", [2]),
    ("GPU-9e8d35e3,GPU-e,GPU-47", [2]),  # ambiguous
    ("GPU-e", []),
    ("GPU-", []),
    ("GPU-9e8d35e3,GPU-47,GPU-9e8d35e3", []),
    ("GPU-9e8d35e3,GPU-9e8", []),  # the same device by two abbreviations
    ("GPU-9e8d35e3,GPU-123,GPU-9e8d35e3", [2]),
    ("GPU-9e8d35e3,2", [2]),
    ("2,GPU-9e8d35e3", [3]),
    ("GPU-9e8d35e3, GPU-47", [2]),
    (" GPU-9e8d35e3", []),
    ("GPU-9e8d35e3 ", []),
    ("gpu-9e8d35e3", []),
    ("GPU-9E8D35E3", [2]),
    ("9e8d35e3", []),  # read as the number nine
    ("1c20e77d", [2]),  # read as the number one
    ("e429a63e", []),
    ("472ea263-58d7-410d-cc82-f7fdece5bd28", []),
    (U[0] + "0", [1]),
    ("MIG-9e8d35e3", [2]),
]


@pytest.mark.parametrize(("value", "expected"), BY_UUID)
def test_uuids(value: str, expected: list[int]) -> None:
    assert seen(value, EIGHT) == expected


def mig_node(version: str | None) -> list[Any]:
    """GPU 1 with two GPU instances, the first of which has two compute instances; GPU 2 plain."""
    driver = {"name": "nvidia"} | ({"version": version} if version else {})
    first, second = nodes.nvidia(1, driver=driver), nodes.nvidia(2, driver=driver)
    cut = [nodes.mig(first, 10, 1, 0), nodes.mig(first, 11, 1, 1), nodes.mig(first, 12, 5, 0)]
    return [first, *cut, second]


A, B, C = "uuid:MIG-0000000a", "uuid:MIG-0000000b", "uuid:MIG-0000000c"
MIG = [
    ("550.54", None, [A]),
    ("580.95.05", None, [A, C, "pci:0000:02:00.0"]),
    ("550.54", "0", [A]),
    ("580.95.05", "0", [A, C]),
    ("550.54", "1", ["pci:0000:02:00.0"]),
    ("580.95.05", "1,0", ["pci:0000:02:00.0", A, C]),
    ("550.54", "1,0", [A]),
    ("550.54", U[0], [A]),
    ("550.54", f"{U[1]},{U[0]}", [A]),
    ("550.54", "MIG-0000000c", [C]),
    ("550.54", "MIG-0000000c,MIG-0000000a", [C]),
    ("580.95.05", "MIG-0000000c,MIG-0000000a", [C, A]),
    ("580.95.05", "MIG-0000000b,MIG-0000000a", [B]),  # one of a GPU instance
    ("580.95.05", "MIG-0000000a,MIG-0000000a", []),
    ("580.95.05", "MIG-0000000", []),
    ("580.95.05", f"MIG-0000000c,{U[1]}", [C, "pci:0000:02:00.0"]),
    ("550.54", f"MIG-0000000c,{U[1]}", [C]),
    ("550.54", f"MIG-{U[0]}/5/0", [C]),
    ("450.80.02", f"MIG-{U[0]}/1/1", [B]),
    ("580.95.05", "MIG-GPU-9942190a/5/0", [C]),
    ("580.95.05", "MIG-GPU-9942190a/5/1", []),
    ("580.95.05", "MIG-GPU-9942190a/5", []),
    ("580.95.05", "MIG-GPU-9/5/0", []),  # fits two GPUs
    ("460.32", "MIG-0000000c", []),  # such UUIDs exist since 470
    ("470.42.01", "MIG-0000000c", [C]),
    ("569.99", None, [A]),
    ("570.00", None, [A, C, "pci:0000:02:00.0"]),
]


@pytest.mark.parametrize(("version", "value", "expected"), MIG)
def test_mig(version: str, value: str | None, expected: list[str]) -> None:
    environ = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    view = cuda.see(mig_node(version), environ)
    assert view.certain
    assert [name[: len(A)] for name in view.visible] == expected


def test_mig_of_an_unknown_driver_is_one_of() -> None:
    view = cuda.see(mig_node(None), {})
    assert not view.certain
    assert "570" in str(view.uncertain)
    assert view.entry(view.pool[-1])["visible"] is None
    plain = view.entry("pci:0000:02:00.0")
    assert plain["visible"] is None
    assert view.entry(view.masks[0].ids[0]) == {
        "visible": True,
        "index": 0,
        "reason": None,
        "variable": None,
    }


def test_mig_parent_and_siblings_tell_why() -> None:
    devices = mig_node("550.54")
    annotate(devices, see(devices, {}))
    reasons = [device["visibility"]["cuda"]["reason"] for device in devices]
    assert reasons[0] == "it is in MIG mode: its instances are seen in its place"
    assert reasons[1] is None
    assert reasons[2] == reasons[3] == reasons[4]
    assert "before 570" in reasons[4]


def test_a_gpu_in_mig_mode_without_instances_is_not_seen() -> None:
    devices = [nodes.nvidia(1, extra={"mig": True}), nodes.nvidia(2)]
    assert cuda.see(devices, {}).visible == ["pci:0000:02:00.0"]


MIXED = [nodes.nvidia(1, name="NVIDIA GeForce RTX 3090"), nodes.nvidia(2, name="RTX 4090")]


def test_speed_order_of_two_models_is_one_of() -> None:
    view = cuda.see(MIXED, {"CUDA_VISIBLE_DEVICES": "0"})
    assert view.visible == []
    assert view.possible == ["pci:0000:01:00.0", "pci:0000:02:00.0"]
    entry = view.entry("pci:0000:01:00.0")
    assert (entry["visible"], entry["index"], entry["one_of"]) == (None, None, [0])
    assert "CUDA_DEVICE_ORDER" in entry["reason"]


def test_a_view_as_plain_data_lists_each_order_that_may_be() -> None:
    one, two = (device["id"] for device in MIXED)
    unknown = (
        "the GPUs are of different models and CUDA_DEVICE_ORDER is not PCI_BUS_ID: only the driver"
        " knows which it numbers first"
    )
    ordered = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    empty = "CUDA_VISIBLE_DEVICES is empty, which hides every device"
    assert cuda.see(MIXED, {"CUDA_VISIBLE_DEVICES": "0"}).as_json() == {
        "visible": [],
        "hidden": {},
        "variable": "CUDA_VISIBLE_DEVICES",
        "value": "0",
        "certain": False,
        "uncertain": unknown,
        "possible": [one, two],
        "one_of": [[one], [two]],
    }
    assert cuda.see(MIXED, ordered).as_json() == {
        "visible": [one, two],
        "hidden": {},
        "variable": None,
        "value": None,
        "certain": True,
    }
    assert cuda.see(MIXED, {**ordered, "CUDA_VISIBLE_DEVICES": ""}).as_json() == {
        "visible": [],
        "hidden": {one: empty, two: empty},
        "variable": "CUDA_VISIBLE_DEVICES",
        "value": "",
        "certain": True,
    }
    models = [nodes.nvidia(slot, name=f"model {slot}") for slot in range(1, 8)]
    many = cuda.see(models, {"CUDA_VISIBLE_DEVICES": "0"}).as_json()
    assert many["uncertain"] == f"{unknown} (too many models to list the orders)"
    assert many["possible"] == [device["id"] for device in models]
    assert "one_of" not in many


OF_MODELS = "the GPUs are of different models and CUDA_DEVICE_ORDER is not PCI_BUS_ID"


@pytest.mark.parametrize(
    ("models", "value", "found"),
    [
        (1, "0,9", ("variable-stops-at", "CUDA_VISIBLE_DEVICES='0,9': CUDA stops reading at '9'")),
        (1, "0", None),
        (1, "", None),
        (
            2,
            "0",
            (
                "order-unknown",
                f"{OF_MODELS}: only the driver knows which it numbers first",
            ),
        ),
    ],
)
def test_what_is_found_about_the_variable(
    models: int, value: str, found: tuple[str, str] | None
) -> None:
    devices = [nodes.nvidia(slot, name=f"model {slot % models}") for slot in (1, 2)]
    told = findings(see(devices, {"CUDA_VISIBLE_DEVICES": value}))
    told = [one for one in told if one["code"] != "hidden-by-variable"]
    assert [(one["code"], one["why"]) for one in told] == ([found] if found else [])
    for one in told:
        stops = one["code"] == "variable-stops-at"
        assert one["variable"] == ("CUDA_VISIBLE_DEVICES" if stops else "CUDA_DEVICE_ORDER")
        assert one.get("evidence") == (one["why"] if stops else None)


def test_all_of_two_models_are_visible_under_unknown_indexes() -> None:
    view = cuda.see(MIXED, {})
    assert view.entry("pci:0000:01:00.0")["visible"] is True
    assert view.entry("pci:0000:01:00.0")["index"] is None
    assert view.entry("pci:0000:01:00.0")["one_of"] == [0, 1]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [1, 2]),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}, [2]),
        ({"CUDA_VISIBLE_DEVICES": U[1]}, [2]),
        ({"CUDA_VISIBLE_DEVICES": ""}, []),
        ({"CUDA_VISIBLE_DEVICES": "x"}, []),
        ({"CUDA_VISIBLE_DEVICES": "5"}, []),
    ],
)
def test_what_decides_without_knowing_speed(environ: dict[str, str], expected: list[int]) -> None:
    view = cuda.see(MIXED, environ)
    assert view.certain
    assert nodes.slots(view.visible) == expected


def test_models_stay_together_in_speed_order() -> None:
    devices = [nodes.nvidia(1), nodes.nvidia(2, name="NVIDIA T4"), nodes.nvidia(3)]
    view = cuda.see(devices, {"CUDA_VISIBLE_DEVICES": "1"})
    # 1,3,2 or 2,1,3: number 1 is the third or the first card, never the T4
    assert view.entry("pci:0000:02:00.0")["visible"] is False
    assert view.entry("pci:0000:01:00.0")["visible"] is None


def test_more_models_than_orders_can_be_listed() -> None:
    devices = [nodes.nvidia(slot, name=f"model {slot}") for slot in range(1, 8)]
    everything = cuda.see(devices, {})
    assert [everything.entry(name)["visible"] for name in everything.pool] == [True] * 7
    assert [everything.entry(name)["index"] for name in everything.pool] == [None] * 7
    some = cuda.see(devices, {"CUDA_VISIBLE_DEVICES": "0,1"})
    assert [some.entry(name)["visible"] for name in some.pool] == [None] * 7
    assert (some.complete, some.settled_by) == (False, "CUDA_DEVICE_ORDER")
    none = cuda.see(devices, {"CUDA_VISIBLE_DEVICES": ""})
    assert [none.entry(name)["visible"] for name in none.pool] == [False] * 7
    named = cuda.see(devices, {"CUDA_VISIBLE_DEVICES": U[2]})
    assert nodes.slots(named.visible) == [3]


@pytest.mark.parametrize(
    ("models", "order", "count"),
    [(1, None, 1), (3, None, 6), (4, None, 24), (5, None, None), (5, "PCI_BUS_ID", 1)],
)
def test_orders_of_models_that_may_be(models: int, order: str | None, count: int | None) -> None:
    devices = [nodes.nvidia(slot, name=f"model {slot % models}") for slot in range(1, 6)]
    orders = cuda.cuda_orders(devices, order)
    assert (None if orders is None else len(orders)) == count
    for ranked in orders or ():
        assert sorted(ranked, key=devices.index) == devices


def test_nvml_s_order_counts_where_there_is_no_address() -> None:
    devices = [nodes.nvidia(slot, node_index={"nvml": 2 - slot}) for slot in (1, 2)]
    environ = {"CUDA_VISIBLE_DEVICES": "0"}
    assert nodes.slots(cuda.see(devices, environ).visible) == [1]
    bare = [device | {"id": device["ids"][1], "ids": device["ids"][1:]} for device in devices]
    assert cuda.see(bare, environ).visible == [bare[1]["id"]]


def test_pci_order_is_numeric_across_domains() -> None:
    far = nodes.nvidia(1) | {"id": "pci:10000:01:00.0", "ids": ["pci:10000:01:00.0"]}
    near = nodes.nvidia(3)
    view = cuda.see([far, near], {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    assert view.visible == [near["id"], far["id"]]


def test_nouveau_and_vfio_are_not_cuda_devices() -> None:
    devices = [nodes.nvidia(1, driver={"name": "vfio-pci"}), nodes.nvidia(2)]
    view = cuda.see(devices, {"CUDA_VISIBLE_DEVICES": "0"})
    assert view.visible == ["pci:0000:02:00.0"]
    entry = view.entry("pci:0000:01:00.0")
    assert entry["visible"] is False
    assert "vfio-pci" in entry["reason"]


def test_hidden_devices_say_which_variable_and_why() -> None:
    devices = nodes.h100s(3)
    views = see(devices, {"CUDA_VISIBLE_DEVICES": "1,7,0"})
    annotate(devices, views)
    said = [device["visibility"]["cuda"] for device in devices]
    assert [one["visible"] for one in said] == [False, True, False]
    assert [one["index"] for one in said] == [None, 0, None]
    reason = "CUDA_VISIBLE_DEVICES='1,7,0': CUDA stops reading at '7', "
    assert said[0] == {
        "visible": False,
        "index": None,
        "reason": f"{reason}and it is not named before that",
        "variable": "CUDA_VISIBLE_DEVICES",
        "step": "visible",
        "code": "hidden-by-variable",
    }
    codes = [(one["code"], one["device"]) for one in findings(views)]
    assert codes == [
        ("variable-stops-at", None),
        ("hidden-by-variable", "pci:0000:01:00.0"),
        ("hidden-by-variable", "pci:0000:03:00.0"),
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("-1", ["hidden-by-variable"]),
        ("NoDevFiles", ["hidden-by-variable"]),
        ("-1,0", ["variable-stops-at", "hidden-by-variable"]),
    ],
)
def test_the_usual_word_for_no_device_has_its_effect(value: str, expected: list[str]) -> None:
    said = findings(see(nodes.h100s(1), {"CUDA_VISIBLE_DEVICES": value}))
    assert [one["code"] for one in said] == expected


def test_an_unset_environment_has_no_findings() -> None:
    assert findings(see(nodes.h100s(2), {})) == []


@given(value=st.text())
@settings(max_examples=300, deadline=None)
def test_any_text_gives_some_of_the_devices_once(value: str) -> None:
    mask = cuda.cuda_visible(value, EIGHT)
    assert len(set(mask.ids)) == len(mask.ids)
    assert set(mask.ids) <= {device["id"] for device in EIGHT}
