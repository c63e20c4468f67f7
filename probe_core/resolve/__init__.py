"""Name each device's chip, and give its peaks: every number with a source, or None and a reason."""

from __future__ import annotations

import os

from probe_core.model.findings import finding
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Literal

    from probe_chipdb import CpuMatch, Database
    from probe_chipdb.database import Added
    from probe_core.machine.trust import Trust
    from probe_core.model.document import DeviceDoc, FindingDoc, Json, PeakDoc

    Filled = Literal["name", "arch", "vendor", "units", "cores"]
    Shorthand = Literal["fp32", "fp16", "int8"]
    ResolveHook = Callable[[DeviceDoc], str | None]
    Accept = Callable[[str], str | None]
    Load = Callable[[str], object]
    """Imports a part of what a probe needs, see `gate`."""
    Facts = Mapping[str, Json]
    """What the kernel reports of a processor, or of one kind of its cores."""

__all__ = ["Figures", "acceptance", "load_cores", "open_chipdb", "resolve"]

MAX_PROBLEM = 1024
"""Characters of what chipdb says of a file: it quotes the path and a wrong value."""

_NO_CHIPDB = "chipdb is not installed"
_NO_CHIPS = "it is missing, unreadable or holds no sound chip"


def open_chipdb(
    extra: Iterable[str],
    packages: bool = True,
    added: Added | None = None,
    refused: Mapping[str, str] | None = None,
) -> tuple[Database | None, list[FindingDoc]]:
    """Return the chip database with the site's files, or None and the finding that says why.

    `packages` is whether a vendor's package may be installed, for which chipdb then looks. `added`
    is what another process has read of both, so that nothing is looked at here; `refused` are then
    the files that it could not use, and why.
    The core works without chipdb, with an older one and with a newer minor: whatever it raises
    becomes a finding.
    """
    try:
        from probe_chipdb import database as chipdb

        # A chipdb of an earlier release reads its tables whole.
        load = getattr(chipdb, "load_by_position", chipdb.load)
        findings, files, accept = [], [], acceptance()
        for file in extra:
            if reason := _refusal(file, accept, refused if added is not None else None):
                findings.append(_unusable(file, reason))
            else:
                files.append(file)
        if added is None:
            database = load(extra=files, packages=packages, accept=accept)
        else:
            database = load(added=added)
        if files:
            findings += [_unusable(file, _NO_CHIPS) for file in _without_chips(database, files)]
        return database, findings
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        reason = _NO_CHIPDB if isinstance(error, ImportError) else text
        fix = "install probe-chipdb, so that chips get names, FLOPS and bandwidth"
        missing = finding("chipdb-missing", "chips cannot be named", reason, fix, evidence=text)
        return None, [missing]


def _refusal(file: str, accept: Accept, refused: Mapping[str, str] | None) -> str | None:
    if refused is not None:
        return refused.get(file)
    return accept(file) if os.path.exists(file) else None


def _without_chips(database: Database, files: Sequence[str]) -> Iterable[str]:
    """Return the site's files of which chipdb could use nothing; `problems` says why."""
    tables = {source.origin: source for source in database.tables()}
    for file in files:
        table = tables.get(f"site:{file}")
        if table is None or not (any(table.chips) or any(table.archs)):
            yield file


def _unusable(file: str, reason: str) -> FindingDoc:
    return finding(
        "chip-file-unusable",
        f"nothing of the chip file {clean_text(file)} could be used",
        reason,
        "correct it; `python -m probe_chipdb check FILE` lists all that is wrong",
        setting="chipdb",
        evidence=clean_text(file),
    )


def acceptance() -> Accept:
    """Return what says why root must not read a chip file; it remembers paths from its first on."""
    trusts: list[Trust] = []

    def accept(path: str) -> str | None:
        if not trusts:
            from probe_core.machine.trust import Trust

            trusts.append(Trust())
        return trusts[0].reason([path])

    return accept


