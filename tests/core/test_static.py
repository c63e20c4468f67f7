"""A recorded report instead of probing: taken as it is, or refused with the reason."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from reports import BUILT_IN, codes, report_of, validated

import probe_core
from probe_core.model import Report
from probe_core.pipeline.static import load_static, parse_document, read_document


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    return report_of(probe_core.Machine(str(tmp_path / "none")))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "report.json"


def test_report_is_given_unchanged(document: dict[str, Any], file: Path) -> None:
    file.write_text(json.dumps(document))
    assert probe_core.probe(static=str(file)).to_json() == document


def test_environment_names_it_too(
    document: dict[str, Any], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document["node"]["model"] = "from a file"
    file.write_text(json.dumps(document))
    monkeypatch.setenv("PROBE_STATIC", str(file))
    assert probe_core.probe().node.model == "from a file"


def test_null_says_no_more_than_nothing(document: dict[str, Any], file: Path) -> None:
    expected = copy.deepcopy(document)
    document["devices"][0] |= {"dt": None, "gfx": None, "driver": {"name": "x", "version": None}}
    file.write_text(json.dumps(document))
    expected["devices"][0] |= {"gfx": None, "driver": {"name": "x"}}
    assert probe_core.probe(static=str(file)).to_json() == expected


def test_newer_fields_are_kept(document: dict[str, Any], file: Path) -> None:
    document["later"] = document["devices"][0]["later"] = {"anything": [1]}
    file.write_text(json.dumps(document))
    report = probe_core.probe(static=str(file))
    assert report.to_json() == document
    assert report.devices[0].kind == "cpu"


def without(path: str) -> Any:
    """Return a change that takes a field away."""

    def change(document: dict[str, Any]) -> None:
        *way, last = path.split(".")
        table: Any = document
        for step in way:
            table = table[int(step)] if step.isdecimal() else table[step]
        del table[last]

    return change


def with_(path: str, value: Any) -> Any:
    """Return a change that sets a field."""

    def change(document: dict[str, Any]) -> None:
        *way, last = path.split(".")
        table: Any = document
        for step in way:
            table = table[int(step)] if step.isdecimal() else table[step]
        table[last] = value

    return change


BAD = [
    (with_("schema", 2), "it is no report of schema 1"),
    (with_("devices", []), "it has no devices"),
    (with_("devices", [3]), "a device is not a table"),
    (without("devices.0.id"), "a device has no 'id'"),
    (with_("devices.0.kind", "toaster"), "a device's kind is none of gpu, npu"),
    (with_("node", []), "the report has a 'node' of the wrong type"),
    (with_("devices.0.fp32", "fast"), "a device has a 'fp32' of the wrong type"),
    (with_("devices.0.memory.total", "8 GB"), "a device's memory has a 'total' of the wrong type"),
    (with_("devices.0.peaks", [{}]), "a peak has no 'tflops' that is a number"),
    (with_("devices.0.others", {"name": 3}), "a device has a 'others' of the wrong type"),
    (with_("devices.0.driver", {"name": []}), "a device has a 'driver' of the wrong type"),
    (with_("devices.0.power", {"limit_watts": "x"}), "a device has a 'power' of the wrong type"),
    (with_("devices.0.pci", {"id": []}), "a device has a 'pci' of the wrong type"),
    (with_("devices.0.measured", [{}]), "a measurement has no 'figure' that is text"),
    (
        with_("devices.0.measured", [{"figure": "read", "kind": "memory", "best": "fast"}]),
        "a measurement has a 'best' of the wrong type",
    ),
    (with_("devices.0.seen_by", [{}]), "a device has a 'seen_by' of the wrong type"),
    (with_("devices.0.links", [{"width": "x"}]), "a link has a 'width' of the wrong type"),
    (
        with_("devices.0.visibility", {"cuda": {"index": True}}),
        "what a runtime shows has a 'index' of the wrong type",
    ),
    (with_("devices.0.fp32", 10**400), "it has a number beyond 64 bits"),
    (with_("fallback", "schema"), "its fallback is neither null"),
    (with_("findings.0.severity", "dire"), "a finding's severity is none of info, warning, error"),
]


def test_what_a_report_leaves_out_is_filled_in(file: Path) -> None:
    """A hand-written report, or an older core's, need not have every field."""
    file.write_text(json.dumps({"schema": 1, "devices": [{"id": "cpu:0", "kind": "cpu"}]}))
    document = read_document(str(file))
    device = document["devices"][0]
    assert device["ids"] == ["cpu:0"]
    assert device["memory"] == {
        "kind": None,
        "total": None,
        "free": None,
        "usable": None,
        "parts": {},
    }
    assert device["chip"] == {"id": None, "by": None, "confidence": None, "candidates": []}
    assert document["node"]["memory"] == {"total": None, "available": None, "limit": None}
    assert document["findings"] == []
    assert Report.from_json(document).primary_device.kind == "cpu"


