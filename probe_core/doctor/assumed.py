"""The doctor's judgement of a machine as it will be: the same rules over changed files."""

from __future__ import annotations

from probe_core.doctor.causes import broken_findings
from probe_core.doctor.check import Request
from probe_core.doctor.log import KernelLog
from probe_core.model.ids import ACCELERATORS, driver_name, driver_text
from probe_core.readiness import Scene, judge
from probe_core.readiness.booting import driver_at_boot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.doctor.document import DoctorDoc, ShownFindingDoc
    from probe_core.doctor.remote import RemoteCheck
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, ReportDoc

STEPS = ("driver", "library")
"""The steps that follow from the files of a machine; the others need the booted machine."""


def findings_on(request: Request, machine: Machine) -> list[ShownFindingDoc]:
    """Return the findings about drivers and their libraries on `machine`, one a cause and device.

    The devices are those of the report, with the driver that each will have. What a vendor's
    library answered, and what the kernel logged, was of the present state and is left out.
    """
    scene = Scene(machine)
    devices = [_fresh(device) for device in request.report["devices"]]
    scene.devices = devices
    for device in devices:
        if device["kind"] in ACCELERATORS:
            _bind(device, driver_at_boot(device, scene, request.scene))
    scene = Scene(machine)  # what was remembered of the drivers before
    judge(devices, scene, only=STEPS)
    report = {**request.report, "devices": devices, "findings": []}
    asked = Request(machine, report, scene=scene)  # type: ignore[arg-type]  # a report but for types
    asked.once("kernel log", lambda: KernelLog(None, "this kernel has not run yet"))
    return broken_findings(asked).findings


def broken_now(request: Request) -> dict[str, str]:
    """Return the code of the broken driver or library of each device that has one, by its id."""
    broken: dict[str, str] = {}
    for device in request.report["devices"]:
        for step in device["readiness"]["steps"] if device["kind"] in ACCELERATORS else ():
            if step["status"] == "broken" and step["step"] in STEPS:
                broken.setdefault(device["id"], step["code"] or "")
    return broken


def _fresh(device: DeviceDoc) -> DeviceDoc:
    # The bus decides of the copy's driver: no look into /sys shows the present one.
    return {**device, "sources": {**device["sources"], "driver.name": "bus"}}


def _bind(device: DeviceDoc, name: str | None) -> None:
    driver = device["driver"]
    if name is None:
        device["driver"] = None
    elif driver is None or driver.get("name") != name:
        device["driver"] = {"name": name}


def with_driver(report: ReportDoc, version: str | None) -> ReportDoc:
    """Return the report with NVIDIA's GPUs on a driver of that version; None: as it is.

    What a Python environment runs then is judged by this: the driver decides about its wheels.
    """
    if version is None:
        return report
    version = _newest(version)
    devices = [
        {**device, "driver": {**(device["driver"] or {}), **_of_nvidia(device, version)}}
        if device["vendor"] == "nvidia" and device["kind"] in ACCELERATORS
        else device
        for device in report["devices"]
    ]
    assumed: ReportDoc = {**report, "devices": devices}  # type: ignore[typeddict-item]  # one key
    return assumed


def _newest(version: str) -> str:
    """Return what stands for the newest release of a branch: 595 has what 595.45.04 brought."""
    return version if "." in version else f"{version}.99"


def _of_nvidia(device: DeviceDoc, version: str) -> dict[str, str]:
    """Return the name and the version that take the place of those of nouveau, or of none."""
    name = driver_name(device) or ""
    is_own = bool(name) and not name.startswith(("nouveau", "nova"))
    return {"name": name if is_own else "nvidia", "version": version}


def examine_assumed(
    request: Request, present: ReportDoc, remote: Sequence[RemoteCheck]
) -> DoctorDoc:
    """Return the doctor's document of what installed checks say of another state, and no more.

    The devices in it are in their `present` state, with the driver that they have now: only the
    findings are about what is assumed.
    """
    from probe_core.doctor.examine import examine

    document = examine(request, remote=remote, only=[answer.code for answer in remote] or [""])
    drivers = {device["id"]: driver_text(device) for device in present["devices"]}
    for state in document["devices"]:
        state["driver"] = drivers[state["id"]]
    return document
