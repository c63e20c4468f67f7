"""The processors and what they can use: the safety net that every node has.

On Linux everything comes from /proc and /sys. Elsewhere psutil and the system's own calls answer.
"""

from __future__ import annotations

import os

from probe_core.api import NotApplicable, Request, hookimpl, not_applicable
from probe_core.machine import cpu_list
from probe_core.machine.surroundings import cpu_quota, hierarchies
from probe_core.probers import cpu_files
from probe_core.probers.cpu_files import own_cpus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    from probe_core.machine import Machine
    from probe_core.model.document import Sighting
    from probe_core.probers.cpu_types import Cluster, Core, CpuFacts, Nodes, Package, Part

    Cores = list[Core]


_WHY_NOT = {
    "name": "/proc/cpuinfo has no model name",
    "vendor": "/proc/cpuinfo names no known vendor",
    "units": "the kernel's files do not show which threads share a core",
    "threads": "/sys/devices/system/cpu/online cannot be read",
}
# Piledriver, Steamroller and their kin: the kernel calls the two cores of a module threads.
_BULLDOZER = ("AuthenticAMD", 21)


@hookimpl
def probe_devices(request: Request) -> list[dict[str, Any]] | NotApplicable:
    """Report one device per processor package; the clusters of a system-on-chip are one."""
    machine = request.machine
    if machine.os != "linux":
        if not machine.live:
            return not_applicable(f"a recorded {machine.os} machine holds no processor files")
        from probe_core.probers import cpu_other

        return cpu_other.devices(machine)
    facts = cpu_files.facts(machine)
    running = cpu_files.online(machine)
    if not (facts or running):
        return not_applicable("neither /proc/cpuinfo nor /sys/devices/system/cpu can be read")
    if not running and "family" in facts:
        _add_places(machine, facts)
    nodes = cpu_files.nodes(machine)
    chips = _chips(machine, running or facts.get("numbers", []), facts, nodes)
    limited = _limits(machine, running)
    devices = [
        _sighting(machine, facts, index, chip, limited, nodes)
        for index, chip in enumerate(chips or [[]])
    ]
    missing = cpu_files.offline(machine, running) if running else 0
    if missing:
        devices[0]["cpu"]["offline"] = missing
    return devices


def _limits(machine: Machine, running: list[int]) -> Limits | None:
    """Return what limits this process; None where nothing does, which costs three reads."""
    own = cpu_files.own_cpus(machine)
    if own is not None and own.issuperset(running) and cpu_quota(machine)[0] is None:
        return None
    return limits(machine, running)


def _add_places(machine: Machine, facts: CpuFacts) -> None:
    """Note where x86's processors are, where /sys lists none; nothing of a file that was cut.

    A block alone is what bug reports quote of many.
    """
    places = cpu_files.places(machine)
    if len(places) >= facts.get("threads", 2):
        facts["places"] = places


def _chips(
    machine: Machine, running: list[int], facts: CpuFacts, nodes: Nodes | None
) -> list[Cores]:
    """Return the packages of each chip: one, but for clusters of a system-on-chip."""
    if "places" in facts:
        return [[members] for members in cpu_files.packages_of(facts["places"])]
    groups = cpu_files.sockets(machine, running)
    if not facts.get("by_cluster"):
        return [[members] for members in groups]
    from probe_core.probers import clusters

    return clusters.whole_chips(machine, groups, nodes)


def _sighting(
    machine: Machine,
    facts: CpuFacts,
    index: int,
    chip: Cores,
    limited: Limits | None,
    nodes: Nodes | None,
) -> dict[str, Any]:
    package, cores = _package(machine, facts, chip, nodes)
    clusters = _clusters(machine, facts, chip, cores) or package.get("clusters") or []
    allowed = _allowed(machine, limited, chip, cores, clusters)
    cpu = _identity(facts, clusters)
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
        "units": _units(facts, package),
        "threads": package.get("threads") or facts.get("threads"),
        "numa_node": package.get("numa_node"),
        "numa_nodes": package.get("numa_nodes"),
        "allowed": allowed,
    }
    sighting |= {key: value for key, value in counted.items() if value is not None}
    clocks, reason = cpu_files.clocks(machine, package.get("first", 0), facts.get("mhz"))
    if clocks:
        sighting["clocks"] = clocks
    else:
        sighting["unknown"]["clocks"] = reason
    sighting["unknown"] |= {key: reason for key, reason in _WHY_NOT.items() if key not in sighting}
    return sighting


