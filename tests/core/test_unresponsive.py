"""What a report says of a device over which a prober's process hung, died or raised."""

from __future__ import annotations

from typing import Any

import pytest
from fake_probers import Probers, gpu
from reports import report_of
from trees import Tree

from probe_core.isolation.launch import Unresponsive
from probe_core.isolation.run import Run
from probe_core.pipeline.failures import (
    mark,
    mark_unresponsive,
    missing_probers,
    refused_prober,
    unresponsive_findings,
)
from probe_core.pipeline.merge import Observation
from probe_core.registry.prober import Decision, Prober

TROUBLE = {
    "driver-hangs": "import time; time.sleep(60)",
    "driver-crashes": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "prober-raises": "raise RuntimeError('GPU is lost')",
}
AVOIDED = "pci:0000:01:00.0"


def two_gpus(tree: Tree, ids: str = "10de:2684", driver: str = "nvidia") -> None:
    for number in (1, 2):
        tree.pci(f"0000:{number:02x}:00.0", ids, driver=driver)


def prober(trouble: str, passive: str = "continue", devices: tuple[int, ...] = (1, 2)) -> str:
    sightings = {f"pci:0000:{number:02x}:00.0": gpu(number) for number in devices}
    return f"""
for name, sighting in {sightings!r}.items():
    if name in request.avoid:
        {passive}
    request.touching(name)
    if name == {AVOIDED!r}:
        {trouble}
    yield sighting
"""


def run(tree: Tree, probers: Probers, body: str, timeout: float = 2.0) -> dict[str, Any]:
    probers.add("a", body, priority=500, when={"pci_vendor": ["10de", "1002", "8086"]})
    return report_of(tree.machine(), timeout=timeout, **probers.arguments)


def about(report: dict[str, Any], code: str) -> list[dict[str, Any]]:
    return [finding for finding in report["findings"] if finding["code"] == code]


def step(report: dict[str, Any], device: str, name: str) -> dict[str, Any] | None:
    found = next(d for d in report["devices"] if d["id"] == device)
    return next((s for s in found["readiness"]["steps"] if s["step"] == name), None)


@pytest.mark.heavy
@pytest.mark.parametrize("code", TROUBLE)
def test_the_other_device_is_complete(code: str, tree: Tree, probers: Probers) -> None:
    two_gpus(tree)
    report = run(tree, probers, prober(TROUBLE[code]))
    living = next(d for d in report["devices"] if d["id"] == "pci:0000:02:00.0")
    assert living["memory"]["total"] == 25757220864
    assert report["primary"] == "pci:0000:02:00.0"
    (outcome,) = [o for o in report["outcomes"] if o["prober"] == "a"]
    assert (outcome["status"], outcome["partial"], outcome["devices"]) == ("ok", True, 1)
    assert (outcome["code"], outcome["avoided"]) == (code, [AVOIDED])
    assert about(report, "prober-failed") == []


@pytest.mark.heavy
@pytest.mark.parametrize(("code", "verb"), [("driver-hangs", "hung"), ("driver-crashes", "died")])
def test_the_finding_names_device_call_and_the_kernels_lines(
    code: str, verb: str, tree: Tree, probers: Probers
) -> None:
    two_gpus(tree)
    report = run(tree, probers, prober(TROUBLE[code]))
    (finding,) = about(report, code)
    assert finding["what"] == (
        f"the process of prober 'a' {verb} while it asked {AVOIDED} (NVIDIA GeForce RTX 4090)"
    )
    assert (finding["severity"], finding["device"], finding["prober"], finding["step"]) == (
        "error",
        AVOIDED,
        "a",
        "responding",
    )
    assert "`NVRM: Xid`" in finding["fix"]
    assert "AER" in finding["fix"]
    evidence = "in probe_devices" if code == "driver-hangs" else "killed by SIGSEGV"
    assert evidence in finding["evidence"]
    fact = step(report, AVOIDED, "responding")
    assert fact is not None
    assert (fact["status"], fact["code"]) == ("broken", code)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("ids", "driver", "line"),
    [
        ("1002:744c", "amdgpu", "`amdgpu: ring … timeout`"),
        ("8086:56a0", "xe", "`GPU HANG: ecode`"),
    ],
)
def test_each_vendor_has_its_lines(
    ids: str, driver: str, line: str, tree: Tree, probers: Probers
) -> None:
    two_gpus(tree, ids, driver)
    body = prober(TROUBLE["driver-crashes"]).replace("'pci': {'id': '10de:2684'}, ", "")
    (finding,) = about(run(tree, probers, body.replace("'nvidia'", "None")), "driver-crashes")
    assert line in finding["fix"]


