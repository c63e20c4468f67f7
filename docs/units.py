"""The unit of every number in the report: complete, or the pages cannot be made."""

from __future__ import annotations

__all__ = ["UNITS"]

_RATE = "10^12 operations per second"

UNITS: dict[str, str] = {
    "NodeMemory.total": "bytes",
    "NodeMemory.available": "bytes",
    "NodeMemory.limit": "bytes",
    "Memory.total": "bytes",
    "Memory.free": "bytes",
    "Memory.usable": "bytes",
    "Memory.used": "bytes",
    "Memory.parts": "bytes",
    "Peak.tflops": _RATE,
    "Peak.mhz": "MHz",
    "Peak.low": _RATE,
    "Peak.published": _RATE,
    "Device.units": "count",
    "Device.cores": "count",
    "Device.threads": "count",
    "Device.clocks": "MHz",
    "Device.fp32": _RATE,
    "Device.fp16": _RATE,
    "Device.int8": _RATE,
    "Device.bandwidth": "bytes per second",
    "Device.bus_width_bits": "bits",
    "Device.numa_node": "ordinal",
    "Device.node_index": "ordinal",
    "Device.processes": "count",
    "Outcome.devices": "count",
    "Outcome.elapsed_ms": "milliseconds",
    "Outcome.exit_status": "",
    "Decision.priority": "1 to 999",
    "Decision.deadline_s": "seconds",
    "Report.timings_ms": "milliseconds",
    "Report.schema": "number",
}
"""``Type.field`` to its unit."""