@pytest.mark.heavy
@pytest.mark.parametrize(("change", "why"), BAD)
def test_broken_report_is_refused_with_the_reason(
    change: Any, why: str, document: dict[str, Any], file: Path
) -> None:
    broken = copy.deepcopy(document)
    change(broken)
    file.write_text(json.dumps(broken))
    with pytest.raises(ValueError, match=why.replace("(", ".")):
        read_document(str(file))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not a report (it is no JSON document)"),
        (b"no json", "not a report (it is no JSON document)"),
        (b"[]", "it is no report of schema 1"),
        (b"\xff\xfe\x00", "not a report (it is no JSON document)"),
        (b'{"schema": NaN}', "NaN is no number of JSON"),
        (b"[" * 100_000, "nested too deep|recursion"),
        (b" " * ((4 << 20) + 1), "longer than 4 MiB"),
    ],
)
def test_file_that_is_no_report_becomes_a_finding(content: bytes, why: str, file: Path) -> None:
    file.write_bytes(content)
    found, findings = load_static(str(file))
    assert found is None
    assert [f["code"] for f in findings] == ["static-unusable"]
    assert any(part in findings[0]["why"] for part in why.split("|"))


def test_node_is_probed_when_the_report_cannot_be_used(file: Path) -> None:
    report = probe_core.probe(static=str(file), only=BUILT_IN)
    document = validated(report.to_json())
    assert "static-unusable" in codes(document)
    assert document["findings"][0]["why"] == "No such file or directory"
    assert report.devices[-1].kind in ("cpu", "display")


def test_fifo_does_not_hang(file: Path) -> None:
    os.mkfifo(file)
    found, findings = load_static(str(file))
    assert found is None
    assert findings[0]["code"] == "static-unusable"


def test_text_of_a_foreign_report_is_safe(document: dict[str, Any], file: Path) -> None:
    document["devices"][0]["name"] = "GPU\x1b[2J\u202e"
    file.write_text(json.dumps(document))
    assert read_document(str(file))["devices"][0]["name"] == "GPU\ufffd[2J\ufffd"


LONG = "n" * 257


