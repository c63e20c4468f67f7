"""ROCR_, HIP_VISIBLE_DEVICES and GPU_DEVICE_ORDINAL to the letter, and how they compose."""

from __future__ import annotations

from typing import Any

import pytest
import visibility_nodes as nodes
from hypothesis import given, settings
from hypothesis import strategies as st

from probe_core.visibility import amd, annotate, findings, see

UNIQUE = [0x18F68E602B8A790F, 0x18F68E602B8A7910, 0xABCDEF, 0xDA7AE9DC12345678]
FOUR = [nodes.amd(slot, unique) for slot, unique in zip(range(1, 5), UNIQUE, strict=True)]
TEN = [nodes.amd(slot) for slot in range(1, 11)]

ROCR = [
    (None, [1, 2, 3, 4]),
    ("", []),
    ("0", [1]),
    ("2,0", [3, 1]),
    ("3,2,1,0", [4, 3, 2, 1]),
    ("-1", []),
    ("0,-1,1", [1]),
    ("4", []),
    ("0,4,1", [1]),
    ("0,0", [1]),  # a repetition stops
    ("1,0,1,2", [2, 1]),
    (" 1 , 2 ", [2, 3]),
    ("\t3", [4]),
    ("1abc", []),
    ("0,1abc,2", [1]),
    ("0x2", [3]),
    ("0X3", [4]),
    ("03", [4]),
    ("08", []),  # no octal digit is left over
    ("+1", [2]),
    ("-0", [1]),
    ("0 1", []),
    ("4294967296", [1]),  # cut to 32 bits
    ("4294967297,0", [2, 1]),
    ("99999999999999999999", []),
    ("0,", [1]),
    (",0", []),
    (" ", []),
    ("0,,1", []),  # hsa_init fails on the empty entry
    ("9,,1", []),
    ("0,9,,1", [1]),  # never reached
    ("GPU-18f68e602b8a790f", [1]),
    ("gpu-18F68E602B8A7910", [2]),
    ("Gpu-18f68e602b8a790F,3", [1, 4]),
    ("GPU-18f6", []),  # ambiguous
    ("0,GPU-18f6,2", [1]),
    ("GPU-da7", [4]),
    ("GPU-d", [4]),  # the shortest
    ("GPU-0000000000abcdef", [3]),
    ("GPU-abcdef", []),  # sixteen digits, leading zeros included
    ("GPU-000", [3]),
    ("GPU-", []),
    ("GPU", []),
    ("G", []),
    ("GPU-18f68e602b8a790f0", []),
    ("GPU-da7,3", [4]),  # the same device again
    ("18f68e602b8a790f", []),
    ("all", []),
    ("\udcff", []),
]


@pytest.mark.parametrize(("value", "expected"), ROCR)
def test_rocr(value: str | None, expected: list[int]) -> None:
    assert nodes.slots(amd.rocr_visible(value, FOUR).ids) == expected


def test_rocr_reads_base_zero() -> None:
    assert nodes.slots(amd.rocr_visible("010,9,011", TEN).ids) == [9, 10]
    assert nodes.slots(amd.rocr_visible("0x9", TEN).ids) == [10]


def test_rocr_reads_no_more_entries_than_gpus() -> None:
    two = FOUR[:2]
    assert nodes.slots(amd.rocr_visible("1,0,,", two).ids) == [2, 1]
    assert nodes.slots(amd.rocr_visible("1,0,nonsense", two).ids) == [2, 1]


def test_a_device_without_unique_id_has_no_uuid() -> None:
    devices = [nodes.amd(1, 0), nodes.amd(2, 5)]
    assert amd.rocr_visible("GPU-000", devices).ids == ["pci:0000:02:00.0"]
    assert amd.rocr_visible("GPU-XX", devices).ids == []


HIP = [
    (None, [1, 2, 3, 4]),
    ("0", [1]),
    ("3,1", [4, 2]),
    ("-1", []),
    ("0,-1,1", [1]),
    ("0,0", [1]),  # a repetition is skipped
    ("1,0,1,2", [2, 1, 3]),
    (" 1", []),
    ("1 ", []),
    ("0, 1", [1]),
    ("1abc", []),
    ("01", []),
    ("+1", []),
    ("-0", []),
    ("0x1", []),
    ("4", []),
    ("0,7,1", [1]),
    ("0,", [1]),
    ("0,,1", [1]),
    (",0", []),
    ("4294967296", []),
    (" ", []),
    ("GPU-18f68e602b8a7910", [2]),
    ("GPU-18f68e602b8a791", [2]),
    ("GPU-18f6", [1]),  # the first that fits
    ("GPU-", [1]),
    ("GPU-18F68E602B8A7910", []),  # case-sensitive
    ("gpu-18f68e602b8a7910", []),
    ("xGPU-18f6", []),
    ("GPU-da7,0", [4, 1]),
    ("GPU-da7,3,2", [4, 3]),
    ("2,GPU-da7,GPU-nothing,0", [3, 4]),
    ("18f68e602b8a7910", []),
    ("all", []),
]


