"""The format `exo` of `probe export`: one JSON document in exo's own field names.

`model`, `chip`, `memory` (MiB) and `flops` are old exo's `DeviceCapabilities`, of the node and of
each device that counts. `memoryUsage` and `system` have the names of current exo's JSON, which is
camel case: `ramTotal.inBytes`, `flopsFp16`. The rules are those of the rest of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probe_cluster.capacities import capacity
from probe_core.commands import write_json_lines
from probe_exo.node import node_backends, node_compute
from probe_exo.rule import Facts, facts_of

__all__ = ["export"]


def export(report: Mapping[str, Any]) -> str:
    """Return the text. Unknown figures of old exo's types are 0, and `reasons` says why."""
    report = _by_bus(report)
    offer, facts = capacity(report), facts_of(report)
    compute = node_compute(report)
    amounts = {"ramTotal": offer.ram_total, "ramAvailable": offer.ram_available}
    rates = {"flopsFp16": compute.fp16_tflops, "memoryBandwidth": compute.memory_bandwidth}
    document = {
        **_capabilities(facts),
        "devices": [{"id": id_, **_capabilities(facts_of(report, id_))} for id_ in offer.devices],
        "backends": list(node_backends(report).backends),
        "memoryUsage": {
            name: {"inBytes": amount} for name, amount in amounts.items() if amount is not None
        },
        "system": {name: rate for name, rate in rates.items() if rate is not None},
        "reasons": {**compute.reasons, **facts.reasons},
    }
    return write_json_lines(document)


def _capabilities(facts: Facts) -> dict[str, object]:
    flops = {"fp32": facts.fp32, "fp16": facts.fp16, "int8": facts.int8}
    return {"model": facts.model, "chip": facts.chip, "memory": facts.memory, "flops": flops}


def _by_bus(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the report with its devices in the order of the bus.

    The report has the primary device first, which depends on what is free.
    """
    devices = sorted(report["devices"], key=lambda device: device.get("parent") or device["id"])
    return {**report, "devices": devices}
