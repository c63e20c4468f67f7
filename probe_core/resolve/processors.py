"""Peaks of a processor: the rates of its microarchitecture, times its cores, times a clock.

CPUs are not listed one by one: cores and clock are live, and the flags that a hypervisor lets
through decide which rates hold.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_chipdb import CpuMatch, Database

__all__ = ["resolve"]

# How the kernels name the smaller cores of a hybrid: Linux on Intel, macOS on Apple.
_SMALL = ("cpu_atom", "cpu_lowpower", "efficiency")


def resolve(device: dict[str, Any], database: Database) -> None:
    """Set `arch`, `peaks` and `bandwidth` of a CPU in place, or say why they are unknown."""
    device["unknown"].setdefault("bandwidth", "the memory channels in use cannot be read")
    groups, reason = _groups(device, database)
    if not groups:
        device["unknown"]["peaks"] = reason
        device["unknown"].setdefault("chip", reason)
        return
    families = dict.fromkeys(group.family for group in groups if group.family)
    if families and not device.get("arch"):
        device["arch"] = "+".join(families)
        device["sources"]["arch"] = "chipdb"
    why = "processors are known by microarchitecture, not one by one"
    device["unknown"].setdefault("chip", why)
    device["peaks"] = _sum([group.peaks for group in groups])
    device["sources"]["peaks"] = "chipdb"


class _Group:
    """One kind of cores: its architecture's family, and its peaks as plain data."""

    __slots__ = ("family", "peaks")

    def __init__(self, family: str, peaks: list[dict[str, Any]]) -> None:
        self.family = family
        self.peaks = peaks


def _groups(device: Mapping[str, Any], database: Database) -> tuple[list[_Group], str]:
    """Return the kinds of cores, or nothing and why."""
    facts = device.get("cpu", {})
    groups = []
    for cluster in facts.get("clusters") or [{"cores": device.get("units")}]:
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
        group = _group(match, cluster, device)
        if isinstance(group, str):
            return [], group
        groups.append(group)
    return groups, ""


def _group(match: CpuMatch, cluster: Mapping[str, Any], device: Mapping[str, Any]) -> _Group | str:
    """Return one kind of cores, or why its peaks are unknown."""
    small = cluster.get("kind") in _SMALL
    arch = match.efficient if small else match.arch
    if arch is None:
        missing = "the rates of its efficiency cores are not known"
        return missing if small else match.reason or "its microarchitecture is not known"
    mhz, label = _clock(device, cluster)
    if not cluster.get("cores"):
        return "the number of its cores could not be read"
    if mhz is None:
        return "no clock could be read"
    peaks = match.peaks(cluster["cores"], mhz, label, "the kernel", efficient=small)
    return _Group(arch.family, [peak.as_json() for peak in peaks])


def _clock(device: Mapping[str, Any], cluster: Mapping[str, Any]) -> tuple[float | None, str]:
    for clocks in (cluster, device.get("clocks", {})):
        for label in ("max", "base", "current"):
            mhz = clocks.get(f"{label}_mhz")
            if mhz:
                return float(mhz), label
    return None, ""


_KEY = ("dtype", "path", "accumulate", "sparsity", "variant")


def _sum(parts: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Add up the kinds of cores of one package, for the rates that all of them have."""
    first, *rest = [{tuple(p.get(k) for k in _KEY): p for p in part} for part in parts]
    total = []
    for key, peak in first.items():
        same = [part[key] for part in rest if key in part]
        if len(same) == len(rest):
            tflops = round(peak["tflops"] + sum(other["tflops"] for other in same), 4)
            source = " + ".join([peak["source"], *(other["source"] for other in same)])
            total.append({**peak, "tflops": tflops, "source": source})
    return total
