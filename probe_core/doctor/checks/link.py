"""The PCIe link under load: its speed, which falls by design while a device idles."""

from __future__ import annotations

from probe_core.doctor.causes import of_cause
from probe_core.doctor.check import check, failed, not_applicable, passed, unknown
from probe_core.readiness.scene import folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Request, ResultDoc
    from probe_core.model.document import DeviceDoc

_BUSY = 50
"""Percent of amdgpu's busy counter above which its link is not left at a low speed. A judgement:
power management raises the speed within milliseconds of any load."""


@check("link-slow", step="hardware", needs=("gpu_busy_percent",))
def link_speed(request: Request) -> ResultDoc:
    """Whether a link stays slow while its device works."""
    slow = [device for device in request.report["devices"] if _speeds(device) is not None]
    if not slow:
        links = [d for d in request.report["devices"] if d["kind"] == "gpu" and d["links"]]
        return passed() if links else not_applicable("no PCIe link of a GPU can be read")
    busy = [device for device in slow if (_load(device, request) or 0) >= _BUSY]
    findings = [of_cause(request, "link-slow", _evidence(d, request), [d]) for d in busy]
    if findings:
        return failed(*findings)
    if any(_load(device, request) is None for device in slow):
        return unknown("a link is slow, and whether its GPU idles is not known")
    return passed()


def _speeds(device: DeviceDoc) -> tuple[float, float] | None:
    """Return (current, most) GT/s of an awake GPU's own link, where that is slow."""
    if device["kind"] != "gpu" or device["power_state"] not in ("active", None):
        return None
    for link in device["links"]:
        now, most = link.get("local_gts"), link.get("local_max_gts")
        if link["kind"] == "pcie" and now and most and now < most:
            return now, most
    return None


def _load(device: DeviceDoc, request: Request) -> int | None:
    """Return the percent that amdgpu counts; other drivers have no such file."""
    folder = folder_of(device)
    return request.machine.read_int(f"{folder}/gpu_busy_percent") if folder else None


def _evidence(device: DeviceDoc, request: Request) -> str:
    now, most = _speeds(device) or (0, 0)
    load = _load(device, request)
    return f"{folder_of(device)}: {now:g} of {most:g} GT/s at gpu_busy_percent {load}"


CHECKS = [link_speed]
