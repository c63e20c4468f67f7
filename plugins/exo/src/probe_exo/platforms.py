"""How each system is asked; every function blocks, so none is called on the event loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probe_core.machine import Machine
from probe_core.node import memory
from probe_exo import mac
from probe_exo.rule import Facts, facts_of
from probe_exo.static_part import node_document

__all__ = ["linux_facts", "mac_facts", "other_facts", "windows_facts"]

MIB = 1 << 20
_COUNTS = ("gpu", "accelerator")


def linux_facts(devices: str, refresh: bool) -> Facts:
    """Return the facts of this Linux node, from its report."""
    return facts_of(node_document(refresh), devices)


def mac_facts(devices: str, refresh: bool) -> Facts:
    """Return the facts of this Mac. It has one GPU, so there is nothing to choose."""
    return mac.mac_facts()


def windows_facts(devices: str, refresh: bool) -> Facts:
    """Return the facts of this Windows node: its report, and what the registry adds."""
    report = node_document(refresh)
    if not _has_gpu(report):
        report = _with_registry(report)
    return facts_of(report, devices)


def other_facts(devices: str, refresh: bool) -> Facts:
    """Return what any system tells: its memory."""
    why = "this system is neither Linux, macOS nor Windows"
    total = memory(Machine())["total"]
    reasons = dict.fromkeys(("model", "chip", "fp32", "fp16", "int8"), why)
    if total is None:
        reasons["memory"] = why
    return Facts(memory=(total or 0) // MIB, reasons=reasons)


def _has_gpu(report: Mapping[str, Any]) -> bool:
    return any(device["kind"] in _COUNTS for device in report["devices"])


def _with_registry(report: Mapping[str, Any]) -> Mapping[str, Any]:
    from probe_core.resolve import open_chipdb, resolve
    from probe_exo.windows import registry_gpus

    found = registry_gpus()
    if not found:
        return report
    database = open_chipdb(())[0]
    resolve(found, database)
    for device in found:
        chip = database.chip(device["chip"]["id"]) if database and device["chip"]["id"] else None
        if chip is not None and chip.memory.gib is None:
            # An integrated GPU: what the driver calls dedicated is a carve-out of 128 MiB or so.
            total = report["node"]["memory"]["total"]
            device["memory"] = {"kind": "shared", "total": total}
    return {**report, "devices": [*found, *report["devices"]]}
