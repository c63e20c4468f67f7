"""How much memory a prober takes with all that it started, and how many processes that is.

Resident memory, not RLIMIT_AS: GPU runtimes reserve address space beyond any sane limit.
"""

from __future__ import annotations

import os

from probe_core.isolation import sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from probe_core.isolation.portable import Child as PortableChild
    from probe_core.isolation.spawn import Child as PosixChild

    Watched: TypeAlias = PosixChild | PortableChild

__all__ = ["MAX_PROCESSES", "MEMORY_LIMIT", "Watch", "excess", "memory_limit"]

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

MAX_PROCESSES = 1024
"""Processes of one prober. A judgement: vendors' tools start one or two, a fork bomb thousands."""


_PAUSE_SHARE = 10
"""Times as long as a look takes until the next: where process numbers wrapped it reads all of
/proc, which took 0.2 s among 2,000 processes."""


def _machine_limit() -> int:
    """Return 4 GiB, or half of a smaller machine: the host itself must never be short."""
    # 4 GiB is a judgement: far more than asking a driver takes, far less than a node has.
    try:
        return min(4 << 30, os.sysconf("SC_PHYS_PAGES") * _PAGE // 2)
    except (AttributeError, OSError, ValueError):
        return 4 << 30


MEMORY_LIMIT = _machine_limit()
"""Resident bytes that one prober may use, where no control group says less."""


def memory_limit() -> int:
    """Return the limit of a prober's memory in bytes: also at most half of the control group's.

    In a container the kernel kills when the group is full, and it may choose the host.
    """
    from probe_core.machine import Machine
    from probe_core.machine.cgroups import memory_limits

    limit, *_ = memory_limits(Machine(environ={}))
    return MEMORY_LIMIT if limit is None else min(MEMORY_LIMIT, limit // 2)


class Watch:
    """Ends the runs of probers that use too much, whoever drives them."""

    __slots__ = ("_limit", "_next")

    def __init__(self) -> None:
        self._limit = memory_limit()
        self._next = 0.0

    def check(self, children: Iterable[Watched], clock: Callable[[], float]) -> None:
        """Look at each child's tree, unless the last look was just now."""
        begin = clock()
        if begin < self._next:
            return
        for child in children:
            if child.pid is not None and not child.run.over:
                prober = child.run.pid or child.pid
                if problem := excess(child.pid, prober, self._limit):
                    child.run.finish("resource", problem, clock())
        now = clock()
        self._next = now + _PAUSE_SHARE * (now - begin)


def excess(child: int, prober: int, limit: int) -> str | None:
    """Return what a prober uses too much of, with all that it started; None if nothing.

    `child` is the process that the host started, the prober's supervisor where it has one.
    """
    pids = _tree(child) - ({child} if child != prober else set())
    if len(pids) > MAX_PROCESSES:
        return f"it started more than {MAX_PROCESSES:,} processes"
    # Forked copies share memory, which the first sum counts several times and the second divides.
    if sum(map(_resident, pids)) > limit and sum(map(_proportional, pids)) > limit:
        processes = f" in {len(pids)} processes" if len(pids) > 1 else ""
        return f"it used more than {limit / (1 << 30):.3g} GiB of memory{processes}"
    return None


def _tree(child: int) -> set[int]:
    """Return a child, its descendants, and all others of its session."""
    parents: dict[int, int] = {}
    tree = {child}
    for pid in sessions.younger_than(child):
        try:
            status = sessions.read_status(pid)
        except Exception:  # it has ended, or an audit hook of the host forbids the look
            continue
        parents[pid] = status.parent
        if status.session == child:
            tree.add(pid)
    return tree | _descendants(tree, parents)


def _descendants(roots: Iterable[int], parents: dict[int, int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    reached, pending = set(roots), list(roots)
    while pending:
        for pid in children.get(pending.pop(), ()):
            if pid not in reached:
                reached.add(pid)
                pending.append(pid)
    return reached


def _resident(pid: int) -> int:
    """Return a process's resident memory; 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except Exception:  # as in `_tree`
        return 0


def _proportional(pid: int) -> int:
    """Return a process's share of the memory it has; its resident memory before Linux 4.14."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except Exception:  # another user's process, or as in `_tree`
        pass
    return _resident(pid)
