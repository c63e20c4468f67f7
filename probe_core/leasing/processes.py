"""Processes by what they have in common: who started them, a mark.

Where there is no /proc (macOS) nothing is known: each answer is then empty.
"""

from __future__ import annotations

import os

from probe_core.proc import environment, processes, status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_DEEPEST = 1000
"""Generations of ancestors at most: beyond every chain of shells (a judgement)."""

__all__ = [
    "ancestors",
    "children",
    "descendants",
    "marked",
    "pid_namespace",
    "started",
]


def started(pid: int) -> int | None:
    """Return when a process began, in clock ticks since boot; None for one that has ended."""
    process = status(pid)
    return None if process is None or process.ended else process.started


def pid_namespace() -> int | None:
    """Return the inode of this process's PID namespace."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def ancestors() -> Iterator[int]:
    """Yield this process and its ancestors, the nearest first."""
    pid = os.getpid()
    for _ in range(_DEEPEST):
        yield pid
        process = status(pid)
        if process is None or process.parent <= 0:
            return
        pid = process.parent


def children() -> dict[int, list[int]]:
    """Return the children of each process, all from one look."""
    found: dict[int, list[int]] = {}
    for pid in processes():
        process = status(pid)
        if process is not None and not process.ended:
            found.setdefault(process.parent, []).append(pid)
    return found


def descendants(
    roots: Collection[int], tree: Mapping[int, Sequence[int]] | None = None
) -> set[int]:
    """Return the processes that descend from any of `roots`, without those."""
    tree = children() if tree is None else tree
    members: set[int] = set()
    remaining = list(roots)
    while remaining:
        for pid in tree.get(remaining.pop(), ()):
            if pid not in members:
                members.add(pid)
                remaining.append(pid)
    return members - set(roots)


def marked(variable: str, marks: Collection[str]) -> dict[str, list[int]]:
    """Return the processes with one of `marks` in the comma-separated environment variable.

    Only the processes that this user may look into; a process that emptied its environment before
    it executed a program has no mark.
    """
    members: dict[str, list[int]] = {mark: [] for mark in marks}
    prefix = f"{variable}=".encode()
    for pid in processes():
        for entry in environment(pid) or ():
            if entry.startswith(prefix):
                for mark in entry[len(prefix) :].decode("ascii", "replace").split(","):
                    if mark in members:
                        members[mark].append(pid)
    return members
