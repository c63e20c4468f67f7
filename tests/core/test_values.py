"""What each kind of value of a report keeps, and the sentence with which it refuses the rest."""

from __future__ import annotations

from typing import Any

import pytest

from probe_core.model.complete import holds
from probe_core.model.field import (
    Choice,
    DeviceId,
    Flag,
    Free,
    FreeTable,
    Ids,
    Items,
    Number,
    Rejected,
    TableOf,
    Text,
    Value,
    Word,
)
from probe_core.model.parts import Link, ReportedPeak, StepFact
from probe_core.wording import INVALID

COUNT = Number(1, 8, whole=True)


PEAK = {
    **{"dtype": "fp16", "path": "matrix", "accumulate": "fp32", "sparsity": "dense"},
    **{"clock": "boost", "tflops": 5.0, "source": "a library"},
}

KEPT: list[tuple[Value, Any, Any]] = [
    (Text(), " a\tb ", "a b"),
    (Text(), "x" * 256, "x" * 256),
    (Text(), "x" * 257, "x" * 255 + "…"),
    (Word(), "GDDR6", "gddr6"),
    (Choice("a", "b"), "b", "b"),
    (Flag(), False, False),
    (COUNT, 1, 1),
    (COUNT, 8.0, 8),
    (Number(0, 1), 0.5, 0.5),
    (Items(COUNT, limit=2), [1, 2], [1, 2]),
    (TableOf(COUNT, limit=2), {"a": 1, "b": None}, {"a": 1}),
    (TableOf(COUNT), {"k" * 41: 1}, {"k" * 39 + "…": 1}),
    (Free(), [None, True, 0.5, "a\n"], [None, True, 0.5, "a "]),
    (Free(), [-(1 << 63), (1 << 64) - 1], [-(1 << 63), (1 << 64) - 1]),
    (Free(), [[[[1]]]], [[[[1]]]]),
    (Free(), [0] * 64, [0] * 64),
    (FreeTable(), {"a": {"b": {"c": {"d": 1}}}}, {"a": {"b": {"c": {"d": 1}}}}),
    (FreeTable(), {"k" * 81: 1}, {"k" * 79 + "…": 1}),
    (Ids(), ["uuid:A", "uuid:A"], ["uuid:A"]),
    (Link(), {"kind": "NVLink", "more": [1]}, {"kind": "NVLink", "more": [1]}),
    (ReportedPeak(), PEAK, {**PEAK, "confidence": "reported"}),
    (ReportedPeak(), {**PEAK, "confidence": "derived"}, {**PEAK, "confidence": "derived"}),
]  # fmt: skip

REFUSED: list[tuple[Value, Any, str]] = [
    (Text(), 5, "expected text, found int 5"),
    (Text(), " \t", "it is empty"),
    (Choice("a", "b"), "c", "expected one of a, b, found str 'c'"),
    (Flag(), 1, "expected true or false, found int 1"),
    (COUNT, True, "expected a number, found bool True"),
    (COUNT, 0, "0 is not between 1 and 8"),
    (COUNT, 9, "9 is not between 1 and 8"),
    (COUNT, 1.5, "expected a whole number, found 1.5"),
    (COUNT, 10**400, "1" + "0" * 38 + "… is not between 1 and 8"),
    (Items(COUNT, limit=2), (1,), "expected a list, found tuple (1,)"),
    (Items(COUNT, limit=2), [1, 2, 3], "more than 2 entries"),
    (TableOf(COUNT, limit=2), [], "expected a small table, found list []"),
    (TableOf(COUNT, limit=2), {"a": 1, "b": 2, "c": 3}, "expected a small table, found a table"),
    (TableOf(COUNT), {INVALID: "a set"}, "expected a small table, found a set"),
    (Free(), object, "not plain data: type <class 'object'>"),
    (Free(), 1 << 64, "a whole number beyond 64 bits"),
    (Free(), -(1 << 63) - 1, "a whole number beyond 64 bits"),
    (Free(), float("inf"), "inf is not finite"),
    (Free(), [[[[[1]]]]], "not small plain data: list [1]"),
    (Free(), [0] * 65, "not small plain data: list [" + "0, " * 24 + "0…"),
    (FreeTable(), [], "expected a table, found list []"),
    (FreeTable(), {"a": {"b": {"c": {"d": {}}}}}, "not small plain data: a table"),
    (FreeTable(), {INVALID: "a set"}, "not small plain data: a set"),
    (FreeTable(), {str(number): 0 for number in range(65)}, "not small plain data: a table"),
    (DeviceId(), 5, "an id must be text, found int 5"),
    (Ids(), [], "expected a list of ids, found list []"),
    (Ids(), [f"uuid:{number}" for number in range(65)], "more than 64 ids; the first were kept"),
    (
        ReportedPeak(),
        {"dtype": "fp16"},
        "a peak needs path, accumulate, sparsity, clock, tflops, source, confidence",
    ),
    (ReportedPeak(), PEAK | {"source": None}, "a peak needs source, confidence"),
    (Link(), {"peers": 2}, "a link needs a kind"),
    (Link(), {"kind": "nvlink", "width": "x"}, "a link's width: expected a number, found str 'x'"),
    (StepFact(), {"step": "library", "status": "ok"}, "a step needs evidence"),
    (StepFact(), {"evidence": "there"}, "a step needs step, status"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "kept"), KEPT)
def test_it_is_kept_in_its_one_form(kind: Value, value: Any, kept: Any) -> None:
    found = kind.check(value)
    assert found == kept
    assert type(found) is type(kept)
    assert holds(kind, found)


@pytest.mark.parametrize(("kind", "value", "reason"), REFUSED)
def test_it_is_refused_with_the_reason(kind: Value, value: Any, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        kind.check(value)
    assert str(caught.value) == reason
