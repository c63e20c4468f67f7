"""The first break first; what follows from it is folded under it, and alike ones are joined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from doctor_cases import complete, fact
from fake_probers import Probers, gpu
from readiness_nodes import DEVICE, LIBRARIES, Node, intel, nvidia
from reports import report_of

from probe_core.doctor.causes import of_cause, own_findings, shown
from probe_core.doctor.check import Request, failed, finding
from probe_core.doctor.examine import (
    _alike,
    _explains,
    _link,
    _other_side,
    _rank,
    examine,
    ordered,
)
from probe_core.doctor.remote import RemoteCheck


def document(node: Node, probers: Probers | None = None, **asked: Any) -> dict[str, Any]:
    complete(node)
    arguments = probers.arguments if probers else {}
    report: Any = report_of(node.machine(), **arguments)
    return dict(examine(Request(node.machine(), report, **asked)))


def second_gpu(node: Node, driver: str | None = "nvidia") -> None:
    node.tree.pci("0000:02:00.0", "10de:2204", driver=driver, drm=(1, 129))
    node.nodes("/dev/nvidia1")
    node.file("/proc/driver/nvidia/gpus/0000:02:00.0/information", "Device Minor: 1\n")


def test_a_plugin_that_cannot_query_follows_from_the_break(
    tmp_path: Path, probers: Probers
) -> None:
    body = 'raise Unavailable("NVML and driver differ", code="version-mismatch", fix="reboot")'
    manifest = {"when": {"pci_vendor": ["10de"]}}
    probers.add("nvidia", body, **manifest)
    data = document(nvidia(tmp_path), probers)
    errors = [f for f in data["findings"] if f["severity"] == "error"]
    assert [(f["code"], f["step"], f["device"]) for f in errors] == [
        ("version-mismatch", "library", DEVICE)
    ]
    assert errors[0]["why"] == "NVML and driver differ"
    assert [entry["code"] for entry in errors[0]["follows"]] == ["prober-unavailable"]
    assert "prober-unavailable" not in [f["code"] for f in data["findings"]]


def test_what_a_plugin_says_of_its_end_comes_last_of_what_is_as_grave() -> None:
    facts = {"what": "a", "why": "b", "fix": "c", "severity": "error", "step": "runtime"}
    codes = ("prober-failed", "acme-fault", "driver-hangs", "query-fails", "prober-refused")
    found = sorted((shown(finding(code, **facts)) for code in codes), key=_rank)  # type: ignore[arg-type]
    assert [f["code"] for f in found] == [
        *("prober-refused", "query-fails", "driver-hangs", "acme-fault", "prober-failed"),
    ]


def test_a_break_takes_over_the_fix_of_its_plugin_and_what_that_does(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    complete(node)
    report: Any = report_of(node.machine())
    request = Request(node.machine(), report)
    gpu = next(device for device in report["devices"] if device["kind"] == "gpu")
    broken = of_cause(request, "query-fails", "NVML_ERROR_UNKNOWN", [gpu])
    text = "`sudo modprobe nvidia`"
    plugin = finding("prober-failed", what="it failed", why="so", fix=text, severity="error")
    (result,) = ordered([broken, shown({**plugin, "prober": "nvidia"})], request)
    assert (result["code"], result["fix"]) == ("query-fails", text)
    assert (result["action"]["command"], result["action"]["changes"]) == (
        "sudo modprobe nvidia",
        ["module nvidia"],
    )


def test_devices_with_one_cause_are_one_finding(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    second_gpu(node)
    text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  x\n"
    node.file("/proc/driver/nvidia/version", text)
    data = document(node)
    errors = [f for f in data["findings"] if f["severity"] == "error"]
    assert [f["code"] for f in errors] == ["version-mismatch"]
    assert errors[0]["devices"] == [DEVICE, "pci:0000:02:00.0"]


def test_errors_come_before_hints_and_the_bus_before_the_program(
    tmp_path: Path, probers: Probers
) -> None:
    node = nvidia(tmp_path)
    second_gpu(node, driver="nouveau")
    node.tree.pci("0000:03:00.0", "10de:2204", driver="vfio-pci")
    lost = fact("responding", "gpu-lost", "NVML_ERROR_GPU_IS_LOST")
    probers.reports("vendor", gpu(1, step_facts=[lost]))
    data = document(node, probers)
    codes = [f["code"] for f in data["findings"]]
    assert codes[:2] == ["nouveau-bound", "gpu-lost"]
    assert codes.index("reserved-for-vm") > 1


def test_one_device_alone(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    second_gpu(node, driver="nouveau")
    broken = document(node, device="pci:0000:02:00.0")
    assert [f["code"] for f in broken["findings"] if f["severity"] == "error"] == ["nouveau-bound"]
    assert [d["id"] for d in broken["devices"]] == ["pci:0000:02:00.0"]
    healthy = document(node, device=DEVICE)
    assert healthy["healthy"] is True


def test_a_prober_of_somebody_else_gives_reason_and_fix(tmp_path: Path, probers: Probers) -> None:
    body = f"""
        yield {gpu(1, step_facts=[fact("responding", "acme-hot", "92 degrees")])!r}
        yield finding("acme-hot", what="It is hot", why="its fan stands", fix="clean the fan",
                      device="{DEVICE}", step="responding", evidence="92 degrees")
    """
    probers.add("acme", body)
    data = document(nvidia(tmp_path), probers)
    first = data["findings"][0]
    assert (first["code"], first["why"], first["fix"]) == (
        "acme-hot",
        "its fan stands",
        "clean the fan",
    )
    assert first["severity"] == "error"


def test_a_break_comes_before_what_is_said_of_plugins(tmp_path: Path) -> None:
    node = intel(tmp_path)
    node.remove(f"{LIBRARIES}/libze_intel_gpu.so.1")
    node.file(f"{LIBRARIES}/libc.so.6", b"\x7fELF\x02")
    codes = [finding["code"] for finding in document(node)["findings"]]
    assert codes == ["level-zero-missing", "prober-missing"]


def test_wheels_of_another_architecture_follow_from_their_python(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    complete(node)
    report: Any = report_of(node.machine())

    def about(code: str, subject: str) -> RemoteCheck:
        check = RemoteCheck(code, "acme 1.0")
        what = f"{subject} is built for aarch64"
        check.result = failed(finding(code, what=what, why="it is", fix="it", severity="error"))
        return check

    wheels = [about("wheel-other-architecture", f"wheel {number}") for number in range(5)]
    alone = examine(Request(node.machine(), report), remote=wheels)
    assert [f["severity"] for f in alone["findings"]].count("error") == 5
    python = about("environment-other-architecture", "the Python")
    document = examine(Request(node.machine(), report), remote=[*wheels, python])
    errors = [f for f in document["findings"] if f["severity"] == "error"]
    assert [f["code"] for f in errors] == ["environment-other-architecture"]
    assert [entry["what"] for entry in errors[0]["follows"]] == [
        f"wheel {number} is built for aarch64" for number in range(5)
    ]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "driver-crashes"),
        ("import time\ntime.sleep(60)", "driver-hangs"),
    ],
)
def test_how_a_plugin_ended_is_no_second_error(
    body: str, code: str, tmp_path: Path, probers: Probers
) -> None:
    probers.add("nvidia", body, when={"pci_vendor": ["10de"]}, deadline_s=1.0)
    data = document(nvidia(tmp_path), probers)
    errors = [finding for finding in data["findings"] if finding["severity"] == "error"]
    assert [finding["code"] for finding in errors] == [code]
    assert [entry["code"] for entry in errors[0]["follows"]] == ["prober-failed"]
    assert "timed out" not in errors[0]["what"] + errors[0]["fix"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("7", [("variable-stops-at", ["hidden-by-variable"])]),
        # It has the effect that it suggests.
        ("-1", [("hidden-by-variable", [])]),
    ],
)
def test_what_a_faulty_value_hides_follows_from_it(
    value: str, expected: list[tuple[str, list[str]]], tmp_path: Path
) -> None:
    node = nvidia(tmp_path)
    node.environ["CUDA_VISIBLE_DEVICES"] = value
    findings = document(node)["findings"]
    codes = [(f["code"], [each["code"] for each in f.get("follows", [])]) for f in findings]
    assert codes == expected


@pytest.mark.parametrize(
    ("entry", "is_own"),
    [
        ({"device": DEVICE, "step": "driver", "code": "other"}, True),
        ({"device": DEVICE, "step": "node", "code": "driver-hangs"}, True),
        ({"device": DEVICE, "step": "node", "code": "other"}, False),
        ({"device": "pci:0000:99:00.0", "step": "driver", "code": "driver-hangs"}, False),
        ({"device": None, "step": "driver", "code": "driver-hangs"}, True),
        ({"device": None, "step": "driver", "code": "no-driver"}, True),
        ({"device": None, "step": "driver", "code": "device-blocked"}, False),
        ({"device": None, "step": "node", "code": "driver-hangs"}, False),
    ],
)
def test_which_of_the_reports_findings_are_about_a_break(
    entry: dict[str, str | None], is_own: bool
) -> None:
    group: Any = [({"id": DEVICE}, {"code": "driver-hangs", "step": "driver"})]
    found: Any = [entry]
    assert own_findings(group, found) == found[:is_own]


def test_the_break_of_a_later_step_is_also_a_blocked_device() -> None:
    group: Any = [({"id": DEVICE}, {"code": "no-group", "step": "permission"})]
    found: Any = [
        {"device": None, "step": "permission", "code": code}
        for code in ("device-blocked", "no-group", "no-driver")
    ]
    assert own_findings(group, found) == found[:2]


# What explains what, one pair at a time.


def entry(code: str, **facts: Any) -> Any:
    empty = dict.fromkeys(("device", "prober", "variable", "evidence", "step"))
    return {"code": code, "severity": "error", "what": code, "why": "w", "fix": "f"} | empty | facts


CARD = {"kind": "gpu", "vendor": "acme", "seen_by": ["other"]}
LOST = entry("gpu-lost", step="responding", device="a:1")
SEEN = entry("xid-seen", device="a:1")
FAILED = entry("prober-failed", prober="acme")


@pytest.mark.parametrize(
    ("cause", "finding", "explains"),
    [
        (entry("environment-other-architecture"), entry("wheel-other-architecture"), True),
        (entry("environment-other"), entry("wheel-other-architecture"), False),
        (entry("variable-skips", variable="A"), entry("hidden-by-variable", variable="A"), True),
        (entry("variable-skips", variable="A"), entry("hidden-by-variable", variable="B"), False),
        (LOST, SEEN, True),
        (LOST, SEEN | {"device": "a:2"}, False),
        (LOST, SEEN | {"device": None}, False),
        (LOST | {"severity": "warning"}, SEEN, False),
        (LOST | {"step": "driver"}, SEEN, False),
        (SEEN | {"step": "responding"}, SEEN, False),
        (LOST, FAILED, True),
        (LOST, FAILED | {"prober": "other"}, True),
        (LOST, FAILED | {"prober": "third"}, False),
        (LOST, FAILED | {"device": "a:1", "prober": "third"}, True),
        (LOST, FAILED | {"code": "other"}, False),
        (LOST | {"step": "visible-to-all"}, FAILED, False),
        (LOST | {"severity": "warning"}, FAILED, False),
        (LOST, FAILED | {"severity": "warning"}, True),
        (LOST | {"device": None}, FAILED, False),
        (
            entry("module-gone", step="driver"),
            entry("prober-unavailable", evidence="module-gone", prober="third"),
            True,
        ),
        (
            entry("module-gone", step="driver"),
            entry("prober-unavailable", evidence="other", prober="third"),
            False,
        ),
    ],
)
def test_what_explains_a_finding(cause: Any, finding: Any, explains: bool) -> None:
    devices: Any = {"a:1": CARD, "a:3": CARD | {"kind": "cpu"}}
    assert _explains(cause, finding, devices) is explains


def test_alike_findings_are_joined() -> None:
    own = [entry("a", device="a:1"), entry("a", device="a:2"), entry("a", device="a:2", why="x")]
    own += [entry("b"), entry("b", what="other"), entry("b")]
    joined = _alike(own)
    assert [(f["code"], f.get("devices")) for f in joined] == [
        *(("a", ["a:1", "a:2"]), ("a", None), ("b", []), ("b", None))
    ]


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"local_width": 16, "local_generation": 4}, "PCIe 4 ×16"),
        ({"local_width": 16}, "PCIe ×16"),
        ({"local_width": 8, "local_max_width": 16, "local_generation": 5}, "PCIe 5 ×8 of 16"),
        ({"local_width": 16, "local_max_width": 8}, "PCIe ×16"),
        ({"local_width": None, "local_generation": 4}, None),
    ],
)
def test_the_link_of_a_device(link: dict[str, Any], words: str | None) -> None:
    device: Any = {"links": [{"kind": "nvlink"}, {"kind": "pcie", **link}]}
    assert _link(device) == words
    assert _link({"links": []}) is None  # type: ignore[typeddict-item]


def test_what_the_report_has_against_a_check() -> None:
    steps = [{"step": s, "status": "ok", "evidence": None, "code": None} for s in ("a", "b")]
    device: Any = {"readiness": {"state": "ready", "steps": steps}}
    assert _other_side(device) == "the report has it as ready: a and b hold"
    device["readiness"]["steps"] = steps[:1]
    assert _other_side(device) == "the report has it as ready: a holds"
    device["readiness"]["steps"] = []
    assert _other_side(device) == "the report has it as ready"
