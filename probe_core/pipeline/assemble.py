"""Put the report's document together from what the steps made; plain data in, plain data out."""

from __future__ import annotations

from probe_core import __version__
from probe_core.model.findings import finding
from probe_core.pipeline.identity import Observation
from probe_core.pipeline.merge import merge, with_every_field
from probe_core.pipeline.primary import choose, in_order
from probe_core.pipeline.ready import troubles, vendors_of
from probe_core.probers.fallback import last_resort, verdict
from probe_core.registry.prober import FALLBACK
from probe_core.wording import clean_text, gib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.config import IgnoredSetting
    from probe_core.machine import Machine
    from probe_core.model.document import (
        DecisionDoc,
        DeviceDoc,
        FindingDoc,
        MemoryDoc,
        NodeDoc,
        NodeMemoryDoc,
        ReportDoc,
    )
    from probe_core.pipeline.collect import Collected
    from probe_core.registry.select import Decision

__all__ = [
    "SCHEMA",
    "assemble",
    "by_severity",
    "ignored_settings",
    "last_findings",
    "share_memory",
    "with_cpu",
]

SCHEMA = 1
"""The report's schema number: raised only when a field changes meaning, never for additions."""


def with_cpu(devices: list[DeviceDoc], machine: Machine) -> list[DeviceDoc]:
    """Add the last resort when no prober reported a processor."""
    if any(device["kind"] == "cpu" for device in devices):
        return devices
    fallback, _ = merge([Observation(FALLBACK, 0, last_resort(machine))])
    return devices + fallback


def share_memory(devices: Sequence[DeviceDoc], system: NodeMemoryDoc) -> None:
    """Give devices that use the system's memory its size; say what is usable of each memory.

    `limited_by` says what keeps that below the total: a prober's word for a limit of the driver
    stays, where no tighter one is known.
    """
    for device in devices:
        memory = device["memory"]
        is_shared = memory["kind"] in ("unified", "shared")
        if is_shared and memory["total"] is None and system["total"] is not None:
            memory["total"] = system["total"]
            device["sources"]["memory.total"] = "node"
            device["unknown"].pop("memory.total", None)
        _limit(memory, system, is_shared=is_shared)
        if memory["total"] is None:
            device["unknown"].setdefault("memory.total", "no prober could read it")


def _limit(memory: MemoryDoc, system: NodeMemoryDoc, *, is_shared: bool) -> None:
    """Set `usable` to the least limit, and `limited_by` to what it is of."""
    # A prober may know a limit (what firmware keeps); nobody can take more than is free now.
    free_now = _free_of_system(system, memory["parts"]) if is_shared else memory["free"]
    reason = "used" if not is_shared else "cgroup" if system["limit"] is not None else "system"
    limits = [
        (size, name)
        for size, name in (
            (memory["usable"], memory.pop("limited_by", None) or "driver"),
            (free_now, reason),
        )
        if size is not None
    ]
    memory["usable"], name = min(limits, key=lambda limit: limit[0], default=(None, ""))
    total = memory["total"]
    if memory["usable"] is not None and total is not None and memory["usable"] < total:
        memory["limited_by"] = name


def _free_of_system(system: NodeMemoryDoc, parts: Mapping[str, int]) -> int | None:
    """Return what a device that shares the system's memory can reach of it now.

    What firmware carved out for an APU (its `vram`) is no part of the system's own count.
    """
    available = system["available"]
    return None if available is None else available + parts.get("vram", 0)


def assemble(
    node: NodeDoc,
    devices: Sequence[DeviceDoc],
    decisions: Sequence[Decision],
    collected: Collected,
    chipdb_version: str | None,
) -> ReportDoc:
    """Return the report without its timings; `findings` is still empty."""
    priorities = {seen.prober: seen.priority for seen in collected.observations}
    ordered = in_order(devices)
    primary = choose(ordered, priorities)
    return {
        "schema": SCHEMA,
        "probe_core": __version__,
        "chipdb": chipdb_version,
        "node": node,
        "primary": primary["id"] if primary else None,
        "devices": [with_every_field(device) for device in ordered],
        "outcomes": collected.outcomes,
        "decisions": [_decision(decision) for decision in decisions],
        "fallback": verdict(primary, troubles(ordered, decisions, collected.outcomes)),
        "findings": [],
        "timings_ms": {},
    }


def _decision(decision: Decision) -> DecisionDoc:
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
        "setting": decision.setting,
        "variable": decision.variable,
    }


def ignored_settings(ignored: Sequence[IgnoredSetting]) -> list[FindingDoc]:
    """Return a finding for each setting of the environment or a file that was left out."""
    return [
        finding(
            "restriction-unusable" if setting.seals else "config-ignored",
            "a restriction is unusable: no plugin ran"
            if setting.seals
            else "a setting was ignored",
            setting.reason,
            "correct it; `probe --help` lists the settings",
            severity="error" if setting.seals else "warning",
            setting=setting.name,
            variable=setting.variable,
            evidence=setting.origin,
        )
        for setting in ignored
    ]


def last_findings(document: ReportDoc, decisions: Sequence[Decision]) -> list[FindingDoc]:
    """Return what is known only once the report stands: devices without a prober, memory."""
    ran = {o["prober"] for o in document["outcomes"] if o["status"] != "skipped"}
    findings: list[FindingDoc] = []
    unconfirmed = [d for d in document["devices"] if d["seen_by"] == ["bus"]]
    if unconfirmed:
        from probe_core.pipeline.bus_findings import bus_findings

        findings += bus_findings(unconfirmed, vendors_of(decisions, ran), ran)
    memory = document["node"]["memory"]
    if memory["limit"] is not None:
        findings.append(_memory_limited(memory["limit"], memory.get("limited_by") or ""))
    if memory["total"] is None:
        findings.append(
            finding(
                "no-cpu-facts",
                "the machine's memory is unknown",
                "neither /proc/meminfo nor psutil answered",
                "mount /proc, or install psutil",
            )
        )
    return findings


def _memory_limited(limit: int, file: str) -> FindingDoc:
    """Return the finding of a limit in bytes, which a cgroup's `file` holds."""
    if "mems" in file.rpartition("/")[2]:
        fix = "allow more memory nodes: `docker run --cpuset-mems`, or `AllowedMemoryNodes=`"
    else:
        fix = "raise the limit: `docker run --memory`, or `MemoryMax=` of the systemd unit"
    return finding(
        "memory-limited",
        f"this process may use {gib(limit)} of memory",
        f"{clean_text(file) or 'a cgroup'} limits it; the machine has more",
        fix,
        severity="info",
        evidence=file or None,
    )


def by_severity(findings: list[FindingDoc]) -> list[FindingDoc]:
    """Return the findings, errors first; equal ones keep their order."""
    rank = {"error": 0, "warning": 1, "info": 2}
    return sorted(findings, key=lambda entry: rank[entry["severity"]])
