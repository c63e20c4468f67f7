"""What old exo wants to know of a node as a typed value; `figures` has the rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probe_exo.figures import UNKNOWN_CHIP, UNKNOWN_MODEL, figures
from probe_exo.plain import no_reasons

__all__ = ["NAMES", "UNKNOWN_CHIP", "UNKNOWN_MODEL", "Facts", "facts_of"]

NAMES = ("fp32", "fp16", "int8")


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
    return Facts(**figures(report, devices))
