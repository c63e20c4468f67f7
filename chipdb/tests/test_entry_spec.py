"""Kinds of values: what is wrong with one, in which words, at the bounds of each."""

import math

import pytest

from probe_chipdb.entry.spec import (
    MAX_DEPTH,
    Choice,
    Flag,
    ListOf,
    MapOf,
    Number,
    Spec,
    Table,
    Text,
    depth,
    did_you_mean,
)
from probe_chipdb.entry.validate import _good_part, _top

SHORT = Text("t", most=3)
WORD = Text("w", pattern="[a-z]+", hint="write letters")
CLOCK = Number("c", 100, 5000, "MHz")
WHOLE = Number("n", 1, 64, whole=True)
LARGE = Number("l", 1, 1 << 20, "units")
NUMBERS = ListOf(WHOLE, most=3)
FORM = Table({"a": WHOLE, "b": WORD}, need=("a",))
MAP = MapOf("[a-z]+", WHOLE, "m", "write letters")
QUOTE = "write it in double quotes"


@pytest.mark.parametrize(
    ("spec", "value", "faults"),
    [
        (SHORT, "abc", []),
        (SHORT, 3, [("x", "3 is no text", QUOTE)]),
        (SHORT, "abcd", [("x", "a text of 4 characters", "write 1 to 3, or leave it out")]),
        (SHORT, " ", [("x", "a text of 1 characters", "write 1 to 3, or leave it out")]),
        (SHORT, "a\x1b", [("x", r"'a\x1b' has a control character", "remove it")]),
        (Text(), "a" * 256, []),
        (Text(), "a" * 257, [("x", "a text of 257 characters", "write 1 to 256, or leave it out")]),
        (WORD, "abc", []),
        (WORD, "abc1", [("x", "'abc1' is not well formed", "write letters")]),
        (Choice("c", "a", "b"), "b", []),
        (Choice("c", "a", "b"), "c", [("x", "'c' is unknown", "write one of a, b")]),
        (CLOCK, 100, []),
        (CLOCK, 5000.0, []),
        (CLOCK, True, [("x", "True is no number", "write 100 to 5000 MHz")]),
        (CLOCK, "5", [("x", "'5' is no number", "write 100 to 5000 MHz")]),
        (CLOCK, math.inf, [("x", "inf is not finite", "leave out what is not known")]),
        (
            CLOCK,
            1_500_000,
            [
                (
                    "x",
                    "1500000 is out of bounds",
                    "it should be 100 to 5000 MHz (a slip of x1000? 1500 would do)",
                )
            ],
        ),
        (
            CLOCK,
            1.5,
            [
                (
                    "x",
                    "1.5 is out of bounds",
                    "it should be 100 to 5000 MHz (a slip of x0.001? 1500 would do)",
                )
            ],
        ),
        (
            CLOCK,
            15e8,
            [
                (
                    "x",
                    "1500000000 is out of bounds",
                    "it should be 100 to 5000 MHz (a slip of x1000000? 1500 would do)",
                )
            ],
        ),
        (CLOCK, 50_000, [("x", "50000 is out of bounds", "it should be 100 to 5000 MHz")]),
        (LARGE, -1, [("x", "-1 is out of bounds", "it should be 1 to 1048576 units")]),
        (WHOLE, 64, []),
        (WHOLE, 2.0, [("x", "2.0 should be whole", "drop the fraction")]),
        (Flag("f"), False, []),
        (Flag("f"), 0, [("x", "0 is not true or false", "write true or false, without quotes")]),
        (NUMBERS, [1, 2, 3], []),
        (NUMBERS, 1, [("x", "1 is no list", "put it in square brackets")]),
        (NUMBERS, [], [("x", "a list of 0", "write 1 to 3, or leave it out")]),
        (NUMBERS, [1, 2, 3, "x"], [("x", "a list of 4", "write 1 to 3, or leave it out")]),
        (NUMBERS, [1, 2, 1], [("x[2]", "1 is there twice", "remove one")]),
        (NUMBERS, [1, "2"], [("x[1]", "'2' is no number", "write 1 to 64")]),
        (FORM, {"a": 1, "b": "c"}, []),
        (FORM, [], [("x", "[] is no table", "write { key = value, ... }")]),
        (FORM, {"b": "1"}, [
            ("x.a", "is missing", "add it"), ("x.b", "'1' is not well formed", "write letters"),
        ]),
        (FORM, {"a": 1, "zz": 2}, [("x.zz", "is no known key", "known keys: a, b")]),
        (MAP, {"ab": 1}, []),
        (MAP, 3, [("x", "3 is no table", "write { key = value, ... }")]),
        (MAP, {"a1": 65}, [
            ('x."a1"', "the key is not well formed", "write letters"),
            ('x."a1"', "65 is out of bounds", "it should be 1 to 64"),
        ]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_value(
    spec: Spec, value: object, faults: list[tuple[str, str, str]]
) -> None:
    assert [tuple(fault) for fault in spec.faults(value, "x")] == faults


def test_a_table_without_a_name_names_its_keys_alone() -> None:
    assert [field for field, *_ in FORM.faults({"c": 1}, "")] == ["a", "c"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a" * 58, repr("a" * 58)),
        ("a" * 59, "'" + "a" * 56 + "..."),
        (list(range(20)), repr(list(range(20)))[:57] + "..."),
        (list(range(21)), "a list of 21"),
        ({str(number): 0 for number in range(21)}, "a table of 21"),
        (["a"] * 3, "['a', 'a', 'a']"),
    ],
)
def test_a_long_value_is_shown_short(value: object, shown: str) -> None:
    ((_, fault, _),) = Choice("c", "a").faults(value, "x")
    assert fault == f"{shown} is unknown"


@pytest.mark.parametrize(
    ("value", "spec", "good"),
    [
        ([1, 99, 2], NUMBERS, [1, 2]),
        ([1, 2, 3, 4], NUMBERS, [1, 2, 3]),
        ([1], WHOLE, None),
        ({"a": 1, "b": "1", "c": 2}, FORM, {"a": 1}),
        ({"a": 99, "b": "c"}, FORM, None),
        ({"a": 1}, NUMBERS, None),
        ("x", None, None),
        (3, FORM, None),
    ],
)
def test_what_is_still_good_of_a_bad_value(value: object, spec: Spec | None, good: object) -> None:
    assert _good_part(value, spec) == good


@pytest.mark.parametrize(
    ("field", "top"),
    [("clock.boost", "clock"), ("pci[2]", "pci"), ('explain."fp32"', "explain"), ("id", "id")],
)
def test_the_first_key_of_a_field(field: str, top: str) -> None:
    assert _top(field) == top


def test_the_nearest_key_or_all_of_them() -> None:
    assert did_you_mean("colck", ("clock", "power")) == "did you mean 'clock'?"
    assert did_you_mean("zzz", ("clock", "power")) == "known keys: clock, power"


@pytest.mark.parametrize(
    ("value", "limit", "count"),
    [(1, 5, 0), ([], 5, 1), ([1, {"a": [2]}], 5, 3), ([[[[]]]], 2, 2), ([], 0, 0)],
)
def test_how_deep_values_nest(value: object, limit: int, count: int) -> None:
    assert depth(value, limit) == count
    deep: object = 1
    for _ in range(MAX_DEPTH + 5):
        deep = [deep]
    assert depth(deep) == MAX_DEPTH


def test_the_schemas_of_editors() -> None:
    assert Text("t", "a+", most=9).json_schema() == {
        "type": "string", "minLength": 1, "maxLength": 9, "pattern": "^(?:a+)$", "description": "t",
    }  # fmt: skip
    assert CLOCK.json_schema() == {
        "type": "number", "minimum": 100, "maximum": 5000, "description": "c",
    }  # fmt: skip
    assert NUMBERS.json_schema() == {
        "type": "array", "items": WHOLE.json_schema(), "minItems": 1, "maxItems": 3,
        "uniqueItems": True,
    }  # fmt: skip
    assert WHOLE.json_schema()["type"] == "integer"
    assert FORM.json_schema()["required"] == ["a"]
    assert FORM.json_schema()["additionalProperties"] is False
    assert "required" not in Table({"a": WHOLE}).json_schema()
    assert MAP.json_schema()["patternProperties"] == {"^(?:[a-z]+)$": WHOLE.json_schema()}
    assert MAP.json_schema()["additionalProperties"] is False
