"""The one declared rule that turns our peaks into exo's three numbers.

fp32, fp16 and int8 are the core's shorthands (dense, boost clock; fp32 vector; fp16 the fastest
path that accumulates in fp32; int8 the fastest path), summed over the devices that
`probe_cluster.capacity` counts, or of the one chosen. What is unknown becomes 0.0 here and
nowhere else, and its reason is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probe_cluster.capacities import Capacity, capacity
from probe_exo.plain import no_reasons, table

__all__ = ["NAMES", "Facts", "facts_of"]

NAMES = ("fp32", "fp16", "int8")
MIB = 1 << 20
UNKNOWN_MODEL, UNKNOWN_CHIP = "Unknown Model", "Unknown Chip"

# What old exo calls nodes of these systems; peers show it as it is.
_BOXES = {"linux": "Linux Box", "windows": "Windows Box"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What old exo wants to know of a node, and why a number is 0."""

    model: str = UNKNOWN_MODEL
    chip: str = UNKNOWN_CHIP
    memory: int = 0
    """Total, in MiB."""
    fp32: float = 0.0
    fp16: float = 0.0
    int8: float = 0.0
    reasons: Mapping[str, str] = field(default_factory=no_reasons)
    """Field → why it is 0 or incomplete."""


def facts_of(report: Mapping[str, Any], devices: str = "all") -> Facts:
    """Return the facts of a Linux or Windows node's report.

    `devices` is ``all``, ``primary``, ``cpu`` or a device's id. Raises `ClusterError` for an id
    that is not there.
    """
    offer = capacity(report, devices)
    reasons = dict(offer.reasons)
    system = str(table(report.get("node")).get("os"))
    if offer.memory_total is None:
        reasons["memory"] = reasons.get("memory_total", "unknown")
    return Facts(
        model=_model(offer, _BOXES.get(system, "Box")),
        chip=_chip(offer),
        memory=(offer.memory_total or 0) // MIB,
        fp32=offer.fp32 or 0.0,
        fp16=offer.fp16 or 0.0,
        int8=offer.int8 or 0.0,
        reasons=reasons,
    )


def _chip(offer: Capacity) -> str:
    """Old exo printed NVIDIA's names in capitals, and its table has them so; others as they are."""
    if offer.chip is None:
        return f"{UNKNOWN_CHIP} (Device: {offer.kind.upper()})"
    return offer.chip.upper() if offer.vendor == "nvidia" else offer.chip


def _model(offer: Capacity, box: str) -> str:
    return f"{box} (Device: CPU)" if offer.kind == "cpu" else f"{box} ({_chip(offer)})"
