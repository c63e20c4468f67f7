"""Chip, peaks and bandwidth of a GPU, an NPU or a part of one."""

from __future__ import annotations

from probe_core.model.findings import NO_FIX, finding
from probe_core.model.ids import ACCELERATORS, pci_model, pci_revision, pci_subsystem
from probe_core.resolve import (
    SHORTHANDS,
    fill_count,
    fill_text,
    from_chipdb,
    load_cores,
    shorthand,
)
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypedDict

    from probe_chipdb import Arch, Chip, Database, Match
    from probe_core.model.document import DeviceDoc, FindingDoc, Json, PeakDoc, Sighting
    from probe_core.resolve import Load, ResolveHook, Shorthand

    class LiveFacts(TypedDict, total=False):
        """What a driver reports of clocks and power, as `Chip.peaks` takes it."""

        clock_mhz: float
        clock_source: str
        max_mhz: float | None
        power: float | None

    PeaksMemo = dict[tuple[object, ...], tuple[list[PeakDoc], dict[Shorthand, float | None]]]
    """A chip and what its driver reports → its peaks and their shorthands."""
    Clock = tuple[float | None, str]
    """The driver's clock that comes nearest to a boost clock: (MHz or None, label)."""


_COPROCESSOR = "unknown coprocessor"

# Which tool prints the name decides how it is spelt; see chipdb's `normalise`.
_NAME_KINDS = {"nvidia": "nvml", "amd": "amdgpu", "pyamdgpuinfo": "amdgpu"}


def load_chips(sightings: Sequence[Sighting], database: Database | None, load: Load) -> None:
    """Have chipdb read the rows of the processors, and of the chips on the buses.

    Of chips by their ids alone: which name a driver prints is not known yet, and some print none.
    """
    if database is None:
        return
    for sighting in sightings:
        if sighting["kind"] == "cpu":
            load_cores(sighting, database, load)
    ids = {(pci_model(s), pci_subsystem(s)) for s in sightings if s.get("pci")}
    for number, subsystem in ids:
        try:
            chip = database.match(pci=number, subsystem=subsystem).chip
            if chip is not None:
                chip.peaks()
        except Exception:  # a broken table: `resolve` says so
            return


def look_up(sighting: Sighting, prober: str, database: Database | None) -> None:
    """Have chipdb look a device up as a prober reports it: `resolve` gets the answer from memory.

    A name that no chip has in that form takes as long as all else that is resolved.
    """
    if database is None or sighting["kind"] not in ACCELERATORS:
        return
    device: Any = {**sighting, "sources": {"name": prober}}
    try:
        chip_of(device, database)
    except Exception:  # a broken table: `resolve` says so
        return


def resolve(
    device: DeviceDoc,
    parent: DeviceDoc | None,
    database: Database,
    hook: ResolveHook | None,
    memo: PeaksMemo,
) -> list[FindingDoc]:
    """Fill in what chipdb knows of one device; return what a person should know."""
    if parent is not None and parent.get("chip"):
        resolve_partition(device, parent)
        return []
    match = _host_match(device, database, hook) or chip_of(device, database)
    _set_chip(device, match)
    if match.chip is not None:
        _use_chip(device, match.chip, memo)
    else:
        device["unknown"]["chip"] = match.reason or "chipdb does not have it"
        resolve_unknown(device, database, _driver_clock(device))
        _use_shared_arch(device, match)
        if device["kind"] in ("npu", "accelerator") and match.candidates:
            # A driver's own name of a GPU says more than the products that share a PCI id.
            fill_text(device, "name", _one_of([chip.name for chip in match.candidates]))
    if match.chip is not None and not match.conflicts:
        return []
    return [chip_finding(device, match)]


def is_known(device: DeviceDoc, database: Database) -> bool:
    """Give a coprocessor the kind of its chip, in place; False where chipdb knows none.

    Its PCI class says nothing: QuickAssist and other crypto cards share it with vector engines.
    """
    match = chip_of(device, database)
    chips = [match.chip] if match.chip else match.candidates
    kinds = {chip.kind for chip in chips}
    if len(kinds) == 1:
        (kind,) = kinds
        device["kind"] = kind if kind in ("gpu", "npu") else "accelerator"
        device["sources"]["kind"] = "chipdb"
        return True
    fill_text(device, "name", _COPROCESSOR)
    device["unknown"]["chip"] = "neither chipdb nor a plugin knows it as an accelerator"
    device["unknown"]["peaks"] = "whether it computes is not known"
    return False


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


def _host_match(
    device: DeviceDoc, database: Database, hook: ResolveHook | None
) -> HostMatch | None:
    chip_id = hook(device) if hook else None
    if chip_id is None:
        return None
    chip = database.chip(chip_id)
    reason = None if chip else f"the host names {chip_id!r}, which chipdb does not have"
    return HostMatch(chip, reason)


