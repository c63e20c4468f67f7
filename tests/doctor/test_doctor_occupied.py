"""What other programs hold: memory that is taken, and a compute mode that admits one of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from doctor_cases import LISTED, Case, complete, exclusive, used
from fake_probers import Probers
from readiness_nodes import Node, nvidia

from probe_core import proc
from probe_core.model.verdict import grantable, usable_here
from probe_core.readiness import Scene
from probe_core.readiness.node import granted


def gpu(report: dict[str, Any]) -> Any:
    return next(device for device in report["devices"] if device["kind"] == "gpu")


def codes(document: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in document["findings"]]


def test_a_full_memory_names_what_is_left_and_how_many_use_it(
    tmp_path: Path, probers: Probers
) -> None:
    document = Case(nvidia, fields=used(0.5)).document(tmp_path, probers)
    finding = next(f for f in document["findings"] if f["code"] == "memory-taken")
    assert finding["severity"] == "info"
    assert finding["evidence"] == "512.0 MiB of 24 GiB are free; 1 compute process"


def holding(root: Path) -> Node:
    """A GPU whose node two users' processes have open; a third one has the shared nodes alone."""
    node = nvidia(root)
    node.file("/etc/passwd", "root:x:0:0:::\nalice:x:1000:1000:::\n")
    for pid, name, uid, target in (
        (4711, "python3", 1000, "/dev/nvidia0"),
        (900, "Xorg\x1b[2J", 1001, "/dev/nvidia0"),
        (12, "nvidia-smi", 0, "/dev/nvidiactl"),
    ):
        node.file(f"/proc/{pid}/comm", f"{name}\n")
        node.file(f"/proc/{pid}/status", f"Name:\t{name}\nUid:\t{uid}\t0\t0\t0\n")
        files = node.tree.root / f"proc/{pid}/fd"
        files.mkdir()
        (files / "3").symlink_to(target)
    return node


def test_who_has_the_memory_is_named_with_pid_and_user(tmp_path: Path, probers: Probers) -> None:
    document = Case(holding, fields=used(0.5)).document(tmp_path, probers)
    finding = next(f for f in document["findings"] if f["code"] == "memory-taken")
    assert finding["evidence"] == (
        "512.0 MiB of 24 GiB are free; 1 compute process: Xorg\ufffd[2J (pid 900, user 1001) and"
        " python3 (pid 4711, user alice)"
    )


@pytest.mark.parametrize(
    "fields",
    [
        used(2.5),  # more than a tenth
        {**used(0.5), "processes": 0},  # a desktop's: nobody computes
        {"memory": {"kind": "dedicated", "total": 24 << 30}, "processes": 2},  # free is not known
        {**used(0.5), "memory": {"kind": "unified", "total": 24 << 30, "free": 1 << 28}},
    ],
)
def test_memory_that_nobody_took(fields: dict[str, Any], tmp_path: Path, probers: Probers) -> None:
    assert "memory-taken" not in codes(Case(nvidia, fields=fields).document(tmp_path, probers))


def test_one_process_in_an_exclusive_mode_keeps_others_out_and_no_job(
    tmp_path: Path, probers: Probers
) -> None:
    """NVML lists the GPU: that says nothing of who may make a context."""
    case = Case(nvidia, LISTED, fields=exclusive(1))
    report, document = case.examined(tmp_path, probers)
    device = gpu(report)
    here = usable_here(device)
    assert (here.usable, here.code, here.severity) == (False, "exclusive-taken", "info")
    assert grantable(device).usable is True
    finding = next(f for f in document["findings"] if f["code"] == "exclusive-taken")
    assert finding["evidence"].startswith(
        "compute mode exclusive-process; compute processes: 1; but vendor: NVML lists it"
    )
    assert "--compute-mode=0" in finding["fix"]


@pytest.mark.parametrize(
    "fields",
    [exclusive(0), {"compute_mode": "exclusive-process"}, {"compute_mode": "default"} | used(12)],
)
def test_a_mode_that_keeps_nobody_out(
    fields: dict[str, Any], tmp_path: Path, probers: Probers
) -> None:
    report, _ = Case(nvidia, LISTED, fields=fields).examined(tmp_path, probers)
    assert usable_here(gpu(report)).usable is not False


@pytest.mark.parametrize("folder", ["/tmp/nvidia-mps", "/run/mps"])
def test_the_server_of_mps_is_the_one_process(
    folder: str, tmp_path: Path, probers: Probers
) -> None:
    def make(root: Path) -> Node:
        node = nvidia(root)
        node.file(f"{folder}/control")
        if folder == "/run/mps":
            node.environ["CUDA_MPS_PIPE_DIRECTORY"] = folder
        return node

    report, _ = Case(make, LISTED, fields=exclusive(1)).examined(tmp_path, probers)
    assert usable_here(gpu(report)).usable is not False


def test_a_host_that_computes_may_be_the_process_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = nvidia(tmp_path)
    complete(node)
    device: Any = {**node.device(), **exclusive(1)}
    machine = node.machine()
    # A live machine reads the nodes of the computer that runs this.
    nodes = ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"]
    module = sys.modules["probe_core.readiness.node"]
    monkeypatch.setattr(module, "required", lambda device, scene: nodes)
    held = [("/proc/self/fd/3", "/dev/null"), ("/proc/self/fd/4", "/dev/nvidia0")]
    monkeypatch.setattr(proc, "descriptors", lambda pid, root="": iter(held))
    assert granted(device, Scene(machine))["code"] == "exclusive-taken"  # a recording's
    machine.live = True
    assert granted(device, Scene(machine))["code"] is None
    held.pop()
    assert granted(device, Scene(machine))["code"] == "exclusive-taken"
