"""Columns, folded lines and characters of a terminal, at the width where each changes."""

from __future__ import annotations

import pytest

from probe_core.commands.text import (
    aligned,
    bandwidth,
    columns,
    cut,
    encodable,
    folded,
    listed,
    paint,
    rate,
    size,
    table_width,
    width_of,
    widths_of,
    wrapped,
)


def test_styles_are_codes_where_colours_are_on() -> None:
    codes = {"bold": 1, "dim": 2, "red": 31, "yellow": 33, "green": 32, "cyan": 36}
    assert {style: paint("a", style, True) for style in codes} == {
        style: f"\033[{code}ma\033[0m" for style, code in codes.items()
    }
    assert (paint("a", None, True), paint("a", "red", False)) == ("a", "a")


def test_characters_that_an_encoding_lacks() -> None:
    assert encodable("–—└×·≥…✓✕→é漢", "ascii") == "--+-x|>=...+x->??"
    assert encodable("é–", "latin-1") == "é-"
    assert encodable("é–", "utf-8") == "é–"


def test_columns_that_characters_take() -> None:
    assert [width_of(text) for text in ("", "ab", "é", "e\u0301", "漢字", "Ａ")] == [
        0, 2, 1, 1, 4, 2
    ]  # fmt: skip
    assert [cut("abcd", width) for width in (5, 4, 3, 1, 0)] == ["abcd", "abcd", "ab…", "…", ""]
    assert [cut("漢字", width) for width in (4, 3, 2, 1)] == ["漢字", "漢…", "…", "…"]


ROWS = [["name of a device", "1", "xx"], ["b", "222"]]


def test_a_table_is_cut_and_then_loses_columns() -> None:
    assert columns(ROWS, 25, right=[1]) == ["name of a device    1  xx", "b                 222"]
    assert columns(ROWS, 24, right=[1]) == ["name of a devi…    1  xx", "b                222"]
    assert columns(ROWS, 21, right=[1]) == ["name of a d…    1  xx", "b             222"]
    assert columns(ROWS, 20, right=[1]) == ["name of a d…    1", "b             222"]
    assert columns(ROWS, 5) == ["name of a d…  1", "b             222"]
    assert columns([["a", "long text here", "c"]], 18, flexible=1) == ["a  long text h…  c"]
    assert columns([["a", "long text here", "c"]], 17, flexible=1) == ["a  long text h…"]
    assert columns([], 10) == []
    assert columns([[]], 10) == [""]
    assert columns([["ab"]], 1) == ["ab"]


def test_widths_of_tables() -> None:
    assert widths_of([["a", "漢"], ["abc", ""]]) == [3, 2]
    assert [table_width(widths) for widths in ([], [3], [3, 2], [1, 1, 1])] == [0, 3, 7, 7]
    assert aligned(["a", "b", ""], [3, 2, 4], right={1}) == "a     b"
    assert aligned(["漢", "b"], [3, 1]) == "漢   b"


def test_lines_broken_at_spaces() -> None:
    assert wrapped("aa bb cc", 5) == ["aa bb", "cc"]
    assert wrapped("aa bb cc", 4) == ["aa", "bb", "cc"]
    assert wrapped("aa  bb", 7, "  ") == ["  aa bb"]
    assert wrapped("aa bb", 6, "  ") == ["  aa", "  bb"]
    assert wrapped("long-word a", 4) == ["long-word", "a"]
    assert wrapped("", 4) == []


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("abcdefghi", 9, ["abcdefghi"]),
        ("abcdefghij", 9, ["abcdefghi", "j"]),
        ("abcdefghi", 3, ["abcdefgh", "i"]),  # no narrower than eight
        ("/usr/lib/x", 9, ["/usr/lib/", "x"]),
        ("abcd/efghij", 9, ["abcd/", "efghij"]),
        ("abc/defghij", 9, ["abc/defgh", "ij"]),  # too early
        ("ab,cd:ef-gh", 10, ["ab,cd:ef-", "gh"]),
        ("aa bbbbbbbbb", 9, ["aa", "bbbbbbbbb"]),
        ("漢" * 5, 8, ["漢" * 4, "漢"]),
        ("漢" * 5, 9, ["漢" * 4, "漢"]),
    ],
)
def test_lines_broken_inside_words(text: str, width: int, lines: list[str]) -> None:
    assert folded(text, width) == lines


def test_indented_lines() -> None:
    assert folded("aaaa bbbb cccc", 12, "- ", "  ") == ["- aaaa bbbb", "  cccc"]
    assert folded("aaaa bbbb cccc", 12, "  ") == ["  aaaa bbbb", "  cccc"]
    assert folded("aaaa bbbb cccc", 13, "", "    ") == ["aaaa bbbb", "    cccc"]


def test_parts_joined_on_lines() -> None:
    assert listed(["aaaa", "", "bbbb"], 11) == ["aaaa · bbbb"]
    assert listed(["aaaa", "bbbb"], 10) == ["aaaa", "bbbb"]
    assert listed(["aaaa", "bbbb"], 12, "- ", "  ") == ["- aaaa", "  bbbb"]
    assert listed(["aaaa", "bbbb"], 13, "- ", "  ") == ["- aaaa · bbbb"]
    assert listed(["aaaa", "bbbb"], 10, separator=", ") == ["aaaa, bbbb"]
    assert listed(["aaaa aaaa aaaa", "b"], 9, "- ", "  ") == ["- aaaa", "  aaaa", "  aaaa", "  b"]
    assert listed([], 9) == []


def test_rates_have_three_digits_and_no_more_after_rounding() -> None:
    rates = [None, 0.0, 9.99, 9.995, 99.94, 99.95, 1000.4]
    assert [rate(tera) for tera in rates] == ["–", "0.00", "9.99", "10.0", "99.9", "100", "1000"]
    speeds = [None, 9.94e9, 1e10, 1.008e12]
    assert [bandwidth(count) for count in speeds] == ["–", "9.9 GB/s", "10 GB/s", "1008 GB/s"]


def test_amounts_of_memory() -> None:
    counts = [None, 0, 1 << 30, (1 << 40) - 1, 1 << 40]
    assert [size(count) for count in counts] == ["–", "0 B", "1.0 GiB", "1024.0 GiB", "1.00 TiB"]
