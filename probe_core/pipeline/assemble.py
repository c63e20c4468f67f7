"""Put the report's document together from what the steps made; plain data in, plain data out."""

from __future__ import annotations

from probe_core import __version__
from probe_core.model.findings import NO_FIX, finding
from probe_core.model.readiness import blocked
from probe_core.pipeline.merge import Observation, merge, with_every_field
from probe_core.pipeline.primary import choose, in_order, pci_vendor
from probe_core.pipeline.ready import troubles, vendors_of
from probe_core.probers.fallback import last_resort, verdict
from probe_core.registry.prober import FALLBACK
from probe_core.wording import clean_text, gib, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

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


# What is to be said of devices that only the bus saw: displays, and those without a plugin.

_EXTRAS = {"nvidia": "nvidia", "amd": "amd", "intel": "intel", "arm": "mali"}
"""Vendor to the extra of probe-core that installs its prober."""

_OTHER_REMEDY = "install a prober for it"


_IF_IT_COMPUTES = "nothing, unless it is an accelerator: then install a prober for it"


def bus_findings(
    devices: Iterable[DeviceDoc], queried_vendors: Collection[str], ran: Collection[str]
) -> list[FindingDoc]:
    """Return the findings about `devices`, which only the bus reported.

    `queried_vendors` are the PCI vendors whose own prober ran: what it left out is its to explain.
    `ran` are the names of all probers that ran. A device that is blocked has a finding of its own,
    and no plugin helps it.
    """
    findings = []
    unqueried: dict[str, list[DeviceDoc]] = {}
    for device in devices:
        if device["kind"] == "display":
            findings.append(_display(device))
        elif device["kind"] == "coprocessor":
            # A crypto card needs no driver of an accelerator: nothing is wrong.
            unqueried.setdefault(_IF_IT_COMPUTES, []).append(device)
        elif pci_vendor(device) not in queried_vendors and not blocked(device):
            unqueried.setdefault(_remedy(device, ran), []).append(device)
    return findings + [_no_prober(group, fix) for fix, group in unqueried.items()]


def _display(device: DeviceDoc) -> FindingDoc:
    return finding(
        "display-only",
        f"{device['id']} ({device['vendor'] or 'unknown vendor'}) is a display adapter",
        "it cannot compute, so it is not counted as an accelerator",
        NO_FIX,
        severity="info",
        device=device["id"],
        step="hardware",
    )


def _remedy(device: DeviceDoc, ran: Collection[str]) -> str:
    """Return what to install: not what just ran, and does not know this device."""
    extra = _EXTRAS.get(device["vendor"] or "")
    return f"pip install 'probe-core[{extra}]'" if extra not in (None, *ran) else _OTHER_REMEDY


def _no_prober(devices: list[DeviceDoc], fix: str) -> FindingDoc:
    """Say once, not eight times on a server, that no prober queried these devices."""
    names = [device["name"] or device["id"] for device in devices]
    counted = [
        f"{names.count(name)} × {name}" if names.count(name) > 1 else name
        for name in dict.fromkeys(names)
    ]
    return finding(
        "prober-missing",
        f"{joined(counted, 'and')} {_was(names)} detected on the bus only; no plugin for it ran",
        "no plugin that ran knows this kind of device, so memory and clocks are not live",
        fix,
        severity="info",
        device=devices[0]["id"] if len(devices) == 1 else None,
        step="hardware",
    )


def _was(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"
