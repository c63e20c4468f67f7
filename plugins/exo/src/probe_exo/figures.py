"""The one declared rule that turns our peaks into exo's three numbers.

fp32, fp16 and int8 are the core's shorthands (dense, boost clock; fp32 vector; fp16 the fastest
path that accumulates in fp32; int8 the fastest path), summed over the devices that
`probe_cluster.capacity` counts, or of the one chosen. What is unknown becomes 0.0 here and
nowhere else, and its reason is kept. No data class is imported: `probe export exo` needs none.
"""

from __future__ import annotations

from collections.abc import Mapping

from probe_cluster.planning.offers import offer
from probe_exo.plain import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    from probe_cluster.planning.offers import Offer

    class Figures(TypedDict):
        """What old exo wants to know of a node; `Facts` says what each key means."""

        model: str
        chip: str
        memory: int
        fp32: float
        fp16: float
        int8: float
        reasons: dict[str, str]


__all__ = ["UNKNOWN_CHIP", "UNKNOWN_MODEL", "figures"]

MIB = 1 << 20
UNKNOWN_MODEL, UNKNOWN_CHIP = "Unknown Model", "Unknown Chip"

# What old exo calls nodes of these systems; peers show it as it is.
_BOXES = {"linux": "Linux Box", "windows": "Windows Box"}


def figures(report: Mapping[str, Any], devices: str = "all") -> Figures:
    """Return the figures of a Linux or Windows node's report.

    `devices` is ``all``, ``primary``, ``cpu`` or a device's id. Raises `ClusterError` for an id
    that is not there.
    """
    own = offer(report, devices)
    reasons = dict(own["reasons"])
    system = str(table(report.get("node")).get("os"))
    if own["memory_total"] is None:
        reasons["memory"] = reasons.get("memory_total", "unknown")
    return {
        "model": _model(own, _BOXES.get(system, "Box")),
        "chip": _chip(own),
        "memory": (own["memory_total"] or 0) // MIB,
        "fp32": own["fp32"] or 0.0,
        "fp16": own["fp16"] or 0.0,
        "int8": own["int8"] or 0.0,
        "reasons": reasons,
    }


def _chip(own: Offer) -> str:
    """Old exo printed NVIDIA's names in capitals, and its table has them so; others as they are."""
    name = own["chip"]
    if name is None:
        return f"{UNKNOWN_CHIP} (Device: {own['kind'].upper()})"
    return name.upper() if own["vendor"] == "nvidia" else name


def _model(own: Offer, box: str) -> str:
    return f"{box} (Device: CPU)" if own["kind"] == "cpu" else f"{box} ({_chip(own)})"
