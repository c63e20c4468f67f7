"""Processors of several kinds of cores, and those of which this process may use a part."""

from __future__ import annotations

from probe_core.machine.engines import raised
from probe_core.model.findings import finding
from probe_core.model.ids import whole
from probe_core.resolve import SHORTHANDS, rate_name, shorthand
from probe_core.wording import clean_text, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Literal

    from probe_core.model.document import DeviceDoc, FindingDoc, Json, PeakDoc
    from probe_core.resolve import Group

__all__ = ["checked", "count_allowed", "processors_limited", "refine", "summed"]

# What each kind of cores contributes, and bounds where none tells.


def checked(device: DeviceDoc, groups: Sequence[Group]) -> list[Group]:
    """Return the groups that the prober inferred where chipdb knows the processor as a hybrid.

    A Xeon one of whose threads is offline looks like one. Then its clusters are removed, in place,
    and nothing is returned.
    """
    cpu = device.get("cpu") or {}
    if all(group.match.efficient is not None for group in groups):
        return list(groups)
    cpu.pop("clusters", None)
    return []


def refine(device: DeviceDoc, groups: Sequence[Group]) -> None:
    """Turn the peaks into a range where unlisted efficiency cores may be; else name each kind."""
    (first, *more) = groups
    if more:
        _show(groups)
    else:
        _bound(device, first)


def _show(groups: Sequence[Group]) -> None:
    """Give each cluster its core's name and its part of the peak (TFLOPS), in place."""
    for group in groups:
        cluster = group.cluster
        if not isinstance(cluster, dict):
            continue
        cluster.pop("guessed", None)
        name = group.name or group.arch
        if name:
            cluster["name"] = name
        fp32 = shorthand("fp32", group.peaks)
        if fp32 is not None:
            cluster["fp32"] = fp32


def _bound(device: DeviceDoc, group: Group) -> None:
    """Turn the peaks into a range, in place: how many cores are efficiency cores is not known.

    The lower figure counts all as efficiency cores, the upper one as performance cores.
    """
    match = group.match
    least, most = match.efficient_rates, match.rates
    for peak in list(device["peaks"]):
        rate = rate_name(peak)
        if rate not in least:
            # A rate that the smaller cores lack holds for an unknown number of cores.
            device["peaks"].remove(peak)
            continue
        peak["high"] = peak["tflops"]
        peak["tflops"] = round(peak["tflops"] * least[rate] / most[rate], 4)
        peak["bound"] = "lower"
        peak["source"] += "; how many are efficiency cores is not known: all are counted as such"


def summed(parts: Sequence[Sequence[PeakDoc]]) -> list[PeakDoc]:
    """Add up the kinds of cores of one package, for the rates that all of them have."""
    first, *siblings = [{_rate(peak): peak for peak in part} for part in parts]
    total: list[PeakDoc] = []
    for rate, peak in first.items():
        same = [peak, *(part[rate] for part in siblings if rate in part)]
        if len(same) == len(parts):
            whole = peak.copy()
            whole["tflops"] = round(sum(part["tflops"] for part in same), 4)
            whole["source"] = " + ".join(part["source"] for part in same)
            if any(part.get("bound") for part in same):
                whole["bound"] = "lower"
            if len({part.get("mhz") for part in same}) > 1:
                whole["mhz"] = None  # each kind has its own, which its cluster lists
            # A sum rests on the weakest of its clocks.
            whole["clock"] = next((p["clock"] for p in same if p["clock"] != "max"), "max")
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


# The part of a processor that this process may use is what it counts as: a container of two cores
# is no server of 64. The whole is beside it, as that of a GPU with fewer units than its chip.


def count_allowed(device: DeviceDoc, groups: Sequence[Group]) -> None:
    """Set `units`, `threads` and `peaks` to those of the allowed part, in place.

    The whole's are then in ``chip.nominal``. A quota of CPU time counts for the fastest of the
    allowed cores; in counts it is rounded up, as by the JVM (`ActiveProcessorCount`) and by Go
    (`GOMAXPROCS`).
    """
    allowed = device["allowed"] or {}
    nominal: dict[str, Json] = {}
    for field in _COUNTS:
        count = device.get(field)
        if count is None:
            continue
        nominal[field] = count
        device[field] = _given(allowed, _NAMES[field], count)
        if not device[field]:
            device[field] = None
            device["unknown"][field] = _NONE_ALLOWED
    if device["peaks"]:
        for name in SHORTHANDS:
            nominal[name] = shorthand(name, device["peaks"])
        _scale_peaks(device, groups)
    device["chip"]["nominal"] = nominal


