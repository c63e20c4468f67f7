"""Which CPUs this process may use: its affinity, its cpuset, and the CPU time of its groups."""

from __future__ import annotations

from probe_core.machine.cgroups import cpu_quota, hierarchies
from probe_core.machine.files import cpu_list
from probe_core.probers.topology import own_cpus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from probe_core.machine import Machine
    from probe_core.probers.cpu_types import Cluster, Part

__all__ = ["Limits", "limits", "mark", "share"]

AFFINITY = "the CPU affinity of this process (sched_setaffinity)"
_CPUSET_FILES = {2: "cpuset.cpus.effective", 1: "cpuset.cpus", 0: "cpus"}


class Limits:
    """What limits this process: `cpus` it may run on, `quota` in CPUs; each None without one.

    `cpus_by` and `quota_by` say where the limit is written.
    """

    __slots__ = ("cpus", "cpus_by", "quota", "quota_by")

    def __init__(self) -> None:
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
    return limits


def _cpuset(machine: Machine) -> tuple[frozenset[int] | None, str]:
    for tree in hierarchies(machine, "cpuset"):
        for folder in tree.folders:
            path = f"{folder}/{_CPUSET_FILES[tree.version]}"
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
    if limits.quota is not None and limits.quota < threads:
        part["quota"] = round(limits.quota, 3)
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
