"""The report of a node on a driver that it does not have."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from readiness_nodes import DEVICE, Node, nvidia
from reports import report_of

from probe_core.doctor.assumed import broken_now, examine_assumed, findings_on, with_driver
from probe_core.doctor.check import Request, passed
from probe_core.doctor.examine import examine
from probe_core.doctor.remote import RemoteCheck


def on_driver(version: str | None, **device: Any) -> Any:
    own = {"id": "g", "vendor": "nvidia", "kind": "gpu", "driver": None, "other": 1, **device}
    report: Any = {"schema": 1, "devices": [own]}
    assumed: Any = with_driver(report, version)
    assert report == {"schema": 1, "devices": [own]}
    assert assumed["devices"][0] | {"driver": None} == own | {"driver": None}
    return assumed["devices"][0]["driver"]


@pytest.mark.parametrize(
    ("driver", "version", "assumed"),
    [
        (None, "595", {"name": "nvidia", "version": "595.99"}),
        (None, "595.45.04", {"name": "nvidia", "version": "595.45.04"}),
        ({"name": "nouveau"}, "595", {"name": "nvidia", "version": "595.99"}),
        ({"name": "nova-core"}, "595", {"name": "nvidia", "version": "595.99"}),
        ({"name": "nvidia", "version": "580.95", "open": True}, "595",
         {"name": "nvidia", "version": "595.99", "open": True}),
        ({"name": "nvgpu"}, "595.1", {"name": "nvgpu", "version": "595.1"}),
        ({"name": "nvgpu"}, None, {"name": "nvgpu"}),
    ],
    ids=range(7),
)  # fmt: skip
def test_gpus_of_nvidia_have_the_version_that_is_assumed(
    driver: Any, version: str | None, assumed: Any
) -> None:
    assert on_driver(version, driver=driver) == assumed


@pytest.mark.parametrize("own", [{"vendor": "amd"}, {"kind": "display"}])
def test_other_devices_keep_their_driver(own: dict[str, str]) -> None:
    assert on_driver("595", driver={"name": "x"}, **own) == {"name": "x"}


def without_driver(root: Path) -> Node:
    return nvidia(root, driver=None)


@pytest.mark.parametrize(
    ("make", "driver"), [(nvidia, "nvidia"), (without_driver, None)], ids=["has one", "none"]
)
def test_devices_are_shown_as_they_are_now(make: Any, driver: str | None, tmp_path: Path) -> None:
    """A GPU without a driver had the assumed one beside its state "no driver"."""
    machine = make(tmp_path).machine()
    report: Any = report_of(machine)
    assumed: Any = with_driver(report, "470")
    asked = Request(machine, assumed, assumed={"driver": "470"})
    (state,) = examine_assumed(asked, report, ())["devices"]
    (now,) = examine(Request(machine, report))["devices"]
    assert (state["driver"], state["state"]) == (now["driver"], now["state"])
    assert (state["driver"] or "").startswith(driver or "")
    assert (state["driver"] is None) is (driver is None)


def test_checks_of_an_assumed_machine_are_shown(tmp_path: Path) -> None:
    machine = nvidia(tmp_path).machine()
    report: Any = report_of(machine)
    request = Request(machine, with_driver(report, "595"), assumed={"driver": "595"})
    answer = RemoteCheck("acme-old", "acme 1.0")
    answer.result = passed()
    checks = examine_assumed(request, report, [answer])["checks"]
    assert [check["code"] for check in checks] == ["acme-old"]
    assert examine_assumed(request, report, [])["checks"] == []


def test_a_driver_that_a_machine_will_not_have_is_a_finding(tmp_path: Path) -> None:
    """Nothing is found of the files as they are; another driver that is loaded is."""
    node = nvidia(tmp_path)
    request = Request(node.machine(), report_of(node.machine()))  # type: ignore[arg-type]
    assert findings_on(request, node.machine()) == []
    node.modules("nouveau")
    (found,) = findings_on(request, node.machine())
    assert (found["code"], found["step"], found["device"]) == ("nouveau-bound", "driver", DEVICE)
    (gpu,) = (device for device in request.report["devices"] if device["kind"] == "gpu")
    assert gpu["driver"] == {"name": "nvidia"}  # the present one


def test_what_is_broken_of_a_driver_now() -> None:
    def device(id_: str, *steps: tuple[str, str, str | None], kind: str = "gpu") -> Any:
        listed = [{"step": step, "status": status, "code": code} for step, status, code in steps]
        return {"id": id_, "kind": kind, "readiness": {"steps": listed}}

    devices = [
        device("a", ("driver", "broken", "no-driver"), ("library", "broken", "no-library")),
        device("b", ("driver", "ok", None), ("library", "broken", None)),
        device("c", ("permission", "broken", "no-access"), ("driver", "unknown", "closed")),
        device("d", ("driver", "broken", "no-driver"), kind="display"),
    ]
    request: Any = SimpleNamespace(report={"devices": devices})
    assert broken_now(request) == {"a": "no-driver", "b": ""}