@pytest.mark.parametrize(
    ("name", "text", "safe"),
    [
        ("n", "a\u202eb", ("n", "a\ufffdb")),
        ("n", "a\x7fb", ("n", "a\ufffdb")),
        ("a\x9bb", "c", ("a\ufffdb", "c")),
        (LONG, LONG, (LONG[:255] + "…", LONG)),
        ("n", 17 * LONG, ("n", (17 * LONG)[:4095] + "…")),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32-be"])
@pytest.mark.parametrize("is_escaped", [True, False])
def test_text_is_made_safe_however_it_is_written(
    name: str, text: str, safe: tuple[str, str], encoding: str, is_escaped: bool
) -> None:
    """In UTF-16 a bidirectional override is two ASCII bytes."""
    devices = [{"id": "cpu:0", "kind": "cpu", "extra": {name: text}}]
    written = json.dumps({"schema": 1, "devices": devices}, ensure_ascii=is_escaped)
    document = parse_document(written.encode(encoding))
    assert document["devices"][0]["extra"] == dict([safe])


def test_each_of_two_like_devices_is_made_safe_and_whole(tmp_path: Path) -> None:
    """Equal parts are looked at once where nothing is to do in them, and never shared."""
    peak = {"dtype": "fp16", "path": "vector", "tflops": 1.0, "source": None, "mhz": None}
    part = {"peaks": [peak], "extra": {"a\x1b": "b\x1b", "c": "d"}, "sources": {"name": None}}
    devices = [{"id": f"cpu:{at}", "kind": "cpu", **part} for at in range(3)]
    devices[2]["extra"] = {"a\ufffd": "b\ufffd", "c": "e\u202e"}
    text = json.dumps({"schema": 1, "devices": devices, "later": {"f\x07": ["g\x07"]}})
    document: Any = parse_document(text.encode())
    first, second, third = document["devices"]
    assert first["extra"] == second["extra"] == {"a\ufffd": "b\ufffd", "c": "d"}
    assert third["extra"] == {"a\ufffd": "b\ufffd", "c": "e\ufffd"}
    assert document["later"] == {"f\ufffd": ["g\ufffd"]}
    assert [device["sources"] for device in (first, second, third)] == [{}, {}, {}]
    for device in (second, third):
        assert device["peaks"] == first["peaks"]
        assert device["peaks"] is not first["peaks"]
        assert device["peaks"][0] is not first["peaks"][0]
    alone: Any = parse_document(json.dumps({"schema": 1, "devices": devices[:1]}).encode())
    assert alone["devices"][0] == first
    assert "confidence" in first["peaks"][0]


@pytest.mark.parametrize("number", ["9" * 5000, "-" + "9" * 5000])
def test_a_number_of_thousands_of_digits_is_named_as_one_too_large(number: str) -> None:
    text = '{"schema": 1, "devices": [{"id": "cpu:0", "kind": "cpu", "extra": {"n": %s}}]}'
    with pytest.raises(ValueError, match=r"\Ait has a number beyond 64 bits\Z"):
        parse_document((text % number).encode())


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("number", [1 << 63, -(1 << 63), 1e19, -1e19])
def test_a_number_that_others_do_not_hold_is_found_in_each_device(at: int, number: float) -> None:
    devices: Any = [{"id": f"cpu:{n}", "kind": "cpu", "extra": {"n": 1}} for n in range(3)]
    devices[at]["extra"]["n"] = number // 2
    assert parse_document(json.dumps({"schema": 1, "devices": devices}).encode())
    devices[at]["extra"]["n"] = number
    with pytest.raises(ValueError, match="it has a number beyond 64 bits"):
        parse_document(json.dumps({"schema": 1, "devices": devices}).encode())


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize(
    ("part", "wrong", "why"),
    [
        (
            "visibility",
            {"cuda": {"visible": True, "index": True}},
            "what a runtime shows .*'index'",
        ),
        (
            "links",
            [{"kind": "pcie", "width": 16}, {"kind": "pcie", "width": True}],
            "a link .*'wid",
        ),
        ("peaks", [{"tflops": 1}, {"tflops": True}], "a peak has a 'tflops'"),
        ("peaks", [{"tflops": 1}, {"tflops": None}], "a peak has no 'tflops'"),
        ("others", {"name": [{"prober": "a", "value": 1}, 2]}, "a device has a 'others'"),
        ("readiness", {"steps": [{"step": "node", "status": "ok", "code": 1}]}, "a step .*'code'"),
    ],
)
def test_what_equals_a_sound_part_but_for_a_type_is_refused(
    at: int, part: str, wrong: Any, why: str
) -> None:
    """Like parts are checked once, and True is not 1."""
    sound: dict[str, Any] = {
        "visibility": {"cuda": {"visible": True, "index": 1}},
        "links": [{"kind": "pcie", "width": 16}, {"kind": "pcie", "width": 1}],
        "peaks": [{"tflops": 1}, {"tflops": 1}],
        "others": {"name": [{"prober": "a", "value": 1}]},
        "readiness": {"steps": [{"step": "node", "status": "ok", "code": None}]},
    }
    devices = [{"id": f"cpu:{n}", "kind": "cpu", **sound} for n in range(3)]
    document = {"schema": 1, "devices": devices}
    assert parse_document(json.dumps(document).encode())
    assert Report.from_json(document).devices[2].links[1]["width"] == 1
    devices[at][part] = wrong
    with pytest.raises(ValueError, match=why):
        parse_document(json.dumps(document).encode())
    with pytest.raises(ValueError, match=why):
        Report.from_json(document)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root asks who could have written a file")
def test_root_takes_no_report_that_others_could_have_written(
    document: dict[str, Any], file: Path
) -> None:
    file.write_text(json.dumps(document))
    file.chmod(0o666)
    found, findings = load_static(str(file))
    assert found is None
    assert findings[0]["why"] == f"running as root, and {file} is writable by everyone"
