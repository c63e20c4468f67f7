"""Every case of the tables beside this file, each with the source that decides it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import case_nodes
import pytest
from case_nodes import NODES, Case

from probe_core.cli.visible import merged
from probe_core.visibility import annotate, findings, see

TABLES = sorted(Path(__file__).parent.glob("cases_*.tsv"))
CASES = [case for table in TABLES for case in case_nodes.cases(table)]


def answer(case: Case) -> str:
    devices = NODES[case.node]
    runtime, _, version = case.runtime.partition("@")
    versions = {runtime: version} if version else None
    views = see(devices, case.environ, versions=versions)
    return case_nodes.told(merged(views.get(runtime, ())), case_nodes.short(devices))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.place)
def test_case(case: Case) -> None:
    """What is listed is what the table says, and the devices' own entries say the same."""
    assert answer(case) == case.expected, f"{case.environ} ({case.source})"
    devices = [dict(device) for device in NODES[case.node]]
    runtime = case.runtime.partition("@")[0]
    views = see(devices, case.environ)
    annotate(devices, views)
    for device in devices:
        entry = device["visibility"].get(runtime)
        if entry is None:
            continue
        listed = any(device["id"] in view.visible for view in views[runtime])
        assert (entry["visible"] is True) is listed
        assert entry["visible"] is True or entry["reason"], "a hidden device has a reason"
        assert entry["index"] is None or entry["visible"] is True
    json.dumps(findings(views))
    for view in (view for platforms in views.values() for view in platforms):
        assert view.entries() == {name: view.entry(name) for name in view.pool}


OTHERS = ("hip", "rocr", "pal", "level_zero", "metal")


def test_a_node_of_one_vendor_loads_no_rules_of_the_others() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import visibility_nodes as nodes; from probe_core.visibility import see\n"
        "print(sorted(see(nodes.h100s(2), {})), *sys.modules, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    runtimes, *loaded = done.stdout.splitlines()
    assert {"cuda", "sycl", "opencl", "tinygrad"} <= set(ast.literal_eval(runtimes))
    assert "probe_core.visibility.cuda" in loaded
    assert {f"probe_core.visibility.{name}" for name in OTHERS}.isdisjoint(loaded)


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 250
    assert all(case.source for case in CASES)
