"""Ids of two devices in one sighting: no device vanishes, none is made up, and it is told."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_core.machine import Machine
from probe_core.model.ids import single, strength
from probe_core.pipeline.conclude import merge_devices
from probe_core.pipeline.merge import Observation, merge
from probe_core.pipeline.validate import Collected, check_sighting

A, B = "pci:0000:01:00.0", "pci:0000:02:00.0"
UA, UB = "uuid:GPU-aa", "uuid:GPU-bb"
Ids = list[str]


def say(*sightings: Ids) -> tuple[list[Ids], list[tuple[str, str]]]:
    """Merge sightings of ever less believed probers; the devices' ids, and (device, what)."""
    said = [
        Observation(f"p{n}", 100 - n, {"ids": list(ids), "kind": "gpu", "unknown": {}})
        for n, ids in enumerate(sightings)
    ]
    devices, findings = merge(said)
    assert {one["code"] for one in findings} <= {"identity-conflict"}
    return [device["ids"] for device in devices], [(f["device"], f["why"]) for f in findings]


CASES: dict[str, tuple[list[Ids], list[Ids], list[tuple[str, str]]]] = {
    "no conflict": ([[A, UA], [UA], [A]], [[A, UA]], []),
    "an address of one and the uuid of another": (
        [[A, UA], [B, UB], [A, UB]],
        [[A, UA], [B, UB]],
        [(A, f"that is {B}")],
    ),
    "said by the one who is believed most": (
        [[A, UB], [A, UA], [B, UB]],
        [[A, UB], [B]],
        [(A, f"its own is {UB}"), (B, f"that is {A}")],
    ),
    "one uuid for two cards": ([[A, UA], [B, UA]], [[A, UA], [B]], [(B, f"that is {A}")]),
    "two addresses in one": ([[A], [B], [A, B]], [[A], [B]], [(A, f"that is {B}")]),
    "an address that nobody else knows": ([[A, B]], [[A]], [(A, f"its own is {A}")]),
    "two uuids": ([[UA], [UB], [UB, UA]], [[UA], [UB]], [(UA, f"that is {UB}")]),
    "a part and its whole": (
        [[A, UA], ["uuid:MIG-1"], ["uuid:MIG-1", UA]],
        [[A, UA], ["uuid:MIG-1"]],
        [(A, "that is uuid:MIG-1")],
    ),
    "two that a third joins": (
        [["x:1"], ["y:1"], ["x:1", "y:1"], ["y:1", "z:1"]],
        [["x:1", "y:1", "z:1"]],
        [],
    ),
    "joined through an id of its own": (
        [[A, "x:1"], [B, UB], [UB, "x:1"]],
        [[A, "x:1"], [B, UB]],
        [(B, f"that is {A}")],
    ),
    "a uuid of another library's making": ([[A, UA], [A, "uuid:0123"]], [[A, "uuid:0123", UA]], []),
    "one made uuid beside an address that nobody else knows": (
        [[A, "uuid:0123", B]],
        [[A, "uuid:0123"]],
        [(A, f"its own is {A}")],
    ),
    "two libraries' uuids": (
        [["x:1", "uuid:1"], ["x:1", "uuid:2"]],
        [["uuid:1", "uuid:2", "x:1"]],
        [("uuid:1", "sightings of p0, p1 share another id")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_conflicts(case: str) -> None:
    sightings, ids, findings = CASES[case]
    assert say(*sightings) == (ids, findings)


def observe(prober: str, priority: int, kind: str, *ids: str) -> Observation:
    return Observation(prober, priority, {"ids": list(ids), "kind": kind, "unknown": {}})


def test_no_id_joins_a_processor_to_anything_else() -> None:
    devices, findings = merge(
        [
            observe("bad", 900, "cpu", "x:1", "cpu:0"),
            observe("good", 500, "gpu", A, "x:1"),
            observe("cpu", 50, "cpu", "cpu:0"),
        ]
    )
    assert [(d["ids"], d["kind"]) for d in devices] == [(["cpu:0"], "cpu"), ([A, "x:1"], "gpu")]
    (stray,) = findings
    assert (stray["device"], stray["prober"], stray["evidence"]) == ("cpu:0", "bad", "x:1")
    assert stray["why"] == f"that is {A}"


def test_a_processor_without_an_id_of_its_own_is_left_out() -> None:
    devices, findings = merge([observe("bad", 900, "cpu", "x:1"), observe("good", 1, "npu", "x:1")])
    assert [(d["ids"], d["kind"], d["sources"]["kind"]) for d in devices] == [
        (["x:1"], "npu", "good")
    ]
    (refused,) = findings
    assert refused["what"] == "bad reports a processor under the id x:1"
    assert (refused["device"], refused["prober"], refused["evidence"]) == ("x:1", "bad", "x:1")


@pytest.mark.parametrize(
    ("kind", "ids", "kept", "foreign"),
    [
        ("gpu", [A, "cpu:0"], [A], "cpu:0"),
        ("npu", ["x:1", "uuid:CPU-11"], ["x:1"], "uuid:CPU-11"),
        ("cpu", ["cpu:0", A], ["cpu:0"], A),
        ("cpu", ["uuid:CPU-11", UA], ["uuid:CPU-11"], UA),
    ],
)
def test_an_id_of_another_kind_is_rejected(kind: str, ids: Ids, kept: Ids, foreign: str) -> None:
    sighting, problems = check_sighting({"ids": ids, "kind": kind})
    assert sighting is not None
    assert sighting["ids"] == kept
    assert problems == [f"ids: {foreign} is no id of a {kind}"]


def test_a_device_whose_only_id_is_of_another_kind_is_left_out() -> None:
    assert check_sighting({"ids": ["cpu:0"], "kind": "gpu"}) == (
        None,
        [
            "ids: cpu:0 is no id of a gpu",
            "a device has no usable 'ids', so it was left out",
        ],
    )


def test_the_id_that_was_not_believed_is_kept_with_who_said_it() -> None:
    said = [Observation("good", 2, {"ids": [A, UA]}), Observation("bad", 1, {"ids": [A, UB]})]
    (device,), (finding,) = merge(said)
    assert device["others"]["ids"] == [{"prober": "bad", "value": UB}]
    assert finding["what"] == f"bad gives the device {A} the id {UB}, which is not its own"
    assert "PROBE_DISABLE" in finding["fix"]


def test_a_parent_named_by_an_id_that_was_not_believed_is_its_owner() -> None:
    said = [
        Observation("good", 3, {"ids": [B, UB]}),
        Observation("bad", 2, {"ids": [A, UB]}),
        Observation("part", 1, {"ids": ["uuid:MIG-1"], "parent": UB}),
    ]
    assert [d.get("parent") for d in merge(said)[0]] == [None, None, B]


POOL = [f"pci:0000:0{n}:00.0" for n in "123"]
POOL += [f"uuid:{kind}-{n}" for kind in ("GPU", "MIG") for n in "12"] + ["uuid:1", "a:1", "a:2"]
SIGHTINGS = st.lists(
    st.lists(st.sampled_from(POOL), min_size=1, max_size=4, unique=True), max_size=8
)


def said(sightings: list[Ids]) -> list[Observation]:
    return [Observation(f"p{n}", n, {"ids": ids, "unknown": {}}) for n, ids in enumerate(sightings)]


@pytest.mark.heavy
@given(SIGHTINGS, st.randoms())
def test_order_of_arrival_does_not_matter(sightings: list[Ids], random: Any) -> None:
    shuffled = said(sightings)
    random.shuffle(shuffled)
    assert merge(shuffled) == merge(said(sightings))


@given(SIGHTINGS)
def test_no_device_vanishes_and_none_is_two(sightings: list[Ids]) -> None:
    before = copy.deepcopy(sightings)
    devices, findings = merge(said(sightings))
    assert sightings == before
    ids = [identity for device in devices for identity in device["ids"]]
    assert len(ids) == len(set(ids))
    for device in devices:
        own = [what for what in map(single, device["ids"]) if what]
        assert len(own) == len(set(own))
    # Whoever is the strongest id of some sighting is somebody's id in the end.
    assert {min(one, key=strength) for one in sightings} <= set(ids)
    # What is not, was told.
    untold = {i for one in sightings for i in one} - set(ids)
    assert all(any(i in finding["what"] for finding in findings) for i in untold)


def test_sightings_that_cannot_be_merged_cost_their_prober_alone() -> None:
    """They are checked before; this is the net below a mistake of ours."""
    good, bad = {"ids": [A], "kind": "gpu"}, {"ids": [B], "kind": "gpu", "memory": 5}
    collected = Collected()
    collected.observations = [
        Observation("bad", 2, bad), Observation("good", 1, good), Observation("worse", 0, {})
    ]  # fmt: skip
    node = {"memory": {"total": None, "available": None, "limit": None}}
    devices, findings = merge_devices(collected, node, Machine("/nowhere"), bool)
    assert [device["id"] for device in devices] == [A, "cpu:0"]
    assert [finding["what"] for finding in findings] == [
        "the devices of bad could not be merged",
        "the devices of worse could not be merged",
    ]
    assert {finding["severity"] for finding in findings} == {"error"}
