"""The parent believes no byte that comes from a child, and the child's encoder never raises."""

from __future__ import annotations

import json
import math
from collections import UserDict
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_core.isolation import FRAME_LIMIT, MAX_DEVICES, MAX_FINDINGS, MAX_FRAMES
from probe_core.isolation.run import STRAY_LIMIT, TOTAL_LIMIT, Run
from probe_core.isolation.wire import ITEM_LIMIT, encode
from probe_core.model.ids import STATUSES
from probe_core.pipeline.validate import Collected
from probe_core.registry.prober import Prober
from probe_core.wording import INVALID

TOKEN = "0123456789abcdef"


def new_run() -> Run:
    return Run(Prober("x", "x"), TOKEN, "mark", 0.0)


def line(frame: object, token: str = TOKEN) -> bytes:
    return f"{token} {json.dumps(frame)}\n".encode()


def fed(*data: bytes) -> Run:
    run = new_run()
    for piece in data:
        run.feed(piece, 1.0)
    return run


END = line({"kind": "end", "status": "ok", "reason": None})


def test_frames_in_any_pieces_mean_the_same() -> None:
    stream = line({"kind": "device", "device": {"ids": ["x:1"]}}) + END
    for cut in range(len(stream)):
        run = fed(stream[:cut], stream[cut:])
        assert (run.status, run.sightings) == ("ok", [{"ids": ["x:1"]}])


