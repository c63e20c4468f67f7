"""What is to be said of devices that only the bus saw: displays, and those without a plugin."""

from __future__ import annotations

from probe_core.model.findings import NO_FIX, finding
from probe_core.model.readiness import blocked
from probe_core.pipeline.primary import pci_vendor
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from probe_core.model.document import DeviceDoc, FindingDoc

__all__ = ["bus_findings"]

_EXTRAS = {"nvidia": "nvidia", "amd": "amd", "intel": "intel", "arm": "mali"}
"""Vendor to the extra of probe-core that installs its prober."""

_OTHER_REMEDY = "install a prober for it"


_IF_IT_COMPUTES = "nothing, unless it is an accelerator: then install a prober for it"


def bus_findings(
    devices: Iterable[DeviceDoc], queried_vendors: Collection[str], ran: Collection[str]
) -> list[FindingDoc]:
    """Return the findings about `devices`, which only the bus reported.

    `queried_vendors` are the PCI vendors whose own prober ran: what it left out is its to explain.
    `ran` are the names of all probers that ran. A device that is blocked has a finding of its own,
    and no plugin helps it.
    """
    findings = []
    unqueried: dict[str, list[DeviceDoc]] = {}
    for device in devices:
        if device["kind"] == "display":
            findings.append(_display(device))
        elif device["kind"] == "coprocessor":
            # A crypto card needs no driver of an accelerator: nothing is wrong.
            unqueried.setdefault(_IF_IT_COMPUTES, []).append(device)
        elif pci_vendor(device) not in queried_vendors and not blocked(device):
            unqueried.setdefault(_remedy(device, ran), []).append(device)
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


def _remedy(device: DeviceDoc, ran: Collection[str]) -> str:
    """Return what to install: not what just ran, and does not know this device."""
    extra = _EXTRAS.get(device["vendor"] or "")
    return f"pip install 'probe-core[{extra}]'" if extra not in (None, *ran) else _OTHER_REMEDY


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
