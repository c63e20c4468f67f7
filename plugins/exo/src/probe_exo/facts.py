"""What old exo wants to know of a node, and of a chip that is known by name alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from probe_chipdb import Chip, Database, load
from probe_core.commands import shorthand
from probe_exo.figures import UNKNOWN_CHIP, UNKNOWN_MODEL, figures, no_reasons

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


# Keys of old exo's tables that neither a driver nor a maker calls a chip, and what they mean.
#
# Read from every version of old exo's table (June to December 2024 and the branches of 2025): a
# phone's processor stands for its GPU, "QUATRO" is a slip of the keyboard, two are a form factor.
MEANT = {
    "APPLE A13 BIONIC": "Apple A13 GPU",
    "APPLE A14 BIONIC": "Apple A14 GPU",
    "APPLE A15 BIONIC": "Apple A15 GPU",
    "APPLE A16 BIONIC": "Apple A16 GPU",
    "NVIDIA QUATRO RTX A6000": "NVIDIA RTX A6000",
    "NVIDIA QUATRO RTX A5000": "NVIDIA RTX A5000",
    "NVIDIA QUATRO RTX A4500": "NVIDIA RTX A4500",
    "NVIDIA QUATRO RTX A4000": "NVIDIA RTX A4000",
    "NVIDIA QUATRO RTX A2000": "NVIDIA RTX A2000",
    "NVIDIA QUADRO RTX 5000 MOBILE": "nvidia/quadro-rtx-5000-mobile",
    "NVIDIA QUADRO RTX 3000 MXM": "Quadro RTX 3000",
}
"""Old key in capitals → a name in chipdb, or the id of a chip."""

GENERIC = {"AMD RADEON GRAPHICS": "every integrated GPU of AMD answers with this name"}
"""Old key in capitals → why no figure belongs to it: it is found, and its figures are 0."""


@dataclass(frozen=True, slots=True)
class Figures:
    """fp32, fp16 and int8; 0.0 with a reason where unknown."""

    numbers: tuple[float, float, float] = (0.0, 0.0, 0.0)
    reasons: Mapping[str, str] = field(default_factory=no_reasons)
    ambiguous: bool = False
    """Whether the name is that of several chips."""
    known: bool = True
    """Whether chipdb has the name at all."""


@cache
def database() -> Database:
    """Return chipdb, opened once."""
    return load()


def figures_by_name(name: str, units: int | None = None) -> Figures:
    """Return the numbers of the chip of this name, with so many `units` where that is told.

    Exact matches only. A name of several chips that `units` does not tell apart gives the largest
    of them, as old exo's one entry per name did, and the reason says which it may be.
    """
    key = name.upper()
    if key in GENERIC:
        return Figures(reasons=dict.fromkeys(NAMES, GENERIC[key]))
    if key in MEANT and (chip := database().chip(MEANT[key])) is not None:
        return figures_of(chip, units)
    match = database().match(name=MEANT.get(key, name), units=units)
    if match.chip is not None:
        return figures_of(match.chip, units)
    candidates = [chip for chip in match.candidates if chip.kind != "npu"]
    if not candidates:
        reason = match.reason or f"chipdb has no chip named {name!r}"
        return Figures(reasons=dict.fromkeys(NAMES, reason), known=False)
    best = max((figures_of(chip) for chip in candidates), key=lambda figures: figures.numbers)
    reason = f"the largest of {', '.join(chip.id for chip in candidates)}"
    reasons = {name: best.reasons.get(name, reason) for name in NAMES}
    return Figures(best.numbers, reasons, ambiguous=True)


def figures_of(chip: Chip, units: int | None = None) -> Figures:
    """Return a chip's numbers by the core's shorthands."""
    peaks = [peak.as_json() for peak in chip.peaks(units=units)]
    numbers = [shorthand(name, peaks) for name in NAMES]
    return Figures(_numbers(numbers), _missing(chip, numbers))


def _numbers(values: Iterable[float | None]) -> tuple[float, float, float]:
    fp32, fp16, int8 = (value or 0.0 for value in values)
    return fp32, fp16, int8


def _missing(chip: Chip, values: Iterable[float | None]) -> dict[str, str]:
    whole = chip.why_no_peaks()
    return {
        name: whole or f"no dense {name} path of {chip.id} is known"
        for name, value in zip(NAMES, values, strict=True)
        if value is None
    }
