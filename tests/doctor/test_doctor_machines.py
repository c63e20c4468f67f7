"""Machines that combine facts: the doctor's first finding, its fix, and those of the bundle."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import doctor_systems  # noqa: F401  # adds its machines
import pytest
from doctor_cases import complete
from doctor_machines import (
    BROKEN,
    SOUND,
    SPECIFICATION,
    slurm_job_in_a_container_with_the_hosts_number,
)
from readiness_nodes import Node
from reports import plugin, report_of
from test_doctor_bundle import bundle_of
from weights import mostly_heavy

from probe_core.cli.table import summary_lines
from probe_core.doctor.check import Request
from probe_core.doctor.examine import examine
from probe_core.model.causes import CAUSES

# What only the plugin for AMD reads, of KFD's files.
OF_PLUGIN = frozenset(
    {
        "phoenix_with_code_for_navi_31",
        "navi_23_with_code_for_navi_21",
        "ssh_login_beside_an_unused_integrated_gpu",
    }
)


def examined(node: Node, **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    report = report_of(node.machine(), **arguments)
    return report, dict(examine(Request(node.machine(), report)))  # type: ignore[arg-type]


def test_there_are_as_many_as_were_planned() -> None:
    assert len(BROKEN) >= 25
    assert len(SOUND) >= 10


def test_a_specification_that_names_a_card_of_before(tmp_path: Path) -> None:
    """NVIDIA/nvidia-container-toolkit#885: no container starts with it, and the GPU is well."""
    node = SOUND["specification_of_this_card"](tmp_path / "root")
    node.file("/etc/cdi/nvidia.yaml", SPECIFICATION.replace("renderD128", "renderD129"))
    complete(node)
    finding = examined(node)[1]["findings"][0]
    assert (finding["code"], finding["severity"]) == ("cdi-spec-stale", "warning")
    text = "/etc/cdi/nvidia.yaml names /dev/dri/renderD129, and /sys/class/drm has no renderD129"
    assert finding["evidence"] == text


@pytest.mark.parametrize("name", mostly_heavy(BROKEN, 6))
def test_a_broken_machine(name: str, tmp_path: Path) -> None:
    code, fix, make = BROKEN[name]
    node = make(tmp_path / "root")
    complete(node)
    report, document = examined(node, **(plugin("amd") if name in OF_PLUGIN else {}))
    first = document["findings"][0]
    assert (first["code"], fix in first["fix"]) == (code, True), first["fix"]
    assert {f["code"] for f in document["findings"]} & set(CAUSES) == {code}
    assert document["healthy"] is CAUSES[code].limits
    # One list from one source: the report has the same cause, severity, evidence and fix.
    same = next(f for f in report["findings"] if f["code"] == code)
    keys = ("severity", "evidence", "fix")
    assert [same[key] for key in keys] == [first[key] for key in keys]
    # `probe` shows it in one line, and where the rest is told.
    terminal: Any = SimpleNamespace(width=400, terminal=True, colour=False, encodable=str)
    *lines, hint = summary_lines(report, terminal)  # type: ignore[arg-type]
    assert [line.endswith(f"[{code}]") for line in lines].count(True) == 1
    assert hint.strip() == "`probe doctor` tells cause and fix"


@pytest.mark.heavy
def test_a_variable_hides_what_a_container_was_given(tmp_path: Path) -> None:
    """The other GPUs were left out on purpose, as beside one that no variable hides."""
    node = slurm_job_in_a_container_with_the_hosts_number(tmp_path / "root")
    complete(node)
    found = examined(node)[1]["findings"]
    assert [(entry["code"], entry["severity"]) for entry in found[:2]] == [
        ("variable-stops-at", "warning"),
        ("container-without-gpus", "info"),
    ]


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_machine(name: str, tmp_path: Path) -> None:
    node = SOUND[name](tmp_path / "root")
    complete(node)
    _, document = examined(node, **(plugin("amd") if name in OF_PLUGIN else {}))
    assert [f["code"] for f in document["findings"] if f["severity"] != "info"] == []


@pytest.mark.parametrize(
    "name", mostly_heavy([name for name in (*BROKEN, *SOUND) if name not in OF_PLUGIN], 30)
)
def test_its_bundle_says_the_same(name: str, tmp_path: Path) -> None:
    node = (BROKEN[name][2] if name in BROKEN else SOUND[name])(tmp_path / "root")
    complete(node)
    document, bundle = bundle_of(node, tmp_path / "unpacked")
    assert [(f["code"], f["fix"]) for f in bundle.document["findings"]] == [
        (f["code"], f["fix"]) for f in document["findings"]
    ]


def test_what_a_pod_was_not_granted_needs_no_other_runtime(tmp_path: Path) -> None:
    node = SOUND["pod_with_one_of_two"](tmp_path / "root")
    complete(node)
    _, document = examined(node)
    fix = next(f["fix"] for f in document["findings"] if f["code"] == "pod-without-gpu")
    assert fix == "request it: `resources.limits: {nvidia.com/gpu: 1}`"
