"""A wait for memory: measured again once the devices are free, never trusted from before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lease_node import Node, gpu

from probe_core.leasing import lease, obtain
from probe_core.selection import SelectionError

FULL, EMPTY = 10 << 30, 79 << 30


def report(*free: int) -> dict[str, Any]:
    devices = [
        gpu(slot, memory={"kind": "dedicated", "total": 80 << 30, "free": amount})
        for slot, amount in enumerate(free, 1)
    ]
    for at, device in enumerate(devices):
        device["visibility"] = {"cuda": {"visible": True, "index": at, "reason": None}}
    return {"devices": devices, "primary": devices[0]["id"], "node": {"os": "linux"}}


class Meter:
    """Gives a report for each look, the last one for ever."""

    def __init__(self, *reports: Mapping[str, Any]) -> None:
        self.reports = list(reports)
        self.looks = 0

    def __call__(self) -> Mapping[str, Any]:
        self.looks += 1
        return self.reports.pop(0) if len(self.reports) > 1 else self.reports[0]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obtain, "LOOK_AGAIN_S", 0.02)


def environ(folder: Path) -> dict[str, str]:
    return {"PROBE_LEASES": str(folder)}


def test_it_waits_until_the_memory_is_free_too(tmp_path: Path) -> None:
    meter = Meter(report(FULL), report(FULL), report(EMPTY))
    with lease(
        memory="40GiB", wait=5, report=report(FULL), environ=environ(tmp_path), measure=meter
    ) as held:
        assert held.ids == ["pci:0000:01:00.0"]
    assert meter.looks == 3


def test_it_takes_another_device_that_has_the_memory(tmp_path: Path) -> None:
    now = report(FULL, EMPTY)
    before = report(EMPTY, FULL)
    meter = Meter(now)
    with lease(
        memory="40GiB", wait=5, report=before, environ=environ(tmp_path), measure=meter
    ) as held:
        assert held.ids == ["pci:0000:02:00.0"]
    assert meter.looks == 2


def test_it_gives_up_and_says_why(tmp_path: Path) -> None:
    meter = Meter(report(FULL))
    with pytest.raises(SelectionError, match="less than 40GiB was still free") as caught:
        lease(
            memory="40GiB", wait=0.1, report=report(FULL), environ=environ(tmp_path), measure=meter
        )
    assert caught.value.code == "memory"
    assert meter.looks >= 1
    lease(report=report(FULL), environ=environ(tmp_path)).release()  # nothing was kept


def test_a_named_device_may_be_waited_for_too(tmp_path: Path) -> None:
    meter = Meter(report(EMPTY))
    full, where = report(FULL), environ(tmp_path)
    with lease(None, "0", memory="40GiB", wait=5, report=full, environ=where, measure=meter):
        assert meter.looks == 1
    with pytest.raises(SelectionError) as caught:
        lease(None, "0", memory="40GiB", report=full, environ=where)
    assert caught.value.code == "memory"


def test_what_the_device_never_has_is_refused_at_once(tmp_path: Path) -> None:
    meter = Meter(report(FULL))
    with pytest.raises(SelectionError, match=r"what would work: ask for 80 GiB each") as caught:
        lease(memory="90GiB", wait=60, report=report(FULL), environ=environ(tmp_path))
    assert (caught.value.code, meter.looks) == ("memory", 0)


def test_a_whole_gpu_stays_locked_while_its_instance_lacks_memory(tmp_path: Path) -> None:
    def cut(free: int) -> dict[str, Any]:
        found = report(EMPTY)
        part = gpu(2, id="uuid:MIG-a", ids=["uuid:MIG-a"], parent="pci:0000:01:00.0")
        part["memory"] = {"total": 20 << 30, "free": free}
        part["visibility"] = found["devices"][0]["visibility"]
        found["devices"][0]["visibility"] = {}
        return {**found, "devices": [*found["devices"], part]}

    meter = Meter(cut(1 << 30), cut(19 << 30))
    wanted = "MIG-a"
    with lease(
        None,
        wanted,
        memory="10GiB",
        wait=5,
        report=cut(1),
        environ=environ(tmp_path),
        measure=meter,
    ) as held:
        assert held.ids == ["uuid:MIG-a"]
        with pytest.raises(SelectionError) as caught:
            lease(report=report(EMPTY), environ=environ(tmp_path))
        assert caught.value.code == "busy", "the whole GPU is not free"


@pytest.mark.heavy
def test_the_command_line_measures_again(node: Node) -> None:
    file = Path(node.environ["PROBE_STATIC"])
    for device in node.document["devices"]:
        device["memory"]["free"] = FULL
    file.write_text(json.dumps(node.document))
    done = node.run("exec", "--memory", "40GiB", "--wait", "0.2", "--", "true")
    assert (done.returncode, "less than 40GiB was still free" in done.stderr) == (3, True)
    done = node.run("exec", "--memory", "8GiB", "--wait", "0.2", "--", "true")
    assert done.returncode == 0
