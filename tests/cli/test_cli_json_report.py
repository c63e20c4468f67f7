"""The report's own writer gives the text that `json.dumps` gives, whatever devices have."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probe_core.cli.json_report import write_report

VALUES = st.sampled_from([0, 1, 0.0, -0.0, 1.0, True, False, None, "x", "\x00peaks", "é\ud800"])
PEAKS = st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), max_size=2)
DEVICES = st.fixed_dictionaries(
    {"id": VALUES}, optional={"peaks": PEAKS | VALUES, "links": PEAKS, "name": VALUES}
)


@settings(deadline=None)
@given(st.lists(DEVICES, max_size=5), st.dictionaries(st.text(max_size=3), VALUES, max_size=2))
def test_the_text_is_that_of_json(devices: list[dict[str, Any]], other: dict[str, Any]) -> None:
    report = {"schema": 1, **other, "devices": devices, "findings": []}
    assert write_report(report) == json.dumps(report)


TWINS = [
    ([{"tflops": 1}], [{"tflops": 1.0}]),
    ([{"tflops": True}], [{"tflops": 1}]),
    ([{"tflops": 0.0}], [{"tflops": -0.0}]),
    ([{"a": 1, "b": 1}], [{"b": 1, "a": 1}]),
    ([{"a": 1}, {"b": 2}], [{"a": 1, "b": 2}]),
    ([{"a": float("nan")}], [{"a": float("inf")}]),
]


@pytest.mark.parametrize(("first", "second"), TWINS)
def test_peaks_that_are_nearly_equal_are_encoded_apart(first: object, second: object) -> None:
    report = {"devices": [{"peaks": peaks, "end": None} for peaks in (first, second, first)]}
    assert write_report(report) == json.dumps(report)


class Word(str):
    """Text that is no plain data to marshal."""

    __slots__ = ()


def test_a_text_that_looks_like_the_mark_is_a_text() -> None:
    peaks = [{"dtype": "fp32", "tflops": 1.5}]
    names = ["\x00peaks", 'a"\x00peaks"', Word("x")]
    report = {"devices": [{"peaks": peaks, "name": name} for name in names]}
    assert write_report(report) == json.dumps(report)
    report["devices"][0]["peaks"] = [{"dtype": Word("fp32")}]
    assert write_report(report) == json.dumps(report)


@pytest.mark.parametrize("value", [{1, 2}, b"x", object()])
def test_what_is_not_json_is_refused_as_json_does(value: object) -> None:
    for field in ("peaks", "name"):
        report = {"devices": [{"peaks": [1], field: [value]}]}
        with pytest.raises(TypeError) as expected:
            json.dumps(report)
        with pytest.raises(TypeError) as caught:
            write_report(report)
        assert str(caught.value) == str(expected.value)