@pytest.mark.parametrize(
    ("value", "code"),
    [("0", None), ("0,", None), (",", "variable-stops-at"), ("0,,", "variable-stops-at")],
)
def test_only_one_comma_at_the_end_is_read_over(value: str, code: str | None) -> None:
    assert amd.clr_visible(value, FOUR, "HIP_VISIBLE_DEVICES").code == code


@pytest.mark.parametrize(("value", "expected"), HIP)
def test_hip(value: str | None, expected: list[int]) -> None:
    mask = amd.clr_visible(value, FOUR, "HIP_VISIBLE_DEVICES")
    assert nodes.slots(mask.ids) == expected


def seen(consumer: str, devices: list[Any], **environ: str) -> list[int]:
    return list(nodes.slots(see(devices, environ)[consumer][0].visible))


COMPOSED = [
    ({}, [1, 2, 3, 4]),
    ({"HIP_VISIBLE_DEVICES": ""}, []),
    ({"CUDA_VISIBLE_DEVICES": ""}, []),
    ({"CUDA_VISIBLE_DEVICES": "-1"}, []),
    ({"CUDA_VISIBLE_DEVICES": "2"}, [3]),
    ({"CUDA_VISIBLE_DEVICES": " 2"}, []),  # HIP's rules, not CUDA's
    ({"CUDA_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "1"}, [2]),
    ({"CUDA_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": ""}, []),
    ({"CUDA_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": '""'}, [2]),  # quotes fall off
    ({"HIP_VISIBLE_DEVICES": '"1,0"'}, [2, 1]),
    ({"HIP_VISIBLE_DEVICES": ' "1" '}, [2]),
    ({"HIP_VISIBLE_DEVICES": '"1'}, []),
    ({"HIP_VISIBLE_DEVICES": '""'}, [1, 2, 3, 4]),
    ({"ROCR_VISIBLE_DEVICES": "3,1"}, [4, 2]),
    ({"ROCR_VISIBLE_DEVICES": "3,1", "HIP_VISIBLE_DEVICES": "1"}, [2]),
    ({"ROCR_VISIBLE_DEVICES": "3,1", "HIP_VISIBLE_DEVICES": "3"}, []),
    ({"ROCR_VISIBLE_DEVICES": "3,1", "CUDA_VISIBLE_DEVICES": "0"}, [4]),
    ({"ROCR_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "0"}, []),
    ({"ROCR_VISIBLE_DEVICES": "2", "HIP_VISIBLE_DEVICES": "GPU-da7"}, []),
    ({"GPU_DEVICE_ORDINAL": "0"}, [1, 2, 3, 4]),
]


@pytest.mark.parametrize(("environ", "expected"), COMPOSED)
def test_hip_over_rocr_and_cudas_variable(environ: dict[str, str], expected: list[int]) -> None:
    assert seen("hip", FOUR, **environ) == expected


def test_cudas_variable_does_not_act_on_rocr() -> None:
    assert seen("rocr", FOUR, CUDA_VISIBLE_DEVICES="0", HIP_VISIBLE_DEVICES="1") == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"GPU_DEVICE_ORDINAL": "1"}, [2]),
        ({"GPU_DEVICE_ORDINAL": ""}, []),
        ({"GPU_DEVICE_ORDINAL": "0,0,1x"}, [1]),
        ({"GPU_DEVICE_ORDINAL": "0", "ROCR_VISIBLE_DEVICES": "2,3"}, [3]),
        ({"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "-1"}, [1, 2, 3, 4]),
    ],
)
def test_opencl_of_amd(environ: dict[str, str], expected: list[int]) -> None:
    assert seen("opencl", FOUR, **environ) == expected


def test_kfd_order_is_not_pci_order() -> None:
    devices = [nodes.amd(1, kfd=3), nodes.amd(2, kfd=1), nodes.amd(3, kfd=2)]
    assert seen("rocr", devices) == [2, 3, 1]
    assert seen("hip", devices, ROCR_VISIBLE_DEVICES="2,0", HIP_VISIBLE_DEVICES="0") == [1]


def test_a_partition_counts_as_a_gpu() -> None:
    card = nodes.amd(1)
    parts = [card | {"id": f"kfd:{n}", "ids": [f"kfd:{n}"], "parent": card["id"]} for n in range(2)]
    views = see([card, *parts], {"ROCR_VISIBLE_DEVICES": "1"})
    assert views["rocr"][0].visible == ["kfd:1"]


def test_radeon_and_vfio_are_not_seen() -> None:
    devices = [nodes.amd(1, driver={"name": "radeon"}), nodes.amd(2)]
    views = see(devices, {})
    assert nodes.slots(views["hip"][0].visible) == [2]
    assert "radeon" in views["hip"][0].entry("pci:0000:01:00.0")["reason"]


def test_the_reason_names_the_variable_that_hid_it() -> None:
    devices = [dict(device) for device in FOUR]
    views = see(devices, {"ROCR_VISIBLE_DEVICES": "0,1", "HIP_VISIBLE_DEVICES": "1"})
    annotate(devices, views)
    said = [device["visibility"]["hip"] for device in devices]
    assert [one["visible"] for one in said] == [False, True, False, False]
    assert [one["variable"] for one in said[:3]] == [
        "HIP_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
    ]


@pytest.mark.parametrize(
    ("rocr", "said"),
    [("1", ": its numbers count what ROCR_VISIBLE_DEVICES leaves"), (None, "")],
)
def test_one_number_in_both_variables_names_two_devices(rocr: str | None, said: str) -> None:
    """unslothai/unsloth#6175: a launcher set both, and nothing was left."""
    environ = {"HIP_VISIBLE_DEVICES": "1" if rocr else "7"}
    environ |= {"ROCR_VISIBLE_DEVICES": rocr} if rocr else {}
    found = findings(see(FOUR[:2], environ))
    stop = next(one for one in found if one["code"] == "variable-stops-at")
    value = environ["HIP_VISIBLE_DEVICES"]
    assert stop["why"] == f"HIP_VISIBLE_DEVICES={value!r}: HIP stops reading at {value!r}{said}"


def test_cudas_minus_one_is_found_to_hide_amd() -> None:
    said = findings(see(FOUR[:1], {"CUDA_VISIBLE_DEVICES": "-1"}))
    assert [one["code"] for one in said] == ["hidden-by-variable"]
    reason = "CUDA_VISIBLE_DEVICES='-1': HIP stops reading at '-1', and it is not named before that"
    assert said[0] == {
        "code": "hidden-by-variable",
        "severity": "info",
        "what": "pci:0000:01:00.0 is hidden from hip, sycl",
        "why": reason,
        "fix": "unset CUDA_VISIBLE_DEVICES, or name the device in it, if the process may use it",
        "device": "pci:0000:01:00.0",
        "prober": None,
        "setting": None,
        "variable": "CUDA_VISIBLE_DEVICES",
        "step": "visible",
        "evidence": reason,
    }


@pytest.mark.heavy
@given(value=st.text(), other=st.text())
@settings(max_examples=300, deadline=None)
def test_any_text_gives_some_of_the_devices_once(value: str, other: str) -> None:
    environ = {"ROCR_VISIBLE_DEVICES": value, "HIP_VISIBLE_DEVICES": other}
    ids = see(FOUR, environ)["hip"][0].visible
    assert set(ids) <= set(amd.rocr_visible(value, FOUR).ids)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, [1, 2, 3]),
        ("", []),
        ('""', [1, 2, 3]),
        ("2,0", [1, 3]),  # the order stays
        ("1,1", [2]),
        ("01", [2]),
        (",1,,2", [2, 3]),
        ("0, 1", [1]),
        ("+1", []),
        ("-1", []),
        ("0,9,1", [1]),
        ("0,x,1", [1]),
        ("GPU-1", []),
        ("99999999999999999999999", []),
    ],
)
def test_windows_has_rules_of_its_own(value: str | None, expected: list[int]) -> None:
    gpus = [nodes.amd(slot) for slot in (1, 2, 3)]
    environ = {"ROCR_VISIBLE_DEVICES": "0"} | (
        {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    )
    views = see(gpus, environ, os="windows")
    assert nodes.slots(views["hip"][0].visible) == expected
    assert "rocr" not in views
    assert nodes.slots(views["opencl"][0].visible) == [1, 2, 3]