_COUNTS: tuple[Literal["units", "threads"], ...] = ("units", "threads")
_NAMES = {"units": "cores", "threads": "threads"}
_NONE_ALLOWED = "this process may use none of its cores"


def _given(allowed: Mapping[str, Json], name: str, whole: int) -> int:
    count, quota = _count(allowed.get(name)), _count(allowed.get("quota"))
    given = whole if count is None else min(whole, int(count))
    return given if quota is None else min(given, int(-(-quota // 1)))


def _scale_peaks(device: DeviceDoc, groups: Sequence[Group]) -> None:
    """Set `peaks` to those of the allowed cores, where it is known how many cores there are."""
    allowed = device["allowed"] or {}
    remaining = _count(allowed.get("quota"))
    parts: list[list[PeakDoc]] = []
    for group in sorted(groups, key=_rate_of_a_core, reverse=True):
        cores = _cores(group)
        if cores is None:
            return
        held = _allowed_cores(group, cores, allowed.get("cores"))
        if remaining is not None:
            held = min(held, remaining)
            remaining -= held
        if held:
            whole = group.peaks if len(groups) > 1 else device["peaks"]
            parts.append([_scaled(peak, held, cores) for peak in whole])
    device["peaks"] = summed(parts) if parts else []
    if not parts:
        device["unknown"]["peaks"] = _NONE_ALLOWED


def _scaled(peak: PeakDoc, held: float, cores: float) -> PeakDoc:
    part = peak.copy()
    part["tflops"] = round(peak["tflops"] * held / cores, 4)
    high = peak.get("high")
    if high is not None:
        part["high"] = round(high * held / cores, 4)
    part["source"] += f"; {held:g} of {cores:g} cores are allowed"
    return part


def _rate_of_a_core(group: Group) -> float:
    fp32, cores = shorthand("fp32", group.peaks), _cores(group)
    return fp32 / cores if fp32 and cores else 0.0


def _cores(group: Group) -> float | None:
    return _count(group.cluster.get("cores"))


def _allowed_cores(group: Group, cores: float, of_package: Json) -> float:
    """Return the allowed cores of one kind; of a processor of one kind those of the package."""
    own = _count(group.cluster.get("allowed"))
    if own is None:
        own = _count(of_package)
    return cores if own is None else min(own, cores)


def _count(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def processors_limited(processors: Sequence[DeviceDoc], engine: str | None) -> FindingDoc:
    """Return the finding of a limit of the cores, or of the CPU time, that this process may use.

    `engine` is the container that it is in.
    """
    total, cores = 0, 0
    quotas: list[float] = []
    sources: dict[str, None] = {}
    for device in processors:
        limit, units = device.get("allowed") or {}, whole(device, "units") or 0
        own, by = limit.get("cores", units), limit.get("by")
        total += units
        cores += own if isinstance(own, int) else units
        quota = limit.get("quota")
        quotas += [quota] if isinstance(quota, (int, float)) else []
        sources |= dict.fromkeys(map(str, by)) if isinstance(by, list) else {}
    parts = [f"{cores} of {total} cores"] if cores < total else []
    parts += [f"{sum(quotas):g} CPUs of time"] if quotas else []
    return finding(
        "processors-limited",
        f"this process may use {joined(parts, 'and') or 'a part of the processors'}",
        f"set in {clean_text(joined(sources, 'and')) or 'a cgroup'}; the machine has more",
        _wider(sources, engine),
        severity="info",
        evidence=next(iter(sources), None),
    )


def _wider(sources: Iterable[str], engine: str | None) -> str:
    """Return what lifts a limit; only what no cgroup's file holds was set by a program."""
    file = next((source for source in sources if source.startswith("/")), None)
    if file is None:
        return "start the process without `taskset`, or with more cores"
    return f"raise the limit: {raised('cpu', file, engine)}"
