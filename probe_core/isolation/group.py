"""A control group of a prober's own, where somebody delegated a tree of groups to this process.

Polling sees memory ten times a second. A group's limit holds at once, and when it is reached the
kernel kills what is in the group, never the host. Only with version 2: the delegation of version 1
is not safe (systemd, CGROUP_DELEGATION).
"""

from __future__ import annotations

import os

__all__ = ["end", "is_marked", "make", "read", "remove", "write"]

ROOT = "/sys/fs/cgroup"

_PREFIX = "probe-core-"
_ATTRIBUTES = ("user.delegate", "trusted.delegate")
"""How systemd marks a unit whose inner groups are somebody else's business, since version 236."""

_READ_BYTES = 4096


def make(prober: int, root: str = ROOT, own: str = "/proc/self/cgroup") -> str | None:
    """Move a prober into a group of its own; return the group's folder, None where that cannot be.

    `own` is the file that names the group of this process.
    """
    parent = _delegated(root, own)
    if parent is None:
        return None
    _remove_stale(parent)
    folder = f"{parent}/{_PREFIX}{os.getpid()}"
    try:
        os.mkdir(folder)
    except OSError:
        return None
    try:
        _confine(folder, prober)
    except OSError:  # memory is not accounted here, or the prober has ended
        remove(folder)
        return None
    return folder


def _delegated(root: str, own: str) -> str | None:
    """Return the folder above this process's own group, where it may make groups.

    Beside the own group and not in it: a group with processes can limit no inner ones, see "No
    internal processes" in cgroups(7). systemd manages slices itself, delegated or not.
    """
    try:
        path = next(line[3:] for line in read(own).splitlines() if line.startswith("0::/"))
        parent = os.path.dirname(root + path.rstrip("/"))
        usable = (
            parent.startswith(f"{root}/")
            and not parent.endswith(".slice")
            and "memory" in read(f"{parent}/cgroup.subtree_control").split()
            and os.access(f"{parent}/cgroup.procs", os.W_OK)
            and is_marked(parent, root)
        )
    except (OSError, StopIteration):
        return None
    return parent if usable else None


def is_marked(folder: str, root: str) -> bool:
    """Return whether somebody delegated a group, or one above it below `root`."""
    while folder != root:
        for attribute in _ATTRIBUTES:
            try:
                if os.getxattr(folder, attribute) == b"1":
                    return True
            except OSError:  # not set, or not for this user to see
                continue
        folder = os.path.dirname(folder)
    return False


def _confine(folder: str, prober: int) -> None:
    from probe_core.isolation.processes import MAX_PROCESSES, memory_limit

    write(f"{folder}/memory.max", memory_limit())
    write(f"{folder}/memory.oom.group", 1)
    try:
        write(f"{folder}/pids.max", MAX_PROCESSES)
    except OSError:  # that controller was not delegated
        pass
    write(f"{folder}/cgroup.procs", prober)


def end(folder: str) -> None:
    """Kill all in a group at once, since Linux 5.14."""
    try:
        write(f"{folder}/cgroup.kill", 1)
    except OSError:
        pass


def remove(folder: str) -> None:
    """Remove a group; one that holds a process stays, and the next probe removes it."""
    try:
        os.rmdir(folder)
    except OSError:
        pass


def _remove_stale(parent: str) -> None:
    """Remove empty groups of supervisors that were killed."""
    for name in os.listdir(parent):
        if name.startswith(_PREFIX) and not os.path.exists(f"/proc/{name[len(_PREFIX) :]}"):
            remove(f"{parent}/{name}")


def read(path: str) -> str:
    """Return the first 4 KiB of a group's file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _READ_BYTES).decode("utf-8", "replace")
    finally:
        os.close(fd)


def write(path: str, value: int) -> None:
    """Write a number into a group's file."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(value).encode())
    finally:
        os.close(fd)
