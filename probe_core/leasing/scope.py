"""A control group for the commands of a lease, where the group of their caller was delegated.

Keeper and front see all that descends from a command. When both were killed, the marks in the
environments of processes tell who is left, which a worker that emptied its environment has not.
The kernel keeps such a worker in its group all the same.

The group lies below the caller's own and enables no controller: all limits of that group hold as
before, and the rule against inner processes does not apply (cgroups(7), "no internal processes").
Where nobody delegated the group there is none: systemd and Slurm manage their groups themselves.
"""

from __future__ import annotations

import os
from time import time

from probe_core.isolation.group import is_marked, read, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Scope", "enter", "is_name", "members", "tidy"]

ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
"""Where version 2 is mounted: alone, or beside version 1 as systemd's hybrid layout has it."""

_OWN = "/proc/self/cgroup"
_PREFIX = "probe-lease-"

_STALE_S = 10.0
"""Seconds after which a group without processes is nobody's who is just about to enter it."""

_MAX_GROUPS = 1000
"""Groups that are looked into below a lease's own: a command may have made some."""


class Scope:
    """The group that this process made and is in; `name` is its path below the mount point."""

    __slots__ = ("_above", "_folder", "name")

    def __init__(self, above: str, folder: str, name: str) -> None:
        self._above = above
        self._folder = folder
        self.name = name

    def leave(self) -> None:
        """Go back to the group that this process came from; what it started stays."""
        try:
            write(f"{self._above}/cgroup.procs", os.getpid())
        except OSError:  # then the group is in use for as long as this process lives
            return

    def remove(self) -> None:
        """Remove the group; one that holds a process or a group stays, see `tidy`."""
        _remove(self._folder)


def enter(mark: str, roots: tuple[str, ...] = ROOTS, own: str = _OWN) -> Scope | None:
    """Move this process into a group for lease `mark`; None where none may be made.

    What it starts is then born there: a process that is moved later may have started others.
    """
    root, path = _delegated(roots, own)
    if path is None:
        return None
    tidy(roots, own)
    name = f"{path}/{_PREFIX}{mark}"
    folder = root + name
    try:
        os.mkdir(folder)
    except OSError:
        return None
    try:
        write(f"{folder}/cgroup.procs", os.getpid())
    except OSError:
        _remove(folder)
        return None
    return Scope(root + path, folder, name)


def tidy(roots: tuple[str, ...] = ROOTS, own: str = _OWN) -> None:
    """Remove the groups of leases that have ended, whose keepers were killed."""
    root, path = _delegated(roots, own)
    if path is None:
        return
    for name in os.listdir(root + path):
        folder = f"{root}{path}/{name}"
        if name.startswith(_PREFIX) and time() - os.stat(folder).st_mtime > _STALE_S:
            _remove(folder)


def _delegated(roots: tuple[str, ...], own: str) -> tuple[str, str | None]:
    """Return the mount point and this process's group, where groups may be made in that."""
    try:
        lines = read(own).splitlines()
        path = next(line[3:] for line in lines if line.startswith("0::/")).rstrip("/")
        root = next(root for root in roots if os.path.exists(f"{root}/cgroup.procs"))
        folder = root + path
        usable = (
            path != ""
            and "/.." not in path  # a group outside of this process's cgroup namespace
            and is_marked(folder, root)
            and not read(f"{folder}/cgroup.subtree_control").strip()
            and os.access(f"{folder}/cgroup.procs", os.W_OK)
        )
    except (OSError, StopIteration):
        return "", None
    return root, path if usable else None


def is_name(text: str, mark: str) -> bool:
    """Return whether a text may be the name of the group of lease `mark`."""
    plain = text.isascii() and text.isprintable() and "/../" not in text
    return plain and text.startswith("/") and text.endswith(f"/{_PREFIX}{mark}")


def members(name: str, roots: tuple[str, ...] = ROOTS) -> list[int]:
    """Return the processes in a lease's group and in the groups below it."""
    pids: list[int] = []
    for root in roots:
        for folder in _below(root + name):
            try:
                with open(f"{folder}/cgroup.procs", encoding="ascii") as file:
                    pids += [int(line) for line in file.read().split() if line != "0"]
            except (OSError, ValueError):  # it has just been removed
                continue
    return pids


def _below(folder: str) -> Iterator[str]:
    for number, (path, _, _) in enumerate(os.walk(folder)):
        if number >= _MAX_GROUPS:
            return
        yield path


def _remove(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        return