@pytest.mark.heavy
def test_a_passive_sighting_of_it_has_the_fact(tree: Tree, probers: Probers) -> None:
    two_gpus(tree)
    passive = "yield {'ids': [name], 'kind': 'gpu', 'name': 'NVIDIA GeForce RTX 4090'}; continue"
    report = run(tree, probers, prober(TROUBLE["driver-crashes"], passive))
    fact = step(report, AVOIDED, "responding")
    assert fact is not None
    assert fact["prober"] == "a"
    (finding,) = about(report, "driver-crashes")
    assert finding["what"].endswith(f"{AVOIDED} (NVIDIA GeForce RTX 4090)")
    assert report["primary"] == "pci:0000:02:00.0"


@pytest.mark.heavy
def test_a_prober_that_knows_better_is_believed(tree: Tree, probers: Probers) -> None:
    two_gpus(tree)
    fact = {"step": "responding", "status": "broken", "evidence": "Xid 79", "code": "gpu-lost"}
    passive = f"yield {{'ids': [name], 'kind': 'gpu', 'step_facts': [{fact!r}]}}; continue"
    report = run(tree, probers, prober(TROUBLE["driver-crashes"], passive))
    found = step(report, AVOIDED, "responding")
    assert found is not None
    assert (found["code"], found["evidence"]) == ("gpu-lost", "Xid 79")


@pytest.mark.heavy
def test_a_node_whose_only_gpu_is_dead_is_degraded(tree: Tree, probers: Probers) -> None:
    tree.pci("0000:01:00.0", "10de:2684", driver="nvidia")
    report = run(tree, probers, prober(TROUBLE["driver-hangs"], devices=(1,)), timeout=1.0)
    assert report["fallback"] == "degraded"
    assert AVOIDED in [device["id"] for device in report["devices"]]
    (outcome,) = [o for o in report["outcomes"] if o["prober"] == "a"]
    assert (outcome["status"], outcome["avoided"]) == ("timeout", [AVOIDED])
    assert len(about(report, "driver-hangs")) == len(about(report, "prober-failed")) == 1


def test_a_device_that_nobody_saw_is_not_made_up(tree: Tree, probers: Probers) -> None:
    tree.pci("0000:02:00.0", "10de:2684", driver="nvidia")
    report = run(tree, probers, prober(TROUBLE["driver-crashes"]))
    assert [d["id"] for d in report["devices"]] == ["pci:0000:02:00.0", "cpu:0"]
    (finding,) = about(report, "driver-crashes")
    assert finding["device"] == AVOIDED


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("action", "code"), [("time.sleep(60)", "shutdown-hangs"), ("1 / 0", "shutdown-fails")]
)
def test_a_failed_cleanup_is_a_notice(action: str, code: str, tree: Tree, probers: Probers) -> None:
    body = f"""
    import time
    try:
        yield {gpu()!r}
        request.done()
    finally:
        {action}
    """
    two_gpus(tree)
    report = run(tree, probers, body, timeout=10.0)
    (outcome,) = [o for o in report["outcomes"] if o["prober"] == "a"]
    assert (outcome["status"], outcome["partial"], outcome["code"]) == ("ok", False, code)
    assert outcome["elapsed_ms"] < 5000
    (finding,) = about(report, code)
    assert (finding["severity"], finding["prober"]) == ("info", "a")
    assert report["primary"] == AVOIDED


def lost(how: Any = "hangs", *ids: str, reason: str = "silent", at: str | None = None) -> Any:
    return Unresponsive(AVOIDED, frozenset(ids or (AVOIDED,)), how, reason, at)


@pytest.mark.parametrize(
    ("device", "how", "what", "fix"),
    [
        (
            {"id": AVOIDED, "vendor": "nvidia", "name": "H100"},
            "hangs",
            f"hung while it asked {AVOIDED} (H100)",
            "read the kernel's log (`NVRM: Xid`, `AER: … Uncorrected (Fatal) error`), then",
        ),
        (
            {"id": "dt:/npu", "vendor": "rockchip", "name": None},
            "crashes",
            "died while it asked dt:/npu",
            "read the kernel's log, then",
        ),
        (
            {"id": "uuid:GPU-1", "vendor": None, "name": None, "pci": {"id": "10de:2330"}},
            "hangs",
            "hung while it asked uuid:GPU-1 (10de:2330)",
            "read the kernel's log, then",
        ),
        (
            None,
            "hangs",
            f"hung while it asked {AVOIDED}",
            "read the kernel's log (`AER: … Uncorrected (Fatal) error`), then",
        ),
        (
            None,
            "raises",
            f"raised an exception while it asked {AVOIDED}",
            "`probe plugins why-not a` shows more; report it to the prober's author",
        ),
    ],
)
def test_the_finding_about_a_device_that_was_lost(
    device: Any, how: Any, what: str, fix: str
) -> None:
    devices = [] if device is None else [{"pci": None, "ids": [AVOIDED], **device}]
    (found,) = unresponsive_findings([("a", lost(how, at="x.py:3 in f"))], devices)
    assert found["what"] == f"the process of prober 'a' {what}"
    assert found["fix"].startswith(fix)
    assert found["device"] == (device["id"] if device else AVOIDED)
    step = None if how == "raises" else "responding"
    assert (found.get("step"), found.get("evidence")) == (step, "x.py:3 in f")