def _identity(facts: CpuFacts, clusters: list[Cluster]) -> dict[str, Any]:
    """Return what names the cores, their flags and clusters."""
    known: dict[str, Any] = dict(facts)
    cpu = {key: known[key] for key in cpu_files.IDENTITY if key in known}
    cpu["flags"] = facts.get("flags", [])
    if not clusters:
        return cpu
    if facts.get("by_cluster") and not all("part" in cluster for cluster in clusters):
        # What is known of one kind of core says nothing of the others.
        from probe_core.probers.clusters import MIDR

        cpu = {key: value for key, value in cpu.items() if key not in MIDR}
    hidden = ("members",)
    cpu["clusters"] = [{k: v for k, v in c.items() if k not in hidden} for c in clusters]
    return cpu


def _package(
    machine: Machine, facts: CpuFacts, chip: Cores, nodes: Nodes | None
) -> tuple[Package, Cores | None]:
    """Return the counts of a chip, and the CPUs of its cores; nothing where no CPU is listed."""
    members = [cpu for group in chip for cpu in group]
    if not members:
        return {}, None
    single = False
    if "cpus" in facts:
        from probe_core.probers.clusters import one_threaded

        single = one_threaded(facts["cpus"])
    cores = cpu_files.cores_of(machine, members, single=single)
    if cores is None and "family" in facts:
        if "places" not in facts:  # read once for all packages
            facts["places"] = cpu_files.places(machine)
        cores = cpu_files.cores_at(facts["places"], members)
    hybrid = facts.get("vendor_id", "GenuineIntel") == "GenuineIntel"
    return cpu_files.package(machine, members, cores, nodes, hybrid=hybrid), cores


def _units(facts: CpuFacts, package: Package) -> int | None:
    if (facts.get("vendor_id"), facts.get("family")) == _BULLDOZER and "threads" in package:
        return int(package["threads"])
    # What /proc/cpuinfo says is of a package of so many siblings; of any other it says nothing.
    own: int | None = package.get("cores")
    fitting = package.get("threads") in (None, facts.get("threads"))
    return own or (facts.get("cores") if fitting else None)


def _clusters(machine: Machine, facts: CpuFacts, chip: Cores, cores: Cores | None) -> list[Cluster]:
    """Return the kinds of cores of a chip, each with its own clock; nothing when they are alike."""
    if not cores or len(cores) < 2:
        return []
    if facts.get("by_cluster"):
        from probe_core.probers.clusters import kinds

        return kinds(machine, chip, cores, facts)
    if not _may_be_hybrid(machine, facts, cores):
        return []
    return cpu_files.split(machine, cores)


def _may_be_hybrid(machine: Machine, facts: CpuFacts, cores: Sequence[list[int]]) -> bool:
    """Return whether to look for efficiency cores that this kernel does not list.

    All of Intel's hybrids have AVX2 without AVX-512, but for Lakefield, which has neither.
    """
    if facts.get("vendor_id") != "GenuineIntel" or "avx512f" in facts["flags"]:
        return False
    return not machine.exists("/sys/devices/cpu_core")


def _allowed(
    machine: Machine,
    limited: Limits | None,
    chip: Cores,
    cores: Cores | None,
    clusters: list[Cluster],
) -> Part | None:
    """Return what of the chip this process may use, and mark it on each cluster."""
    if limited is None or (limited.cpus is None and limited.quota is None):
        return None
    part = share(limited, [cpu for group in chip for cpu in group], cores)
    if part:
        mark(limited, clusters)
    return part


