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
    _identify(device, groups)
    why = "processors are known by microarchitecture, not one by one"
    device["unknown"].setdefault("chip", why if any(g.arch for g in groups) else reason)
    if reason:
        device["unknown"]["peaks"] = reason
        return
    device["peaks"] = _sum([group.peaks for group in groups])
    device["sources"]["peaks"] = "chipdb"


def _identify(device: dict[str, Any], groups: list[_Group]) -> None:
    """Set `arch`, and the name where the kernel has none: Arm's kernels give numbers alone."""
    archs, names = ([getattr(g, key) for g in groups] for key in ("arch", "name"))
    found = {"arch": "+".join(_each(archs)), "name": " + ".join(_each(names)) if all(names) else ""}
    for key, value in found.items():
        if value and not device.get(key):
            device[key] = value
            device["sources"][key] = "chipdb"
            device["unknown"].pop(key, None)


def _each(words: list[str | None]) -> dict[str, None]:
    return dict.fromkeys(word for word in words if word)


def _slug(uarch: str) -> str:
    """Return ``zen5`` of "Zen 5 (Turin)", ``cortex-a76`` of "Cortex-A76"."""
    return uarch.partition(" (")[0].lower().replace(" ", "")


class _Group:
    """One kind of cores: its microarchitecture, and its peaks as plain data."""

    __slots__ = ("arch", "name", "peaks")

    def __init__(self, match: CpuMatch, *, small: bool) -> None:
        arch = match.efficient if small else match.arch
        self.name = None if small else match.uarch
        self.arch = _slug(self.name) if self.name else arch and arch.family
        self.peaks: list[dict[str, Any]] = []


def _groups(device: Mapping[str, Any], database: Database) -> tuple[list[_Group], str]:
    """Return the kinds of cores, and why their peaks are unknown; no reason when all are known."""
    facts = device.get("cpu", {})
    groups, reasons = [], []
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
        group, reason = _group(match, cluster, device)
        groups.append(group)
        reasons.append(reason)
    return groups, next(filter(None, reasons), "")


def _group(
    match: CpuMatch, cluster: Mapping[str, Any], device: Mapping[str, Any]
) -> tuple[_Group, str]:
    """Return one kind of cores, and why its peaks are unknown."""
    small = cluster.get("kind") in _SMALL
    arch = match.efficient if small else match.arch
    group = _Group(match, small=small)
    if arch is None:
        missing = "the rates of its efficiency cores are not known"
        return group, missing if small else match.reason or "its microarchitecture is not known"
    mhz, label = _clock(device, cluster)
    if not cluster.get("cores"):
        return group, "the number of its cores could not be read"
    if mhz is None:
        return group, "no clock could be read"
    peaks = match.peaks(cluster["cores"], mhz, label, "the kernel", efficient=small)
    group.peaks = [peak.as_json() for peak in peaks]
    return group, ""


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
