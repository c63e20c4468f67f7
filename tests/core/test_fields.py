"""One table of a device's fields: what is added there alone is everywhere."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import attrs
import jsonschema
import pytest
from report_schema import schema

from probe_core import model
from probe_core.model import complete as completion
from probe_core.model import document
from probe_core.model.complete import complete, holds
from probe_core.model.device import FIELDS
from probe_core.model.field import TABLE, Field, Number, TableOf, Text, filled
from probe_core.model.report import REPORT
from probe_core.model.sample_fields import Plain
from probe_core.pipeline.merge import Observation, merge
from probe_core.pipeline.validate import check_sighting

DOCS = Path(__file__).resolve().parents[2] / "docs"
GPU = {"ids": ["pci:0000:01:00.0"], "kind": "gpu"}


@pytest.fixture
def wattage(monkeypatch: pytest.MonkeyPatch) -> Field:
    """Add a field to the table, and to nothing else."""
    field = Field(
        Number(1, 5000), "What it draws at most", name="wattage", unit="watts", always=True
    )
    monkeypatch.setitem(FIELDS, "wattage", field)
    monkeypatch.setattr(completion, "_KINDS", {})  # which holds for tables that do not change
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


ENTRY = """\
    wattage: float | None = field(
        Number(1, 5000), "What it draws at most", unit="watts", always=True
    )
"""
EVERYWHERE = """\
import json, sys
sys.path[:0] = sys.argv[1:]
import attrs, typed, regions_model
from probe_core.model import Device, Report
from probe_core.model.device import FIELDS
from probe_core.model.field import ordered
from probe_core.model.sample_fields import Plain
from report_schema import schema
from probe_core.pipeline.merge import Observation, merge
from probe_core.pipeline.validate import check_sighting

gpu = {"ids": ["pci:0000:01:00.0"], "kind": "gpu"}
good, _ = check_sighting({**gpu, "wattage": 450})
_, problems = check_sighting({**gpu, "wattage": 450_000})
((device,), _) = merge([Observation("a", 1, good)])
full = ordered(device, FIELDS)
view = Report.from_json({"schema": 1, "devices": [full]}).devices[0]
(attribute,) = (one for one in attrs.fields(Device) if one.name == "wattage")
print(json.dumps({
    "validated": [good["wattage"], problems],
    "merged": [full["wattage"], full["sources"]["wattage"]],
    "order": list(full)[-2:],
    "schema": schema()["$defs"]["device"]["properties"]["wattage"]["description"],
    "view": [view.wattage, Device("x", "gpu").wattage, attrs.evolve(view, wattage=1).wattage],
    "attrs": [attribute.type, attribute.default],
    "pages": [line for name in ("sighting", "report")
              for line in getattr(regions_model, name)().splitlines() if "wattage" in line],
    "types": [line.strip() for name in ("Sighting", "DeviceDoc")
              for line in typed.BODIES[name]().splitlines() if "wattage" in line],
}))
"""


def test_one_entry_in_the_class_is_everywhere(tmp_path: Path) -> None:
    """The declaration is the only place: in a copy of the package that has one entry more."""
    root = DOCS.parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root / "probe_core", tmp_path / "probe_core", ignore=ignored)
    (tmp_path / "docs").mkdir()
    for module in DOCS.glob("*.py"):
        shutil.copy(module, tmp_path / "docs")
    declared = tmp_path / "probe_core/model/device.py"
    before, extra, after = declared.read_text("utf-8").partition("    extra: Mapping")
    declared.write_text(f"{before}{ENTRY}{extra}{after}", "utf-8")
    folders = [str(tmp_path), str(tmp_path / "docs")]
    ran = subprocess.run(
        [sys.executable, "-c", EVERYWHERE, *folders],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "validated": [450, ["wattage: 450000 is not between 1 and 5,000"]],
        "merged": [450, "a"],
        "order": ["seen_by", "wattage"],
        "schema": "What it draws at most, in watts",
        "view": [450, None, 1],
        "attrs": ["float | None", None],
        "pages": [
            "| `wattage` | a number from 1 to 5,000 | What it draws at most, in watts |",
            "| `wattage` | `float \\| None` | watts | What it draws at most, in watts. |",
        ],
        "types": ["wattage: float", "wattage: Required[float | None]"],
    }


def test_the_annotation_of_a_field_is_what_its_value_is(regions: ModuleType) -> None:
    typed = sys.modules["typed"]
    wrong = []
    for name, fields in typed.VIEWS.items():
        view = getattr(model, name)
        for field in fields.values():
            expected = typed.annotation(field, of_sample=issubclass(view, Plain))
            if view.__types__.get(field.name, expected) != expected:
                wrong.append(f"{name}.{field.name}: annotate it with {expected!r}")
    assert wrong == []


def test_the_typed_dicts_are_those_of_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    generate = importlib.import_module("generate")
    ((path, made),) = generate.model().items()
    assert path.read_text("utf-8") == made, "a field changed: run `python docs/generate.py`"
    classes = re.findall(r"^class (\w+)\(TypedDict", made, re.MULTILINE)
    assert [name for name in generate.BODIES if name not in classes] == []
    assert "    total: int\n" in made
    broken = made.replace("    total: int\n", "")
    assert generate.refreshed_module(broken) == made


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
    full = filled(device, FIELDS)
    assert list(full)[-1] == "wattage"  # in the table's order
    assert dict(full)["wattage"] is None
    assert dict(filled({**device, "wattage": 450}, FIELDS))["wattage"] == 450


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


def test_an_added_field_is_in_the_typed_dict(wattage: Field, regions: ModuleType) -> None:
    bodies = sys.modules["typed"].BODIES
    assert "    wattage: float" in bodies["Sighting"]().splitlines()
    assert "    wattage: Required[float | None]" in bodies["DeviceDoc"]().splitlines()


def test_an_added_table_is_merged_name_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    field = Field(TableOf(Number(0, 1e5)), "Their speeds", name="fans", unit="rpm", merge=TABLE)
    monkeypatch.setitem(FIELDS, "fans", field)
    sightings = [{**GPU, "fans": fans, "unknown": {}} for fans in ({"a": 1}, {"a": 2, "b": 3})]
    ((device,), _) = merge([Observation("x", 2 - n, s) for n, s in enumerate(sightings)])  # type: ignore[arg-type]
    assert dict(device)["fans"] == {"a": 1, "b": 3}
    assert device["others"] == {"fans.a": [{"prober": "x", "value": 2}]}


def test_of_a_scalar_the_type_alone_decides_whether_a_field_holds_it() -> None:
    """Flat tables with the same names and types are checked once."""
    tables = [REPORT, *(field.fields for field in REPORT.values() if field.fields), FIELDS]
    tables += [field.fields for field in FIELDS.values() if field.fields]
    values = {str: ("", "x", "gpu", "pci:0000:01:00.0"), bool: (True, False)}
    values |= {int: (0, -1, 1 << 70), float: (0.0, -1.5, 1e300)}
    for value in (field.value for table in tables for field in table.values()):
        held = {kind: {holds(value, item) for item in values[kind]} for kind in values}
        assert held == {kind: {kind in value.scalars} for kind in values}


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
