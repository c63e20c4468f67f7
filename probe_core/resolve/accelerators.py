"""Chip, peaks and bandwidth of a GPU, an NPU or a part of one."""

from __future__ import annotations

from probe_core.model.findings import finding
from probe_core.resolve.shorthands import SHORTHANDS, shorthand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_chipdb import Chip, Database, Match
    from probe_core.model.document import FindingDoc
    from probe_core.resolve import ResolveHook

__all__ = ["resolve"]

# Who said the name decides how it is spelt; see chipdb's `normalise`.
_NAME_KINDS = {"nvidia": "nvml", "amd": "amdgpu", "pyamdgpuinfo": "amdgpu"}


def resolve(
    device: dict[str, Any],
    parent: dict[str, Any] | None,
    database: Database,
    hook: ResolveHook | None,
) -> list[FindingDoc]:
    """Fill in what chipdb knows of one device; returns what a person should know."""
    if parent is not None and parent.get("chip"):
        _as_part(device, parent, database)
        return []
    match = _asked_host(device, database, hook) or _match(device, database)
    chip = match.chip
    device["chip"] = {
        "id": chip.id if chip else None,
        "by": match.by,
        "confidence": match.confidence,
        "candidates": [candidate.id for candidate in match.candidates],
    }
    if match.conflicts:
        device["chip"]["conflicts"] = list(match.conflicts)
    if chip is not None:
        _as_chip(device, chip)
    else:
        device["unknown"]["chip"] = match.reason or "chipdb does not know it"
        _as_unknown(device, database)
    return _findings(device, match)


class _HostMatch:
    """What the host's own hook said, in the shape of chipdb's answer."""

    __slots__ = ("by", "candidates", "chip", "confidence", "conflicts", "reason")

    def __init__(self, chip: Chip | None, reason: str | None) -> None:
        self.chip = chip
        self.by = "host"
        self.confidence = "high" if chip else None
        self.candidates: tuple[Chip, ...] = ()
        self.conflicts: tuple[str, ...] = ()
        self.reason = reason


def _asked_host(
    device: dict[str, Any], database: Database, hook: ResolveHook | None
) -> _HostMatch | None:
    said = hook(device) if hook else None
    if said is None:
        return None
    chip = database.chip(said)
    return _HostMatch(chip, None if chip else f"the host said {said!r}, which chipdb does not have")


def _match(device: dict[str, Any], database: Database) -> Match:
    pci = device.get("pci") or {}
    memory = device.get("memory", {})
    dedicated = memory.get("total") if memory.get("kind") == "dedicated" else None
    return database.match(
        pci=pci.get("id"),
        subsystem=pci.get("subsystem"),
        revision=pci.get("revision"),
        gpu_id=device.get("gpu_id"),
        dt=device.get("dt", ()),
        compute_capability=device.get("compute_capability"),
        gfx=device.get("gfx"),
        vendor=device.get("vendor"),
        units=device.get("units"),
        memory=dedicated,
        name=device.get("name"),
        name_kind=_NAME_KINDS.get(device["sources"].get("name", ""), "name"),
    )


def _as_chip(device: dict[str, Any], chip: Chip) -> None:
    """Take what chipdb says of a known chip; counts that the driver gave stay.

    Clocks do not: a driver's maximum is no boost clock (RTX 4090: 3105 against 2520 MHz).
    """
    live = device.get("units")
    _say(device, "name", chip.name)
    _say(device, "arch", chip.family)
    _say(device, "units", chip.units)
    if device.get("cores") is None and live in (None, chip.units):
        _say(device, "cores", chip.cores)
    if not device["peaks"]:
        device["peaks"] = [peak.as_json() for peak in _chip_peaks(device, chip, live)]
    if device["peaks"]:
        device["sources"].setdefault("peaks", "chipdb")
    else:
        why = chip.why_no_peaks(units=live) if hasattr(chip, "why_no_peaks") else None
        device["unknown"]["peaks"] = why or "chipdb has no counts and clock of this chip"
    if chip.bandwidth is not None:
        _replace(device, "bandwidth", chip.bandwidth)
    elif device["bandwidth"] is None:
        device["unknown"].setdefault("bandwidth", "chipdb has no bandwidth of this chip")
    _nominal_memory(device, chip)
    device["chip"]["name"] = chip.name
    if live and chip.units and live != chip.units:
        nominal = [peak.as_json() for peak in chip.peaks()]
        device["chip"]["nominal"] = {"units": chip.units} | {
            name: shorthand(name, nominal) for name in SHORTHANDS
        }


def _nominal_memory(device: dict[str, Any], chip: Chip) -> None:
    """Give a card that only the bus saw the memory it is sold with, marked as such.

    Where a prober asked, and got no answer, the reason says more than the number would.
    """
    memory = device["memory"]
    if device["seen_by"] != ["bus"] or memory["kind"] not in (None, "dedicated"):
        return
    if memory["total"] is None and chip.memory.bytes:
        memory |= {"kind": "dedicated", "total": chip.memory.bytes}
        device["sources"] |= {"memory.total": "chipdb", "memory.kind": "chipdb"}
        device["unknown"].pop("memory.total", None)
        device["unknown"].pop("memory.kind", None)


