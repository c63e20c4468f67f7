"""How each system is asked; every function blocks, so none is called on the event loop."""

from __future__ import annotations

from probe_core.commands import system_memory
from probe_core.machine import Machine
from probe_exo import mac
from probe_exo.rule import Facts, facts_of
from probe_exo.static_part import node_document

__all__ = ["mac_facts", "other_facts", "report_facts"]

MIB = 1 << 20


def report_facts(devices: str, refresh: bool) -> Facts:
    """Return the facts of this Linux or Windows node, from its report."""
    return facts_of(node_document(refresh), devices)


def mac_facts(devices: str, refresh: bool) -> Facts:
    """Return the facts of this Mac. It has one GPU, so there is nothing to choose."""
    return mac.mac_facts()


def other_facts(devices: str, refresh: bool) -> Facts:
    """Return what any system tells: its memory."""
    reason = "this system is neither Linux, macOS nor Windows"
    total = system_memory(Machine())["total"]
    reasons: dict[str, str] = dict.fromkeys(("model", "chip", "fp32", "fp16", "int8"), reason)
    if total is None:
        reasons["memory"] = reason
    return Facts(memory=(total or 0) // MIB, reasons=reasons)