class Figures:
    """Peaks that were computed: equal devices have equal ones.

    `chips`: by a chip and what its driver reports, with their shorthands. `cores`: of processors.
    """

    __slots__ = ("chips", "cores")

    def __init__(self) -> None:
        self.chips: dict[tuple[str, str], tuple[list[PeakDoc], dict[Shorthand, float | None]]] = {}
        self.cores: dict[tuple[object, ...], list[PeakDoc]] = {}


def resolve(
    devices: Sequence[DeviceDoc],
    database: Database | None,
    hook: ResolveHook | None = None,
    load: Load = bool,
    figures: Figures | None = None,
) -> list[FindingDoc]:
    """Add `chip`, `arch`, `peaks`, `bandwidth` and the shorthands to each device, in place.

    `hook` is the host's own: it returns a chip's id, or None to leave the question to chipdb.
    `load` is called with the part of `gate` that reads the brand of an unknown processor.
    `figures` are those that were computed before the probers answered.
    """
    figures = figures or Figures()
    findings: list[FindingDoc] = []
    # Parts of a device come after all whole ones, because they take their share of its peaks.
    for device in sorted(devices, key=lambda device: device.get("parent") is not None):
        try:
            findings += _resolve_device(device, devices, database, hook, load, figures)
        except Exception as error:  # a broken chip table must not cost the node its start
            findings.append(_failure(device, error))
        add_shorthands(device)
        explain_nulls(device)
    if len(findings) > 1:
        findings = _once_per_node(findings)
    if database is not None and database.problems:
        findings += _problems(database)
    return findings


def _once_per_node(findings: list[FindingDoc]) -> list[FindingDoc]:
    """Report one conflict of eight equal GPUs once: the first device's, with the number of them."""
    kept: list[FindingDoc] = []
    conflicts: dict[str, list[FindingDoc]] = {}
    for found in findings:
        if found["code"] == "chip-conflict":
            conflicts.setdefault(found["why"], []).append(found)
            if len(conflicts[found["why"]]) > 1:
                continue
        kept.append(found)
    for first, *others in conflicts.values():
        if others:
            first["what"] += f" ({len(others) + 1} devices, the same for each)"
    return kept


def _resolve_device(
    device: DeviceDoc,
    devices: Sequence[DeviceDoc],
    database: Database | None,
    hook: ResolveHook | None,
    load: Load,
    figures: Figures,
) -> list[FindingDoc]:
    device.setdefault("peaks", [])
    device.setdefault("bandwidth", None)
    device["chip"] = {"id": None, "by": None, "confidence": None, "candidates": []}
    if device["kind"] == "display":
        device["unknown"]["chip"] = DISPLAY
        return []
    if database is None:
        device["unknown"]["chip"] = device["unknown"]["peaks"] = _NO_CHIPDB
        if device.get("allowed"):
            _count_allowed(device, (), load)
        return []
    if device["kind"] == "cpu":
        resolve_processor(device, database, load, figures)
        return []
    from probe_core.resolve import accelerators

    if device["kind"] == "coprocessor":
        load("uncertain")
        from probe_core.resolve.uncertain import is_known

        if not is_known(device, database):
            return []
    parent = None
    if device.get("parent") is not None:
        parent = next((d for d in devices if d["id"] == device["parent"]), None)
    return accelerators.resolve(device, parent, database, hook, load, figures)


def _failure(device: DeviceDoc, error: Exception) -> FindingDoc:
    text = f"{type(error).__name__}: {error}"
    return finding(
        "chipdb-problem",
        f"the chip of {device['id']} could not be resolved",
        text,
        "report this, with the chipdb version",
        device=device["id"],
        evidence=text,
    )


def _problems(database: Database) -> list[FindingDoc]:
    return [
        finding(
            "chipdb-problem",
            "a chip file was left out, wholly or in part",
            clean_text(problem, MAX_PROBLEM),
            "correct it; `python -m probe_chipdb check FILE` lists all that is wrong",
            evidence=clean_text(problem, MAX_PROBLEM),
        )
        for problem in database.problems
    ]


# A value has its source, and a null its reason, field by field.

