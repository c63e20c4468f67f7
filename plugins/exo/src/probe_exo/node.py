"""What current exo's placement wants: usable backends, peak fp16 and memory bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probe_cluster.planning.members import capacity
from probe_core.commands import document_of
from probe_exo.engines import engines
from probe_exo.plain import no_reasons
from probe_exo.static_part import node_document

__all__ = ["NodeBackends", "NodeCompute", "node_backends", "node_compute"]


@dataclass(frozen=True, slots=True)
class NodeBackends:
    """Which of exo's engines can run here."""

    backends: tuple[str, ...]
    """Values of exo's `Backend`: ``MlxCpu``, ``MlxMetal``, ``MlxCuda``, ``Vllm``."""
    why_not: Mapping[str, str] = field(default_factory=no_reasons)
    """Backend → why it cannot."""


@dataclass(frozen=True, slots=True)
class NodeCompute:
    """Peaks of the devices that count; None is unknown, see `reasons`."""

    fp16_tflops: float | None
    """Dense, accumulating in fp32 where the chip can; summed over the devices."""
    memory_bandwidth: float | None
    """Bytes per second of the memory that a model lies in."""
    devices: tuple[str, ...]
    """Ids of the devices that count."""
    reasons: Mapping[str, str] = field(default_factory=no_reasons)
    """Field → why it is unknown or incomplete."""


def node_backends(report: Any = None) -> NodeBackends:
    """Return the engines that can run on this node, or on the node of a `report`.

    Blocks for the first probe, which has a deadline; exo's own count of NVML devices has none.
    """
    document = document_of(node_document() if report is None else report)
    return NodeBackends(*engines(document))


def node_compute(report: Any = None, devices: str = "all") -> NodeCompute:
    """Return what this node, or the node of a `report`, computes and moves at best.

    `devices` chooses as `probe_cluster.capacity` says; raises its `ClusterError` for an id
    that is not there. Blocks for the first probe.
    """
    document = document_of(node_document() if report is None else report)
    offer = capacity(document, devices)
    names = {"fp16": "fp16_tflops", "bandwidth": "memory_bandwidth", "devices": "devices"}
    reasons = {names[key]: reason for key, reason in offer.reasons.items() if key in names}
    return NodeCompute(offer.fp16, offer.bandwidth, offer.devices, reasons)
