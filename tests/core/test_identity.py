"""Ids field by field: one that cannot be used costs itself, and the device stays by another."""

from __future__ import annotations

from typing import Any

import pytest
from fake_probers import Probers, gpu
from reports import report_of
from trees import Tree

from probe_core.model.field import Ids, Rejected
from probe_core.pipeline.validate import check_sighting, checked

A, B = "pci:0000:01:00.0", "pci:0000:02:00.0"
UA, UB = "uuid:GPU-aa", "uuid:GPU-bb"

NOT_PRINTABLE = "ids: the id 'uuid:GPU-a a' holds characters other than printable ASCII"
TWO = f"ids: one device has one PCI address, found {A}, {B}; it is joined by none"

CASES: dict[str, tuple[list[Any], list[str], list[str]]] = {
    "all good": ([A, UA, "x:1"], [A, UA, "x:1"], []),
    "other spellings of one": (["pci:01:00.0", A, "PCI:0:1:0.0"], [A], []),
    "a blank in a uuid": ([A, "uuid:GPU-a a"], [A], [NOT_PRINTABLE]),
    "a blank first": (["uuid:GPU-a a", A], [A], [NOT_PRINTABLE]),
    "a number": ([A, 5], [A], ["ids: an id must be text, found int 5"]),
    "nothing": ([A, None], [A], ["ids: an id must be text, found NoneType None"]),
    "no address": (
        ["pci:nowhere", UA],
        [UA],
        ["ids: 'nowhere' is no PCI address (dddd:bb:dd.f)"],
    ),
    "no kind": (
        [A, "0"],
        [A],
        ["ids: the id '0' is not `kind:value` of at most 256 characters"],
    ),
    "two addresses": ([A, B, UA], [UA], [TWO]),
    "two addresses and a bad one": (
        ["uuid:GPU-a a", B, "x:1", A],
        ["x:1"],
        [NOT_PRINTABLE, TWO.replace(f"{A}, {B}", f"{B}, {A}")],
    ),
    "too many": (
        [f"x:{number}" for number in range(65)],
        [f"x:{number}" for number in range(64)],
        ["ids: more than 64 ids; the first were kept"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_id_that_cannot_be_used_costs_itself(case: str) -> None:
    ids, kept, problems = CASES[case]
    sighting, told = check_sighting({"ids": ids, "kind": "gpu", "name": "One"})
    assert sighting == {"ids": kept, "kind": "gpu", "name": "One", "unknown": {}}
    assert told == problems


NONE = "a device has no usable 'ids', so it was left out"


@pytest.mark.parametrize(
    ("ids", "problems"),
    [
        (["uuid:GPU-a a"], [NOT_PRINTABLE, NONE]),
        ([A, B], [TWO, NONE]),
        ([], ["ids: expected a list of ids, found list []", NONE]),
        (A, [f"ids: expected a list of ids, found str '{A}'", NONE]),
    ],
)
def test_a_device_without_a_usable_id_is_named_as_such(ids: Any, problems: list[str]) -> None:
    assert check_sighting({"ids": ids, "kind": "gpu"}) == (None, problems)


def test_the_others_of_that_prober_stay() -> None:
    good, problems = checked(
        [{"ids": ids, "kind": "gpu"} for ids in ([A, UA], ["uuid:GPU-a a"], [B, UB])]
    )
    assert [sighting["ids"] for sighting in good] == [[A, UA], [B, UB]]
    assert problems == [NOT_PRINTABLE, NONE]


@pytest.mark.parametrize(
    ("first", "second", "kept", "problems"),
    [
        # Firmware that gives two cards one UUID: their addresses show that they are two.
        ([A, UA], [B, UA], [B], [f"ids: {UA} is the id of {A}, which came first"]),
        ([A, UA], [B, UA, "x:2"], [B, "x:2"], [f"ids: {UA} is the id of {A}, which came first"]),
        # Nothing shows that these are two: the same device again, and no second one is made of it.
        ([A, UA], [A, UA], None, [f"two devices have the id {A} or {UA}; the first was kept"]),
        ([A], [A, UA], None, [f"two devices have the id {A}; the first was kept"]),
        ([UA], [A, UA], None, [f"two devices have the id {UA}; the first was kept"]),
        ([A, UA], [A, UB], None, [f"two devices have the id {A}; the first was kept"]),
        (["x:1"], ["x:1", "x:2"], None, ["two devices have the id x:1; the first was kept"]),
    ],
)
def test_an_id_of_two_devices_stays_with_the_first(
    first: list[str], second: list[str], kept: list[str] | None, problems: list[str]
) -> None:
    good, told = checked([{"ids": ids, "kind": "gpu"} for ids in (first, second)])
    assert [sighting["ids"] for sighting in good] == [first, *([kept] if kept else [])]
    assert told == problems


def test_a_gpu_with_one_odd_id_stays_and_the_report_names_it(tree: Tree, probers: Probers) -> None:
    """It cost the GPU: the outcome was `invalid`, and the node fell back to its processor."""
    probers.reports("a", gpu(1, ids=[A, "uuid:GPU-a a"]), gpu(2, ids=[B, UB]))
    report = report_of(tree.machine(), **probers.arguments)
    (outcome,) = (o for o in report["outcomes"] if o["prober"] == "a")
    assert (outcome["status"], outcome["devices"], outcome["reason"]) == ("ok", 2, None)
    assert [d["ids"] for d in report["devices"] if d["kind"] == "gpu"] == [[A], [B, UB]]
    assert report["fallback"] is None
    (finding,) = (f for f in report["findings"] if f["code"] == "value-rejected")
    assert (finding["prober"], finding["why"]) == ("a", NOT_PRINTABLE)
    assert finding["severity"] == "warning"


def test_a_list_is_whole_or_says_why() -> None:
    ids = Ids()
    assert ids.check([A, UA]) == [A, UA]
    with pytest.raises(Rejected) as caught:
        ids.check([A, "uuid:GPU-a a"])
    assert f"ids: {caught.value}" == NOT_PRINTABLE