EXPLAINED = {
    "name": "no prober names it, and its chip is not certain",
    "vendor": "no prober reports who makes it",
    "arch": "its chip is not certain",
    "units": "no prober counted them, and chipdb has no count",
    "bandwidth": "no prober reports it, and chipdb has none of its chip",
}
"""Fields that have a reason in `unknown` whenever they are null, and the reason of last resort."""

DISPLAY = "a display adapter that cannot compute"


def explain_nulls(device: DeviceDoc) -> None:
    """Add the reason for each field of `EXPLAINED` that is unknown and has none yet, in place."""
    display = device["kind"] == "display"
    for field, reason in EXPLAINED.items():
        if device.get(field) is None:
            device["unknown"].setdefault(field, DISPLAY if display else reason)


def fill(device: DeviceDoc, field: Filled, value: str | int | None) -> None:
    """Set a field to what chipdb has, where no prober reported it; an empty text is nothing."""
    if value not in (None, "") and device.get(field) in (None, ""):
        device[field] = value
        from_chipdb(device, field)


def from_chipdb(device: DeviceDoc, field: str) -> None:
    """Note that the value of a field comes from chipdb."""
    device["sources"][field] = "chipdb"
    device["unknown"].pop(field, None)


# `fp32`, `fp16` and `int8` of a device, by one declared convention.
#
# All dense, at the device's own clock label (boost for known chips). `fp32` is the vector path.
# `fp16` is the fastest path that accumulates in fp32; a chip without one gives its fp16 vector
# path.
# `int8` is the fastest path.

SHORTHANDS: tuple[Shorthand, ...] = ("fp32", "fp16", "int8")


def add_shorthands(device: DeviceDoc) -> None:
    """Set those of the three numbers (TFLOPS, TOPS) that are missing, or the reason in `unknown`.

    A device has them already where an equal one before it had the same peaks.
    """
    peaks, unknown = device.get("peaks") or [], device["unknown"]
    for name in SHORTHANDS:
        if device.get(name) is None:
            device[name] = shorthand(name, peaks)
        if device[name] is None and peaks:
            unknown.setdefault(name, f"no dense {name} path of this chip is known")
        elif device[name] is None:
            unknown.setdefault(name, unknown.get("peaks", "its peaks are unknown"))


def shorthand(name: str, peaks: Iterable[PeakDoc]) -> float | None:
    """Return one of `SHORTHANDS` from a device's peaks; None when no peak fits the convention."""
    fitting = [p for p in peaks if p["dtype"] == name and p["sparsity"] == "dense"]
    vector = [peak for peak in fitting if peak["path"] == "vector"]
    if name == "fp32":
        # A variant is a way to issue the same path: RDNA 3 counts dual issue in its own.
        fitting = [peak for peak in vector if "variant" not in peak]
    elif name == "fp16":
        fitting = [peak for peak in fitting if peak["accumulate"] == "fp32"] or vector
    return max((peak["tflops"] for peak in fitting), default=None)


# Peaks of a processor: the rates of its microarchitecture, times its cores, times a clock.
#
# CPUs are not listed one by one: cores and clock are live, and the flags that a hypervisor lets
# through decide which rates hold.

# How the smaller cores of a hybrid are named: by Linux on Intel, by macOS on Apple and by us.
_SMALL = ("cpu_atom", "cpu_lowpower", "efficiency")
_NUMBERS = ("family", "model", "stepping", "implementer", "part", "variant", "architecture")


def resolve_processor(
    device: DeviceDoc, database: Database, load: Load = bool, figures: Figures | None = None
) -> None:
    """Set `arch`, `peaks` and `bandwidth` of a CPU in place, or say why they are unknown.

    Counts and peaks are then those of the cores that this process may use. `load` is called before
    a brand string is read, as most cores have a number that chipdb knows, and for several kinds.
    """
    figures = figures or Figures()
    device["unknown"].setdefault("bandwidth", "the memory channels in use cannot be read")
    groups = [_group(device, cluster, database, load, figures) for cluster in _clusters(device)]
    guessed = any(group.cluster.get("guessed") for group in groups)
    if guessed or len(groups) > 1 or groups[0].match.efficient is not None:
        load("kinds")
    if guessed:
        from probe_core.resolve.cores import checked

        whole: Facts = {"cores": device.get("units")}
        groups = checked(device, groups) or [_group(device, whole, database, load, figures)]
    _resolve_whole(device, groups)
    if device.get("allowed"):
        _count_allowed(device, groups, load)


