"""How each prober's end is told: statuses, reasons, rejected values, findings with a fix."""

from __future__ import annotations

from typing import Any

import pytest
from fake_probers import Probers, gpu
from reports import codes, report_of
from trees import Tree

from probe_core.config import IgnoredSetting
from probe_core.machine import Machine
from probe_core.pipeline.probers import (
    Builtins,
    expects_child,
    find,
    run_selected,
    select_probers,
)
from probe_core.probers.bus import Scan
from probe_core.registry.prober import Decision
from probe_core.setting_values import load_config


def run(tree: Tree, probers: Probers, **more: Any) -> dict[str, Any]:
    return report_of(tree.machine(), **probers.arguments, **more)


def outcome(report: dict[str, Any], name: str = "a") -> dict[str, Any]:
    found: dict[str, Any] = next(o for o in report["outcomes"] if o["prober"] == name)
    return found


def told(report: dict[str, Any], code: str) -> list[dict[str, Any]]:
    return [finding for finding in report["findings"] if finding["code"] == code]


def test_good_answers_say_no_reason(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu())
    report = run(tree, probers)
    found = outcome(report)
    assert (found["status"], found["reason"], found["partial"]) == ("ok", None, False)
    assert found["elapsed_ms"] > 0
    assert "stderr" not in found
    assert set(codes(report)) == {"no-cpu-facts"}


def test_unavailable_tells_code_and_fix(tree: Tree, probers: Probers) -> None:
    probers.add("a", "raise Unavailable('not loaded', code='driver-not-loaded', fix='modprobe a')")
    report = run(tree, probers)
    found = outcome(report)
    assert (found["code"], found["fix"]) == ("driver-not-loaded", "modprobe a")
    (finding,) = told(report, "prober-unavailable")
    assert (finding["why"], finding["fix"]) == ("not loaded", "modprobe a")
    assert finding["severity"] == "warning"


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ("raise ValueError('x\\x1b[1m')", "call_error", "ValueError: x\ufffd[1m"),
        ("return None", "invalid", "None"),
        ("return 5", "invalid", "int"),
        ("return [5]", "invalid", "a device must be a mapping, found int"),
        ("return [{'kind': 'gpu'}]", "invalid", "a device has no usable 'ids'"),
        ("return [{'ids': ['a:1'], 'kind': 'toaster'}]", "invalid", "expected one of gpu, npu"),
        ("raise SystemExit(0)", None, None),
    ],
)
def test_plugins_fault(
    body: str, status: str | None, reason: str | None, tree: Tree, probers: Probers
) -> None:
    probers.add("a", body)
    report = run(tree, probers)
    found = outcome(report)
    assert found["status"] not in ("ok", "not_applicable", "skipped")
    if status:
        assert found["status"] == status
        assert reason is not None
        assert reason in found["reason"]
    assert found["reason"]
    if found["status"] != "invalid":
        assert told(report, "prober-failed")[0]["severity"] == "error"


def test_failure_names_owner_prober_and_way_out(tree: Tree, probers: Probers) -> None:
    probers.add("a", "raise ValueError('x')")
    (finding,) = told(run(tree, probers), "prober-failed")
    assert finding["what"] == "(host): prober 'a' failed (call_error)"
    assert finding["fix"] == ("`probe plugins why-not a` shows more; PROBE_DISABLE=a skips it")


@pytest.mark.heavy
def test_timeout_offers_more_time(tree: Tree, probers: Probers) -> None:
    probers.add("a", "import time; time.sleep(60)")
    report = run(tree, probers, timeout=0.4)
    assert outcome(report)["status"] == "timeout"
    (finding,) = told(report, "prober-failed")
    assert finding["fix"] == (
        "read the kernel's log for its driver; PROBE_TIMEOUT=30 gives a slow one more time,"
        " PROBE_DISABLE=a skips it"
    )


def test_what_failed_stands_behind_what_the_same_prober_found(tree: Tree, probers: Probers) -> None:
    for name in "abc":
        own = {"code": f"own-{name}", "what": "w", "why": "y", "fix": "f", "severity": "error"}
        probers.add(name, f"yield {{'finding': {own!r}}}\n" + "1 / 0" * (name != "b"))
    report = run(tree, probers)
    found = [f["code"] for f in report["findings"] if f["prober"] in ("a", "b", "c")]
    assert found == ["own-a", "prober-failed", "own-b", "own-c", "prober-failed"]


def test_standard_error_is_kept_of_failures_alone(tree: Tree, probers: Probers) -> None:
    body = "import sys; print('\\x1b[31mhint', file=sys.stderr)\n"
    probers.add("bad", body + "raise ValueError('x')")
    probers.add("good", body + f"return [{gpu()!r}]")
    report = run(tree, probers)
    assert outcome(report, "bad")["stderr"][0] == "\ufffd[31mhint"
    assert "stderr" not in outcome(report, "good")


