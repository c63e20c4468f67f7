"""`probe exec` and `lease` hand out no device that this process cannot use, and say which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lease_node import Node, gpu

from probe_core.leasing import lease
from probe_core.selection.request import Request, plan


def blocked(slot: int, step: str, code: str, evidence: str) -> dict[str, Any]:
    steps = [{"step": step, "status": "broken", "evidence": evidence, "code": code}]
    return gpu(slot, readiness={"state": "blocked", "broken": step, "steps": steps})


def ready(slot: int, **more: Any) -> dict[str, Any]:
    return gpu(slot, readiness={"state": "ready", "broken": None, "steps": []}, **more)


def four(folder: Path) -> Node:
    refused = "/dev/nvidia0: EACCES"
    absent = "NVML lists 3 of 4 GPUs"
    devices = [
        blocked(1, "permission", "no-permission", refused),
        ready(2),
        blocked(3, "granted", "not-granted", absent),
        ready(4),
    ]
    return Node(folder, 4, devices)


LINES = (
    "leaves out pci:0000:01:00.0: a device node cannot be opened: /dev/nvidia0: EACCES",
    "leaves out pci:0000:03:00.0: it is not granted to this process: NVML lists 3 of 4 GPUs",
)


def test_exec_takes_the_others_and_tells_why(tmp_path: Path) -> None:
    node = four(tmp_path)
    done = node.run("exec", "--gpus", "2", "--", "printenv", "CUDA_VISIBLE_DEVICES")
    assert done.returncode == 0
    assert [name[-1] for name in done.stdout.strip().split(",")] == ["2", "4"]
    assert done.stderr.splitlines() == [f"probe: exec {line}" for line in LINES]


def test_exec_refuses_what_only_blocked_devices_could_meet(tmp_path: Path) -> None:
    done = four(tmp_path).run("exec", "--gpus", "3", "--", "true")
    assert done.returncode == 3
    assert "only 2 devices can be had" in done.stderr
    assert "pci:0000:01:00.0 (a device node cannot be opened" in done.stderr


def test_a_dry_run_has_them_as_comments(tmp_path: Path) -> None:
    done = four(tmp_path).run("exec", "--dry-run", "--gpus", "1")
    assert done.returncode == 0
    assert [f"# {line}" for line in LINES] == done.stdout.splitlines()[:2]


@pytest.mark.heavy
def test_layout_lists_them(tmp_path: Path) -> None:
    node = four(tmp_path)
    done = node.run("layout", "2x1")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:2] == [f"# layout {line}" for line in LINES]
    told = json.loads(node.run("layout", "2x1", "--json").stdout)
    assert list(told["excluded"]) == ["pci:0000:01:00.0", "pci:0000:03:00.0"]
    assert [one["devices"] for one in told["instances"]] == [
        ["pci:0000:02:00.0"],
        ["pci:0000:04:00.0"],
    ]


@pytest.mark.heavy
def test_the_table_of_visible_and_explain_have_the_state(tmp_path: Path) -> None:
    node = four(tmp_path)
    rows = node.run("visible", "--for", "cuda", COLUMNS="400").stdout.splitlines()
    assert [row.split()[1] for row in rows[1:]] == ["0", "1", "hidden", "hidden"]
    assert " no permission  a device node cannot be opened: " in rows[3]
    assert " not granted " in rows[4]
    told = node.run("explain", "pci:0000:01:00.0").stdout
    assert "  state: no permission\n    permission: broken  /dev/nvidia0: EACCES" in told
    assert " no permission " in node.run().stdout


def test_a_lease_tells_what_it_could_not_have(tmp_path: Path) -> None:
    node = four(tmp_path)
    from probe_core.pipeline.refresh import refresh

    document: Any = node.document
    refresh(document, {})
    with lease(2, report=document, environ={"PROBE_LEASES": str(tmp_path / "own")}) as leased:
        assert leased.ids == ["pci:0000:02:00.0", "pci:0000:04:00.0"]
        assert list(leased.excluded) == ["pci:0000:01:00.0", "pci:0000:03:00.0"]


def memory(free: int | None) -> dict[str, Any]:
    usable = free
    return {"kind": "dedicated", "total": 80 << 30, "free": free, "usable": usable}


def test_an_unknown_memory_ranks_behind_every_known_one(tmp_path: Path) -> None:
    devices = [
        ready(1, memory=memory(None), processes=0),
        ready(2, memory=memory(8 << 30), processes=0),
        ready(3, memory=memory(40 << 30), processes=0),
        ready(4, memory=memory(79 << 30), processes=None),
        ready(5, memory=memory(79 << 30), processes=2),
    ]
    document: Any = Node(tmp_path, 5, devices).document
    from probe_core.pipeline.refresh import refresh

    refresh(document, {})
    ranked, _ = plan(document, Request(1))
    assert [device["id"][9:11] for device in ranked] == ["03", "02", "01", "04", "05"]