def _chip_peaks(device: dict[str, Any], chip: Chip, units: int | None) -> Any:
    """Return the chip's peaks; one that has no clock of its own (Mali) takes the driver's."""
    if chip.clock.boost is None and chip.clock.base is None:
        mhz, label = _driver_clock(device)
        if mhz and (units or chip.units):
            source = f"{label} clock from {device['sources'].get('clocks.' + label + '_mhz')}"
            return chip.peaks(units=units, clock_mhz=mhz, clock_source=source)
    return chip.peaks(units=units)


def _driver_clock(device: dict[str, Any]) -> tuple[float | None, str]:
    """Return (MHz, label) of the clock that comes nearest to a boost clock."""
    clocks = device.get("clocks", {})
    for label in ("boost", "max", "base"):
        if clocks.get(f"{label}_mhz"):
            return clocks[f"{label}_mhz"], label
    return None, "max"


def _as_part(device: dict[str, Any], parent: dict[str, Any], database: Database) -> None:
    """Give a partition (a MIG device) its share of the parent's peaks, never the whole card's."""
    device["chip"] = dict(parent["chip"])
    device["chip"].pop("nominal", None)
    device["chip"]["by"] = "parent" if parent["chip"]["id"] else None
    for key in ("arch", "vendor", "pci"):
        if parent.get(key) is not None:
            _say(device, key, parent[key])
    units = device.get("units") or device.get("share", {}).get("units")
    whole = parent.get("units")
    if units and whole and parent["peaks"]:
        _say(device, "units", units)
        device["peaks"] = [_scaled(peak, units, whole) for peak in parent["peaks"]]
        device["sources"]["peaks"] = "chipdb"
    elif not device["peaks"]:
        device["unknown"]["peaks"] = "how many of the parent's units this part has is not known"
    device["unknown"].setdefault("bandwidth", "a part's share of the memory bandwidth is not told")


def _scaled(peak: dict[str, Any], units: int, whole: int) -> dict[str, Any]:
    part = {**peak, "tflops": round(peak["tflops"] * units / whole, 4)}
    if "low" in part:
        part["low"] = round(part["low"] * units / whole, 4)
    part.pop("published", None)
    part["source"] = f"{units} of {whole} units of: {peak['source']}"
    part["confidence"] = "derived"
    return part


def _as_unknown(device: dict[str, Any], database: Database) -> None:
    """Derive the peaks of a chip that chipdb does not have, where its architecture is known."""
    arch, reason = database.arch_for(
        compute_capability=device.get("compute_capability"),
        gfx=device.get("gfx"),
        name=device.get("name"),
        gpu_id=device.get("gpu_id"),
        dt=device.get("dt", ()),
        pci=(device.get("pci") or {}).get("id"),
    )
    if device["bandwidth"] is None:
        device["unknown"].setdefault("bandwidth", "unknown chip")
    if arch is not None:
        _say(device, "arch", arch.family or arch.id)
    if device["peaks"]:  # the prober knows them itself
        return
    if arch is None:
        device["unknown"].setdefault("peaks", f"unknown chip; {reason}")
        return
    mhz, label = _driver_clock(device)
    units = device.get("units")
    if not units or not mhz:
        missing = "unit count" if not units else "clock"
        why = f"unknown chip of architecture {arch.name}; the driver gives no {missing}"
        device["unknown"].setdefault("peaks", why)
        return
    teller = device["sources"].get(f"clocks.{label}_mhz", "driver")
    note = "an upper bound: a driver's maximum is no boost clock" if label == "max" else ""
    source = f"{teller}{'; ' + note if note else ''}"
    peaks = database.derive(arch.id, units=units, clock_mhz=mhz, clock=label, source=source)
    device["peaks"] = [peak.as_json() for peak in peaks]
    if peaks:
        device["sources"]["peaks"] = "derived"
    else:
        device["unknown"].setdefault("peaks", f"the rates of {arch.name} depend on the product")


def _say(device: dict[str, Any], key: str, value: Any) -> None:
    if value is not None and device.get(key) is None:
        device[key] = value
        device["sources"][key] = "chipdb"
        device["unknown"].pop(key, None)


def _replace(device: dict[str, Any], key: str, value: Any) -> None:
    """Let the table beat the driver, and keep what the driver said."""
    told = device.get(key)
    if told is not None and told != value:
        one = {"prober": device["sources"].get(key), "value": told}
        device["others"].setdefault(key, []).append(one)
    device[key] = value
    device["sources"][key] = "chipdb"
    device["unknown"].pop(key, None)


def _findings(device: dict[str, Any], match: Match | _HostMatch) -> list[FindingDoc]:
    name = device.get("name") or device["id"]
    fix = "add it: see the chipdb documentation, or PROBE_CHIPDB=FILE for this site"
    if match.conflicts:
        why = "; ".join(match.conflicts)
        what = f"the keys of {name} name different chips"
        return [finding("chip-conflict", what, why, "trust its peaks less", device=device["id"])]
    if match.chip is not None:
        return []
    if match.candidates:
        why = "one of " + ", ".join(candidate.id for candidate in match.candidates[:8])
        what = f"the chip of {name} is not certain"
        fix = "a prober that tells its memory or unit count decides; `probe chip` lists them apart"
        return [finding("chip-ambiguous", what, why, fix, severity="info", device=device["id"])]
    why = match.reason or "no id or name of it is in chipdb"
    what = f"the chip of {name} is unknown"
    return [finding("chip-unknown", what, why, fix, severity="info", device=device["id"])]