# Which CPUs this process may use: its affinity, its cpuset, and the CPU time of its groups.

AFFINITY = "the CPU affinity of this process (sched_setaffinity)"
_CPUSET_FILES = {2: "cpuset.cpus.effective", 1: "cpuset.cpus", 0: "cpus"}


class Limits:
    """What limits this process: `cpus` it may run on, `quota` in CPUs; each None without one.

    `count` is how many CPUs it may run on, `cpus_by` and `quota_by` say where the limit is written.
    """

    def __init__(self) -> None:
        self.count = 0
        self.cpus: frozenset[int] | None = None
        self.cpus_by = ""
        self.quota: float | None = None
        self.quota_by = ""


def limits(machine: Machine, online: Collection[int]) -> Limits:
    """Return the limits that are narrower than the CPUs that are online."""
    limits = Limits()
    affinity = own_cpus(machine)
    # A cpuset that narrows shows in the affinity, too: on a live machine the groups are read
    # only to say where the limit is written.
    if affinity is None or not affinity.issuperset(online):
        cpuset, place = _cpuset(machine)
        if cpuset is not None and not cpuset.issuperset(online):
            limits.cpus, limits.cpus_by = cpuset, place
        if affinity is not None and (limits.cpus is None or affinity < limits.cpus):
            limits.cpus, limits.cpus_by = affinity, AFFINITY
    quota, place = cpu_quota(machine)
    if quota is not None and quota < len(online):
        limits.quota, limits.quota_by = quota, place
    limits.count = _held(limits, online)
    return limits


def _cpuset(machine: Machine) -> tuple[frozenset[int] | None, str]:
    for version, folders in hierarchies(machine, "cpuset"):
        for folder in folders:
            path = f"{folder}/{_CPUSET_FILES[version]}"
            cpus = cpu_list(machine.read(path, 64 << 10))
            if cpus:
                return frozenset(cpus), path
    return None, ""


def share(
    limits: Limits, members: Collection[int], cores: Collection[Collection[int]] | None
) -> Part | None:
    """Return what of a package this process may use; None when it may use all.

    `cores` holds the CPUs of each, None where they are unknown. A core counts when one of its
    threads is allowed.
    """
    threads = _held(limits, members)
    part: Part = {"threads": threads}
    if cores is not None:
        part["cores"] = sum(_held(limits, core) > 0 for core in cores)
    places = [limits.cpus_by] if threads < len(members) else []
    if limits.quota is not None and limits.quota < limits.count and threads:
        # Of several packages each has its part of the time, so that their sum is the whole.
        part["quota"] = round(limits.quota * threads / limits.count, 3)
        places.append(limits.quota_by)
    if not places:
        return None
    part["by"] = places
    return part


def mark(limits: Limits, clusters: Iterable[Cluster]) -> None:
    """Give each cluster the count of its `allowed` cores, in place."""
    for cluster in clusters:
        cluster["allowed"] = sum(_held(limits, core) > 0 for core in cluster["members"])


def _held(limits: Limits, cpus: Collection[int]) -> int:
    """Return how many of these CPUs are allowed."""
    return len(cpus) if limits.cpus is None else sum(cpu in limits.cpus for cpu in cpus)


# The terminal prober, owned by the core: cannot be blocked, shadowed or made to fail.
#
# The GPU is the accelerator, the CPU is the safety net: whatever happened before, the node has one
# device, and the report says why it is only that.


def last_resort(machine: Machine) -> Sighting:
    """Return a processor of which nothing is known but, on this machine, its threads."""
    sighting: Sighting = {
        "ids": ["cpu:0"],
        "kind": "cpu",
        "backends": ["cpu"],
        "memory": {"kind": "shared"},
        "unknown": {"name": "no prober could read the processor"},
    }
    threads = os.cpu_count() if machine.live else None
    if threads:
        sighting["threads"] = threads
    return sighting
