"""One table of a sample's fields: the types, the order and the page follow it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_type_hints

import pytest

from probe_core.model import document
from probe_core.model.sample_check import check_sample, without_figures
from probe_core.model.sample_fields import SAMPLE_FIELDS, STATUSES

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
