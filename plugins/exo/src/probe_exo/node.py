"""What current exo's placement wants: usable backends, peak fp16 and memory bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probe_cluster.capacities import capacity
from probe_core.commands import document_of
from probe_core.model.runtimes import native_runtime
from probe_exo.plain import no_reasons, rows, table
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
    node = table(document.get("node"))
    backends = ["MlxCpu"]
    why_not: dict[str, str] = {}
    # MLX's Metal backend needs unified memory: no Intel Mac has it.
    if node.get("os") == "darwin" and node.get("arch") in ("aarch64", "arm64"):
        backends.append("MlxMetal")
    else:
        why_not["MlxMetal"] = "Metal with unified memory needs a Mac with Apple silicon"
    reason = _no_cuda(document)
    if reason is None:
        backends += ["MlxCuda", "Vllm"]
    else:
        why_not |= {"MlxCuda": reason, "Vllm": reason}
    return NodeBackends(tuple(backends), why_not)


def _no_cuda(document: Mapping[str, Any]) -> str | None:
    """Return why no CUDA device can be used, or None when one can."""
    reasons: list[str] = []
    for device in rows(document.get("devices")):
        if device.get("vendor") != "nvidia" or device.get("kind") not in ("gpu", "accelerator"):
            continue
        seen = table(table(device.get("visibility")).get(native_runtime(device)))
        if seen and seen.get("visible") is not True:
            reasons.append(f"{device['id']}: {seen.get('reason')}")
        elif "cuda" not in (device.get("backends") or ()):
            reasons.append(f"{device['id']}: no CUDA driver answered for it")
        else:
            return None
    return "; ".join(reasons) or "the node has no NVIDIA GPU"


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
