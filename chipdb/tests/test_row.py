"""What is packed comes back, whatever it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_chipdb import row

plain = st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85"))


@given(plain)
def test_escape_comes_back_and_holds_no_separator(value: str) -> None:
    written = row.escape(value)
    assert row.unescape(written) == value
    assert not set(written) & set("\t\n|;")


@given(st.lists(st.lists(plain, min_size=2, max_size=4), min_size=1, max_size=4))
def test_parts_come_back(rows: list[list[str]]) -> None:
    written = "|".join(";".join(map(row.escape, values)) for values in rows)
    assert row.parts(written) == rows


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, ""),
        (2520.0, "2520"),
        (1.5, "1.5"),
        (7, "7"),
        (True, "1"),
        (False, "0"),
        ("a|b", "a\\pb"),
    ],
)
def test_scalar(value: object, written: str) -> None:
    assert row.scalar(value) == written


def test_numbers() -> None:
    assert row.number("") is None
    assert row.number("1.25") == 1.25
    assert row.whole("") is None
    assert row.whole("12") == 12
    assert row.items("") == []
