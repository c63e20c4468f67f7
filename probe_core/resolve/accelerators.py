"""Chip, peaks and bandwidth of a GPU, an NPU or a part of one."""

from __future__ import annotations

from probe_core.model.ids import ACCELERATORS, pci_fact, pci_model
from probe_core.resolve import (
    SHORTHANDS,
    Figures,
    fill,
    from_chipdb,
    load_cores,
    shorthand,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypedDict

    from probe_chipdb import Chip, Database, Match
    from probe_core.model.document import DeviceDoc, FindingDoc, Json, PeakDoc, Sighting
    from probe_core.resolve import Load, ResolveHook, Shorthand

    class LiveFacts(TypedDict, total=False):
        """What a driver reports of clocks and power, as `Chip.peaks` takes it."""

        clock_mhz: float
        clock_source: str
        max_mhz: float | None
        power: float | None

    Clock = tuple[float | None, str]
    """The driver's clock that comes nearest to a boost clock: (MHz or None, label)."""


# Which tool prints the name decides how it is spelt; see chipdb's `normalise`.
_NAME_KINDS = {"nvidia": "nvml", "amd": "amdgpu", "pyamdgpuinfo": "amdgpu"}


def load_chips(sightings: Sequence[Sighting], database: Database | None, load: Load) -> Figures:
    """Return the figures of the processors, and of the chips on the buses as they are sold.

    Of accelerators by their ids alone: which name a driver prints is not known yet, and some print
    none. A server's display is none of them, and to say so takes the rules of names.
    """
    figures = Figures()
    if database is None:
        return figures
    for sighting in sightings:
        if sighting["kind"] == "cpu":
            load_cores(sighting, database, load, figures)
    cards = [s for s in sightings if s["kind"] in ACCELERATORS and s.get("pci")]
    ids = {(pci_model(card), pci_fact(card, "subsystem")) for card in cards}
    for number, subsystem in ids:
        try:
            chip = database.match(pci=number, subsystem=subsystem).chip
            if chip is not None:
                _figures_of(chip, None, {}, figures)
        except Exception:  # a broken table: `resolve` says so
            return figures
    return figures


def look_up(sighting: Sighting, prober: str, database: Database | None) -> None:
    """Have chipdb look a device up as a prober reports it: `resolve` gets the answer from memory.

    A name that no chip has in that form takes as long as all else that is resolved.
    """
    if database is None or sighting["kind"] not in ACCELERATORS:
        return
    try:
        chip_of(sighting, database, prober)
    except Exception:  # a broken table: `resolve` says so
        return


def resolve(
    device: DeviceDoc,
    parent: DeviceDoc | None,
    database: Database,
    hook: ResolveHook | None,
    load: Load,
    figures: Figures,
) -> list[FindingDoc]:
    """Fill in what chipdb knows of one device; return what a person should know."""
    if parent is not None and parent.get("chip"):
        resolve_partition(device, parent)
        return []
    match = (hook and _host_match(device, database, hook)) or chip_of(device, database)
    _set_chip(device, match)
    if match.chip is not None:
        _use_chip(device, match.chip, figures)
        if not match.conflicts:
            return []
    load("uncertain")
    from probe_core.resolve.uncertain import chip_finding, resolve_unknown

    if match.chip is None:
        resolve_unknown(device, match, database, _driver_clock(device))
    return [chip_finding(device, match)]


class HostMatch:
    """The answer of the host's own hook, in the shape of chipdb's."""

    __slots__ = ("by", "candidates", "chip", "confidence", "conflicts", "reason")

    def __init__(self, chip: Chip | None, reason: str | None) -> None:
        self.chip = chip
        self.by = "host"
        self.confidence = "high" if chip else None
        self.candidates: tuple[Chip, ...] = ()
        self.conflicts: tuple[str, ...] = ()
        self.reason = reason


def _host_match(device: DeviceDoc, database: Database, hook: ResolveHook) -> HostMatch | None:
    chip_id = hook(device)
    if chip_id is None:
        return None
    chip = database.chip(chip_id)
    reason = None if chip else f"the host names {chip_id!r}, which chipdb does not have"
    return HostMatch(chip, reason)


def chip_of(device: Mapping[str, Any], database: Database, prober: str = "") -> Match:
    """Return which chip a device is, or a sighting of `prober`, by all that is reported of it."""
    memory = device.get("memory") or {}
    # The size of shared memory is the system's, and does not identify the product.
    dedicated = memory.get("total") if memory.get("kind") == "dedicated" else None
    return database.match(
        pci=pci_model(device),
        subsystem=pci_fact(device, "subsystem"),
        revision=pci_fact(device, "revision"),
        gpu_id=device.get("gpu_id"),
        dt=_compatibles(device, names) if (names := device.get("dt")) else (),
        compute_capability=device.get("compute_capability"),
        gfx=device.get("gfx"),
        vendor=device.get("vendor"),
        units=device.get("units"),
        memory=dedicated,
        name=device.get("name"),
        name_kind=_NAME_KINDS.get(prober or device["sources"].get("name", ""), "name"),
    )


def _compatibles(device: Mapping[str, Any], names: Sequence[str]) -> Sequence[str]:
    """Return what the device tree says of a device, and of a Mali its SoC's name for it.

    Arm's own driver binds to a node that names no SoC ("arm,mali-bifrost"). Where bindings name the
    GPU after the SoC, they do it in one way: "mediatek,mt8195" has "mediatek,mt8195-mali".
    """
    if device["kind"] != "gpu" or not any(name.startswith("arm,mali") for name in names):
        return names
    socs = [name for name in names if not name.startswith("arm,") and not name.endswith("-mali")]
    return [*(f"{name}-mali" for name in socs), *names]


def _set_chip(device: DeviceDoc, match: Match | HostMatch) -> None:
    device["chip"] = {
        "id": match.chip.id if match.chip else None,
        "by": match.by,
        "confidence": match.confidence,
        "candidates": [candidate.id for candidate in match.candidates],
    }
    if match.conflicts:
        device["chip"]["conflicts"] = list(match.conflicts)


def _use_chip(device: DeviceDoc, chip: Chip, figures: Figures) -> None:
    """Take what chipdb has of a known chip; counts that the driver gave stay.

    Clocks do not: a driver's maximum is no boost clock (RTX 4090: 3105 against 2520 MHz).
    """
    live = device.get("units")
    fill(device, "name", chip.name)
    fill(device, "arch", chip.family)
    fill(device, "units", chip.units)
    if live in (None, chip.units):
        fill(device, "cores", chip.cores)
    _use_peaks(device, chip, live, figures)
    _use_bandwidth(device, chip)
    if device["memory"]["total"] is None:
        _use_nominal_memory(device, chip)
    device["chip"]["name"] = chip.name
    if live and chip.units and live != chip.units:
        device["chip"]["nominal"] = _nominal(chip)


def _use_peaks(device: DeviceDoc, chip: Chip, live: int | None, figures: Figures) -> None:
    """Take the chip's peaks and their shorthands."""
    if not device["peaks"]:
        facts = _live_facts(device, chip, live)
        peaks, shorthands = _figures_of(chip, live, facts, figures)
        device["peaks"] = peaks.copy()  # equal devices share each peak, which nobody changes
        for name, figure in shorthands.items():
            device[name] = figure
    if device["peaks"]:
        device["sources"].setdefault("peaks", "chipdb")
        return
    # An older chipdb has no `why_no_peaks`.
    reason = chip.why_no_peaks(units=live) if hasattr(chip, "why_no_peaks") else None
    device["unknown"]["peaks"] = reason or "chipdb has no counts and clock of this chip"


def _figures_of(
    chip: Chip, live: int | None, facts: LiveFacts, figures: Figures
) -> tuple[list[PeakDoc], dict[Shorthand, float | None]]:
    """Return a chip's peaks and their shorthands, which are computed once for equal devices.

    `live` is the driver's count of units: the chip's own says nothing new.
    """
    units = None if live == chip.units else live
    # By their text: a count of 8 and one of 8.0 are equal, and sources write them differently.
    key = chip.id, repr((units, facts))
    if key not in figures.chips:
        found: list[PeakDoc] = [peak.as_json() for peak in chip.peaks(units=units, **facts)]
        figures.chips[key] = found, {name: shorthand(name, found) for name in SHORTHANDS}
    return figures.chips[key]


def _live_facts(device: DeviceDoc, chip: Chip, units: int | None) -> LiveFacts:
    """Return what the driver adds; a chip without a clock of its own (Mali) takes the driver's."""
    clock = chip.clock
    # An older chipdb has no game clock.
    if not (clock.boost or clock.base or getattr(clock, "game", None)):
        mhz, label = _driver_clock(device)
        if mhz and (units or chip.units):
            source = f"{label} clock from {device['sources'].get(f'clocks.{label}_mhz')}"
            return {"clock_mhz": mhz, "clock_source": source}
    if not getattr(clock, "set_by", None):
        return {}
    # A maximum is no boost clock, but nothing runs above it: it lowers the top of a range.
    limit = (device.get("clocks") or {}).get("max_mhz")
    return {"max_mhz": limit, "power": (device.get("power") or {}).get("limit_watts")}


def _use_bandwidth(device: DeviceDoc, chip: Chip) -> None:
    """Let the table beat the driver, and keep what the driver reported."""
    reported, nominal = device["bandwidth"], chip.bandwidth
    if nominal is None:
        if reported is None:
            device["unknown"].setdefault("bandwidth", "chipdb has no bandwidth of this chip")
        return
    if reported is not None and reported != nominal:
        prober = device["sources"].get("bandwidth", "")
        device["others"].setdefault("bandwidth", []).append({"prober": prober, "value": reported})
    device["bandwidth"] = nominal
    from_chipdb(device, "bandwidth")


def _use_nominal_memory(device: DeviceDoc, chip: Chip) -> None:
    """Give a card that nobody queried the memory it is sold with, marked as chipdb's."""
    memory = device["memory"]
    is_own = memory["kind"] in (None, "dedicated")
    if is_own and chip.memory.bytes and _is_unqueried(device):
        memory["kind"] = "dedicated"
        memory["total"] = chip.memory.bytes
        from_chipdb(device, "memory.total")
        from_chipdb(device, "memory.kind")


def _is_unqueried(device: DeviceDoc) -> bool:
    """Return whether files alone show the device: the bus's, or its driver's while it sleeps.

    Where a library was asked and gave no size, the reason says more than the number would.
    """
    if device["seen_by"] == ["bus"]:
        return True
    return device["chip"]["confidence"] == "high" and device["power_state"] == "suspended"


def _nominal(chip: Chip) -> dict[str, Json]:
    """Return the figures of the product as sold, beside those of the live unit count."""
    peaks: list[PeakDoc] = [peak.as_json() for peak in chip.peaks()]
    figures: dict[str, Json] = {name: shorthand(name, peaks) for name in SHORTHANDS}
    return {"units": chip.units, **figures}


def _driver_clock(device: DeviceDoc) -> tuple[float | None, str]:
    """Return (MHz, label) of the clock that comes nearest to a boost clock."""
    clocks = device.get("clocks") or {}
    # A maximum is an upper bound, and still nearer to the boost clock than the base clock is.
    for label in ("boost", "max", "base"):
        if clocks.get(f"{label}_mhz"):
            return clocks[f"{label}_mhz"], label
    return None, "max"


# Chip and peaks of a part of a GPU (a MIG device): its share of the parent's, never the whole.


def resolve_partition(device: DeviceDoc, parent: DeviceDoc) -> None:
    """Give a part the chip of its parent, and peaks by its share of the parent's units."""
    chip = parent["chip"].copy()
    chip.pop("nominal", None)  # the whole card's figures
    chip["by"] = "parent" if chip["id"] else None
    device["chip"] = chip
    fill(device, "arch", parent.get("arch"))
    fill(device, "vendor", parent.get("vendor"))
    if parent.get("pci") is not None and device.get("pci") is None:
        device["pci"] = parent["pci"]
        from_chipdb(device, "pci")
    _use_share(device, parent)
    device["unknown"].setdefault("bandwidth", "no driver reports a part's share of the bandwidth")


def _use_share(device: DeviceDoc, parent: DeviceDoc) -> None:
    # NVML's attributes count a MIG device's SMs; a prober may report them as a share alone.
    units = device.get("units") or (device.get("share") or {}).get("units")
    whole = parent.get("units")
    share = device.get("share")
    if share and whole and share.get("of") is None:
        share["of"] = int(whole)  # of an AMD partition whose siblings were not granted
    if units and whole and parent["peaks"]:
        fill(device, "units", int(units))
        device["peaks"] = [_scaled(peak, units, whole) for peak in parent["peaks"]]
        device["sources"]["peaks"] = "chipdb"
    elif not device["peaks"]:
        device["unknown"]["peaks"] = "how many of the parent's units this part has is not known"


def _scaled(peak: PeakDoc, units: float, whole: int) -> PeakDoc:
    part = peak.copy()
    part["tflops"] = round(peak["tflops"] * units / whole, 4)
    low = peak.get("low")
    if low is not None:
        part["low"] = round(low * units / whole, 4)
    part.pop("published", None)  # the vendor publishes no figure of a part
    part["source"] = f"{units} of {whole} units of: {peak['source']}"
    part["confidence"] = "derived"
    return part
