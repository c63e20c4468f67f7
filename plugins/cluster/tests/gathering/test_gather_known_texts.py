"""What reports share is parsed once for all nodes: the rest of each is as sound as before."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_cluster.gathering.files import Files
from probe_cluster.gathering.gathered import gather
from probe_cluster.gathering.known_texts import KnownTexts

PEAK = {"dtype": "fp16", "tflops": 1.5, "source": "a, b; [c]"}
SOURCES = {"name": "bus", "peaks": "chipdb"}


def devices(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"schema": 1, "devices": [{"id": f"gpu:{at}", **own} for at, own in enumerate(parts)]}


def outcome(text: bytes) -> object:
    """Return the value of a text without the parts that may be left out; of no JSON an error."""
    try:
        return without(json.loads(text))
    except ValueError:
        return ValueError


def without(value: Any) -> Any:
    if isinstance(value, dict):
        names = (name for name in value if name not in ("peaks", "sources"))
        return {name: without(value[name]) for name in names}
    return [*map(without, value)] if isinstance(value, list) else value


def test_what_devices_share_is_left_out_and_the_rest_stays() -> None:
    other = {**PEAK, "tflops": 3.0}
    known = KnownTexts()
    for own in ([PEAK], [other, PEAK]):
        text = json.dumps(devices(*[{"peaks": own, "a": 1, "sources": SOURCES}] * 3)).encode()
        rest = {"peaks": None, "a": 1, "sources": None}
        assert json.loads(known.left_out(text)) == devices(rest, rest, rest)


@pytest.mark.parametrize(
    "peaks",
    [[], None, "[{", [{"a": "}]"}], [{"a": [{}]}], [{"source": "x" * 40_000}], [PEAK, "}]"], [[]]],
)
def test_what_cannot_be_cut_at_once_is_parsed_as_it_is(peaks: Any) -> None:
    text = json.dumps(devices({"peaks": peaks, "sources": "}"}, {"peaks": peaks})).encode()
    assert KnownTexts().left_out(text) == text


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": 0, "b, \\"peaks": [{}], "c": 1}',
        b'{"a": "b, \\"peaks\\": [{}]"}',
        b'"a, "peaks": [{}]',
        b'"a\\\\, "peaks": [{}]',
        b'[0, "peaks": [{}]]',
        b'{"a": 0, "peaks": [{}]]',
        b'{"a": 0, "peaks": [{}],}',
        b'{"a": 0, "peaks": [{}]1}',
        b'{"a": 0, "peaks": [{} {}]}',
        b'{"a": 0, "peaks": [{"n": NaN}]}',
        b'{"a": 0, "peaks": [{}], "peaks": [{}], "sources": {}, "sources": {"a": 1}}',
    ],
)
def test_no_text_becomes_json_or_ceases_to_be(text: bytes) -> None:
    known = KnownTexts()
    known.left_out(b', "peaks": [{}], "sources": {}')  # known, wherever it stands
    assert outcome(known.left_out(text)) == outcome(text)


PIECES = [
    ', "peaks": ',
    ', "sources": ',
    "[{}]",
    "{}",
    '{"a": 1}',
    "[",
    "]",
    "{",
    "}",
    ",",
    '"',
    "\\",
]
WORDS = [*PIECES, " ", ":", "1", '"a": ', "null", "peaks", "sources"]


@pytest.mark.heavy
@given(st.lists(st.lists(st.sampled_from(WORDS)).map("".join), min_size=2))
def test_any_text_is_json_with_its_known_parts_if_it_is_without(texts: list[str]) -> None:
    known = KnownTexts()
    for text in texts:
        assert outcome(known.left_out(text.encode())) == outcome(text.encode())


def test_of_too_many_kinds_the_others_stay() -> None:
    known = KnownTexts()
    texts = [json.dumps(devices({"peaks": [{"tflops": at}]})).encode() for at in range(70)]
    left = [known.left_out(text) != text for text in texts]
    assert left == [True] * 64 + [False] * 6


@pytest.mark.parametrize(("count", "is_cut"), [(511, True), (513, False)])
def test_of_too_many_parts_the_others_stay(count: int, is_cut: bool) -> None:
    """A text of nothing but beginnings would be looked through 300,000 times."""
    known = KnownTexts()
    part = b', "peaks": [{}]'
    assert known.left_out(part) == b', "peaks": null'
    text = b', "peaks": 1, "sources": 1' * count
    assert known.left_out(text + part) == text + (b', "peaks": null' if is_cut else part)


def test_what_is_no_json_is_tried_64_times() -> None:
    known = KnownTexts()
    text = b', "peaks": [{}}], "sources": 1' * 70
    assert known.left_out(text) == text
    assert known.left_out(b', "peaks": [{}]') == b', "peaks": [{}]'


@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_node_keeps_its_whole_report(tmp_path: Path, is_ascii: bool) -> None:
    peak = {"tflops": 1.5, "source": "Bücher"}
    document = devices({"kind": "gpu", "peaks": [peak], "fp16": 1.5, "sources": SOURCES})
    for name in ("a", "b"):
        text = json.dumps(document, ensure_ascii=is_ascii)
        (tmp_path / name).write_text(text, encoding="utf-8")
    gathered = asyncio.run(gather(Files([str(tmp_path / "a"), str(tmp_path / "b")])))
    assert [node.status for node in gathered.nodes.values()] == ["ok", "ok"]
    for node in gathered.nodes.values():
        assert node.text == json.dumps(document).encode()
        assert node.report()["devices"][0]["peaks"][0]["source"] == "Bücher"
