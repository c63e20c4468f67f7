"""Every case of the tables beside this file, each with the source that decides it."""

from __future__ import annotations

import json
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
    assert answer(case) == case.expected, f"{case.environ} ({case.source})"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.place)
def test_entries_say_the_same_as_the_list(case: Case) -> None:
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


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 250
    assert all(case.source for case in CASES)
