"""Every surface gives the same verdict on each device and on the node, on every machine there is.

The surfaces and what each reads are the table of docs/reference/verdict.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import doctor_systems  # noqa: F401  # adds its machines
import pytest
import recorded
from doctor_cases import complete
from doctor_machines import BROKEN, SOUND
from reports import report_of, report_of_recording
from test_doctor_machines import OF_PLUGIN
from weights import mostly_heavy

from probe_cluster.gathering.summaries import summary_of
from probe_core import Machine
from probe_core.cli.devices import has_failed
from probe_core.cli.table import lines
from probe_core.doctor.check import Request
from probe_core.doctor.examine import examine
from probe_core.model.ids import ACCELERATORS
from probe_core.model.verdict import NodeVerdict, grantable, state_word, units, usable_here
from probe_core.pipeline.refresh import refresh
from probe_export import export
from probe_export.capacity import accelerators, stable_names
from probe_report.summary import state_of_node, tiles_of
from probe_wheels import gpus_of

# For each of the vendors' runtimes a variable that shows nothing, and the first device alone.
VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
)
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    dict.fromkeys(VARIABLES, ""),
    dict.fromkeys(VARIABLES, "0"),
)
INVENTED = [name for name in (*BROKEN, *SOUND) if name not in OF_PLUGIN]


@pytest.mark.parametrize("name", mostly_heavy(recorded.names(), 4))
def test_a_recorded_machine(name: str) -> None:
    agree_anywhere(report_of_recording(name))


@pytest.mark.parametrize("name", mostly_heavy(INVENTED, 12))
def test_an_invented_machine(name: str, tmp_path: Path) -> None:
    node = (BROKEN[name][2] if name in BROKEN else SOUND[name])(tmp_path / "root")
    complete(node)
    machine = node.machine()
    report = report_of(machine)
    agree_with_doctor(report, machine)
    agree_anywhere(report)


def agree_anywhere(report: Any) -> None:
    agree(report)  # without variables, as it was made
    for environ in ENVIRONMENTS:
        again = deepcopy(report)
        refresh(again, environ)
        agree(again)


def agree(report: Any) -> None:
    """Assert that the surfaces of a report say what the verdict says."""
    verdict = NodeVerdict(report)
    for device in report["devices"]:
        if device["kind"] in ACCELERATORS:
            consistent(device)
    assert shown_as_usable(report) == ids(verdict.usable)
    assert {*ids(verdict.usable)} & {*ids(verdict.missing)} == set()
    primary = next((d for d in report["devices"] if d["id"] == report["primary"]), None)
    assert primary is None or usable_here(primary).usable is not False
    exported(report, verdict)
    judged(report, verdict)


def consistent(device: Any) -> None:
    here, granted = usable_here(device), grantable(device)
    if here.usable:
        assert granted.usable is not False, (device["id"], granted.code)
    if here.usable is not True:
        assert here.step or state_word(device) == "unknown"
    assert (state_word(device) in ("ready", "limited", "asleep")) <= (here.usable is not False)


def shown_as_usable(report: Any) -> list[str]:
    """Return the units that the cluster's summary, and the wheels' list, take for usable."""
    listed = [gpu.id for gpu in summary_of(report).gpus if not (gpu.blocked or gpu.hidden)]
    whole = ids(units(report["devices"]))
    wheels = {gpu.id: gpu.usable for gpu in gpus_of(report, {})}
    for device in report["devices"]:
        if device["id"] in wheels and device["vendor"] != "amd":  # without KFD: no build for Vulkan
            assert wheels[device["id"]] == usable_here(device).usable
    return [name for name in whole if name in listed]


def exported(report: Any, verdict: NodeVerdict) -> None:
    granted, missing = verdict.grantable, verdict.missing
    text = {name: export(name, report) for name in ("env", "nfd")}
    variables = dict(re.findall(r"^(\w+)='(.*)'$", text["env"], re.MULTILINE))
    assert variables["NODE_ACCELERATORS"] == str(len(granted))
    assert variables["NODE_MISSING"] == str(len(missing))  # the Slurm prolog reads this
    labels = dict(re.findall(r"/probe-([\w.-]+)=(.*)$", text["nfd"], re.MULTILINE))
    counts = [int(labels.get(f"{kind}.count", 0)) for kind in ACCELERATORS]
    assert sum(counts) == len(granted)
    assert int(labels.get("missing.count", 0)) == len(missing)
    assert int(labels.get("set-aside.count", 0)) == len(verdict.set_aside)
    ready = "false" if missing and not granted else "true"
    assert labels.get("ready") == (None if verdict.state == "unknown" else ready)
    measured = series(export("prometheus", report))
    assert measured["probecore_devices_usable"] == {"": float(len(granted))}
    names = stable_names(report["devices"])
    for device in accelerators(report):
        answer = grantable(device).usable
        stem = "probecore_partition" if device["parent"] in names else "probecore_device"
        ready = measured[f"{stem}_ready"].get(names[device["id"]])
        assert ready == (None if answer is None else float(answer)), device["id"]
        lost = measured[f"{stem}_missing"][names[device["id"]]]
        assert lost == float(device["id"] in ids(missing))


def series(text: str) -> Mapping[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for name, labels, value in re.findall(r"^(\w+)(?:{(.*)})? (\S+)$", text, re.MULTILINE):
        device = re.search(r'(?:^|,)device="([^"]*)"(?:,partition="([^"]*)")?', labels)
        place = "/".join(filter(None, device.groups())) if device else ""
        found.setdefault(name, {})[place] = float(value)
    return {"probecore_device_ready": {}, "probecore_partition_ready": {}, **found}


def judged(report: Any, verdict: NodeVerdict) -> None:
    badge = state_of_node(report)
    failed = has_failed(report)  # the exit status of --strict
    assert failed is verdict.failed
    assert (badge.text == "ready") <= (verdict.state == "good" and not failed)
    assert (badge.style == "bad") <= failed
    assert (badge.text == "no accelerator can be used") == (
        verdict.state == "bad" and report["fallback"] != "degraded"
    )
    whole = [d for d in report["devices"] if d["kind"] in ACCELERATORS and not d["parent"]]
    sure = [device for device in verdict.usable if usable_here(device).usable]
    parents = {device["parent"] for device in sure}
    usable = [d for d in whole if d["id"] in parents or d["id"] in ids(sure)]
    note = tiles_of([report])[0].note
    if not usable and verdict.state == "unknown" and whole:
        assert note == "none is known to be usable"
    elif whole:
        assert note.startswith(f"{len(usable)} usable")


def agree_with_doctor(report: Any, machine: Machine) -> None:
    document = examine(Request(machine, report))
    verdict = NodeVerdict(report)
    if has_failed(report):
        assert document["healthy"] is False
    worse = {i for f in document["findings"] if "contradicts" in f for i in named(f)}
    assert {*document["node"]["missing"]} == {*ids(verdict.missing), *worse}
    assert document["node"]["usable"] == [i for i in ids(verdict.usable) if i not in worse]
    # One document says one thing of a device, whoever found it.
    states = {device["id"]: device["readiness"]["state"] for device in document["devices"]}
    assert {states[device] for device in worse} <= {"blocked"}
    known = {device["id"]: device["readiness"]["state"] for device in report["devices"]}
    assert all(states[i] == known[i] for i in states if i not in worse)
    options = {"width": 400, "terminal": True, "colour": False, "encodable": str}
    terminal: Any = SimpleNamespace(args=SimpleNamespace(all=True), **options)
    for device in report["devices"]:
        if device["kind"] in ACCELERATORS:
            assert state_word(device) in "\n".join(lines(report, terminal))


def named(finding: Any) -> list[str]:
    return list(finding.get("devices") or [finding["device"]])


def ids(devices: Any) -> list[str]:
    return [device["id"] for device in devices]