def test_one_bad_value_does_not_hide_the_device(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(memory={"kind": "dedicated", "total": -1}, units=0, name=7))
    report = run(tree, probers)
    device = report["devices"][0]
    assert outcome(report)["status"] == "ok"
    assert device["memory"]["total"] is None
    assert "is not between" in device["unknown"]["memory.total"]
    assert device["units"] == 128  # chipdb's, as the prober's cannot be true
    assert device["name"] == "NVIDIA GeForce RTX 4090"
    (finding,) = told(report, "value-rejected")
    assert finding["what"] == "(host): prober 'a' reported values that cannot be true"
    assert "memory.total" in finding["why"]
    assert "units" in finding["why"]


def test_of_two_devices_with_one_id_the_first_is_kept(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(1), gpu(1, name="Another"))
    report = run(tree, probers)
    assert [d["name"] for d in report["devices"]][:1] == ["NVIDIA GeForce RTX 4090"]
    assert len(report["devices"]) == 2
    assert (
        "two devices have the id pci:0000:01:00.0; the first was kept"
        in (told(report, "value-rejected")[0]["why"])
    )


def test_probers_own_findings_are_passed_on(tree: Tree, probers: Probers) -> None:
    probers.add(
        "a",
        "yield finding('gpu-hot', what='it is hot', why='90 °C', fix='cool it',"
        " device='pci:0000:01:00.0')\n"
        "yield {'finding': {'code': 'half'}}\n"
        f"yield {gpu()!r}",
    )
    report = run(tree, probers)
    assert told(report, "gpu-hot") == [
        {
            "code": "gpu-hot",
            "severity": "warning",
            "what": "it is hot",
            "why": "90 °C",
            "fix": "cool it",
            "device": "pci:0000:01:00.0",
            "prober": "a",
            "setting": None,
            "variable": None,
            "step": None,
            "evidence": None,
        }
    ]
    assert told(report, "half") == []


def test_worst_findings_come_first(tree: Tree, probers: Probers) -> None:
    probers.add("a", "yield finding('x', severity='info', what='w', why='y', fix='f')")
    probers.add("b", "raise ValueError('x')")
    severities = [f["severity"] for f in run(tree, probers)["findings"]]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert severities[0] == "error"
    assert severities[-1] == "info"


def test_one_device_of_two_probers_remembers_who_said_what(tree: Tree, probers: Probers) -> None:
    probers.reports("low", gpu(name="Low", units=64), priority=200)
    probers.reports("high", gpu(name="High"), priority=600)
    device = run(tree, probers)["devices"][0]
    assert (device["name"], device["units"]) == ("High", 64)
    assert device["sources"]["name"] == "high"
    assert device["sources"]["units"] == "low"
    assert device["others"]["name"] == [{"prober": "low", "value": "Low"}]
    assert device["seen_by"] == ["high", "low"]


def test_same_name_at_two_addresses_is_two_devices(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(1))
    probers.reports("b", gpu(2))
    assert len([d for d in run(tree, probers)["devices"] if d["kind"] == "gpu"]) == 2


def test_conflicting_identity_is_told(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(ids=["pci:0000:01:00.0", "uuid:GPU-1"]), priority=500)
    probers.reports("b", gpu(ids=["pci:0000:02:00.0", "uuid:GPU-1"]))
    report = run(tree, probers)
    (finding,) = told(report, "identity-conflict")
    assert finding["device"] == "pci:0000:02:00.0"
    assert finding["what"].startswith("b gives the device pci:0000:02:00.0 the id uuid:GPU-1")
    assert [d["ids"] for d in report["devices"] if d["kind"] == "gpu"] == [
        ["pci:0000:01:00.0", "uuid:GPU-1"],
        ["pci:0000:02:00.0"],
    ]


BARRED: list[dict[str, Any]] = [{"only": "a"}, {"disable": "a"}, {"allow": "probe-a"}]


def test_a_child_is_started_ahead_where_its_prober_is_likely(tree: Tree) -> None:
    tree.pci("0000:01:00.0", "10de:2684", pci_class="030000")
    scan, here, plain = Scan(tree.machine()), Machine(), load_config({}, {}, None)[0]
    assert expects_child(scan, here, plain)
    assert not expects_child(scan, tree.machine(), plain)
    assert not expects_child(None, here, plain)
    for settings in BARRED:
        assert not expects_child(scan, here, load_config(settings, {}, None)[0])
    plain.sealed = IgnoredSetting("a reason", seals=True)
    assert not expects_child(scan, here, plain)


@pytest.mark.parametrize("selected", [True, False])
def test_a_child_started_ahead_is_the_selected_probers(
    tree: Tree, probers: Probers, selected: bool
) -> None:
    probers.reports("a", gpu())
    machine, config = tree.machine(), load_config({"only": "a" if selected else "b"}, {}, None)[0]
    builtins, found = Builtins(machine, config), find(machine, dict(probers.targets))  # type: ignore[arg-type]

    def decide() -> list[Decision]:
        return select_probers(found, builtins.scan, machine, config, None)

    runs = run_selected(decide, builtins, machine, config, starts_ahead=True)
    assert [(run.prober.name, run.status) for run in runs] == ([("a", "ok")] if selected else [])