def _count_allowed(device: DeviceDoc, groups: Sequence[Group], load: Load) -> None:
    load("kinds")
    from probe_core.resolve.cores import count_allowed

    count_allowed(device, groups)


def _resolve_whole(device: DeviceDoc, groups: Sequence[Group]) -> None:
    _identify(device, groups)
    missing = next((group.missing for group in groups if group.missing), "")
    identified = any(group.arch for group in groups)
    reason = "processors are known by microarchitecture, not one by one" if identified else missing
    device["unknown"].setdefault("chip", reason)
    if device.get("arch") is None:
        device["unknown"].setdefault("arch", missing or "its cores have no name that is known")
    if missing:
        device["unknown"]["peaks"] = missing
        return
    first, has_kinds = groups[0], len(groups) > 1
    device["peaks"] = first.peaks
    if has_kinds:
        from probe_core.resolve.cores import summed

        device["peaks"] = summed([group.peaks for group in groups])
    if not device["peaks"]:
        device["unknown"]["peaks"] = "the rates of its cores are not known"
        return
    device["sources"]["peaks"] = "chipdb"
    if has_kinds or (first.match.efficient is not None and first.cluster.get("kind") is None):
        from probe_core.resolve.cores import refine

        refine(device, groups)


def _identify(device: DeviceDoc, groups: Sequence[Group]) -> None:
    """Set `arch`, and the name where the kernel has none: Arm's kernels give numbers alone."""
    archs = [group.arch for group in groups if group.arch]
    fill(device, "arch", "+".join(dict.fromkeys(archs)))
    names = [group.name for group in groups if group.name]
    if len(names) == len(groups):
        fill(device, "name", " + ".join(dict.fromkeys(names)))


class Group:
    """One kind of cores: what chipdb says of it, its peaks, and why those are missing or "".

    It is named by its microarchitecture, the smaller cores of a hybrid by the family alone.
    """

    __slots__ = ("arch", "cluster", "is_small", "match", "missing", "name", "peaks")

    def __init__(self, cluster: Facts, match: CpuMatch) -> None:
        self.cluster = cluster
        self.is_small = cluster.get("kind") in _SMALL  # the efficiency cores of a hybrid
        self.match = match
        arch = match.efficient if self.is_small else match.arch
        self.arch = arch.family if arch else None
        self.name = None if self.is_small else match.uarch or None
        if self.name and arch and match.by != "generic":
            self.arch = _slug(self.name) or self.arch
        self.peaks: list[PeakDoc] = []
        self.missing = ""


def _clusters(device: DeviceDoc) -> list[Facts]:
    """Return the kinds of cores; a processor without kinds is one."""
    clusters = (device.get("cpu") or {}).get("clusters")
    listed = clusters if isinstance(clusters, list) else []
    kinds: list[Facts] = [cluster for cluster in listed if isinstance(cluster, dict)]
    return kinds or [{"cores": device.get("units")}]


def load_cores(processor: Any, database: Database, load: Load, figures: Figures) -> None:
    """Compute the peaks of a processor's cores, which `resolve` gets from `figures`."""
    try:
        for cluster in _clusters(processor):
            _group(processor, cluster, database, load, figures)
    except Exception:  # a broken table: `resolve` says so
        return


