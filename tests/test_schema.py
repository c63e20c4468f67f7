"""The published JSON Schema: valid itself, in the wheel, every field described."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from report_schema import _value, noun_of, schema

from probe_core.model.complete import _NOUNS
from probe_core.model.device import FIELDS
from probe_core.model.field import Field, Flag, FreeTable, Items, Number, Text, Value
from probe_core.model.ids import KINDS, SEVERITIES, STATUSES
from probe_core.model.report import REPORT

ROOT = Path(__file__).parents[1]
SCHEMA: dict[str, Any] = json.loads(json.dumps(schema()))
DEFS = SCHEMA["$defs"]


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema"]["const"] == 1


def references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from ([schema["$ref"]] if isinstance(schema.get("$ref"), str) else [])
    parts = schema.values() if isinstance(schema, dict) else schema
    for part in parts if isinstance(parts, (list, type({}.values()))) else ():
        yield from references(part)


def published(name: str, folder: Path) -> Any:
    """Return a schema of the wheel, whose files the build hook of the core adds to those of git."""
    script = [str(ROOT / "docs/package_files.py"), str(ROOT), str(folder)]
    subprocess.run([sys.executable, "-I", "-S", *script], timeout=60, check=True)
    made = folder / name
    path = made if made.exists() else files("probe_core").joinpath(name)
    return json.loads(path.read_text("utf-8"))


def test_the_published_schema_is_made_from_the_table(tmp_path: Path) -> None:
    assert published("report.schema.json", tmp_path) == SCHEMA
    assert not (ROOT / "probe_core/report.schema.json").exists()


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["report.schema.json", "doctor/doctor.schema.json"])
def test_every_reference_has_its_definition(name: str, tmp_path: Path) -> None:
    schema = published(name, tmp_path)
    definitions = {f"#/$defs/{shape}" for shape in schema.get("$defs", {})}
    assert set(references(schema)) == definitions


def test_a_shape_without_a_title_is_refused_when_the_schema_is_made() -> None:
    field = Field(Items(FreeTable()), "What is new", name="new", fields={}, shape="novelty")
    with pytest.raises(LookupError, match="no title for the shapes novelty"):
        schema({**REPORT, "new": field})


def test_reports_of_others_are_checked_in_every_shape() -> None:
    # What no sentence names is never looked at, and its readers meet values of any type.
    assert set(_NOUNS) >= DEFS.keys() - {"other"}


def test_a_quantity_below_zero_is_valid_where_it_can_be() -> None:
    cold = DEFS["measurement"]["properties"]["temperature_c"]
    jsonschema.validate(-5.0, cold)


def described(schema: dict[str, Any], way: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, field in schema.get("properties", {}).items():
        yield f"{way}.{name}", field
        yield from described(field, f"{way}.{name}")


def test_every_field_is_described() -> None:
    fields = list(described(SCHEMA, "report"))
    fields += [pair for name, one in DEFS.items() for pair in described(one, name)]
    assert len(fields) > 90
    assert [
        way for way, field in fields if not field.get("description") and "$ref" not in field
    ] == []
    assert [name for name, one in DEFS.items() if not one.get("description")] == []


def test_quantities_have_units() -> None:
    units = {
        "memory.total": "bytes",
        "memory.free": "bytes",
        "node_memory.total": "bytes",
        "device.fp32": "TFLOPS",
        "device.int8": "TOPS",
        "device.bandwidth": "bytes per second",
        "device.clocks": "MHz",
        "outcome.elapsed_ms": "milliseconds",
        "decision.deadline_s": "seconds",
        "report.timings_ms": "Milliseconds",
        "peak.mhz": "MHz",
    }
    fields = dict(described(SCHEMA, "report"))
    fields |= dict(pair for name, one in DEFS.items() for pair in described(one, name))
    for way, unit in units.items():
        assert unit in fields[way]["description"], way


def test_words_are_those_of_the_code() -> None:
    assert DEFS["outcome"]["properties"]["status"]["enum"] == list(STATUSES)
    assert DEFS["device"]["properties"]["kind"]["enum"] == list(KINDS)
    assert DEFS["finding"]["properties"]["severity"]["enum"] == list(SEVERITIES)


def test_every_field_of_a_sighting_is_a_field_of_a_device() -> None:
    reported = {name for name, field in FIELDS.items() if not field.internal}
    assert reported == set(DEFS["device"]["properties"])
    assert set(FIELDS) - reported == {"step_facts"}


@pytest.mark.parametrize(
    ("value", "schema_of", "noun"),
    [
        (Text(), {"type": "string"}, "text"),
        (Text(3, "^a"), {"type": "string", "minLength": 3, "pattern": "^a"}, "text"),
        (Items(Text()), {"type": "array", "items": {"type": "string"}}, "a list of texts"),
        (
            Items(Flag(), least=2),
            {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
            "a list of true or false",
        ),
        (Number(1, 9, whole=True), {"type": "integer", "minimum": 1}, "a whole number from 1 to 9"),
        (Number(0, 9, whole=True), {"type": "integer", "minimum": 0}, "a whole number from 0 to 9"),
        (Number(0.5), {"type": "number", "exclusiveMinimum": 0}, "a number, 0.5 or more"),
        (Number(0, 1), {"type": "number", "minimum": 0}, "a number from 0 to 1"),
        (Number(-1, 1), {"type": "number"}, "a number from -1 to 1"),
        (
            Items(Number(1, 9, whole=True)),
            {"type": "array", "items": {"type": "integer", "minimum": 1}},
            "a list of whole numbers from 1 to 9",
        ),
    ],
)
def test_each_kind_of_value_has_its_schema_and_its_noun(
    value: Value, schema_of: dict[str, Any], noun: str
) -> None:
    assert (_value(value), noun_of(value)) == (schema_of, noun)


def test_additions_are_allowed() -> None:
    assert "additionalProperties" not in SCHEMA
    assert [name for name, one in DEFS.items() if one.get("additionalProperties") is False] == []


@pytest.mark.parametrize(
    "outcome",
    [
        {"status": "crashed", "reason": None},
        {"status": "crashed", "reason": ""},
        {"status": "fine", "reason": "x"},
        {"status": "ok", "reason": None, "devices": -1},
    ],
)
def test_outcome_without_a_reason_is_refused(outcome: dict[str, Any]) -> None:
    good: dict[str, Any] = {"prober": "a", "distribution": "", "status": "ok", "reason": None}
    good |= {"partial": False, "devices": 0, "elapsed_ms": 1.5}
    validator = jsonschema.Draft202012Validator(SCHEMA | {"$ref": "#/$defs/outcome"})
    schema = {"$defs": DEFS, "$ref": "#/$defs/outcome"}
    validator = jsonschema.Draft202012Validator(schema)
    assert list(validator.iter_errors(good)) == []
    assert list(validator.iter_errors(good | outcome)) != []
