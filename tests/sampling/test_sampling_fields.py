"""One table of a sample's fields: the types, the order and the page follow it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from probe_core.model import document
from probe_core.model.sample_check import NO_REASON, check_sample, without_figures
from probe_core.model.sample_fields import SAMPLE_FIELDS, STATUSES
from probe_core.wording import INVALID

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/samples.md"
NESTED = {
    "activity": document.ActivityDoc,
    "memory": document.LiveMemoryDoc,
    "clocks_mhz": document.LiveClocksDoc,
    "links": document.LiveLinkDoc,
    "processes": document.ProcessDoc,
    "counters": document.CountersDoc,
    "xids": document.XidDoc,
    "pressure": document.PressureDoc,
}


def test_the_types_have_the_fields_of_the_table() -> None:
    frame = ["device", "prober", "status", "reason"]
    assert list(get_type_hints(document.SampleDoc)) == [*frame, *SAMPLE_FIELDS, "unknown"]
    assert {name for name, field in SAMPLE_FIELDS.items() if field.fields} == set(NESTED)
    for name, kind in NESTED.items():
        assert list(get_type_hints(kind)) == list(SAMPLE_FIELDS[name].fields or ())
    raw = set(get_type_hints(document.RawSample))
    assert raw == {"device", "status", "reason", "unknown", *SAMPLE_FIELDS}


def test_the_page_has_every_field_with_its_unit() -> None:
    page = PAGE.read_text()
    for name, field in SAMPLE_FIELDS.items():
        assert f"| `{name}` | {field.unit} | {field.doc} |" in page
        mark = "[]" if name in ("links", "processes", "xids") else ""
        for key, inner in (field.fields or {}).items():
            assert f"| `{name}{mark}.{key}` | {inner.unit} | {inner.doc} |" in page
    for status, meaning in STATUSES.items():
        assert f"| `{status}` | {meaning} |" in page


def test_a_sample_without_figures_has_every_key() -> None:
    sample = without_figures("cpu:0", "asleep", "it sleeps", None)
    assert list(sample) == list(get_type_hints(document.SampleDoc))
    assert sample["links"] == []
    assert without_figures("cpu:0", "asleep", "", None)["links"] is not sample["links"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("busy", True),
        ("busy", 1.0001),
        ("busy", -0.1),
        ("temperature_c", 655.35),
        ("temperature_c", "50"),
        ("power_w", 1e6),
        ("memory", []),
        ("links", {}),
        ("links", [7]),
        ("processes", "all"),
        ("throttled", [1]),
    ],
)
def test_what_is_absurd_is_unknown_and_never_zero(field: str, value: Any) -> None:
    sample, problems = check_sample({"device": "pci:0000:01:00.0", field: value}, "acme")
    assert sample
    assert sample[field] in (None, [])  # type: ignore[literal-required]
    assert sample["unknown"][field].startswith("refused: ")
    assert [name for name, _ in problems] == [field]


def test_text_of_a_prober_cannot_reach_a_terminal() -> None:
    raw = {"device": "x:1", "status": "unavailable", "reason": "\x1b[31mred\u202e"}
    sample, _ = check_sample(raw, "acme")
    assert sample
    assert "\x1b" not in str(sample["reason"])
    assert "\u202e" not in str(sample["reason"])


GPU = "pci:0000:01:00.0"
REFUSED: list[tuple[object, list[tuple[str, str]]]] = [
    ([], [("sample", "expected a mapping, found list")]),
    ({INVALID: "a set"}, [("sample", "expected a mapping, found a set")]),
    ({}, [("device", "the id 'None' is not `kind:value` of at most 256 characters")]),
    ({"device": GPU, "colour": 1}, [("colour", "it is not a field of a sample")]),
    ({"device": GPU, "c" * 61: 1}, [("c" * 59 + "…", "it is not a field of a sample")]),
    (
        {"device": GPU, "memory": {"free": 1}},
        [("memory.free", "it is not a field of a sample")],
    ),
    (
        {"device": GPU, "memory": {"used": 2, "total": 1}},
        [("memory.used", "2 of 1 bytes")],
    ),
    ({"device": GPU, "memory": {INVALID: "a set"}}, [("memory", "expected a table, found a set")]),
    ({"device": GPU, "xids": [1]}, [("xids", "expected a table, found int 1")]),
    (
        {"device": GPU, "links": [{}] * 65},
        [("links", "only the first 64 entries were kept")],
    ),
    (
        {"device": GPU, "links": [{}, {"width": 33}]},
        [("links.1.width", "33 is not between 1 and 32")],
    ),
]


@pytest.mark.parametrize(("raw", "problems"), REFUSED)
def test_what_is_refused_is_named_with_its_reason(
    raw: object, problems: list[tuple[str, str]]
) -> None:
    assert check_sample(raw, "acme")[1] == problems


RATIO, BYTES, MHZ, WATTS = (0, 1.0), (0, 64 << 40), (0, 1e5), (0, 2e4)
COUNT, RATE, SECONDS = (0, (1 << 63) - 1), (0, 1e13), (0, 1e10)
BOUNDS: dict[str, tuple[float, float]] = {
    "busy": RATIO,
    **{f"activity.{name}": RATIO for name in ("sm", "tensor", "memory")},
    **{f"pressure.{name}": RATIO for name in ("cpu", "memory", "io")},
    **{f"memory.{name}": BYTES for name in ("used", "total")},
    "temperature_c": (-55, 150.0),
    "power_w": WATTS,
    "power_cap_w": WATTS,
    **{f"clocks_mhz.{name}": MHZ for name in ("sm", "memory")},
    "links.0.generation": (1, 10),
    "links.0.width": (1, 32),
    **{f"links.0.{name}": RATE for name in ("received", "sent")},
    "processes.0.pid": (1, (1 << 32) - 1),
    "processes.0.memory": BYTES,
    "counters.energy_j": (0, 1e15),
    **{f"counters.ecc_{name}": COUNT for name in ("corrected", "uncorrected")},
    **{f"counters.pcie_{name}": COUNT for name in ("replays", "correctable")},
    **{f"counters.nvlink_{name}": COUNT for name in ("crc", "replays", "recoveries")},
    **{f"counters.throttled_{name}_s": SECONDS for name in ("power", "thermal")},
    "xids.0.code": (1, 100_000),
    "xids.0.count": COUNT,
}
"""What figures are believed, both ends; whole numbers where the last end is one."""


def with_figure(path: str, value: float) -> dict[str, Any]:
    name, *inner = path.split(".")
    for key in reversed(inner):
        value = [value] if key == "0" else {key: value}  # type: ignore[assignment]
    return {"device": GPU, name: value}


def test_each_figure_is_believed_up_to_its_bounds() -> None:
    for path, (low, high) in BOUNDS.items():
        is_whole = isinstance(high, int)
        below, above = (low - 1, high + 1) if is_whole else (
            math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        )  # fmt: skip
        beyond = [below, above, low + 0.5] if is_whole else [below, above]
        found = [check_sample(with_figure(path, value), "acme")[1] for value in (low, high)]
        assert found == [[], []], path
        for value in beyond:
            problems = check_sample(with_figure(path, value), "acme")[1]
            assert [name for name, _ in problems] == [path], value


def test_memory_may_be_used_up() -> None:
    sample, problems = check_sample({"device": GPU, "memory": {"used": 2, "total": 2}}, "acme")
    assert sample
    assert (sample["memory"], problems) == ({"used": 2, "total": 2}, [])


@pytest.mark.parametrize("status", [7, "fine", []])
def test_a_status_that_there_is_not_is_refused(status: object) -> None:
    sample, problems = check_sample({"device": GPU, "status": status, "busy": 0.5}, "acme")
    reason = f"expected one of {', '.join(STATUSES)}, found {type(status).__name__} {status!r}"
    assert problems == [("status", reason)]
    assert sample == without_figures(GPU, "unavailable", f"its status is refused: {reason}", "acme")


def test_reasons_are_kept_where_no_value_is() -> None:
    """At most 400 characters of each, and none beside a value."""
    raw = {"device": GPU, "busy": 0.5, "links": [{"width": 16}]}
    unknown = {"busy": "no", "links.0.width": "no", "links.0.sent": "r" * 401, "links.1.sent": "no"}
    sample, problems = check_sample({**raw, "unknown": {**unknown, "power_w": 7}}, "acme")
    assert sample
    assert problems == []
    assert "busy" not in sample["unknown"]
    assert "links.0.width" not in sample["unknown"]
    assert sample["unknown"]["links.0.sent"] == "r" * 399 + "…"
    assert sample["unknown"]["links.1.sent"] == "no"
    assert sample["unknown"]["power_w"] == "its prober does not report it"


def test_the_reason_of_a_device_that_did_not_answer() -> None:
    raw = {"device": GPU, "status": "asleep", "busy": 0.5}
    for reason, kept in ((None, NO_REASON), (7, NO_REASON), ("r" * 401, "r" * 399 + "…")):
        sample, problems = check_sample({**raw, "reason": reason}, "acme")
        assert (sample, problems) == (without_figures(GPU, "asleep", kept, "acme"), [])
