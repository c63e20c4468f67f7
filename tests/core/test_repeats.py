"""Values that earlier devices had are not checked again, and the answer is the same as if."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from probe_core.model.field import FreeTable, Rejected
from probe_core.model.ids import normalise_id, pci_id
from probe_core.model.parts import LINK, typed
from probe_core.pipeline.validate import Repeats, check_sighting, checked

NUMBERS = [0, 1, 2, 0.0, -0.0, 1.0, 2.0, True, False, None, "1", "x", -1, 10**30]
SCALARS = st.sampled_from(NUMBERS)
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.sampled_from("ab"), SCALARS)
LINKS = st.dictionaries(
    st.sampled_from(["kind", "peer", "width", "gts", "bandwidth", "made-up"]),
    VALUES | st.sampled_from(["pcie", "pci:0000:01:00.0", "PCI:1:0.0"]),
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "links": st.lists(LINKS, max_size=3),
        "step_facts": st.lists(
            st.fixed_dictionaries(
                {"step": st.sampled_from(["driver", "odd"]), "status": st.just("ok")},
                optional={"evidence": VALUES, "code": VALUES},
            ),
            max_size=2,
        ),
        **{
            name: st.dictionaries(keys, VALUES, max_size=3)
            for name, keys in {
                "ecc": st.sampled_from(["enabled", "pending", "odd"]),
                "clocks": st.sampled_from(["max_mhz", "current_mhz"]),
                "power": st.sampled_from(["limit_watts", "reasons"]),
                "memory": st.sampled_from(["total", "kind", "parts"]),
                "node_index": st.sampled_from(["nvml", "kfd"]),
            }.items()
        },
    },
)


def written(value: object) -> str:
    """Return the JSON, which unlike equality tells 1, 1.0, True, 0.0 and -0.0 apart."""
    return json.dumps(value)


@pytest.mark.heavy
@settings(max_examples=200, deadline=None)
@given(st.lists(FIELDS, min_size=2, max_size=4))
def test_a_device_is_checked_as_if_it_were_the_first(devices: list[dict[str, Any]]) -> None:
    repeats = Repeats()
    for number, fields in enumerate([*devices, *devices]):
        raw = {"ids": [f"x:{number}"], "kind": "gpu", **fields}
        assert written(check_sighting(raw, repeats)) == written(check_sighting(raw))


TWINS = [(1, True), (1, 1.0), (0, False), (0, 0.0), (0.0, -0.0), (-0.0, 0.0), (2.0, 2)]


@pytest.mark.parametrize(("first", "second"), TWINS)
def test_equal_values_of_other_types_are_checked_apart(first: object, second: object) -> None:
    raws = [
        {"ids": [f"x:{n}"], "kind": "gpu", "links": [{"kind": "pcie", "extra": value}]}
        for n, value in enumerate((first, second))
    ]
    sightings, problems = checked(raws)
    links = [written(sighting["links"]) for sighting in sightings]
    assert links == [written(raw["links"]) for raw in raws]
    assert problems == []


def test_a_value_that_was_refused_once_is_refused_of_each() -> None:
    table = {"max_mhz": -5, "base_mhz": 1000}
    raws = [{"ids": [f"x:{n}"], "kind": "gpu", "clocks": dict(table)} for n in range(3)]
    sightings, problems = checked(raws)
    assert problems == ["clocks.max_mhz: -5 is not between 1 and 100,000"] * 3
    assert [sighting["clocks"] for sighting in sightings] == [{"base_mhz": 1000}] * 3


def test_equal_devices_share_nothing_that_can_change() -> None:
    fields = {
        "links": [{"kind": "pcie", "width": 16}],
        "driver": {"name": "nvidia"},
        "power": {"limit_watts": 700.0, "reasons": ["idle"]},
        "memory": {"total": 1 << 30, "parts": {"vram": 1 << 30}},
        "extra": {"nvlink": {"links": 18}},
        "step_facts": [{"step": "driver", "status": "ok", "evidence": "bound"}],
    }
    raws = [{"ids": [f"x:{n}"], "kind": "gpu", **json.loads(written(fields))} for n in range(3)]
    (first, *others), _ = checked(raws)
    before = [written(other) for other in others]
    for name in fields:
        _spoil(dict(first)[name])
    assert [written(other) for other in others] == before


def _spoil(value: object) -> None:
    """Change every table and list in `value`."""
    for item in list(value.values() if isinstance(value, dict) else value):  # type: ignore[call-overload]
        if isinstance(item, (dict, list)):
            _spoil(item)
    if isinstance(value, dict):
        value["spoilt"] = True
    elif isinstance(value, list):
        value.append("spoilt")


def in_two_passes(value: object) -> object:
    """Return a link as its two rules say it: plain data first, then each declared field."""
    table = FreeTable().check(value)
    return {
        name: LINK[name].value.check(item) if name in LINK and item is not None else item
        for name, item in table.items()
    }


@pytest.mark.heavy
@settings(max_examples=300, deadline=None)
@given(LINKS | VALUES)
@example({"kind": "pcie", "peer": "0000:01:00.0"})
@example({"bandwidth": 10**30, "kind": float("nan")})
@example({"kind": "a\x1bb", "\x1b": "c\u202e"})
def test_a_link_is_plain_data_with_typed_fields(value: Any) -> None:
    try:
        expected = in_two_passes(value)
    except Rejected:
        with pytest.raises(Rejected):
            typed(value, LINK, "link")
    else:
        assert written(typed(value, LINK, "link")) == written(expected)


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ({"count": "many", "kind": 5}, "a link's kind: expected text, found int 5"),
        ({"kind": 5, "width": 10**30}, "a whole number beyond 64 bits"),
        ({"kind": 5, "made-up": float("inf")}, "inf is not finite"),
        ("pcie", "expected a table, found str 'pcie'"),
    ],
)
def test_of_several_faults_the_same_is_named_as_ever(link: object, sentence: str) -> None:
    with pytest.raises(Rejected) as caught:
        typed(link, LINK, "link")
    assert str(caught.value) == sentence


ADDRESSES = st.from_regex(
    r"pci:[0-9a-gA-F]{3,5}:[0-9a-f]{2}[:.][0-3][0-9a-f]\.[0-9]", fullmatch=True
)


def result_of(read: Callable[[str], str], text: str) -> str:
    """Return what `read` returns, or the sentence with which it refuses the text."""
    try:
        return read(text)
    except ValueError as error:
        return f"refused: {error}"


@pytest.mark.heavy
@settings(max_examples=300, deadline=None)
@given(ADDRESSES)
@example("pci:0000:01:1f.7")
@example("pci:0000:01:20.0")
@example("pci:0000:01:00.8")
@example("pci:000A:01:00.0")
@example("pci:+000:01:00.0")
def test_a_plain_address_is_read_as_any_other(text: str) -> None:
    assert result_of(normalise_id, text) == result_of(pci_id, text.removeprefix("pci:"))