FORGED = [
    (line([]), "cannot be read"),
    (line(None), "cannot be read"),
    (line({}), "cannot be read"),
    (line({"kind": "dance"}), "cannot be read"),
    (line({"kind": ["device"]}), "cannot be read"),
    (line({"kind": "device"}), "cannot be read"),
    (line({"kind": "end"}), "cannot be read"),
    (line({"kind": "end", "status": "splendid"}), "cannot be read"),
    (line({"kind": "end", "status": {}}), "cannot be read"),
    (f"{TOKEN} not json\n".encode(), "cannot be read"),
    (f"{TOKEN} ".encode() + b"\xff\xfe\n", "cannot be read"),
    (f"{TOKEN} {'[' * 100_000}\n".encode(), "cannot be read"),
    (f'{TOKEN} {{"kind":"device","device":{"9" * 5000}}}\n'.encode(), "cannot be read"),
    (TOKEN.encode() + b" " + b"x" * (FRAME_LIMIT + 200), "a frame of more than 1 MiB"),
    (b"stray\n" * (STRAY_LIMIT // 4), "flooded"),
]


@pytest.mark.parametrize(("data", "reason"), FORGED)
def test_a_forged_frame_ends_the_run(data: bytes, reason: str) -> None:
    run = fed(data)
    assert run.status == "protocol"
    assert reason in (run.reason or "")


def test_foreign_lines_are_noise() -> None:
    run = fed(b"hello\n", line({"kind": "end", "status": "crashed"}, "f" * 16), END)
    assert run.status == "ok"


def test_nothing_counts_after_the_end() -> None:
    run = fed(END + line({"kind": "device", "device": {}}), line({"kind": "bad"}))
    assert (run.status, run.sightings) == ("ok", [])


def test_an_endless_sender_is_stopped() -> None:
    run, piece = new_run(), line({"kind": "finding", "finding": "f" * 60_000})
    for _ in range(TOTAL_LIMIT // len(piece) + 1):
        run.feed(piece, 1.0)
    assert run.status == "resource"
    assert run.reason == "it sent more than 32 MiB"


def test_devices_are_counted_where_they_are_believed() -> None:
    device = line({"kind": "device", "device": {"ids": ["x:1"]}})
    run = fed(*[device] * (MAX_DEVICES + 1))
    assert (run.status, run.reason) == ("resource", f"more than {MAX_DEVICES} devices")
    assert len(run.sightings) == MAX_DEVICES


def test_findings_are_counted_where_they_are_believed() -> None:
    run = fed(*[line({"kind": "finding", "finding": {}})] * (MAX_FINDINGS + 5))
    assert (run.status, len(run.findings)) == (None, MAX_FINDINGS)


def test_frames_are_counted_where_they_are_read() -> None:
    run = fed(line({"kind": "touching", "device": "x:1"}) * MAX_FRAMES)
    assert run.status is None
    run.feed(line({"kind": "touching", "device": "x:1"}), 1.0)
    assert (run.status, run.reason) == ("protocol", f"it sent more than {MAX_FRAMES:,} frames")


def test_several_processes_together_bring_no_more_than_a_single_one() -> None:
    run = fed(*[line({"kind": "device", "device": {}})] * 3)
    run.sightings = [{"ids": [f"x:{n}"], "kind": "npu"} for n in range(MAX_DEVICES + 2)]
    run.findings = [{"code": "c", "what": "a", "why": "b", "fix": str(n)} for n in range(99)]
    run.finish("ok", None, 1.0)
    collected = Collected()
    collected.add_run(run)
    assert len(collected.observations) == MAX_DEVICES
    assert [f["code"] for f in collected.findings] == ["c"] * MAX_FINDINGS + ["value-rejected"]
    assert collected.findings[-1]["why"] == f"more than {MAX_DEVICES} devices; the first were kept"


def test_a_status_without_reason_gets_one() -> None:
    for status in STATUSES:
        run = fed(line({"kind": "end", "status": status, "reason": ""}))
        assert run.reason == ("" if status == "ok" else STATUSES[status])


def test_reasons_are_safe_for_a_terminal() -> None:
    run = fed(line({"kind": "end", "status": "call_error", "reason": "a\x1b[2Jb\u202ec" * 999}))
    assert "\x1b" not in str(run.reason)
    assert "\u202e" not in str(run.reason)
    assert len(str(run.reason)) <= 1024


def test_only_the_tail_of_standard_error_is_kept() -> None:
    run = new_run()
    for number in range(3000):
        run.feed_stderr(f"line {number} \x1b[31m\n".encode())
    assert len(run.tail) == 8192
    assert run.stderr_tail()[-1] == "line 2999 \ufffd[31m"
    assert len(run.stderr_tail()) == 20


@pytest.mark.heavy
@given(st.lists(st.binary(max_size=200), max_size=20))
def test_no_bytes_raise(pieces: list[bytes]) -> None:
    run = fed(*pieces, TOKEN.encode() + b" " + b"".join(pieces) + b"\n")
    assert run.status in (None, "protocol")
    assert run.sightings == []


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(), inner, max_size=6),
    max_leaves=40,
)


def plain(value: Any, depth: int = 0) -> bool:
    """Return whether `value` must come through unchanged."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) < 1 << 63
    if isinstance(value, (list, dict)):
        inner = value.values() if isinstance(value, dict) else value
        return depth < 16 and all(plain(item, depth + 1) for item in inner)
    return not isinstance(value, str) or len(value) <= 4096


@pytest.mark.heavy
@given(JSON)
def test_what_is_json_comes_through(value: Any) -> None:
    text = encode(value)
    assert text.isascii()
    assert "\n" not in text
    if plain(value):
        assert json.loads(text) == value


class Level(IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()

    def __len__(self) -> int:
        raise RuntimeError


ODD = [
    (float("nan"), {INVALID: "nan is not finite"}),
    (float("-inf"), {INVALID: "-inf is not finite"}),
    (10**400, {INVALID: "a number beyond 64 bits"}),
    (1 << 63, {INVALID: "a number beyond 64 bits"}),
    (-(1 << 63), {INVALID: "a number beyond 64 bits"}),
    ((1 << 63) - 1, (1 << 63) - 1),
    (1 - (1 << 63), 1 - (1 << 63)),
    (b"bytes", {INVALID: "a bytes is not JSON"}),
    ({1, 2}, {INVALID: "a set is not JSON"}),
    (object(), {INVALID: "a object is not JSON"}),
    (UserDict(a=1), {INVALID: "a UserDict is not JSON"}),
    (Level.HIGH, 3),
    ("\udc80", "\udc80"),
    (("a", 1), ["a", 1]),
    ({1: 2}, {"(int key)": 2}),
    (True, True),
]


@pytest.mark.parametrize(("value", "expected"), ODD)
def test_what_is_no_json_is_marked(value: object, expected: object) -> None:
    assert json.loads(encode(value)) == expected


@pytest.mark.parametrize("pair", [{"a": "b"}, {"a": 1}, ["b"]])
def test_what_would_be_too_many_values_is_left_out(pair: object) -> None:
    more = {INVALID: f"more than {ITEM_LIMIT} values"}
    half = ITEM_LIMIT // 2
    assert json.loads(encode([pair] * half)) == [pair] * half  # two values for each pair
    assert json.loads(encode([pair] * (half + 1))) == [pair] * (half - 1) + [more] * 2
    assert json.loads(encode([0] * ITEM_LIMIT)) == [0] * ITEM_LIMIT
    assert json.loads(encode([0] * (ITEM_LIMIT + 1))) == more
    device = {"first": 1, "wide": [0] * ITEM_LIMIT, "last": [1]}
    assert json.loads(encode(device)) == {"first": 1, "wide": more, "last": [1]}


def test_a_text_is_cut_and_a_depth_is_bounded() -> None:
    for length, kept in ((4096, "x" * 4096), (4097, "x" * 4095 + "…")):
        assert json.loads(encode("x" * length)) == kept
        assert json.loads(encode({"a": "x" * length})) == {"a": kept}
    value: Any = 7
    for _ in range(16):
        value = [value]
    assert json.loads(encode(value)) == value
    assert "nested deeper than 16" in encode([value])
    assert "nested deeper than 16" in encode({"a": value})


def test_a_subclass_of_text_cannot_lie_about_itself() -> None:
    assert encode([Text("abc")]) == '["abc"]'


@pytest.mark.heavy
def test_depth_breadth_and_length_are_bounded() -> None:
    deep: list[Any] = []
    loop: list[Any] = []
    loop.append(loop)
    for _ in range(100_000):
        deep = [deep]
    assert "nested deeper than 16" in encode(deep)
    assert "nested deeper than 16" in encode(loop)
    for wide in ([0] * 1_000_000, {str(n): n for n in range(200_000)}):
        assert len(encode(wide)) < 20 * ITEM_LIMIT
    assert len(json.loads(encode("x" * 10**7))) == 4096
    while deep:  # taken apart by hand: the interpreter's own way recurses
        deep = deep.pop()
