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


ROOM = LIMIT - len("{}") - 400
"""Bytes of a page's entries, each with the two between it and the next."""


@pytest.mark.parametrize("letter", ["x", "é"])
def test_a_page_is_filled_to_its_last_byte(letter: str) -> None:
    entry = letter * (78 // len(letter.encode()))
    assert 239 * (size(entry) + 2) == ROOM
    first, second = pages({"list": [entry] * 240}, "list")
    assert first == {
        "list": [entry] * 239, "total": 240, "cursor": 239, "truncated": True, "shortened": [],
    }  # fmt: skip
    assert (second["list"], second["cursor"], second["truncated"]) == ([entry], None, False)


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [
        ([590] * 27 + [589] * 6, 33),  # as large as a page can be
        ([590] * 28 + [589] * 5, 16),
        ([303] * 13 + [302] * 51 + [1], 16),  # of 64 the list would fill what lies between, too
        ([303] * 12 + [302] * 52 + [1], 64),
    ],
    ids=range(4),
)
def test_an_entry_that_is_larger_than_a_page_is_shortened(lengths: list[int], kept: int) -> None:
    document = {"list": [["x" * length for length in lengths], "next"]}
    page = bounded(document, "list", 0)
    fills = kept != 16
    assert [len(entry) for entry in page["list"]] == ([kept] if fills else [kept, len("next")])
    assert page["shortened"] == ([] if kept == len(lengths) else [""])
    assert (page["cursor"], page["truncated"]) == (1 if fills else None, True)


def test_what_is_cut_of_head_and_entry_is_named_once() -> None:
    texts = ["x" * 500] * 60
    answer = bounded({"a": texts, "list": [{"a": texts, "b": texts}]}, "list", 0)
    (entry,) = answer["list"]
    assert (len(answer["a"]), len(entry["a"]), len(entry["b"])) == (16, 4, 4)
    assert (answer["shortened"], answer["cursor"]) == (["a", "b"], None)
    assert answer["truncated"] is True


def test_the_largest_fields_are_left_out_where_no_list_is() -> None:
    many = {f"k{at}": "x" * (100 + at) for at in range(90)}
    value, named = _shortened(many, 900)
    assert named == [f"k{at}" for at in range(89, 57, -1)]
    assert size(value) <= 900
    assert _shortened({"small": 1, "large": "x" * 90}, 30) == (
        {"small": 1, "large": None},
        ["large"],
    )
    assert _shortened({"small": 1, "large": "x" * 90}, 27)[0] == {"small": 1, "large": None}
    assert _shortened({"small": 1, "large": "x" * 90}, 26)[0] is None
    assert _shortened(["x" * 90] * 9, 94) == (["x" * 90], [""])
    assert _shortened(["x" * 90] * 9, 93) == (None, [""])


def test_a_device_in_brief_has_what_tells_it_apart() -> None:
    same = {"id": "a", "kind": "gpu", "vendor": "amd", "name": "b", "parent": None}
    same |= {"power_state": "D0", "processes": 2, "driver": {"name": "amdgpu"}}
    memory = {"kind": "dedicated", "total": 3, "free": 1, "usable": 2}
    readiness = {"state": "ready", "broken": None}
    device = {
        **same,
        "chip": {"id": "c", "name": "d"},
        "memory": {**memory, "used": 2},
        "links": [],
    }
    device["readiness"] = {**readiness, "steps": []}
    assert brief_device(device) == {
        **same, "chip": "c", "memory": memory, "readiness": readiness,
    }  # fmt: skip
    assert brief_device({"id": "a", "memory": None, "chip": None}) == {
        "id": "a",
        **dict.fromkeys(("kind", "vendor", "name", "parent", "power_state", "processes")),
        **{"chip": None, "memory": dict.fromkeys(memory), "driver": None},
        "readiness": dict.fromkeys(readiness),
    }