def chip_of(device: DeviceDoc, database: Database) -> Match:
    """Return which chip a device is, by all that is reported of it."""
    memory = device.get("memory") or {}
    # The size of shared memory is the system's, and does not identify the product.
    dedicated = memory.get("total") if memory.get("kind") == "dedicated" else None
    return database.match(
        pci=pci_model(device),
        subsystem=pci_subsystem(device),
        revision=pci_revision(device),
        gpu_id=device.get("gpu_id"),
        dt=_compatibles(device),
        compute_capability=device.get("compute_capability"),
        gfx=device.get("gfx"),
        vendor=device.get("vendor"),
        units=device.get("units"),
        memory=dedicated,
        name=device.get("name"),
        name_kind=_NAME_KINDS.get(device["sources"].get("name", ""), "name"),
    )


def _compatibles(device: DeviceDoc) -> Sequence[str]:
    """Return what the device tree says of a device, and of a Mali its SoC's name for it.

    Arm's own driver binds to a node that names no SoC ("arm,mali-bifrost"). Where bindings name the
    GPU after the SoC, they do it in one way: "mediatek,mt8195" has "mediatek,mt8195-mali".
    """
    names: Sequence[str] = device.get("dt") or ()
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


def _use_shared_arch(device: DeviceDoc, match: Match | HostMatch) -> None:
    """Take the architecture that all chips have which the device may be.

    A GPU without driver shows its PCI id alone, which products share (GH200, RX 9070 and XT), and
    readiness needs the architecture to say why the driver refuses it.
    """
    families = {candidate.family for candidate in match.candidates}
    if len(families) == 1:
        fill_text(device, "arch", families.pop())


_MOST_NAMED = 4
"""Products that a name lists: a PCI id of Ascend stands for six."""


def _one_of(names: Sequence[str]) -> str | None:
    """Return "Tenstorrent Wormhole, n150 or n300" of the names of products that may be it.

    None where they share nothing that tells a person what it is.
    """
    words = [name.split() for name in names]
    shared = 0
    while all(len(parts) > shared + 1 and parts[shared] == words[0][shared] for parts in words):
        shared += 1
    if len(names) <= _MOST_NAMED:
        products = joined([" ".join(parts[shared:]) for parts in words], "or")
        family = " ".join(words[0][:shared])
        return f"{family}, {products}" if family else products
    # What the first and the last in the alphabet share, all share.
    pairs = enumerate(zip(min(names), max(names), strict=False))
    end = next((place for place, (one, other) in pairs if one != other), None)
    stem = min(names)[:end].rstrip(" -")
    return f"{stem}, one of {len(names)}" if " " in stem else None


def _use_chip(device: DeviceDoc, chip: Chip, memo: PeaksMemo) -> None:
    """Take what chipdb has of a known chip; counts that the driver gave stay.

    Clocks do not: a driver's maximum is no boost clock (RTX 4090: 3105 against 2520 MHz).
    """
    live = device.get("units")
    fill_text(device, "name", chip.name)
    fill_text(device, "arch", chip.family)
    fill_count(device, "units", chip.units)
    if live in (None, chip.units):
        fill_count(device, "cores", chip.cores)
    _use_peaks(device, chip, live, memo)
    _use_bandwidth(device, chip)
    _use_nominal_memory(device, chip)
    device["chip"]["name"] = chip.name
    if live and chip.units and live != chip.units:
        device["chip"]["nominal"] = _nominal(chip)


def _use_peaks(device: DeviceDoc, chip: Chip, live: int | None, memo: PeaksMemo) -> None:
    if not device["peaks"]:
        peaks, figures = _chip_peaks(device, chip, live, memo)
        device["peaks"] = [peak.copy() for peak in peaks]  # equal devices share the work alone
        for name, figure in figures.items():
            device[name] = figure
    if device["peaks"]:
        device["sources"].setdefault("peaks", "chipdb")
        return
    # An older chipdb has no `why_no_peaks`.
    reason = chip.why_no_peaks(units=live) if hasattr(chip, "why_no_peaks") else None
    device["unknown"]["peaks"] = reason or "chipdb has no counts and clock of this chip"


