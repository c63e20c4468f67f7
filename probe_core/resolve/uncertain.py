"""Devices whose chip is not certain: chipdb has none, or several, or their keys disagree."""

from __future__ import annotations

from probe_core.model.findings import NO_FIX, finding
from probe_core.model.ids import pci_fact, pci_model
from probe_core.resolve import fill
from probe_core.resolve.accelerators import chip_of
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_chipdb import Arch, Database, Match
    from probe_core.model.document import DeviceDoc, FindingDoc
    from probe_core.resolve.accelerators import Clock, HostMatch

__all__ = ["chip_finding", "is_known", "resolve_unknown"]

_COPROCESSOR = "unknown coprocessor"


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
    fill(device, "name", _COPROCESSOR)
    device["unknown"]["chip"] = "neither chipdb nor a plugin knows it as an accelerator"
    device["unknown"]["peaks"] = "whether it computes is not known"
    return False


def resolve_unknown(
    device: DeviceDoc, match: Match | HostMatch, database: Database, clock: Clock
) -> None:
    """Set what is known of a device without a chip of chipdb, or say what is missing."""
    device["unknown"]["chip"] = match.reason or "chipdb does not have it"
    _derive_peaks(device, database, clock)
    _use_shared_arch(device, match)
    if device["kind"] in ("npu", "accelerator") and match.candidates:
        # A driver's own name of a GPU says more than the products that share a PCI id.
        fill(device, "name", _one_of([chip.name for chip in match.candidates]))


def _use_shared_arch(device: DeviceDoc, match: Match | HostMatch) -> None:
    """Take the architecture that all chips have which the device may be.

    A GPU without driver shows its PCI id alone, which products share (GH200, RX 9070 and XT), and
    readiness needs the architecture to say why the driver refuses it.
    """
    families = {candidate.family for candidate in match.candidates}
    if len(families) == 1:
        fill(device, "arch", families.pop())


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


# Peaks of a chip that chipdb does not have, derived where its architecture is known.


def _derive_peaks(device: DeviceDoc, database: Database, clock: Clock) -> None:
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
        fill(device, "arch", arch.family or arch.id)
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
        "subsystem": pci_fact(device, "subsystem"),
        "revision": pci_fact(device, "revision"),
        "gpu_id": device.get("gpu_id"),
        "dt": " ".join(device.get("dt", ())),
        "compute_capability": device.get("compute_capability"),
        "gfx": device.get("gfx"),
        "units": device.get("units"),
        "memory": memory.get("total") if memory.get("kind") == "dedicated" else None,
        "name": device.get("name"),
    }
    return ", ".join(f"{key}={value}" for key, value in keys.items() if value) or None
