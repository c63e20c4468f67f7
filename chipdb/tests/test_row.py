"""What is packed comes back, whatever it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_chipdb import table

plain = st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85"))


@given(plain)
def test_escape_comes_back_and_holds_no_separator(value: str) -> None:
    written = table.escape(value)
    assert table.unescape(written) == value
    assert not set(written) & set("\t\n|;")


@pytest.mark.heavy
@given(st.lists(st.lists(plain, min_size=2, max_size=4), min_size=1, max_size=4))
def test_parts_come_back(rows: list[list[str]]) -> None:
    written = "|".join(";".join(map(table.escape, values)) for values in rows)
    assert table.parts(written) == rows


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, ""),
        (2520.0, "2520"),
        (1.5, "1.5"),
        (999_999_999_999_999.0, "999999999999999"),
        (1e15, "1000000000000000.0"),
        (-1e15, "-1000000000000000.0"),
        (7, "7"),
        (True, "1"),
        (False, "0"),
        ("a|b", "a\\pb"),
    ],
)
def test_scalar(value: object, written: str) -> None:
    assert table.scalar(value) == written


def test_numbers() -> None:
    assert table.number("") is None
    assert table.number("1.25") == 1.25
    assert table.whole("") is None
    assert table.whole("12") == 12
    assert table.items("") == []