def _chip_peaks(
    device: DeviceDoc, chip: Chip, units: int | None, memo: PeaksMemo
) -> tuple[list[PeakDoc], dict[Shorthand, float | None]]:
    """Return the chip's peaks and their shorthands, computed once for equal devices."""
    facts = _live_facts(device, chip, units)
    # By their text: a count of 8 and one of 8.0 are equal, and sources write them differently.
    key = (chip, repr((units, facts)))
    if key not in memo:
        peaks: list[PeakDoc] = [peak.as_json() for peak in chip.peaks(units=units, **facts)]
        memo[key] = peaks, {name: shorthand(name, peaks) for name in SHORTHANDS}
    return memo[key]


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
    if memory["kind"] not in (None, "dedicated") or not _is_unqueried(device):
        return
    if memory["total"] is None and chip.memory.bytes:
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
    fill_text(device, "arch", parent.get("arch"))
    fill_text(device, "vendor", parent.get("vendor"))
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
        fill_count(device, "units", int(units))
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


# Peaks of a chip that chipdb does not have, derived where its architecture is known.


def resolve_unknown(device: DeviceDoc, database: Database, clock: Clock) -> None:
    """Set `arch` and `peaks` as far as the driver's facts fix them, or say what is missing."""
    arch, reason = database.arch_for(
        compute_capability=device.get("compute_capability"),
        gfx=device.get("gfx"),
        name=device.get("name"),
        gpu_id=device.get("gpu_id"),
        dt=device.get("dt", ()),
        pci=pci_model(device),
    )
    if device["bandwidth"] is None:
        device["unknown"].setdefault("bandwidth", "unknown chip")
    if arch is not None:
        fill_text(device, "arch", arch.family or arch.id)
    if device["peaks"]:  # the prober knows them itself
        return
    if arch is None:
        device["unknown"].setdefault("peaks", f"unknown chip; {reason}")
        return
    missing = _derive(device, arch, database, clock)
    if missing:
        device["unknown"].setdefault("peaks", missing)


def _derive(device: DeviceDoc, arch: Arch, database: Database, clock: Clock) -> str | None:
    """Set the peaks from the live counts; return why there are none."""
    units = device.get("units")
    mhz, label = clock
    if not units or not mhz:
        fact = "clock" if units else "unit count"
        return f"unknown chip of architecture {arch.name}; the driver gives no {fact}"
    source = device["sources"].get(f"clocks.{label}_mhz", "driver")
    if label == "max":
        # NVML's maximum is 23 % above an RTX 4090's boost clock, and equal to a T4's.
        source += "; an upper bound: a driver's maximum is no boost clock"
    peaks = database.derive(arch.id, units=units, clock_mhz=mhz, clock=label, source=source)
    if not peaks:
        return f"the rates of {arch.name} depend on the product"
    device["peaks"] = [peak.as_json() for peak in peaks]
    device["sources"]["peaks"] = "derived"
    return None


# Findings of a chip that is unknown or ambiguous, or whose keys disagree.

_LISTED = 8
"""Candidates in one sentence; `chip.candidates` has all of them."""


_ADD = "add it: see the chipdb documentation, or PROBE_CHIPDB=FILE for this site"


def chip_finding(device: DeviceDoc, match: Match | HostMatch) -> FindingDoc:
    """Return the finding of a match that is not certain; `evidence` is what was looked up."""
    name = device.get("name") or device["id"]
    if match.conflicts:
        return finding(
            "chip-conflict",
            f"the ids, name and live facts of {name} disagree about its chip",
            "; ".join(match.conflicts),
            "its peaks may be wrong: compare its PCI id and name with the vendor's",
            device=device["id"],
            evidence=_keys(device),
        )
    if match.candidates:
        return finding(
            "chip-ambiguous",
            f"the chip of {name} is ambiguous",
            "candidates: " + ", ".join(candidate.id for candidate in match.candidates[:_LISTED]),
            "install a plugin that reads its memory size or unit count; `probe chip` lists them",
            severity="info",
            device=device["id"],
            evidence=_keys(device),
        )
    is_share = getattr(match, "profile", None) is not None
    return finding(
        "chip-unknown",
        f"{name} is a share of a card" if is_share else f"the chip of {name} is unknown",
        match.reason or "no id or name of it is in chipdb",
        # Nobody is to add a profile: which share a machine is given changes, the card does not.
        NO_FIX if is_share else _ADD,
        severity="info",
        device=device["id"],
        evidence=_keys(device),
    )


def _keys(device: DeviceDoc) -> str | None:
    """Return what was looked up, as ``pci=10de:2684, name=NVIDIA GeForce RTX 4090``."""
    memory = device.get("memory") or {}
    keys = {
        "pci": pci_model(device),
        "subsystem": pci_subsystem(device),
        "revision": pci_revision(device),
        "gpu_id": device.get("gpu_id"),
        "dt": " ".join(device.get("dt", ())),
        "compute_capability": device.get("compute_capability"),
        "gfx": device.get("gfx"),
        "units": device.get("units"),
        "memory": memory.get("total") if memory.get("kind") == "dedicated" else None,
        "name": device.get("name"),
    }
    return ", ".join(f"{key}={value}" for key, value in keys.items() if value) or None
