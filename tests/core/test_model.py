"""The typed report: a frozen view that gives its document back unchanged."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import weakref
from typing import Any

import attrs
import pytest
import recorded
from fake_probers import Probers, gpu
from report_schema import schema
from reports import report_of, report_of_recording
from trees import Tree

import probe_core
from probe_core import Report, model
from probe_core.model.field import View
from probe_core.model.verdict import native_runtime, step_without_kfd
from probe_core.pipeline.static import parse_document

TYPES = {
    "node": "Node",
    "device": "Device",
    "chip": "ChipRef",
    "memory": "Memory",
    "peak": "Peak",
    "outcome": "Outcome",
    "decision": "Decision",
    "finding": "Finding",
}


@pytest.fixture
def document(tree: Tree, probers: Probers) -> dict[str, Any]:
    probers.reports("a", gpu(1), gpu(2, memory={"kind": "dedicated"}), priority=500)
    return report_of(tree.machine(), **probers.arguments)


@pytest.mark.heavy
@pytest.mark.parametrize("name", recorded.names())
def test_round_trip_of_every_recorded_machine(name: str) -> None:
    document = report_of_recording(name)
    assert Report.from_json(document).to_json() == document
    assert Report.from_json(json.loads(json.dumps(document))).to_json() == document


def test_fields_of_a_device(document: dict[str, Any]) -> None:
    report = Report.from_json(document)
    first, second, cpu = report.devices
    assert (first.id, first.kind, first.vendor) == ("pci:0000:01:00.0", "gpu", "nvidia")
    assert first.memory.total == 25757220864
    assert first.memory.parts == {}
    assert first.chip.id == "nvidia/geforce-rtx-4090"
    assert first.driver == {"name": "nvidia", "version": "580.95.05"}
    assert first.fp16 == pytest.approx(165.15, abs=0.01)
    assert second.memory.total is None
    assert second.unknown["memory.total"] == "no prober could read it"
    assert cpu.kind == "cpu"
    assert list(report) == [first, second, cpu]
    assert report.accelerators == (first, second)
    assert report.primary_device is first
    assert report.device("pci:0000:02:00.0") is second
    assert report.device("pci:0000:99:00.0") is None


def test_peak_by_its_key(document: dict[str, Any]) -> None:
    device = Report.from_json(document).devices[0]
    peak = device.peak("bf16")
    assert peak is not None
    assert (peak.accumulate, peak.sparsity, round(peak.tflops, 1)) == ("fp32", "dense", 165.2)
    half = device.peak("fp16", accumulate="fp16")
    assert half is not None
    assert round(half.tflops, 1) == 330.3
    assert device.peak("fp32", path="vector") is not None
    assert device.peak("fp4") is None


def test_nothing_can_be_changed(document: dict[str, Any]) -> None:
    report = Report.from_json(document)
    device = report.devices[0]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        report.primary = "x"  # type: ignore[misc]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        device.memory.total = 0  # type: ignore[misc]
    with pytest.raises(TypeError):
        device.unknown["x"] = "y"  # type: ignore[index]
    with pytest.raises(TypeError):
        device.driver["name"] = "y"  # type: ignore[index]
    with pytest.raises(AttributeError):
        device.links.append({})  # type: ignore[attr-defined]
    with pytest.raises((AttributeError, attrs.exceptions.FrozenInstanceError)):
        device.new = 1  # type: ignore[attr-defined]


def test_changing_the_given_document_changes_nothing(document: dict[str, Any]) -> None:
    report = Report.from_json(document)
    before = copy.deepcopy(document)
    document["devices"][0]["memory"]["total"] = 1
    document["node"]["memory"].clear()
    assert report.to_json() == before
    report.to_json()["devices"].clear()
    assert report.to_json() == before


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "a report of schema 2; this core reads 1"),
        ({"schema": None}, "a report of schema None"),
        ({"devices": []}, "the report has no devices"),
        ({"devices": [{"kind": "gpu"}]}, "a device has no 'id' that is text"),
        ({"devices": None}, "the report has no devices"),
        ({"findings": [{"code": 3}]}, "one of its findings has a 'code' of the wrong type"),
    ],
)
def test_document_that_is_no_report(
    change: dict[str, Any], message: str, document: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=message):
        Report.from_json(document | change)


@pytest.fixture
def alike(tree: Tree, probers: Probers) -> dict[str, Any]:
    """Return a report of two GPUs of one kind: their peaks and `ecc` are equal."""
    probers.reports("a", *(gpu(at, ecc={"enabled": True}, numa_node=at) for at in (1, 2)))
    document = report_of(tree.machine(), **probers.arguments)
    first, second = document["devices"][:2]
    assert first["peaks"] == second["peaks"]
    assert first["ecc"] == second["ecc"] == {"enabled": True}
    return document


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("peaks", True, "a peak has a 'tflops' of the wrong type"),
        ("peaks", "1", "a peak has a 'tflops' of the wrong type"),
        ("peaks", None, "a peak has no 'tflops' that is a number"),
        ("ecc", 1, "a device has a 'ecc' of the wrong type"),
    ],
)
def test_what_is_wrong_in_the_second_of_two_like_devices(
    part: str, value: object, message: str, alike: dict[str, Any]
) -> None:
    """Equal parts are looked at once, and to Python 1 equals True."""
    first, second = (device[part] for device in alike["devices"][:2])
    if part == "peaks":
        first[0]["tflops"], second[0]["tflops"] = 1, value
    else:
        second["enabled"] = value
    with pytest.raises(ValueError, match=message):
        Report.from_json(alike)
    with pytest.raises(ValueError, match=message):
        parse_document(json.dumps(alike).encode())


def test_equal_parts_of_devices_are_one_and_numbers_keep_their_type(
    alike: dict[str, Any],
) -> None:
    first, second = alike["devices"][:2]
    first["extra"], second["extra"] = {"count": 1}, {"count": 1.0}
    report = Report.from_json(alike)
    assert report.devices[0].peaks is report.devices[1].peaks
    assert [str(device.extra["count"]) for device in report.devices[:2]] == ["1", "1.0"]
    assert json.dumps(report.to_json()) == json.dumps(alike)
    report.to_json()["devices"][0]["peaks"].clear()
    assert json.dumps(report.to_json()) == json.dumps(alike)


def test_document_of_a_newer_core(document: dict[str, Any]) -> None:
    document["devices"][0]["later"] = document["later"] = {"a": [1]}
    document["findings"].append(
        dict.fromkeys(["code", "severity", "what", "why", "fix", "new"], "x")
    )
    report = Report.from_json(document)
    assert report.to_json() == document
    assert report.findings[-1].code == "x"


def test_document_of_an_older_core() -> None:
    report = Report.from_json({"schema": 1, "devices": [{"id": "cpu:0", "kind": "cpu"}]})
    device = report.devices[0]
    assert (device.memory.total, device.peaks, device.chip.id) == (None, (), None)
    assert (report.node.os, report.fallback, report.outcomes) == (None, None, ())
    assert report.primary_device is device


def test_reports_compare_and_print(document: dict[str, Any]) -> None:
    one, same = Report.from_json(document), Report.from_json(copy.deepcopy(document))
    assert one == same
    assert one.devices[0] == same.devices[0] != one.devices[1]
    line = "2 × NVIDIA GeForce RTX 4090 + cpu, primary 01:00.0, 1 finding"
    assert repr(one) == f"Report({line})"


def test_report_can_be_copied(document: dict[str, Any]) -> None:
    """Hosts hand reports to worker processes as documents: the typed view need not pickle."""
    report = Report.from_json(document)
    again = Report.from_json(pickle.loads(pickle.dumps(report.to_json())))
    assert again == report


def test_visible_devices_in_the_consumers_order(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(1), gpu(2))
    machine = probe_core.Machine(
        str(tree.root), {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    )
    report = probe_core.probe(machine=machine, **probers.arguments)
    assert [device.id for device in report.visible("cuda")] == ["pci:0000:02:00.0"]
    assert report.primary == "pci:0000:02:00.0"


def test_schema_and_types_have_the_same_fields() -> None:
    definitions: Any = schema()["$defs"]
    for name, type_name in TYPES.items():
        fields = {field.name for field in attrs.fields(getattr(model, type_name))}
        assert set(definitions[name]["properties"]) == fields, name


def test_every_public_type_is_frozen_slotted_and_documented() -> None:
    for name in model.__all__:
        cls = getattr(model, name)
        assert cls.__doc__, name
        assert "__slots__" in vars(cls), name
        assert not hasattr(object.__new__(cls), "__dict__"), name
        for attribute in (attrs.fields(cls)[0].name, "new"):
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                setattr(object.__new__(cls), attribute, 1)
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                delattr(object.__new__(cls), attribute)


def test_values_can_be_pickled_copied_compared_and_hashed(document: dict[str, Any]) -> None:
    report = Report.from_json(document)
    device = report.devices[0]
    values: list[Any] = [
        *(report, device, device.memory, device.chip, device.peaks[0], report.node),
        *(report.node.memory, report.outcomes[0], report.decisions[0], report.findings[0]),
    ]
    assert len({type(value) for value in values}) == 10
    for value in values:
        for twin in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):
            assert twin == value
            assert hash(twin) == hash(value)
    assert pickle.loads(pickle.dumps(report)).to_json() == document
    assert Report.from_json(document) == report
    document["devices"][0]["name"] = "Another"
    assert Report.from_json(document) != report


def test_views_are_made_as_any_class_of_attrs_is() -> None:
    peak = model.Peak("bf16", "matrix", "fp32", "dense", "boost", 10.0, source="x")
    assert (peak.confidence, peak.mhz) == ("derived", None)
    assert peak == attrs.evolve(peak) != attrs.evolve(peak, mhz=1)
    assert attrs.asdict(model.Memory(total=1))["total"] == 1
    assert str(inspect.signature(model.Memory)).startswith("(kind: 'str | None' = None, total: ")
    match model.Device("cpu:0", "cpu"):
        case model.Device(identity, kind, ids):
            assert (identity, kind, ids) == ("cpu:0", "cpu", ())
    assert repr(model.Readiness()) == "Readiness(state='unknown', broken=None, steps=())"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(peak, protocol)) == peak
    assert weakref.ref(peak)() is peak
    assert peak.__replace__(mhz=1) == attrs.evolve(peak, mhz=1)  # `copy.replace` of Python 3.13


@pytest.mark.parametrize(
    ("values", "named", "message"),
    [
        ((), {"id": "cpu:0"}, r"Device\(\) misses the argument 'kind'"),
        (("cpu:0", "cpu"), {"kind": "cpu"}, r"Device\(\) got multiple values for 'kind'"),
        (("cpu:0", "cpu"), {"nam": "x"}, r"Device\(\) got an unexpected argument 'nam'"),
        (range(99), {}, r"Device\(\) takes \d+ arguments, not 99"),
    ],
)
def test_what_is_no_argument_of_a_view_is_refused(
    values: Any, named: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        model.Device(*values, **named)


def test_a_class_of_a_host_can_extend_a_view() -> None:
    class Named(model.Memory):
        def words(self) -> str:
            return f"{self.total} bytes"

    @attrs.frozen
    class Labelled(model.Memory):
        label: str = "x"

    assert Named(total=1).words() == "1 bytes"
    assert Named(total=1) == Named(total=1) != model.Memory(total=1)
    assert [one.name for one in attrs.fields(Labelled)][-1] == "label"
    assert Labelled(total=1, label="y").total == 1
    assert View.__match_args__ == ()  # which no class below it has from then on
    assert model.ChipRef(id="a/b").id == "a/b"


def test_the_views_are_the_documents_own_tables(document: dict[str, Any]) -> None:
    """There is one frozen copy of a document, not one more behind each view."""
    report = Report.from_json(document)
    frozen = report._document["devices"][0]
    assert report.devices[0].sources is frozen["sources"]
    assert report.devices[0].unknown is frozen["unknown"]
    assert report.devices[0].memory.parts is frozen["memory"]["parts"]


def test_tables_of_a_view_are_read_like_any_table(document: dict[str, Any]) -> None:
    driver = Report.from_json(document).devices[0].driver
    assert driver is not None
    assert json.loads(json.dumps(driver)) == {"name": "nvidia", "version": "580.95.05"}
    assert {**driver, "x": 1}["x"] == 1
    for change in ("clear()", "pop('name')", "popitem()", "update(x=1)", "setdefault('x', 1)"):
        with pytest.raises(TypeError, match="a report cannot be changed"):
            eval(f"driver.{change}", {"driver": driver})
    assert set(driver) == {"name", "version"}


@pytest.mark.parametrize(
    ("state", "codes", "found"),
    [
        ("limited", ["kfd-missing"], "kfd-missing"),
        ("limited", [None, "no such cause", "kfd-missing"], "kfd-missing"),
        ("limited", ["version-mismatch"], None),
        ("limited", [None], None),
        ("ready", ["kfd-missing"], None),
    ],
    ids=range(5),
)
def test_the_step_that_keeps_rocm_from_a_card(
    state: str, codes: list[str | None], found: str | None
) -> None:
    device: Any = {"vendor": "amd", "readiness": {"state": state}}
    device["readiness"]["steps"] = [{"code": code} for code in codes]
    step = step_without_kfd(device)
    assert (step["code"] if step else None) == found
    assert native_runtime(device) == ("vulkan" if found else "hip")
    assert native_runtime(device | {"vendor": "nvidia"}) == "cuda"
    assert step_without_kfd({"readiness": None}) is None
