"""The control groups that this process is in: where a limit of CPUs or memory is written.

Most systems mount them below /sys/fs/cgroup. Older batch systems mounted each controller where
they liked, and cpusets as a file system of their own; their mounts are read only there.
"""

from __future__ import annotations

from probe_core.machine import decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.machine import Machine

__all__ = ["MAX_GROUPS", "ROOT", "Hierarchy", "cpu_quota", "hierarchies", "memory_limits", "upward"]

ROOT = "/sys/fs/cgroup"
MAX_GROUPS = 32
"""Groups above one another that are looked at. A judgement: systemd and Kubernetes nest eight."""


_HUGE = 1 << 60
"""Control groups write "no limit" as "max" (v2) or as a number beyond any machine (v1)."""

# The files of a limit and of its use, and the reclaimable part of the use in memory.stat.
_V2 = ("memory.max", "memory.current", "inactive_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


class Hierarchy:
    """One tree of groups: `folders` from this process's own group upward.

    `version` is 2, 1, or 0 for the file system of cpusets, whose files have no prefix.
    """

    __slots__ = ("folders", "version")

    def __init__(self, version: int, folders: list[str]) -> None:
        self.version = version
        self.folders = folders


def hierarchies(machine: Machine, controller: str) -> Iterator[Hierarchy]:
    """Yield the trees that may limit this process through `controller` (memory, cpu, cpuset)."""
    text = machine.read("/proc/self/cgroup", 16 << 10)
    if text:
        for line in text.splitlines():
            number, _, hierarchy = line.partition(":")
            controllers, _, path = hierarchy.partition(":")
            if number == "0" and not controllers:
                yield Hierarchy(2, upward(ROOT, path))
            elif controller in controllers.split(","):
                # systemd makes a link for each controller: cpu -> cpu,cpuacct.
                yield Hierarchy(1, upward(f"{ROOT}/{controller}", path))
    if controller == "cpuset" and not (text and machine.exists(ROOT)):
        yield from _mounted(machine)


def cpu_quota(machine: Machine) -> tuple[float | None, str]:
    """Return the smallest share of CPU time, in CPUs, from the group upward, and its file."""
    least, place = None, ""
    for tree in hierarchies(machine, "cpu"):
        for folder in tree.folders:
            path, quota = _quota_of(machine, folder, tree.version)
            if quota is not None and (least is None or quota < least):
                least, place = quota, path
    return least, place


def _quota_of(machine: Machine, folder: str, version: int) -> tuple[str, float | None]:
    if version == 2:
        path = f"{folder}/cpu.max"
        quota, _, period = (machine.read(path, 64) or "").partition(" ")
    else:
        path = f"{folder}/cpu.cfs_quota_us"
        quota = machine.read(path, 32) or ""  # -1 without a limit
        period = machine.read(f"{folder}/cpu.cfs_period_us", 32) or "" if quota.isdecimal() else ""
    used, whole = decimal(quota), decimal(period.strip())
    return path, used / whole if used and whole else None


def memory_limits(machine: Machine) -> tuple[int | None, int | None, str]:
    """Return (smallest limit, least room, where that limit is written), from the group upward."""
    limits, rooms = [], []
    for tree in hierarchies(machine, "memory"):
        names = _V2 if tree.version == 2 else _V1
        for folder in tree.folders:
            limit = machine.read_int(f"{folder}/{names[0]}")
            if limit is not None and 0 <= limit < _HUGE:
                limits.append((limit, f"{folder}/{names[0]}"))
                rooms.append(max(0, limit - _used(machine, folder, names)))
    limit, place = min(limits, default=(None, ""))
    return limit, min(rooms, default=None), place


def _used(machine: Machine, folder: str, names: tuple[str, str, str]) -> int:
    """Return what a group holds and cannot give back at once, as kubelet's working set is.

    Its use counts the page cache too: a process that has read a model's weights would seem full.
    """
    used = machine.read_int(f"{folder}/{names[1]}") or 0
    for line in (machine.read(f"{folder}/memory.stat", 16 << 10) or "").splitlines():
        name, _, number = line.partition(" ")
        if name == names[2]:
            used -= decimal(number) or 0
    return max(0, used)


def upward(root: str, path: str) -> list[str]:
    """Return the group's folder and its ancestors; in a container the path may not exist there."""
    parts = [part for part in path.split("/") if part not in ("", ".", "..")][:MAX_GROUPS]
    return [root + "".join("/" + part for part in parts[:n]) for n in range(len(parts), -1, -1)]


def _mounted(machine: Machine) -> Iterator[Hierarchy]:
    """Yield the trees of cpusets where they are mounted elsewhere than below /sys/fs/cgroup."""
    path = machine.read("/proc/self/cpuset", 4096)
    if not path:
        return
    for line in (machine.read("/proc/mounts", 256 << 10) or "").splitlines():
        _, place, kind, options, *_ = [*line.split(), "", "", "", ""]
        words = options.split(",")
        if kind == "cgroup2":
            yield Hierarchy(2, upward(place, path))
        elif kind == "cpuset" or (kind == "cgroup" and "cpuset" in words):
            version = 0 if kind == "cpuset" or "noprefix" in words else 1
            yield Hierarchy(version, upward(place, path))
