"""Every answer is bounded, in pages that join to the whole, and of texts that hide nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probe_mcp.bounds import LIMIT, MAX_TEXT, _cut, _shortened, bounded, brief_device, clean


def size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def pages(document: dict[str, Any], field: str) -> list[dict[str, Any]]:
    result = [bounded(document, field, 0)]
    while result[-1]["cursor"] is not None:
        result.append(bounded(document, field, result[-1]["cursor"]))
    return result


def test_a_small_document_is_one_page() -> None:
    assert bounded({"a": 1, "list": [1, 2]}, "list", 0) == {
        "a": 1, "list": [1, 2], "total": 2, "cursor": None, "truncated": False, "shortened": [],
    }  # fmt: skip


def test_pages_join_to_the_whole_list() -> None:
    document = {"head": "x" * 400, "list": [{"id": at, "text": "é" * 500} for at in range(200)]}
    found = pages(document, "list")
    assert len(found) > 5
    assert [entry["id"] for page in found for entry in page["list"]] == list(range(200))
    assert all(size(page) <= LIMIT for page in found)
    assert [page["truncated"] for page in found] == [True] * (len(found) - 1) + [False]
    assert bounded(document, "list", 10_000)["list"] == []
    assert bounded(document, "list", -5)["list"][0]["id"] == 0


@pytest.mark.parametrize(
    "document",
    [
        {"list": [{"many": [{"text": "x" * 500}] * 900}]},
        {"list": [{f"k{at}": "x" * 500 for at in range(900)}]},
        {"head": {f"k{at}": ["x" * 500] * 9 for at in range(90)}, "list": [1] * 9},
        {"list": ["x" * 90_000]},
        {"list": None, "other": ["y" * 500] * 900},
    ],
)
def test_what_is_too_large_is_shortened_and_named(document: dict[str, Any]) -> None:
    for page in pages(document, "list"):
        assert size(page) <= LIMIT
    assert document["list"] is None or bounded(document, "list", 0)["list"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=60,
)


@pytest.mark.heavy
@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(max_size=9), JSON), st.integers(-3, 99))
def test_any_document_is_bounded(document: dict[str, Any], cursor: int) -> None:
    answer = bounded(document, "list", cursor)
    assert size(answer) <= LIMIT
    json.dumps(answer)


def test_texts_show_all_that_they_hold() -> None:
    hidden = "a\u202eb\u200bc\x1b[31md\U000e0041\nnext"
    assert clean({hidden: [hidden]}) == {"a b c [31md \nnext": ["a b c [31md \nnext"]}
    assert clean("x" * MAX_TEXT) == "x" * MAX_TEXT
    assert clean("x" * (MAX_TEXT + 1)) == f"{'x' * (MAX_TEXT - 1)}…"
    deep: Any = "x"
    for _ in range(99):
        deep = [deep]
    assert json.dumps(clean(deep)).count("[") == 33


def test_lists_that_are_cut_are_named() -> None:
    names: dict[str, None] = {}
    assert _cut({"a": [1, 2], "b": [[1, 2, 3]]}, 2, names) == {"a": [1, 2], "b": [[1, 2]]}
    assert list(names) == ["b"]
    many = {f"k{at}": ["x" * 100] * 9 for at in range(40)}
    value, named = _shortened(many, 9000)
    assert size(value) <= 9000
    assert named == list(many)[:32]
    assert _shortened(many, size(many)) == (many, [])
    assert _shortened(many, size(many) - 1)[1] == named


def test_a_device_in_brief_has_what_tells_it_apart() -> None:
    assert brief_device({"id": "a", "memory": None, "chip": None})["chip"] is None
