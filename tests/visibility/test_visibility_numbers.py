"""What visibility rules read of devices, and numbers as the C library itself reads them."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import pytest

from probe_core.visibility.availability import (
    driver_major,
    gpus_of,
    ids_of,
    in_order,
    integrated,
    pci_codes,
    uuids,
)
from probe_core.visibility.cuda import cuda_orders, instances_of
from probe_core.visibility.numbers import strtol, strtoul, to_int32, too_long, unsigned

TEXTS = (
    *("", " ", "-", "+", "x", "0", "-0", "+7", " \t\n\v\f\r12", "\0 1", "12 13", "1,2", "--1"),
    *("+-1", "12"),
    *("0x", "0x1f", "0X1F", "0xg", "-0x10", "010", "08", "0b1", "1f", "zz", "-zz", "9z", "\u0661"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"),
    *("18446744073709551615", "18446744073709551616", "-18446744073709551615", "-1"),
    *("-18446744073709551616", "0" * 70 + "1", "1" * 64, "1" * 65, "-" + "9" * 5000, "2147483648"),
)  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="compares with Linux's C library")
@pytest.mark.parametrize("base", [10, 0, 16, 2, 8, 36])
@pytest.mark.parametrize("text", TEXTS)
def test_numbers_are_read_as_by_c(text: str, base: int) -> None:
    library = ctypes.CDLL(None)
    raw = text.partition("\0")[0].encode()
    for name, read, kind in [
        ("strtol", strtol, ctypes.c_long),
        ("strtoul", strtoul, ctypes.c_ulong),
    ]:
        function, end = getattr(library, name), ctypes.c_char_p()
        function.restype = kind
        buffer = ctypes.create_string_buffer(raw)
        value = function(buffer, ctypes.byref(end), base)
        rest = end.value
        own, tail = read(raw.decode(), base)
        assert (own or 0, tail.encode()) == (value, rest), name
        assert (own is None) == (rest == raw)


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ("18446744073709551615", False),
        ("18446744073709551616", True),
        ("018446744073709551615x", False),
        ("+18446744073709551616 1", True),
        ("100000000000000000000", True),
        ("99999999999999999999", True),
        ("9999999999999999999", False),
        ("1844674407370955161x5", False),
        ("", False),
    ],
)
def test_what_is_too_long_for_64_bits(digits: str, expected: bool) -> None:
    assert too_long(digits) is expected


def test_numbers_in_smaller_types() -> None:
    assert (strtol("12"), strtoul("-1")) == ((12, ""), ((1 << 64) - 1, ""))
    figures = [0, -1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32]
    assert [to_int32(value) for value in figures] == [0, -1, (1 << 31) - 1, -(1 << 31), -1, 0]
    assert [unsigned(value, 32) for value in (-1, 5, 1 << 32)] == [(1 << 32) - 1, 5, 0]
    assert unsigned(-1) == (1 << 64) - 1


def device(number: int, **fields: Any) -> Any:
    address = f"0000:{number:02x}:00.0"
    known = {
        **{"id": f"pci:{address}", "ids": [f"pci:{address}"], "kind": "gpu", "vendor": "amd"},
        **{"name": "Card", "parent": None, "pci": {"address": address, "id": "1002:744c"}},
        **{"node_index": {}, "memory": {"kind": "dedicated"}, "driver": None},
    }
    return {**known, **fields}


NOWHERE = {"id": "acme:1", "ids": ["acme:1"], "pci": None}


def test_devices_are_in_the_order_of_an_ordinal_that_all_have() -> None:
    first, second = device(1, node_index={"kfd": 2}), device(2, node_index={"kfd": 1})
    bare = device(3)
    assert in_order([first, second], "kfd") == [second, first]
    assert in_order([second, first]) == [first, second]
    assert in_order([second, first], "other") == [first, second]
    assert in_order([bare, second, first], "kfd") == [first, second, bare]
    zero = device(9, node_index={"kfd": 0})
    assert in_order([first, zero], "kfd") == [zero, first]
    assert in_order([device(4, **NOWHERE), second, first]) == [first, second, device(4, **NOWHERE)]
    without = device(5)
    del without["node_index"]
    assert in_order([without, first], "kfd") == [first, without]
    # Equal ordinals keep their places.
    same = device(7, node_index={"kfd": 2})
    assert in_order([same, first], "kfd") == [same, first]


def test_gpus_are_whole_and_of_the_vendor() -> None:
    whole, part = device(1, ids=["pci:0000:01:00.0", "uuid:GPU-1"]), device(2, parent="uuid:GPU-1")
    others = [device(3, kind="npu"), device(4, vendor="nvidia")]
    assert gpus_of([whole, part, *others], "amd") == [whole]
    for cut in (part, device(2, parent=whole["id"])):
        found = instances_of([whole, cut, *others], [whole, device(9)])
        assert {gpu: [own.id for own in parts] for gpu, parts in found.items()} == {
            whole["id"]: [cut["id"]]
        }
    assert ids_of([whole, part]) == ["pci:0000:01:00.0", "pci:0000:02:00.0"]
    assert (uuids(whole), uuids(part)) == (["GPU-1"], [])


def test_facts_of_one_device() -> None:
    assert pci_codes(device(1)) == (0x1002, 0x744C)
    assert pci_codes(device(1, **NOWHERE)) is None
    kinds = ["shared", "unified", "dedicated", None]
    assert [integrated(device(1, memory={"kind": kind})) for kind in kinds] == [
        True, True, False, False
    ]  # fmt: skip


def test_a_model_is_known_by_its_pci_id_and_its_name() -> None:
    bare = {**NOWHERE, "name": None}
    pairs = [({}, {}), ({}, NOWHERE), (NOWHERE, NOWHERE), (bare, bare)]
    # Each order of two models is possible; devices of one keep the order of their addresses.
    orders = [cuda_orders([device(1, **a), device(2, **b)], None) for a, b in pairs]
    assert [len(order or ()) for order in orders] == [1, 2, 1, 2]


def test_the_major_version_of_the_first_driver_that_has_one() -> None:
    bare, odd = device(1), device(2, driver={"name": "nvidia", "version": "r580.1"})
    known = [device(3, driver={"name": "nvidia", "version": text}) for text in ("580.95", "570")]
    assert driver_major([bare, odd, *known]) == 580
    assert driver_major(known[::-1]) == 570
    assert driver_major([bare, odd]) is None
    assert driver_major([]) is None
    assert driver_major([device(1, driver={"name": "n", "version": "\u0665\u0668.1"})]) is None
