"""The format `exo` of `probe export`: one JSON document in exo's own field names.

`model`, `chip`, `memory` (MiB) and `flops` are old exo's `DeviceCapabilities`, of the node and of
each device that counts. `memoryUsage` and `system` have the names of current exo's JSON, which is
camel case: `ramTotal.inBytes`, `flopsFp16`. The rules are those of the rest of this package.
"""

from __future__ import annotations

from collections.abc import Mapping

from probe_cluster.planning.offers import offer
from probe_core.commands import write_json_lines
from probe_exo.figures import engines, figures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_exo.figures import Figures


def export(report: Mapping[str, Any]) -> str:
    """Return the text. Unknown figures of old exo's types are 0, and `reasons` says why."""
    report = _by_bus(report)
    own, total = offer(report), figures(report)
    amounts = {"ramTotal": own["ram_total"], "ramAvailable": own["ram_available"]}
    rates = {"flopsFp16": own["fp16"], "memoryBandwidth": own["bandwidth"]}
    document = {
        **_capabilities(total),
        "devices": [{"id": id_, **_capabilities(figures(report, id_))} for id_ in own["devices"]],
        "backends": list(engines(report)[0]),
        "memoryUsage": {
            name: {"inBytes": amount} for name, amount in amounts.items() if amount is not None
        },
        "system": {name: rate for name, rate in rates.items() if rate is not None},
        "reasons": total["reasons"],
    }
    return write_json_lines(document)


def _capabilities(own: Figures) -> dict[str, object]:
    flops = {"fp32": own["fp32"], "fp16": own["fp16"], "int8": own["int8"]}
    return {"model": own["model"], "chip": own["chip"], "memory": own["memory"], "flops": flops}


def _by_bus(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the report with its devices in the order of the bus.

    The report has the primary device first, which depends on what is free.
    """
    devices = sorted(report["devices"], key=lambda device: device.get("parent") or device["id"])
    return {**report, "devices": devices}
