"""Peaks of a processor: the rates of its microarchitecture, times its cores, times a clock.

CPUs are not listed one by one: cores and clock are live, and the flags that a hypervisor lets
through decide which rates hold.
"""

from __future__ import annotations

from probe_core.resolve.reasons import fill_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_chipdb import CpuMatch, Database
    from probe_core.model.document import DeviceDoc, Json, PeakDoc

    Facts = Mapping[str, Json]
    """What the kernel reports of a processor, or of one kind of its cores."""

__all__ = ["resolve"]

# How the kernels name the smaller cores of a hybrid: Linux on Intel, macOS on Apple.
_SMALL = ("cpu_atom", "cpu_lowpower", "efficiency")


def resolve(device: DeviceDoc, database: Database) -> None:
    """Set `arch`, `peaks` and `bandwidth` of a CPU in place, or say why they are unknown."""
    device["unknown"].setdefault("bandwidth", "the memory channels in use cannot be read")
    groups = [_group(device, cluster, database) for cluster in _clusters(device)]
    _identify(device, groups)
    missing = next((group.missing for group in groups if group.missing), "")
    identified = any(group.arch for group in groups)
    reason = "processors are known by microarchitecture, not one by one" if identified else missing
    device["unknown"].setdefault("chip", reason)
    if missing:
        device["unknown"]["peaks"] = missing
        return
    device["peaks"] = _sum([group.peaks for group in groups])
    device["sources"]["peaks"] = "chipdb"


def _identify(device: DeviceDoc, groups: Sequence[_Group]) -> None:
    """Set `arch`, and the name where the kernel has none: Arm's kernels give numbers alone."""
    fill_text(device, "arch", "+".join(_distinct(group.arch for group in groups)))
    if all(group.name for group in groups):
        fill_text(device, "name", " + ".join(_distinct(group.name for group in groups)))


def _distinct(names: Iterable[str | None]) -> dict[str, None]:
    return dict.fromkeys(name for name in names if name)


class _Group:
    """One kind of cores: its microarchitecture, its peaks, and why those are missing or ""."""

    __slots__ = ("arch", "missing", "name", "peaks")

    def __init__(self, arch: str | None, name: str | None) -> None:
        self.arch = arch
        self.name = name
        self.peaks: list[PeakDoc] = []
        self.missing = ""


def _clusters(device: DeviceDoc) -> list[Facts]:
    """Return the kinds of cores; a processor without kinds is one."""
    clusters = (device.get("cpu") or {}).get("clusters")
    listed = clusters if isinstance(clusters, list) else []
    return [cluster for cluster in listed if isinstance(cluster, dict)] or [
        {"cores": device.get("units")}
    ]


def _group(device: DeviceDoc, cluster: Facts, database: Database) -> _Group:
    facts: Facts = {**(device.get("cpu") or {}), **cluster}
    match = database.cpu(
        vendor=_text(facts.get("vendor_id")),
        family=_number(facts.get("family")),
        model=_number(facts.get("model")),
        implementer=_number(facts.get("implementer")),
        part=_number(facts.get("part")),
        name=device.get("name"),
        flags=_texts(facts.get("flags")),
    )
    small = cluster.get("kind") in _SMALL
    group = _named_group(match, small=small)
    group.missing = _add_peaks(group, match, cluster, device, small=small)
    return group


def _named_group(match: CpuMatch, *, small: bool) -> _Group:
    name = None if small else match.uarch
    if name:
        return _Group(_slug(name), name)
    arch = match.efficient if small else match.arch
    return _Group(arch.family if arch else None, None)


def _slug(uarch: str) -> str:
    """Return ``zen5`` of "Zen 5 (Turin)", ``cortex-a76`` of "Cortex-A76"."""
    return uarch.partition(" (")[0].lower().replace(" ", "")


def _add_peaks(
    group: _Group, match: CpuMatch, cluster: Facts, device: DeviceDoc, *, small: bool
) -> str:
    """Set the group's peaks; return why there are none, or the empty text."""
    if (match.efficient if small else match.arch) is None:
        if small:
            return "the rates of its efficiency cores are not known"
        return match.reason or "its microarchitecture is not known"
    cores = cluster.get("cores")
    if not isinstance(cores, int) or not cores:
        return "the number of its cores could not be read"
    mhz, label = _clock(device, cluster)
    if mhz is None:
        return "no clock could be read"
    peaks = match.peaks(cores, mhz, label, "the kernel", efficient=small)
    group.peaks = [peak.as_json() for peak in peaks]
    return ""


def _clock(device: DeviceDoc, cluster: Facts) -> tuple[float | None, str]:
    """Return (MHz, label); a cluster's own clocks before the package's."""
    clocks: Facts
    for clocks in (cluster, {**(device.get("clocks") or {})}):
        # All cores seldom hold the maximum together, hence the label. Virtual machines show no
        # cpufreq: the current clock of /proc/cpuinfo is then the base clock.
        for label in ("max", "base", "current"):
            mhz = clocks.get(f"{label}_mhz")
            if isinstance(mhz, int | float) and mhz:
                return float(mhz), label
    return None, ""


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Json) -> int | str | None:
    return value if isinstance(value, int | str) else None


def _texts(value: Json) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _sum(parts: Sequence[Sequence[PeakDoc]]) -> list[PeakDoc]:
    """Add up the kinds of cores of one package, for the rates that all of them have."""
    first, *siblings = [{_rate(peak): peak for peak in part} for part in parts]
    total: list[PeakDoc] = []
    for rate, peak in first.items():
        same = [peak, *(part[rate] for part in siblings if rate in part)]
        if len(same) == len(parts):
            whole = peak.copy()
            whole["tflops"] = round(sum(part["tflops"] for part in same), 4)
            whole["source"] = " + ".join(part["source"] for part in same)
            total.append(whole)
    return total


def _rate(peak: PeakDoc) -> tuple[str | None, ...]:
    """What two figures must have in common to be added."""
    return (
        peak["dtype"],
        peak["path"],
        peak["accumulate"],
        peak["sparsity"],
        peak.get("variant"),
    )
