"""What one node offers to a model as a typed value; `offers` has the rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probe_cluster.offers import offer
from probe_core.commands import document_of

__all__ = ["Capacity", "capacity"]


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a node offers: bytes, TFLOPS (TOPS), bytes per second; None is unknown."""

    chip: str | None
    """Name of the first device that counts."""
    kind: str
    """``gpu``, ``accelerator``, ``npu`` or ``cpu``: what the first device is."""
    vendor: str | None
    """Its vendor."""
    devices: tuple[str, ...]
    """Ids of the devices that count."""
    memory_total: int | None
    """Bytes that a model could at most lie in."""
    memory_available: int | None
    """Bytes of them that can be taken now."""
    pools: tuple[int, ...]
    """`memory_available` apart, per memory: a layer lies in one of them."""
    ram_total: int | None
    """The system's memory, within the control group's limit."""
    ram_available: int | None
    """What of it can be taken now."""
    vram_total: int | None
    """Dedicated memory of the devices that count; None where there is none."""
    vram_available: int | None
    """What of it can be taken now."""
    unified: bool
    """Whether the model's memory is the system's."""
    fp32: float | None
    """TFLOPS: sum of the devices' dense fp32 shorthands."""
    fp16: float | None
    """TFLOPS: sum of the devices' dense fp16 shorthands."""
    int8: float | None
    """TOPS: sum of the devices' dense int8 shorthands."""
    bandwidth: float | None
    """Of the memory, in bytes per second."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Field → why it is unknown or incomplete; ``devices`` → what was left out."""
    arch: str | None = None
    """Architecture of the first device."""


def capacity(report: Any, devices: str | tuple[str, ...] = "all") -> Capacity:
    """Return what the node of a report, or of its document, offers.

    `devices` is ``all`` (the rule of `offers`), ``primary``, ``cpu``, or ids that must be in the
    report. Raises `ClusterError` for an id that is not, and never for what a report lacks.
    """
    return Capacity(**offer(document_of(report), devices))
