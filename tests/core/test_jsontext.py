"""JSON without the module json: the same values, the same texts, the same errors."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_core.jsontext import parse, parse_strict, write, write_shared

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
BAD = ["", "{", "[1,]", "1 2", '"\x00"', "nul", '{"a" 1}', "\ufeff1", "1" * 5000, "[" * 100_000]


def outcome(function: Any, value: object) -> object:
    """Return what a call gives: its value, or the type and text of its error."""
    try:
        return repr(function(value))
    except (ValueError, TypeError, RecursionError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_a_constant_is_no_json_where_that_is_asked(name: str) -> None:
    for text in (name, f'{{"a": [1, {name}]}}'.encode()):
        assert repr(parse(text)) == repr(json.loads(text))
        with pytest.raises(ValueError, match=f"^{name} is no number of JSON$"):
            parse_strict(text)
    assert parse_strict(f' {{"{name}": "{name}"}}') == {name: name}
    assert outcome(parse_strict, "[1,") == outcome(json.loads, "[1,")


@pytest.mark.heavy
@given(VALUES)
def test_every_value_is_written_and_read_as_json_does(value: object) -> None:
    text = json.dumps(value)
    assert write(value) == text
    assert repr(parse(text)) == repr(json.loads(text))
    assert repr(parse(f" \t\r\n{text}\n".encode())) == repr(json.loads(text))


@pytest.mark.heavy
@given(st.text() | st.binary())
def test_any_text_gives_the_value_or_error_of_json(text: str | bytes) -> None:
    assert outcome(parse, text) == outcome(json.loads, text)


@pytest.mark.parametrize("text", BAD)
def test_bad_text_gets_the_sentence_of_json(text: str) -> None:
    assert outcome(parse, text) == outcome(json.loads, text)


LOOP: list[Any] = [1]
LOOP += [{"loop": LOOP}, LOOP]


@pytest.mark.parametrize("value", [{1, 2}, {"a": object}, {(1, 2): 3}, b"x", LOOP])
def test_what_is_not_json_gets_the_sentence_of_json(value: object) -> None:
    assert outcome(write, value) == outcome(json.dumps, value)


ODD_KEYS = [{1: 1, None: 2, False: 3, 1.5: 4}, {"\ud800": "é\x00"}, {"a": ("b", ("a",))}]


@pytest.mark.parametrize("value", ODD_KEYS)
def test_odd_keys_and_texts_are_written_as_json_does(value: object) -> None:
    assert write(value) == json.dumps(value)


def test_what_tables_share_is_written_as_if_they_did_not() -> None:
    first, second = {"tflops": 1.5, "source": "é"}, {"tflops": None}
    peaks = [[first, second], [first, second], [first], [{**first}, second], []]
    sources = [{"name": "é"}, {"name": "é"}, {}, {"name": "é", "id": "bus"}, {"id": "bus"}]
    pairs = zip(peaks, sources, strict=True)
    devices = [{"id": "x", "peaks": own, "sources": told} for own, told in pairs]
    document = {"schema": 1, "devices": devices, "findings": [{"peaks": [first]}]}
    assert write_shared(document, "devices", "peaks", "sources") == json.dumps(document)
    assert write_shared(document, "devices", "peaks") == json.dumps(document)
    assert devices[0]["peaks"] is peaks[0]


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, null]}', "{", '{"a": 1, "a": 2}'])
def test_it_holds_where_json_was_never_imported(text: str) -> None:
    """Up to Python 3.12 the scanner then fails with a SystemError instead of a sentence."""
    code = f"""
from probe_core.jsontext import parse
try:
    print(repr(parse({text!r})))
except ValueError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    try:
        expected = repr(json.loads(text))
    except ValueError as error:
        expected = f"{type(error).__name__} {error}"
    assert done.stdout.strip() == expected
