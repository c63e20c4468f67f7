"""Peaks of a processor: the rates of its microarchitecture, times its cores, times a clock.

CPUs are not listed one by one: cores and clock are live, and the flags that a hypervisor lets
through decide which rates hold.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_chipdb import Database
    from probe_chipdb.arch import Arch

    Group = tuple[Arch, int, float, str]

__all__ = ["resolve"]


def resolve(device: dict[str, Any], database: Database) -> None:
    """Set `arch`, `peaks` and `bandwidth` of a CPU in place, or say why they are unknown."""
    device["unknown"].setdefault("bandwidth", "the memory channels in use cannot be read")
    groups, reason = _groups(device, database)
    if not groups:
        device["unknown"]["peaks"] = reason
        device["unknown"].setdefault("chip", reason)
        return
    families = dict.fromkeys(arch.family for arch, *_ in groups if arch.family)
    if families and not device.get("arch"):
        device["arch"] = "+".join(families)
        device["sources"]["arch"] = "chipdb"
    device["unknown"].setdefault("chip", "processors are known by microarchitecture, not one by one")
    device["peaks"] = _sum([_peaks(group, reason) for group in groups])
    device["sources"]["peaks"] = "chipdb"


def _groups(device: Mapping[str, Any], database: Database) -> tuple[list[Group], str]:
    """Return the kinds of cores with count and clock, or nothing and why."""
    facts = device.get("cpu", {})
    clusters = facts.get("clusters") or [{"cores": device.get("units")}]
    groups: list[Group] = []
    notes = []
    for cluster in clusters:
        told = {**facts, **cluster}
        match = database.cpu(
            vendor=told.get("vendor_id"),
            family=told.get("family"),
            model=told.get("model"),
            implementer=told.get("implementer"),
            part=told.get("part"),
            name=device.get("name"),
            flags=told.get("flags", ()),
        )
        arch = match.arch
        if cluster.get("kind") in ("cpu_atom", "efficiency"):
            arch = getattr(match, "efficient", None)
            if arch is None:
                return [], "the rates of its efficiency cores are not known"
        if arch is None:
            return [], match.reason or "chipdb does not know its microarchitecture"
        if not cluster.get("cores"):
            return [], "the number of its cores could not be read"
        mhz, label = _clock(device, cluster)
        if mhz is None:
            return [], "no clock could be read"
        groups.append((arch, cluster["cores"], mhz, label))
        notes.append(match.reason or "")
    return groups, "; ".join(dict.fromkeys(filter(None, notes)))


def _clock(device: Mapping[str, Any], cluster: Mapping[str, Any]) -> tuple[float | None, str]:
    for clocks in (cluster, device.get("clocks", {})):
        for label in ("max", "base", "current"):
            mhz = clocks.get(f"{label}_mhz")
            if mhz:
                return float(mhz), label
    return None, ""


def _peaks(group: Group, note: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return {rate key: peak} of one kind of core."""
    arch, cores, mhz, label = group
    found = {}
    for rate, ops in arch.rates.items():
        if rate.count(".") != 2:
            continue
        dtype, path, accumulate = rate.split(".")
        source = f"{cores} cores x {ops:g} op/clk x {mhz:g} MHz {label} [{arch.id}]"
        found[(dtype, path, accumulate)] = {
            "dtype": dtype,
            "path": path,
            "accumulate": accumulate,
            "sparsity": "dense",
            "clock": label,
            "tflops": round(cores * ops * mhz / 1e6, 4),
            "source": f"{source}; {note}" if note else source,
            "confidence": "derived",
        }
    return found


def _sum(parts: list[dict[tuple[str, str, str], dict[str, Any]]]) -> list[dict[str, Any]]:
    """Add up the kinds of cores of one package, for the rates that all of them have."""
    first, *rest = parts
    total = []
    for key, peak in first.items():
        same = [part[key] for part in rest if key in part]
        if len(same) == len(rest):
            tflops = round(peak["tflops"] + sum(other["tflops"] for other in same), 4)
            source = " + ".join([peak["source"], *(other["source"] for other in same)])
            total.append({**peak, "tflops": tflops, "source": source})
    return total
