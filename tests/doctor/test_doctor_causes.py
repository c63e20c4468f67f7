"""Every cause has a machine that triggers it, and a healthy look-alike that stays silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from doctor_cases import (
    CASES,
    MIG_NODES,
    SET_ASIDE,
    Case,
    guest_processor,
    hailort,
    mig_node,
    wsl,
)
from fake_probers import Probers
from readiness_nodes import FOLDER, Node, nvidia
from weights import mostly_heavy

from probe_core.doctor.checks import further_checks
from probe_core.doctor.examine import all_checks
from probe_core.model.causes import CAUSES

# Causes of the step `visible`: the report's findings have the words of visibility, whose tests
# hold 600 cases.
ELSEWHERE = {"hidden-by-variable", "mig-mode", "hidden-by-runtime"}


def status(document: dict[str, Any], code: str) -> str:
    return next(check["status"] for check in document["checks"] if check["code"] == code)


def causes_in(document: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in document["findings"]} & set(CAUSES)


def test_every_cause_has_a_pair() -> None:
    assert len(CASES) >= 60
    assert set(CASES) | ELSEWHERE == set(CAUSES)


def test_every_cause_says_whose_it_is_in_known_words() -> None:
    assert {cause.vendor for cause in CAUSES.values()} == {"", "nvidia", "amd", "intel", "hailo"}
    assert {cause.system for cause in CAUSES.values()} == {"", "darwin", "windows"}


def test_every_check_has_a_code_and_a_sentence() -> None:
    checks = all_checks()
    assert len({check.code for check in checks}) == len(checks)
    assert all(check.summary.endswith(".") and len(check.summary) > 12 for check in checks)
    assert {check.code for check in further_checks()} <= set(CAUSES)
    assert all(CAUSES[check.code].step == check.step for check in further_checks())


CELERON = "Intel(R) Celeron(R) N5105 @ 2.00GHz"


def with_opencl_for_older_gpus(root: Path) -> Node:
    node = CASES["compute-runtime-too-new"][0].make(root)
    node.file("/etc/OpenCL/vendors/intel_legacy1.icd", "/usr/lib/libigdrcl_legacy1.so\n")
    return node


def accelerated_processor(root: Path) -> Node:
    node = CASES["apu-memory-unused"][0].make(root)
    node.file(f"{FOLDER}/device", "0x74a0\n")
    return node


@pytest.mark.parametrize(
    ("code", "case", "expected"),
    [
        ("hailort-mismatch", Case(hailort("4")), "unknown"),  # a link by the major version
        ("compute-runtime-too-new", Case(with_opencl_for_older_gpus), "passed"),
        # The host's own, which has none.
        ("guest-without-avx", Case(guest_processor("hypervisor", CELERON)), "passed"),
        # One of several partitions, whose banks are its share.
        ("apu-memory-unused", Case(accelerated_processor, fields=SET_ASIDE), "not_applicable"),
    ],
)
def test_a_machine_that_may_be_well_is_not_blamed(
    code: str, case: Case, expected: str, tmp_path: Path, probers: Probers
) -> None:
    document = case.document(tmp_path / "root", probers)
    assert (status(document, code), code in causes_in(document)) == (expected, False)


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        ("nvidia.com/gpu", 12, "failed"),
        ("nvidia.com/gpu", 21, "passed"),
        ("k8s.device-plugin.nvidia.com/gpu", 12, "passed"),
    ],
)
def test_a_specification_older_than_a_mig_instance(
    kind: str, number: int, expected: str, tmp_path: Path, probers: Probers
) -> None:
    """Project-HAMi/HAMi#1903: the engine has no such device then."""

    def node(root: Path) -> Node:
        made = mig_node("ok")(root)
        cap = f"/dev/nvidia-caps/nvidia-cap{number}"
        text = f"kind: {kind}\ndevices:\n- containerEdits:\n    deviceNodes:\n    - path: {cap}\n"
        made.file("/var/run/cdi/nvidia.yaml", text)
        return made

    document = Case(node, fields=MIG_NODES).document(tmp_path / "root", probers)
    assert status(document, "cdi-spec-stale") == expected


@pytest.mark.heavy
@pytest.mark.parametrize("code", CASES)
def test_a_machine_that_has_it(code: str, tmp_path: Path, probers: Probers) -> None:
    report, document = CASES[code][0].examined(tmp_path / "root", probers)
    assert causes_in(document) == {code}
    assert status(document, code) == "failed"
    finding = next(f for f in document["findings"] if f["code"] == code)
    cause = CAUSES[code]
    assert finding["step"] == cause.step
    assert finding["evidence"]
    assert finding["fix"]
    assert "{" not in finding["what"] + finding["fix"].replace("{nvidia.com", "")
    blocked = [d for d in document["devices"] if d["readiness"]["state"] == "blocked"]
    if blocked and not cause.intended:
        assert finding["severity"] == "error"
        assert document["healthy"] is False
    if cause.intended or cause.limits:
        assert finding["severity"] in ("info", "warning")
    # One severity, whether the report or the doctor tells it.
    told = [f for f in report["findings"] if f["code"] != "prober-missing"]
    same = [f["severity"] for f in told if f["step"] == cause.step]
    assert set(same) <= {finding["severity"]}


@pytest.mark.parametrize("code", mostly_heavy(CASES, 6))
def test_a_look_alike_that_has_not(code: str, tmp_path: Path, probers: Probers) -> None:
    document = CASES[code][1].document(tmp_path / "root", probers)
    assert causes_in(document) == set()
    assert status(document, code) in ("passed", "not_applicable", "unknown")
    # A container that nobody gave a GPU: nothing is wrong, and whether the host has one is unknown.
    assert document["healthy"] is (None if code == "container-without-gpus" else True)
    # A tree of another system has no /proc to read the memory from.
    serious = [f["code"] for f in document["findings"] if f["severity"] != "info"]
    assert set(serious) <= (set() if document["system"].count("linux") else {"no-cpu-facts"})


def test_a_driver_of_windows_without_its_cuda_library(tmp_path: Path, probers: Probers) -> None:
    def make(root: Path) -> Node:
        # Each WSL has this library; the folder of drivers tells whose GPU it is.
        node = wsl("libdxcore.so")(root)
        node.file(f"/usr/lib/wsl/drivers/{driver}/x")
        return node

    statuses = {}
    for driver in ("nv_dispi.inf_amd64_0f1e", "iigd_dch.inf_amd64_0f1e"):
        document = Case(make).document(tmp_path / driver, probers)
        statuses[driver[:2]] = status(document, "wsl-no-library")
    assert statuses == {"nv": "failed", "ii": "not_applicable"}


def test_what_a_variable_hides_has_evidence(tmp_path: Path, probers: Probers) -> None:
    def make(root: Path) -> Node:
        node = nvidia(root)
        node.environ["CUDA_VISIBLE_DEVICES"] = ""
        return node

    report, document = Case(make).examined(tmp_path, probers)
    evidence = "CUDA_VISIBLE_DEVICES is empty, which hides every device"
    for findings in (report["findings"], document["findings"]):
        finding = next(f for f in findings if f["code"] == "hidden-by-variable")
        assert evidence in finding["evidence"], finding
