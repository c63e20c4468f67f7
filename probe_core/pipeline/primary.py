"""Which device is the primary one, and what the bus alone shows that nobody could ask."""

from __future__ import annotations

from probe_core.model.findings import finding
from probe_core.model.kinds import ACCELERATORS, KIND_ORDER
from probe_core.model.passthrough import is_passthrough
from probe_core.model.runtimes import hidden
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from probe_core.model.document import FindingDoc

__all__ = ["bus_findings", "choose", "in_order", "lost"]

_BUS_ONLY = ["bus"]
_EXTRAS = {"nvidia": "nvidia", "amd": "amd", "intel": "intel", "arm": "mali"}


def in_order(devices: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the devices as reports list them: GPUs, other accelerators, CPUs, displays."""
    ordered = sorted(devices, key=lambda device: KIND_ORDER[device["kind"]])
    known = {device["id"] for device in ordered}
    parts: dict[str, list[dict[str, Any]]] = {}
    whole = []
    for device in ordered:
        parent = device.get("parent")
        if parent is not None and parent in known and parent != device["id"]:
            parts.setdefault(parent, []).append(device)
        else:
            whole.append(device)
    listed = [one for device in whole for one in _with_parts(device, parts)]
    # Two devices that call each other their parent hang on nothing.
    return listed + [one for left in parts.values() for one in left]


def _with_parts(
    device: dict[str, Any], parts: dict[str, list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Return a device with its parts behind it, and takes them out of `parts`."""
    own = parts.pop(device["id"], [])
    return [device, *(one for part in own for one in _with_parts(part, parts))]


def choose(
    devices: Iterable[dict[str, Any]],
    priorities: Mapping[str, int],
    failed_vendors: Collection[str],
    unavailable: Collection[str] = (),
) -> dict[str, Any] | None:
    """Return the primary device: the best accelerator this process may use, else the first CPU.

    GPUs before other accelerators, then the priority of the best prober that saw it, dedicated
    memory before shared, the higher fp16 peak, the larger memory. A device that only the bus saw
    counts unless it has no driver, or its vendor's own prober just failed to ask it; what a
    prober in `unavailable` said of it counts as little as the bus.
    """
    listed = list(devices)
    silent = {"bus", *unavailable}
    usable = [d for d in listed if d["kind"] in ACCELERATORS and _usable(d, failed_vendors, silent)]
    if usable:
        return min(usable, key=lambda device: _rank(device, priorities))
    return next((device for device in listed if device["kind"] == "cpu"), None)


def _rank(device: dict[str, Any], priorities: Mapping[str, int]) -> tuple[Any, ...]:
    memory = device.get("memory", {})
    return (
        KIND_ORDER[device["kind"]],
        -max(priorities.get(prober, 0) for prober in device["seen_by"]),
        memory.get("kind") != "dedicated",
        -(device.get("fp16") or 0.0),
        -(memory.get("total") or 0),
    )


def _usable(device: Any, failed_vendors: Collection[str], silent: Collection[str]) -> bool:
    if hidden(device) or _lent(device):
        return False
    if not set(device["seen_by"]) <= set(silent):
        return not lost(device)
    return bool(_driver(device)) and _pci_vendor(device) not in failed_vendors


def lost(device: Mapping[str, Any]) -> bool:
    """Return whether a device's own prober found it mute: no power state, memory or runtime."""
    told = device.get("backends") or device["memory"]["total"] is not None
    return not told and device.get("power_state") == "unknown"


def _driver(device: Mapping[str, Any]) -> str | None:
    """Return the kernel driver's name; a document has null where there is none."""
    name: str | None = (device.get("driver") or {}).get("name")
    return name


def _pci_vendor(device: Mapping[str, Any]) -> str:
    return str((device.get("pci") or {}).get("id", "")).partition(":")[0]


def _lent(device: Mapping[str, Any]) -> bool:
    """Return whether a driver keeps the device for a guest, so that nothing here can use it."""
    return is_passthrough(_driver(device), device.get("vendor"))


def bus_findings(
    devices: Iterable[dict[str, Any]], asked_vendors: Collection[str]
) -> list[FindingDoc]:
    """Return what is to be said of devices that only the bus saw.

    `asked_vendors` are the PCI vendors whose own prober ran: what it left out is its to explain.
    """
    findings = []
    unasked: dict[str, list[dict[str, Any]]] = {}
    for device in devices:
        if device["kind"] == "display":
            findings.append(_display(device))
        elif device["seen_by"] == _BUS_ONLY:
            if not _driver(device):
                findings.append(_no_driver(device))
            elif _lent(device):
                findings.append(_lent_away(device))
            elif _pci_vendor(device) not in asked_vendors:
                unasked.setdefault(_remedy(device), []).append(device)
    return findings + [_no_prober(group, fix) for fix, group in unasked.items()]


def _display(device: dict[str, Any]) -> FindingDoc:
    return finding(
        "display-only",
        f"{device['id']} ({device.get('vendor') or 'unknown vendor'}) is a display adapter",
        "it cannot compute, so it is not counted as an accelerator",
        "nothing to do",
        severity="info",
        device=device["id"],
    )


def _no_driver(device: dict[str, Any]) -> FindingDoc:
    return finding(
        "no-driver",
        f"no kernel driver is bound to {device.get('name') or device['id']}",
        "without a driver no program can use it",
        f"install or load the driver of {device.get('vendor') or 'its vendor'}",
        device=device["id"],
    )


def _lent_away(device: dict[str, Any]) -> FindingDoc:
    return finding(
        "no-driver",
        f"{device.get('name') or device['id']} is lent to a guest or another program",
        f"{_driver(device)} is bound to it instead of a driver that computes",
        "nothing, if that is intended; else bind the driver of its vendor",
        severity="info",
        device=device["id"],
    )


def _remedy(device: dict[str, Any]) -> str:
    extra = _EXTRAS.get(device.get("vendor") or "")
    return f"pip install 'probe-core[{extra}]'" if extra else "install a prober for it"


def _no_prober(devices: list[dict[str, Any]], fix: str) -> FindingDoc:
    """Say once, not eight times on a server, that nobody asked these devices."""
    names = [device.get("name") or device["id"] for device in devices]
    counted = [
        f"{names.count(name)} × {name}" if names.count(name) > 1 else name
        for name in dict.fromkeys(names)
    ]
    return finding(
        "prober-missing",
        f"only the bus was asked about {joined(counted, 'and')}",
        "no prober that ran knows this kind of device, so memory and clocks are not live",
        fix,
        severity="info",
        device=devices[0]["id"] if len(devices) == 1 else None,
    )
