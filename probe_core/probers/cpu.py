"""The processors and what they can use: the safety net that every node has.

On Linux everything comes from /proc and /sys. Elsewhere psutil and the system's own calls answer.
"""

from __future__ import annotations

from probe_core.api import NotApplicable, Request, hookimpl, not_applicable
from probe_core.probers import cpuinfo, topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.machine import Machine

__all__ = ["probe_devices"]

_WHY_NOT = {
    "name": "/proc/cpuinfo has no model name",
    "vendor": "/proc/cpuinfo names no known vendor",
    "units": "the kernel's files do not show which threads share a core",
    "threads": "/sys/devices/system/cpu/online cannot be read",
}


@hookimpl
def probe_devices(request: Request) -> list[dict[str, Any]] | NotApplicable:
    """Report one device per processor package."""
    machine = request.machine
    if machine.os != "linux":
        if not machine.live:
            return not_applicable(f"a recorded {machine.os} machine holds no processor files")
        from probe_core.probers import cpu_other

        return cpu_other.devices(machine)
    facts = cpuinfo.facts(machine)
    packages = topology.packages(machine)
    if not facts and not packages:
        return not_applicable("neither /proc/cpuinfo nor /sys/devices/system/cpu can be read")
    return [
        _sighting(machine, facts, index, package) for index, package in enumerate(packages or [{}])
    ]


def _sighting(
    machine: Machine, facts: dict[str, Any], index: int, package: dict[str, Any]
) -> dict[str, Any]:
    cpu = {key: facts[key] for key in cpuinfo.IDENTITY if key in facts}
    cpu["flags"] = facts.get("flags", [])
    clusters = _with_clocks(machine, facts) or package.get("clusters")
    if clusters:
        cpu["clusters"] = clusters
    sighting: dict[str, Any] = {
        "ids": [f"cpu:{index}"],
        "kind": "cpu",
        "memory": {"kind": "shared"},
        "cpu": cpu,
        "backends": ["cpu"],
        "unknown": {},
    }
    counted = {
        "name": facts.get("name"),
        "vendor": facts.get("vendor"),
        "units": package.get("cores") or facts.get("cores"),
        "threads": package.get("threads") or facts.get("threads"),
        "numa_node": package.get("numa_node"),
    }
    sighting |= {key: value for key, value in counted.items() if value is not None}
    clocks, reason = topology.clocks(machine, package.get("first", 0), facts.get("mhz"))
    if clocks:
        sighting["clocks"] = clocks
    else:
        sighting["unknown"]["clocks"] = reason
    sighting["unknown"] |= {key: reason for key, reason in _WHY_NOT.items() if key not in sighting}
    return sighting


def _with_clocks(machine: Machine, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the kinds of cores of a big.LITTLE processor, each with its own clock."""
    return [
        {**kind, **topology.clocks(machine, kind["first"], None)[0]}
        for kind in facts.get("clusters", ())
    ]
