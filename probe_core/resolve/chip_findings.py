"""Findings of a chip that is unknown or ambiguous, or whose keys disagree."""

from __future__ import annotations

from probe_core.model.findings import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb import Match
    from probe_core.model.document import DeviceDoc, FindingDoc
    from probe_core.resolve.accelerators import HostMatch

__all__ = ["chip_finding"]

_LISTED = 8
"""Candidates in one sentence; `chip.candidates` has all of them."""


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
    return finding(
        "chip-unknown",
        f"the chip of {name} is unknown",
        match.reason or "no id or name of it is in chipdb",
        "add it: see the chipdb documentation, or PROBE_CHIPDB=FILE for this site",
        severity="info",
        device=device["id"],
        evidence=_keys(device),
    )


def _keys(device: DeviceDoc) -> str | None:
    """Return what was looked up, as ``pci=10de:2684, name=NVIDIA GeForce RTX 4090``."""
    pci = device.get("pci") or {}
    memory = device.get("memory") or {}
    keys = {
        "pci": pci.get("id"),
        "subsystem": pci.get("subsystem"),
        "revision": pci.get("revision"),
        "gpu_id": device.get("gpu_id"),
        "dt": " ".join(device.get("dt", ())),
        "compute_capability": device.get("compute_capability"),
        "gfx": device.get("gfx"),
        "units": device.get("units"),
        "memory": memory.get("total") if memory.get("kind") == "dedicated" else None,
        "name": device.get("name"),
    }
    return ", ".join(f"{key}={value}" for key, value in keys.items() if value) or None
