"""What a host meets without asking: repr, notebooks, the log, and variables that are not ours."""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
import sys

import pytest

import probe_core
from probe_core.model.findings import finding, log
from probe_core.model.sample_check import check_sample
from probe_core.setting_values import load_config


def report(*names: str) -> probe_core.Report:
    devices = [
        {"id": f"pci:0000:{number:02x}:00.0", "ids": [f"pci:0000:{number:02x}:00.0"],
         "kind": "gpu", "vendor": "nvidia", "name": name,
         "memory": {"kind": "dedicated", "total": 80 << 30}}
        for number, name in enumerate(names, 1)
    ]  # fmt: skip
    return probe_core.Report.from_json(
        {"schema": 1, "devices": devices, "primary": "pci:0000:01:00.0", "findings": [
            finding("peak-exceeded", "<b>bad</b>", "why", "fix", severity="error")]}
    )  # fmt: skip


def test_the_repr_of_a_report_is_a_line() -> None:
    eight = report(*["NVIDIA H100 80GB HBM3"] * 8)
    assert repr(eight) == "Report(8 × NVIDIA H100 80GB HBM3, primary 01:00.0, 1 finding)"
    many = repr(report(*(f"card {number}" for number in range(64))))
    assert len(many) < 120
    assert "\n" not in many


def test_a_notebook_gets_a_table_with_everything_escaped() -> None:
    shown = report("<script>x</script>")._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;" in shown
    assert "<td>80.0</td>" in shown
    assert "[peak-exceeded]" in shown
    assert shown.count("<tr>") == 2


def test_samples_are_typed_and_still_take_names_of_fields() -> None:
    raw = {"device": "pci:0000:01:00.0", "busy": 0.5, "memory": {"used": 1, "total": 2},
           "links": [{"kind": "pcie", "width": 16}], "processes": [{"pid": 7}]}  # fmt: skip
    document, _ = check_sample(raw, "acme")
    assert document is not None
    sample = probe_core.Sample.of(document)
    assert sample.busy == sample["busy"] == 0.5
    assert sample.memory is not None
    assert sample.memory.used == sample["memory"]["used"] == 1
    assert sample.links[0].width == 16
    assert sample.links[0].generation is None
    assert sample.throttled is None
    assert sample.activity is None
    assert sample.processes is not None
    assert sample.processes[0].pid == 7
    assert dict(sample) == document == sample.to_json()
    assert sample == document
    assert json.loads(json.dumps(dict(sample))) == document
    assert pickle.loads(pickle.dumps(sample)) == sample
    assert sample.get("busy") == 0.5
    assert sample.get("colour", 3) == 3
    assert "colour" not in sample
    with pytest.raises(KeyError):
        sample["colour"]
    with pytest.raises(AttributeError):
        sample.busy = 0.7  # type: ignore[misc]


def test_the_log_has_what_was_found(caplog: pytest.LogCaptureFixture) -> None:
    facts = [finding("peak-exceeded", "it is broken", "of this", "do that", severity=severity)
             for severity in ("info", "warning", "error")]  # fmt: skip
    with caplog.at_level(logging.INFO, "probe_core"):
        log(facts)
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "ERROR"]
    assert caplog.messages[0] == "it is broken: of this; do that [peak-exceeded]"


def test_a_filter_that_raises_does_not_reach_the_caller() -> None:
    def broken(record: logging.LogRecord) -> bool:
        raise LookupError(record.msg)

    logger = logging.getLogger("probe_core")
    logger.addFilter(broken)
    try:
        log([finding("peak-exceeded", "it is broken", "of this", "do that", severity="error")])
    finally:
        logger.removeFilter(broken)


def test_the_log_is_silent_and_not_imported_unless_a_host_does() -> None:
    code = (
        "import sys; from probe_core.model.findings import log; {}"
        "log([dict(severity='error', what='a', why='b', fix='c', code='d')])\n"
        "sys.exit('logging' in sys.modules)"
    )
    for first, status in (("", 0), ("import logging;", 1)):
        done = subprocess.run(
            [sys.executable, "-S", "-c", code.format(first)], capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (status, b"")


KUBERNETES = (
    "PROBE_SERVICE_HOST", "PROBE_SERVICE_PORT", "PROBE_SERVICE_PORT_HTTP", "PROBE_PORT",
    "PROBE_PORT_80_TCP", "PROBE_PORT_80_TCP_PROTO", "PROBE_PORT_80_TCP_PORT",
    "PROBE_PORT_80_UDP_ADDR", "PROBE_METRICS_SERVICE_HOST", "PROBE_METRICS_PORT_9102_TCP_ADDR",
)  # fmt: skip


def test_what_kubernetes_sets_for_a_service_is_no_setting() -> None:
    _, ignored = load_config({}, dict.fromkeys(KUBERNETES, "x"), None)
    assert ignored == []
    _, ignored = load_config({}, {"PROBE_TIMEOT": "3", "PROBE_PORTS": "x"}, None)
    assert [one.variable for one in ignored] == ["PROBE_PORTS", "PROBE_TIMEOT"]
