"""The report as typed, frozen values: a view of the document that the pipeline made.

Unknown is None, and `Device.unknown` gives the reason. Bytes are bytes, bandwidth is bytes per
second, peaks are TFLOPS (TOPS for integers), clocks are MHz.
"""

from __future__ import annotations

from probe_core.model.device import ChipRef, Device, Memory, Peak
from probe_core.model.node import Decision, Finding, Node, NodeMemory, Outcome
from probe_core.model.report import Report

__all__ = [
    "ChipRef",
    "Decision",
    "Device",
    "Finding",
    "Memory",
    "Node",
    "NodeMemory",
    "Outcome",
    "Peak",
    "Report",
]
