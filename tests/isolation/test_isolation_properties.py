"""Ids have one form, checked sightings are safe, and merging depends on no order and no name."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_core.model.device import FIELDS
from probe_core.model.ids import normalise_id, pci_id
from probe_core.pipeline.failures import check_finding
from probe_core.pipeline.merge import Observation, merge
from probe_core.pipeline.validate import check_sighting
from probe_core.resolve import open_chipdb, resolve
from probe_core.visibility import see

DOMAINS = st.integers(0, (1 << 32) - 1)
ADDRESSES = st.tuples(DOMAINS, st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))


@given(ADDRESSES, st.integers(4, 12), st.booleans())
def test_every_way_to_write_a_pci_address_is_one_id(
    address: tuple[int, int, int, int], width: int, upper: bool
) -> None:
    domain, bus, device, function = address
    text = f"{domain:0{width}x}:{bus:02x}:{device:02x}.{function}"
    wanted = f"pci:{domain:04x}:{bus:02x}:{device:02x}.{function}"
    assert pci_id(text.upper() if upper else text) == wanted
    if domain == 0:
        assert pci_id(f"{bus:x}:{device:x}.{function}") == wanted


@given(st.text(max_size=300))
def test_an_id_is_normal_or_refused(text: str) -> None:
    try:
        one = normalise_id(text)
    except ValueError:
        return
    assert normalise_id(one) == one
    assert one.isascii()
    assert one.isprintable()


ODD_PCI = ["", "1", "1:2", "0:0:0:0.0", "0000:01:00", "0000:01:20.0", "0000:01:00.8", "-1:00:00.0"]
ODD_PCI += ["0000:01:-1.0", "0000:01:00.-1", "+1:01:00.0", "0_0:01:00.0", "0000:01:00. 1"]


@pytest.mark.parametrize("address", [*ODD_PCI, "100000000:00:00.0", "0000:100:00.0", "zz:00:00.0"])
def test_no_pci_address(address: str) -> None:
    with pytest.raises(ValueError, match="is no PCI address"):
        pci_id(address)


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
RAW = st.fixed_dictionaries(
    {"ids": st.lists(st.sampled_from(["x:1", "pci:0:0.0", "bad", 5]), max_size=3)},
    optional={name: VALUES for name in FIELDS if name != "ids"}
    | {"unknown": VALUES, "odd": VALUES},
)


@pytest.mark.heavy
@given(RAW | VALUES)
def test_whatever_a_prober_says_is_checked(raw: Any) -> None:
    sighting, problems = check_sighting(raw)
    assert all(isinstance(problem, str) and problem for problem in problems)
    if sighting is not None:
        json.dumps(sighting, allow_nan=False)
        assert sighting["ids"]
        again, more = check_sighting(sighting)
        assert (again, more) == (sighting, [])


@pytest.mark.heavy
@given(VALUES)
def test_findings_are_whole_or_nothing(raw: Any) -> None:
    assert check_finding(raw) is None
    whole = {"code": "c", "what": "w", "why": "y", "fix": "f"}
    checked = check_finding({**whole, "severity": raw, "device": raw})
    assert checked is not None
    assert checked["severity"] in ("info", "warning", "error")


def reject(**fields: Any) -> tuple[dict[str, Any], list[str]]:
    sighting, problems = check_sighting({"ids": ["x:1"], "kind": "gpu", **fields})
    assert sighting is not None
    return sighting, problems


REJECTED = [
    ("links", [{"kind": "pcie", "peer": "no id"}], "is not `kind:value`"),
    ("links", [{"peer": "x:2"}], "a link needs a kind"),
    ("bandwidth", 10**4000, "is not between"),
    ("units", True, "expected a number"),
    ("units", "108", "expected a number"),
    ("units", 1.5, "expected a whole number"),
    ("units", -1, "is not between"),
    ("extra", {"a": float("nan")}, "nan is not finite"),
    ("extra", {"a": 10**400}, "a whole number beyond 64 bits"),
    ("cpu", {"a": {1, 2}}, "not plain data"),
    ("name", "", "it is empty"),
    ("kind", "toaster", None),
    ("ids", ["pci:0000:01:00.0", "pci:0000:02:00.0"], None),
]


@pytest.mark.parametrize(("field", "value", "reason"), REJECTED)
def test_a_bad_value_costs_itself(field: str, value: Any, reason: str | None) -> None:
    if reason is None:  # without an id or a kind there is nothing to merge by
        sighting, problems = check_sighting({"ids": ["x:1"], "kind": "gpu", field: value})
        assert sighting is None
        assert field in problems[-1]
        return
    checked, problems = reject(**{field: value})
    assert reason in checked["unknown"][field]
    assert problems == [f"{field}: {checked['unknown'][field]}"]
    assert field not in checked


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, (64 << 40) + 1, -5, 1e300])
def test_memory_out_of_bounds_is_unknown(size: float) -> None:
    checked, problems = reject(memory={"total": size, "kind": "dedicated"})
    assert checked["memory"] == {"kind": "dedicated"}
    assert "is not between" in checked["unknown"]["memory.total"]
    assert len(problems) == 1


ANYTHING: list[Any] = [
    *(None, True, 0, -1, 1.5, 1e300, 10**30, "", "x", "pci:0000:01:00.0", "\x1b"),
    *([], ["x"], [0], [{}], [[]], [None], [{"kind": "x"}], [{"kind": "pcie", "count": "many"}]),
    *({}, {"a": 1}, {"a": []}, {"a": {}}, {"a": None}, {"kind": 5}, {"total": {}, "parts": []}),
    *({"id": 5}, {"units": 1, "of": 7}, {"units": 0, "of": 0}, {"max_mhz": 1, "boost_mhz": -1}),
    *({"vram": 1 << 30}, {"parts": {"vram": "x"}}, {"family": "x", "flags": 5}, {"name": "nvidia"}),
]


@pytest.mark.heavy
@pytest.mark.parametrize("field", [*FIELDS, "memory_bytes", "unknown", "finding"])
@pytest.mark.parametrize("kind", ["gpu", "cpu", "npu"])
def test_no_value_of_any_field_stops_a_step_behind(field: str, kind: str) -> None:
    """Merge, resolve, visibility and the document believe what was checked."""
    database, _ = open_chipdb(())
    for value in ANYTHING:
        for name in ({}, {"name": "NVIDIA H100 80GB HBM3", "vendor": "nvidia", "arch": "hopper"}):
            raw = {"ids": ["uuid:GPU-1"], "kind": kind, **name, field: value}
            sighting, _ = check_sighting(raw)
            if sighting is None:
                continue
            own = Observation("own", 500, {"ids": ["uuid:GPU-1"], "kind": "gpu", "unknown": {}})
            devices, _ = merge([Observation("bad", 100, sighting), own])
            resolve(devices, database)
            see(devices, {"CUDA_VISIBLE_DEVICES": "0"})
            json.dumps(devices, allow_nan=False)


IDS = st.sampled_from([f"{kind}:{n}" for kind in ("uuid", "dt", "a", "b") for n in "123"])
SIGHTINGS = st.builds(
    lambda ids, name, units: {"ids": ids, "kind": "gpu", "name": name, "units": units},
    st.lists(IDS, min_size=1, max_size=3, unique=True),
    st.sampled_from(["One", "Two"]),
    st.integers(1, 4),
)
GROUPS = st.lists(SIGHTINGS, max_size=8)


def said(sightings: list[dict[str, Any]]) -> list[Observation]:
    """Give each sighting a prober and a priority of its own, so that no tie decides."""
    return [
        Observation(f"p{n}", n + 1, copy.deepcopy({**s, "unknown": {}}))
        for n, s in enumerate(sightings)
    ]


@pytest.mark.heavy
@given(GROUPS, st.randoms())
def test_the_order_of_arrival_does_not_matter(sightings: list[dict[str, Any]], random: Any) -> None:
    shuffled = said(sightings)
    random.shuffle(shuffled)
    assert merge(shuffled) == merge(said(sightings))


@pytest.mark.heavy
@given(GROUPS)
def test_each_id_is_of_one_device_and_none_is_lost(sightings: list[dict[str, Any]]) -> None:
    devices, _ = merge(said(sightings))
    ids = [identity for device in devices for identity in device["ids"]]
    assert sorted(ids) == sorted({i for s in sightings for i in s["ids"]})
    for sighting in sightings:
        assert any(set(sighting["ids"]) <= set(device["ids"]) for device in devices)


@pytest.mark.heavy
@given(GROUPS)
def test_saying_it_twice_changes_nothing(sightings: list[dict[str, Any]]) -> None:
    once, twice = merge(said(sightings))[0], merge(said(sightings) + said(sightings))[0]
    for device in [*once, *twice]:
        device.pop("others")  # tells each saying
    assert twice == once


def test_names_ordinals_and_sizes_never_join() -> None:
    same = {"kind": "gpu", "name": "H100", "memory": {"total": 1 << 30}, "node_index": {"nvml": 0}}
    devices, _ = merge(said([{"ids": ["uuid:1"], **same}, {"ids": ["uuid:2"], **same}]))
    assert [device["id"] for device in devices] == ["uuid:2", "uuid:1"]


@pytest.mark.heavy
@given(GROUPS)
def test_the_best_prober_wins_each_field(sightings: list[dict[str, Any]]) -> None:
    best = {f"p{n}": s for n, s in enumerate(sightings)}
    for device in merge(said(sightings))[0]:
        first = device["seen_by"][0]
        assert device["sources"]["units"] == first
        assert device["units"] == best[first]["units"]
        told = {one["prober"] for one in device["others"].get("units", ())}
        differ = {p for p in device["seen_by"] if best[p]["units"] != device["units"]}
        assert told == differ
