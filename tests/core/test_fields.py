"""One table of a device's fields: what is added there alone is everywhere."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import attrs
import jsonschema
import pytest

from probe_core import model
from probe_core.model import document
from probe_core.model.complete import complete
from probe_core.model.field import TABLE, Field, Number, TableOf, Text
from probe_core.model.fields import FIELDS
from probe_core.model.report_fields import REPORT
from probe_core.model.schema import schema
from probe_core.pipeline.merge import Observation, merge, with_every_field
from probe_core.pipeline.validate import check_sighting

DOCS = Path(__file__).resolve().parents[2] / "docs"
GPU = {"ids": ["pci:0000:01:00.0"], "kind": "gpu"}


@pytest.fixture
def wattage(monkeypatch: pytest.MonkeyPatch) -> Field:
    """Add a field to the table, and to nothing else."""
    field = Field("wattage", Number(1, 5000), "What it draws at most", unit="watts", always=True)
    monkeypatch.setitem(FIELDS, "wattage", field)
    return field


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The functions that make the reference pages."""
    monkeypatch.syspath_prepend(str(DOCS))
    spec = importlib.util.spec_from_file_location("regions_of_fields", DOCS / "regions.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "regions_of_fields", module)
    spec.loader.exec_module(module)
    return module


def test_without_the_entry_it_is_refused_and_nowhere() -> None:
    sighting, problems = check_sighting({**GPU, "wattage": 450})
    assert sighting is not None
    assert "wattage" not in sighting
    assert problems == ["the field 'wattage' is not one of a device's"]
    assert "wattage" not in schema()["$defs"]["device"]["properties"]  # type: ignore[call-overload, index]


def test_an_added_field_is_validated(wattage: Field) -> None:
    good, problems = check_sighting({**GPU, "wattage": 450})
    bad, reasons = check_sighting({**GPU, "wattage": 450_000})
    assert good is not None
    assert bad is not None
    assert (dict(good)["wattage"], problems) == (450, [])
    assert "wattage" not in bad
    assert bad["unknown"] == {"wattage": "450000 is not between 1 and 5,000"}
    assert reasons == ["wattage: 450000 is not between 1 and 5,000"]


def test_an_added_field_is_merged_with_its_source(wattage: Field) -> None:
    first, second = ({**GPU, "wattage": watts, "unknown": {}} for watts in (450, 400))
    observations = [Observation("low", 1, second), Observation("high", 2, first)]  # type: ignore[arg-type]
    ((device,), findings) = merge(observations)
    assert (dict(device)["wattage"], device["sources"]["wattage"]) == (450, "high")
    assert device["others"]["wattage"] == [{"prober": "low", "value": 400}]
    assert findings == []


def test_an_added_field_is_in_the_report(wattage: Field) -> None:
    ((device,), _) = merge([Observation("bus", 1, {**GPU, "unknown": {}})])  # type: ignore[typeddict-item]
    full = with_every_field(device)
    assert list(full)[-1] == "wattage"  # in the table's order
    assert dict(full)["wattage"] is None
    assert dict(with_every_field({**device, "wattage": 450}))["wattage"] == 450


def test_an_added_field_is_filled_in_and_checked_in_foreign_reports(wattage: Field) -> None:
    report: dict[str, Any] = {"schema": 1, "devices": [{"id": "cpu:0", "kind": "cpu"}]}
    complete(report, REPORT)
    assert report["devices"][0]["wattage"] is None
    report["devices"][0]["wattage"] = "much"
    with pytest.raises(ValueError, match="a device has a 'wattage' of the wrong type"):
        complete(report, REPORT)


def test_an_added_field_is_in_the_schema(wattage: Field) -> None:
    made: Any = schema()
    assert made["$defs"]["device"]["properties"]["wattage"] == {
        "description": "What it draws at most, in watts",
        "type": ["number", "null"],
        "exclusiveMinimum": 0,
    }
    assert "wattage" in made["$defs"]["device"]["required"]
    jsonschema.Draft202012Validator.check_schema(made)


def test_an_added_field_is_in_the_reference(wattage: Field, regions: ModuleType) -> None:
    row = "| `wattage` | a number from 1 to 5,000 | What it draws at most, in watts |"
    assert row in regions.sighting().splitlines()


def test_an_added_field_is_in_the_typed_dict_and_the_typed_view(
    wattage: Field, regions: ModuleType
) -> None:
    bodies = sys.modules["typed"].BODIES
    assert "    wattage: float" in bodies["Sighting"]().splitlines()
    assert "    wattage: Required[float | None]" in bodies["DeviceDoc"]().splitlines()
    assert "    wattage: float | None = None" in bodies["Device"]().splitlines()


def test_an_added_table_is_merged_name_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    field = Field("fans", TableOf(Number(0, 1e5)), "Their speeds", unit="rpm", merge=TABLE)
    monkeypatch.setitem(FIELDS, "fans", field)
    sightings = [{**GPU, "fans": fans, "unknown": {}} for fans in ({"a": 1}, {"a": 2, "b": 3})]
    ((device,), _) = merge([Observation("x", 2 - n, s) for n, s in enumerate(sightings)])  # type: ignore[arg-type]
    assert dict(device)["fans"] == {"a": 1, "b": 3}
    assert device["others"] == {"fans.a": [{"prober": "x", "value": 2}]}


@pytest.mark.parametrize("name", ["DeviceDoc", "Sighting"])
def test_the_typed_dicts_have_the_fields_of_the_table(name: str) -> None:
    in_report = name == "DeviceDoc"
    fields = [f.name for f in FIELDS.values() if (not f.internal if in_report else f.reported)]
    assert list(get_type_hints(getattr(document, name))) == fields


def test_the_typed_view_has_the_fields_of_the_table() -> None:
    reported = {name for name, field in FIELDS.items() if not field.internal}
    assert {field.name for field in attrs.fields(model.Device)} == reported


def test_every_entry_says_what_it_means_and_every_number_its_unit() -> None:
    tables = [FIELDS, *(field.fields for field in FIELDS.values() if field.fields)]
    entries = [field for table in tables for field in table.values()]
    assert [field.name for field in entries if not field.doc or field.doc.endswith(".")] == []
    numbers = [field for field in entries if isinstance(field.value, Number)]
    assert len(numbers) > 15
    assert [field.name for field in numbers if not field.unit] == []
    assert [
        f.name
        for f in entries
        if f.always
        and not f.nullable
        and not f.required
        and f.empty is None
        and isinstance(f.value, Text)
    ] == ["kind", "prober"]
