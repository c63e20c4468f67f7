"""What is to be said of devices that only the bus saw: no driver, no plugin, passthrough."""

from __future__ import annotations

from probe_core.model.findings import NO_FIX, finding
from probe_core.pipeline.primary import driver_name, is_passthrough, pci_vendor
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from probe_core.model.document import DeviceDoc, FindingDoc

__all__ = ["bus_findings"]

_EXTRAS = {"nvidia": "nvidia", "amd": "amd", "intel": "intel", "arm": "mali"}
"""Vendor to the extra of probe-core that installs its prober."""


_IF_IT_COMPUTES = "nothing, unless it is an accelerator: then install a prober for it"


def bus_findings(
    devices: Iterable[DeviceDoc], queried_vendors: Collection[str]
) -> list[FindingDoc]:
    """Return the findings about devices that no prober of their vendor reported.

    `queried_vendors` are the PCI vendors whose own prober ran: what it left out is its to explain.
    """
    findings = []
    unqueried: dict[str, list[DeviceDoc]] = {}
    for device in devices:
        if device["kind"] == "display":
            findings.append(_display(device))
        elif device["kind"] == "coprocessor":
            # A crypto card needs no driver of an accelerator: nothing is wrong.
            unqueried.setdefault(_IF_IT_COMPUTES, []).append(device)
        elif device["seen_by"] == ["bus"]:
            if driver_name(device) is None:
                findings.append(_no_driver(device))
            elif is_passthrough(device):
                findings.append(_passthrough(device))
            elif pci_vendor(device) not in queried_vendors:
                unqueried.setdefault(_remedy(device), []).append(device)
    return findings + [_no_prober(group, fix) for fix, group in unqueried.items()]


def _display(device: DeviceDoc) -> FindingDoc:
    return finding(
        "display-only",
        f"{device['id']} ({device['vendor'] or 'unknown vendor'}) is a display adapter",
        "it cannot compute, so it is not counted as an accelerator",
        NO_FIX,
        severity="info",
        device=device["id"],
        step="hardware",
    )


def _no_driver(device: DeviceDoc) -> FindingDoc:
    return finding(
        "no-driver",
        f"no kernel driver is bound to {device['name'] or device['id']}",
        "without a driver no program can use it",
        f"install or load the driver of {device['vendor'] or 'its vendor'}",
        device=device["id"],
        step="driver",
        evidence=_driver_evidence(device),
    )


def _passthrough(device: DeviceDoc) -> FindingDoc:
    return finding(
        "no-driver",
        f"{device['name'] or device['id']} is reserved for a guest or another program",
        f"the passthrough driver {driver_name(device)} is bound to it",
        "nothing, if that is intended; else bind the driver of its vendor",
        severity="info",
        device=device["id"],
        step="driver",
        evidence=_driver_evidence(device),
    )


def _driver_evidence(device: DeviceDoc) -> str | None:
    """Return what the kernel says of the driver, where the device is on the PCI bus."""
    kind, _, address = device["id"].partition(":")
    if kind != "pci":
        return None
    link = f"/sys/bus/pci/devices/{address}/driver"
    driver = driver_name(device)
    return f"{link} is {driver}" if driver else f"{link} is absent"


def _remedy(device: DeviceDoc) -> str:
    extra = _EXTRAS.get(device["vendor"] or "")
    return f"pip install 'probe-core[{extra}]'" if extra else "install a prober for it"


def _no_prober(devices: list[DeviceDoc], fix: str) -> FindingDoc:
    """Say once, not eight times on a server, that no prober queried these devices."""
    names = [device["name"] or device["id"] for device in devices]
    counted = [
        f"{names.count(name)} × {name}" if names.count(name) > 1 else name
        for name in dict.fromkeys(names)
    ]
    return finding(
        "prober-missing",
        f"{joined(counted, 'and')} {_was(names)} detected on the bus only; no plugin for it ran",
        "no plugin that ran knows this kind of device, so memory and clocks are not live",
        fix,
        severity="info",
        device=devices[0]["id"] if len(devices) == 1 else None,
        step="hardware",
    )


def _was(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"