def test_the_own_sighting_of_a_lost_device_has_the_fact_else_the_bus_s() -> None:
    run = Run(Prober("a", "x"), "secret", "mark", 0.0)
    run.unresponsive = [lost(at="x.py:3 in f"), lost("raises", "uuid:GPU-2")]
    bus, own, other, raised = (
        Observation(name, 0, {"ids": [id_]})
        for name, id_ in (("bus", AVOIDED), ("a", AVOIDED), ("a", "x:1"), ("a", "uuid:GPU-2"))
    )
    fact = {
        "step": "responding",
        "status": "broken",
        "evidence": "a: silent at x.py:3 in f",
        "code": "driver-hangs",
    }
    for count, partial in ((1, True), (0, False)):
        outcome: Any = {"devices": count}
        own.sighting = {"ids": [AVOIDED]}
        failed = mark_unresponsive(run, outcome, [bus, own, other, raised])
        assert failed == [("a", one) for one in run.unresponsive]
        assert outcome["partial"] is partial
        assert own.sighting == {"ids": [AVOIDED], "step_facts": [fact]}
    mark_unresponsive(run, outcome, [bus, own])  # whose own fact stays the only one
    assert own.sighting.get("step_facts") == [fact]
    mark_unresponsive(run, outcome, [bus, other, raised])
    assert bus.sighting.get("step_facts") == [fact]
    assert "step_facts" not in {**other.sighting, **raised.sighting}


@pytest.mark.parametrize(
    ("reason", "at", "evidence"),
    [
        ("silent", None, "a: silent"),
        ("silent", "x.py:3 in f", "a: silent at x.py:3 in f"),
        ("it hung at x.py:3 in f", "x.py:3 in f", "a: it hung at x.py:3 in f"),
    ],
)
def test_the_place_where_a_device_was_lost_is_named_once(
    reason: str, at: str | None, evidence: str
) -> None:
    seen = Observation("a", 0, {"ids": [AVOIDED]})
    mark([seen], "a", lost(reason=reason, at=at))
    (fact,) = seen.sighting["step_facts"]
    assert fact["evidence"] == evidence


def bare(name: str | None, at: int, vendor: str = "acme", kind: str = "gpu") -> Any:
    return {"id": f"pci:{at}", "name": name, "vendor": vendor, "kind": kind}


@pytest.mark.parametrize(
    ("devices", "ran", "found"),
    [
        ([], [], []),
        (
            [bare("H100", 1, "nvidia")],
            [],
            [("H100 was", "pip install 'probe-core[nvidia]'", "pci:1")],
        ),
        (
            [bare("H100", 1, "nvidia")],
            ["nvidia"],
            [("H100 was", "install a prober for it", "pci:1")],
        ),
        (
            [bare("X", 1), bare("X", 2), bare(None, 3)],
            [],
            [("2 × X and pci:3 were", "install a prober for it", None)],
        ),
        (
            [bare("Mali", 1, "arm"), bare("QAT", 2, kind="coprocessor")],
            [],
            [
                ("Mali was", "pip install 'probe-core[mali]'", "pci:1"),
                (
                    "QAT was",
                    "nothing, unless it is an accelerator: then install a prober for it",
                    "pci:2",
                ),
            ],
        ),
    ],
)
def test_devices_without_a_prober_are_named_once(
    devices: list[Any], ran: list[str], found: list[Any]
) -> None:
    assert missing_probers(devices, ran) == [
        {
            "code": "prober-missing",
            "severity": "info",
            "what": f"{what} detected on the bus only; no plugin for it ran",
            "why": "no plugin that ran knows this kind of device,"
            " so memory and clocks are not live",
            "fix": fix,
            "device": device,
            "step": "hardware",
            **dict.fromkeys(("prober", "setting", "variable", "evidence")),
        }
        for what, fix, device in found
    ]


@pytest.mark.parametrize(
    ("setting", "severity", "fix"),
    [
        (None, "error", "install a version of it that fits this core, or upgrade probe-core"),
        ("allow", "info", "add probe-a to the allowlist, if it may run"),
    ],
)
def test_a_prober_that_must_not_run(setting: str | None, severity: str, fix: str) -> None:
    decision = Decision(Prober("a", "x", "probe-a"), "refused", "it is not allowed")
    decision.setting = setting
    found = refused_prober(decision)
    assert (found["severity"], found["fix"], found.get("setting")) == (severity, fix, setting)
