"""Put the report's document together from what the steps found; plain data in, plain data out."""

from __future__ import annotations

from probe_core import __version__
from probe_core.model.findings import finding
from probe_core.model.kinds import ACCELERATORS
from probe_core.pipeline.collect import Collected, failed
from probe_core.pipeline.merge import Said, merge
from probe_core.pipeline.primary import bus_findings, choose, in_order, lost
from probe_core.probers.fallback import last_resort, verdict
from probe_core.registry.prober import FALLBACK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc
    from probe_core.registry.select import Decision

__all__ = [
    "SCHEMA",
    "assemble",
    "ignored_settings",
    "in_severity",
    "last_findings",
    "share_memory",
    "with_cpu",
]

SCHEMA = 1
"""The report's schema number: raised only when a field changes meaning, never for additions."""


def with_cpu(devices: list[Any], machine: Machine) -> list[Any]:
    """Add the last resort when no prober reported a processor."""
    if any(device["kind"] == "cpu" for device in devices):
        return devices
    more, _ = merge([Said(FALLBACK, 0, last_resort(machine))])
    return devices + more


def share_memory(devices: Sequence[dict[str, Any]], memory: Mapping[str, int | None]) -> None:
    """Give devices that use the system's memory its size; say what is usable of each memory."""
    for device in devices:
        own = device.setdefault("memory", {})
        own.setdefault("kind", None)
        system = own["kind"] in ("unified", "shared")
        if system and own.get("total") is None and memory["total"] is not None:
            own["total"] = memory["total"]
            device["sources"]["memory.total"] = "node"
            device["unknown"].pop("memory.total", None)
        for key in ("total", "free", "usable"):
            own.setdefault(key, None)
        own.setdefault("parts", {})
        # A prober may know a limit (what firmware keeps); nobody can take more than is free now.
        now = _free_system(memory, own["parts"]) if system else own["free"]
        own["usable"] = min((x for x in (own["usable"], now) if x is not None), default=None)
        if own["total"] is None:
            device["unknown"].setdefault("memory.total", "no prober could read it")


def _free_system(memory: Mapping[str, int | None], parts: Mapping[str, int]) -> int | None:
    """Return what a device that shares the system's memory can reach of it now.

    What firmware carved out for an APU (its `vram`) is no part of the system's own count.
    """
    available = memory["available"]
    return None if available is None else available + parts.get("vram", 0)


def assemble(
    node: dict[str, Any],
    devices: list[dict[str, Any]],
    decisions: Sequence[Decision],
    collected: Collected,
    database: object,
) -> dict[str, Any]:
    priorities = {one.prober: one.priority for one in collected.said}
    vendors = _failed_vendors(decisions, collected)
    ordered = in_order(devices)
    mute = {o["prober"] for o in collected.outcomes if o["status"] == "unavailable"}
    primary = choose(ordered, priorities, vendors, mute)
    return {
        "schema": SCHEMA,
        "probe_core": __version__,
        "chipdb": getattr(database, "version", None),
        "node": node,
        "primary": primary["id"] if primary else None,
        "devices": [_device(device) for device in ordered],
        "outcomes": collected.outcomes,
        "decisions": [_decision(decision) for decision in decisions],
        "fallback": verdict(primary, _troubles(ordered, vendors, collected)),
    }


def _vendors(decisions: Sequence[Decision], probers: Collection[str]) -> set[str]:
    """Return the PCI vendors that the manifests of `probers` name."""
    return {
        vendor.lower().removeprefix("0x")
        for decision in decisions
        if decision.prober.name in probers
        for when in decision.prober.when
        for vendor in when.get("pci_vendor", ())
    }


def _failed_vendors(decisions: Sequence[Decision], collected: Collected) -> Collection[str]:
    """Return the PCI vendors whose own prober failed or could not ask."""
    return _vendors(decisions, {o["prober"] for o in collected.outcomes if failed(o)})


def _troubles(
    devices: Sequence[Mapping[str, Any]], failed_vendors: Collection[str], collected: Collected
) -> list[object]:
    """Return what may keep an accelerator from being used: failures, hardware unasked or mute."""
    mute = [
        device
        for device in devices
        if device["kind"] in ACCELERATORS and (lost(device) or _unasked(device, failed_vendors))
    ]
    return [*mute, *(outcome for outcome in collected.outcomes if failed(outcome))]


def _unasked(device: Mapping[str, Any], failed_vendors: Collection[str]) -> bool:
    if device["seen_by"] != ["bus"]:
        return False
    driver = device.get("driver", {}).get("name")
    return not driver or device.get("pci", {}).get("id", "")[:4] in failed_vendors


_ORDER = (
    "id ids kind vendor name chip arch units cores threads pci dt gpu_id gfx compute_capability"
    " clocks memory peaks fp32 fp16 int8 bandwidth bus_width_bits driver backends power_state"
    " numa_node parent share links node_index processes cpu visibility unknown sources others"
    " seen_by extra"
).split()
_ALWAYS: dict[str, Any] = {
    "vendor": None,
    "name": None,
    "arch": None,
    "units": None,
    "pci": None,
    "driver": None,
    "backends": [],
    "power_state": None,
    "parent": None,
    "links": [],
}


def _device(device: dict[str, Any]) -> dict[str, Any]:
    """Return a device with its fields in one order, and null where nothing is known."""
    full = {**_ALWAYS, **device}
    return {key: full[key] for key in _ORDER if key in full}


def _decision(decision: Decision) -> dict[str, Any]:
    prober = decision.prober
    return {
        "prober": prober.name,
        "distribution": prober.owner,
        "selected": decision.cause is None,
        "cause": decision.cause,
        "reason": decision.reason,
        "priority": prober.priority,
        "deadline_s": prober.deadline_s,
        "active": prober.active,
    }


def ignored_settings(sentences: Sequence[str]) -> list[FindingDoc]:
    fix = "correct it; `probe --help` lists the settings"
    return [finding("config-ignored", "a setting was ignored", why, fix) for why in sentences]


def last_findings(
    document: Mapping[str, Any],
    node: Mapping[str, Any],
    decisions: Sequence[Decision],
) -> list[FindingDoc]:
    ran = {o["prober"] for o in document["outcomes"] if o["status"] != "skipped"}
    found = bus_findings(document["devices"], _vendors(decisions, ran))
    memory = node["memory"]
    if memory["limit"] is not None:
        what = f"this process may use {memory['limit'] >> 20} MiB of memory"
        why = "a control group limits it; the machine has more"
        found.append(finding("memory-limited", what, why, "raise the limit", severity="info"))
    if memory["total"] is None:
        what, why = "the machine's memory is unknown", "neither /proc/meminfo nor psutil answered"
        found.append(finding("no-cpu-facts", what, why, "mount /proc, or install psutil"))
    return found


def in_severity(findings: list[FindingDoc]) -> list[FindingDoc]:
    rank = {"error": 0, "warning": 1, "info": 2}
    return sorted(findings, key=lambda one: rank[one["severity"]])
