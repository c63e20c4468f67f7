"""A plugin written for version 1 still runs; a report written by version 1 can still be read."""

from __future__ import annotations

import copy
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import compat_machine
import pytest

import probe_core
from probe_core import Machine, Report
from probe_core.model.field import Field
from probe_core.model.report import REPORT
from probe_core.registry.prober import discover

STATUSES = {
    "bus": "ok",
    "cpu": "ok",
    "v1-generator": "ok",
    "v1-list": "ok",
    "v1-object": "ok",
    "v1-no-argument": "ok",
    "v1-finding": "ok",
    "v1-away": "not_applicable",
    "v1-unavailable": "unavailable",
    "v1-raises": "call_error",
    "v1-skipped": "skipped",
    "v1-newer": "skipped",
    "v1-active": "skipped",
}
# Tables whose keys are data, not names of fields.
MAPS = {"unknown", "sources", "others", "visibility", "timings_ms", "extra", "clocks", "node_index"}


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of the code at hand, on the machine of the record."""
    return compat_machine.probe_v1(tmp_path_factory.mktemp("v1"))


@pytest.fixture
def record() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(compat_machine.RECORD.read_text("utf-8"))
    return document


def test_the_record_is_as_it_was_made() -> None:
    files = [p for p in sorted(compat_machine.HERE.glob("v1_plugin/**/*")) if p.suffix != ".pyc"]
    files = [*(p for p in files if p.is_file()), compat_machine.RECORD]
    names = [path.relative_to(compat_machine.HERE).as_posix() for path in files]
    sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    wanted = (compat_machine.HERE / "SHA256SUMS").read_text("utf-8").splitlines()
    assert dict(zip(names, sums, strict=True)) == {line[66:]: line[:64] for line in wanted}


@pytest.mark.heavy
def test_every_v1_prober_ends_as_it_did(today: dict[str, Any]) -> None:
    # Other probers may be installed where the tests run; they are no part of the record.
    statuses = {one["prober"]: one["status"] for one in today["outcomes"]}
    assert {name: statuses[name] for name in STATUSES} == STATUSES


def test_every_v1_prober_is_skipped_for_the_reason_it_was(
    today: dict[str, Any], record: dict[str, Any]
) -> None:
    causes = [{d["prober"]: d["cause"] for d in one["decisions"]} for one in (today, record)]
    assert causes[1].items() <= causes[0].items()
    assert causes[0]["v1-newer"] == "api"
    assert causes[0]["v1-active"] == "active"
    assert causes[0]["v1-skipped"] == "when"


def test_what_a_v1_plugin_says_arrives_as_it_did(
    today: dict[str, Any], record: dict[str, Any]
) -> None:
    devices = {device["id"]: device for device in today["devices"]}
    compared = 0
    for device in record["devices"]:
        for path, who in device["sources"].items():
            if who.startswith("v1-"):
                assert at(devices[device["id"]], path) == at(device, path), path
                assert devices[device["id"]]["sources"][path] == who
                compared += 1
    assert compared > 40


def at(device: dict[str, Any], path: str) -> Any:
    value: Any = device
    for part in path.split("."):
        value = value[part]
    return value


def test_a_v1_unavailable_keeps_its_code_fix_and_devices(today: dict[str, Any]) -> None:
    outcome = next(one for one in today["outcomes"] if one["prober"] == "v1-unavailable")
    assert (outcome["code"], outcome["fix"]) == ("driver-not-loaded", "load it")
    assert (outcome["partial"], outcome["devices"]) == (True, 1)
    assert any(device["id"] == "v1:kept" for device in today["devices"])


def test_a_v1_finding_arrives(today: dict[str, Any], record: dict[str, Any]) -> None:
    notes = [[f for f in one["findings"] if f["code"] == "v1-note"] for one in (today, record)]
    assert len(notes[0]) == len(notes[1]) == 1
    assert notes[0][0].items() >= notes[1][0].items()  # later versions add facts, and change none


def test_the_document_has_every_field_it_had(today: dict[str, Any], record: dict[str, Any]) -> None:
    assert today["schema"] == record["schema"] == 1
    assert list(lost(record, today, "report")) == []


def lost(old: Any, new: Any, path: str) -> Iterator[str]:
    """Yield what the old document has and the new one lacks, or has as another JSON type."""
    if new is None or old is None:
        return
    if kind(old) != kind(new):
        yield f"{path}: {kind(old)} became {kind(new)}"
    elif isinstance(old, dict) and path.rpartition(".")[2] not in MAPS:
        for key, value in old.items():
            if key in new:
                yield from lost(value, new[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif isinstance(old, list) and old and isinstance(old[0], dict):
        known = {name_of(one): one for one in new}
        for one in old:
            yield from lost(one, known.get(name_of(one)), f"{path}.{name_of(one)}")


def kind(value: Any) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def name_of(item: dict[str, Any]) -> str:
    keys = ("id", "prober", "code", "dtype", "path", "accumulate", "sparsity", "device", "kind")
    return " ".join(str(item[key]) for key in keys if key in item).replace(".", "_")


def test_a_lost_or_changed_field_would_be_noticed() -> None:
    assert list(lost({"a": {"b": 1}}, {"a": {}}, "x")) == ["x.a.b"]
    assert list(lost({"a": 1}, {"a": "1"}, "x")) == ["x.a: number became str"]
    assert list(lost({"unknown": {"a": "why"}}, {"unknown": {}}, "x")) == []
    assert list(lost({"a": None}, {"a": 1, "b": 2}, "x")) == []


def test_a_v1_report_is_read_to_the_last_field(record: dict[str, Any]) -> None:
    report = Report.from_json(record)
    gpu, npu = report.primary_device, report.device("uuid:NPU-acme-0001")
    assert report.to_json() == record
    assert (gpu.name, gpu.fp32, gpu.int8) == ("NVIDIA GeForce RTX 4090", 82.5754, 660.6029)
    assert (gpu.chip.id, gpu.chip.by, gpu.bandwidth) == ("nvidia/geforce-rtx-4090", "pci", 1.008e12)
    assert npu is not None
    assert (npu.kind, npu.memory.total, npu.memory.parts["reserved"]) == ("npu", 16 << 30, 64 << 20)
    assert (npu.units, npu.clocks["memory_max_mhz"], npu.driver) == (32, 3200.5, npu.driver)
    assert npu.driver == {"name": "acme", "version": "1.2.3"}
    assert npu.others["kind"][0] == {"prober": "bus", "value": "accelerator"}
    part = report.device("v1:0001/part0")
    assert part is not None
    assert (part.parent, part.memory.total, part.fp16) == (npu.id, 4 << 30, 49.15)
    assert report.node.memory.total == 67429654528
    assert {one.prober: one.status for one in report.outcomes} == STATUSES
    assert report.visible("cuda") == (gpu,)


# What may be absent, and is in every such table of the record.
OPTIONAL = {
    "devices": {"cores", "node_index", "clocks"},
    "devices.pci": {"id", "class"},
    "devices.share": {"of", "units"},
    "devices.links": {"gts", "peer", "width"},
    "devices.visibility": {"variable"},
    "decisions": {"active", "cause", "deadline_s", "priority"},
}


def test_what_every_v1_report_has_is_what_documents_must_have(record: dict[str, Any]) -> None:
    """A field that came later is `added`: older documents lack it, and are read all the same."""
    assert set(differences(REPORT, [record], "")) == set()


def differences(fields: Mapping[str, Field], tables: list[Any], path: str) -> Iterator[str]:
    tables = [table for table in tables if isinstance(table, dict)]
    if not tables:
        return
    had = set.intersection(*map(set, tables))
    for name, field in fields.items():
        place = f"{path}.{name}".lstrip(".")
        if (field.always and not field.added) != (name in had - OPTIONAL.get(path, set())):
            yield place
        if field.added and any(name in table for table in tables):
            yield f"{place} came later"
        if field.fields:
            values = [table[name] for table in tables if table.get(name)]
            if field.value.keyed:
                values = [item for one in values for item in one.values()]
            lists = [one if isinstance(one, list) else [one] for one in values]
            yield from differences(field.fields, list(chain.from_iterable(lists)), place)


def test_a_v1_reader_takes_what_a_later_minor_version_adds(record: dict[str, Any]) -> None:
    later = with_more(copy.deepcopy(record))
    report = Report.from_json(later)
    assert report.to_json() == later
    assert [device.id for device in report] == [device["id"] for device in record["devices"]]


def with_more(value: Any) -> Any:
    """Add a field to every table of a document."""
    if isinstance(value, dict):
        return {key: with_more(item) for key, item in value.items()} | {"added_later": None}
    return [with_more(item) for item in value] if isinstance(value, list) else value


def test_a_v1_report_can_replace_probing(record: dict[str, Any]) -> None:
    report = probe_core.probe(static=str(compat_machine.RECORD), refresh=True)
    assert [device.id for device in report] == [device["id"] for device in record["devices"]]
    assert report.primary == record["primary"]


@pytest.mark.heavy
@pytest.mark.parametrize("command", [[], ["explain"], ["plugins"], ["visible"]], ids=" ".join)
def test_every_command_reads_a_v1_report(command: list[str]) -> None:
    run = [sys.executable, "-m", "probe_core", *command, "--static", str(compat_machine.RECORD)]
    environ = {"PYTHONPATH": f"{compat_machine.ROOT}:{compat_machine.ROOT / 'chipdb/src'}"}
    ran = subprocess.run(run, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Traceback" not in ran.stdout
    assert ran.stdout.strip()


def test_a_v1_report_fits_todays_schema(record: dict[str, Any]) -> None:
    import jsonschema
    from report_schema import schema

    jsonschema.validate(record, schema())


def test_a_v1_manifest_has_no_mistake(tmp_path: Path) -> None:
    probers, findings = discover({}, [str(compat_machine.HERE / "v1_plugin")])
    assert findings == []
    first = probers[0]
    assert (first.name, first.priority, first.deadline_s) == ("v1-generator", 500, 4.0)
    assert first.when[1]["pci_vendor"] == ["0x1AC0"]
    assert {one.api for one in probers} == {"1.0", "1.99"}
    root = compat_machine.unpack(tmp_path)
    assert not Machine(str(root)).live