def _group(
    device: DeviceDoc, cluster: Facts, database: Database, load: Load, figures: Figures
) -> Group:
    """Return what chipdb says of one kind of cores."""
    facts: Facts = {**(device.get("cpu") or {}), **cluster}
    vendor, flags = facts.get("vendor_id"), facts.get("flags")
    # An older chipdb does not ask for stepping and variant, and reads names unannounced.
    asked = database.cpu.__kwdefaults__ or {}
    numbers = {key: facts.get(key) for key in _NUMBERS if key in asked}
    more: dict[str, Any] = {key: n for key, n in numbers.items() if isinstance(n, int | str)}
    if "before_name" in asked:
        more["before_name"] = lambda: load("brands")
    else:
        load("brands")
    match = database.cpu(
        vendor=vendor if isinstance(vendor, str) else None,
        name=device.get("name"),
        flags=[flag for flag in flags if isinstance(flag, str)] if isinstance(flags, list) else [],
        **more,
    )
    group = Group(cluster, match)
    group.missing = _add_peaks(group, device, figures)
    return group


def _slug(uarch: str) -> str | None:
    """Return ``zen5`` of "Zen 5 (Turin)"; None of what is no one word: "Haswell or Broadwell"."""
    slug = uarch.partition(" (")[0].lower().replace(" ", "")
    is_word = len(slug) <= 16 and "," not in slug and not slug[:1].isdecimal()
    return slug if is_word else None


def _add_peaks(group: Group, device: DeviceDoc, figures: Figures) -> str:
    """Set the group's peaks; return why there are none, or the empty text."""
    match, small = group.match, group.is_small
    arch = match.efficient if small else match.arch
    if arch is None:
        if small:
            return "the rates of its efficiency cores are not known"
        return match.reason or "its microarchitecture is not known"
    cores = group.cluster.get("cores")
    if not isinstance(cores, int) or not cores:
        return "the number of its cores could not be read"
    mhz, label, source = _clock(device, group.cluster)
    if mhz is None:
        return "no clock could be read"
    key = match, cores, mhz, label, source, small
    if key not in figures.cores:
        peaks = match.peaks(cores, mhz, label, source, efficient=small)
        figures.cores[key] = [peak.as_json() for peak in peaks]
    group.peaks = [peak.copy() for peak in figures.cores[key]]
    borrowed = "first" in group.cluster and "max_mhz" not in group.cluster
    unsure = label != "max" or borrowed or getattr(arch, "at_least", False)
    # An older chipdb does not tell single rates that are a lower bound.
    rates = () if small else getattr(match, "at_least", ())
    for peak in group.peaks:
        if unsure or rate_name(peak) in rates:
            peak["bound"] = "lower"
    return ""


def _clock(device: DeviceDoc, cluster: Facts) -> tuple[float | None, str, str]:
    """Return (MHz, label, source); a cluster's own clocks before the package's.

    All cores seldom hold the maximum together, hence the label. Any other clock is a lower bound:
    the current clock of /proc/cpuinfo is a virtual machine's base clock, and may be an idle one.
    """
    clocks: Facts
    for clocks in (cluster, {**(device.get("clocks") or {})}):
        for label in ("max", "base"):
            mhz = clocks.get(f"{label}_mhz")
            if isinstance(mhz, int | float) and mhz:
                return float(mhz), label, "the kernel"
    named = _clock_in_name(device.get("name") or "")
    if named:
        return named, "base", "the kernel, clock of its name"
    current = (device.get("clocks") or {}).get("current_mhz")
    return (float(current), "current", "the kernel") if current else (None, "", "")


def _clock_in_name(name: str) -> float | None:
    """Return the base clock in MHz of "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz"."""
    last = name.rpartition(" ")[2]
    digits, factor = last[:-3], {"GHz": 1000.0, "MHz": 1.0}.get(last[-3:])
    if factor is None or len(digits) > 6 or not digits.replace(".", "", 1).isdecimal():
        return None
    mhz = float(digits) * factor
    return mhz if 100 <= mhz <= 10_000 else None


def rate_name(peak: PeakDoc) -> str:
    """Return a peak's rate as chipdb names it: ``fp32.vector.fp32``."""
    return f"{peak['dtype']}.{peak['path']}.{peak['accumulate']}"
