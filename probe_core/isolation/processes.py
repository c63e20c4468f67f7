"""Read /proc: which processes belong to a child, and which outlived it.

A process belongs to a child when it is in the child's session, or has the child's mark in its
environment. It escapes both only by making a session of its own *and* starting a program with an
empty environment.
"""

from __future__ import annotations

import os
import select
import sys

from probe_core.fastpath import signal
from probe_core.isolation import MARK_VARIABLE
from probe_core.proc import (
    descendants,
    environment,
    processes,
    proportional_bytes,
    resident_pages,
    status,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from probe_core.isolation.portable import Child as PortableChild
    from probe_core.isolation.posix import Child as PosixChild
    from probe_core.isolation.run import Run

    Watched: TypeAlias = PosixChild | PortableChild
    Clock = Callable[[], float]


_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of linux/sched.h

EXEC_S = 0.02
"""Seconds for which a process whose environment reads empty is looked at again.

During execve(2) the old environment is gone and the new one not there yet. 20 ms is a judgement:
long for that, also on a busy machine, and short for the host.
"""

_PAUSE_MS = 2
"""Time between two looks at /proc; a look takes 0.06 ms, among 2,000 processes 1.9 ms."""


def lives(pid: int, session: int) -> bool:
    """Return whether a process of that session has not ended."""
    process = status(pid)
    return process is not None and not process.ended and process.session == session


def end_leftovers(
    started: Mapping[int, str], limit: float, clock: Callable[[], float]
) -> dict[int, int]:
    """Kill what ended children left: processes of their sessions, and ones that hold their mark.

    Returns what is still there: each process's id, and that of the child that it belongs to.

    `started` maps the process ids that the children had, which name their sessions, to their
    marks. Looks again until nothing is left or the clock says `limit`. A host that inherits
    orphans (process 1 of a container) is left no zombies of theirs.
    """
    if not started:
        return {}
    search = _Search(started)
    settled_by = min(limit, clock() + EXEC_S)
    while True:
        leftovers, unclear = search.look()
        for pid in leftovers:
            _end(pid)
        now = clock()
        if now >= limit or not (leftovers or (unclear and now < settled_by)):
            return {pid: search.owners[pid] for pid in leftovers if _outlives(pid)}
        select.poll().poll(_PAUSE_MS)


class _Search:
    """Looks for the leftovers of some children; `owners` maps those it has named to the child."""

    def __init__(self, started: Mapping[int, str]) -> None:
        self._oldest = min(started)
        self._sessions = frozenset(started)
        self._marks = {f"{MARK_VARIABLE}={mark}".encode(): pid for pid, mark in started.items()}
        self.owners: dict[int, int] = {}

    def look(self) -> tuple[list[int], bool]:
        """Return the leftovers' process ids, and whether a process could not be told apart yet."""
        belongs = {pid: self._belongs(pid) for pid in younger_than(self._oldest)}
        return [pid for pid, ours in belongs.items() if ours], None in belongs.values()

    def _is_marked(self, pid: int) -> bool | None:
        environ = environment(pid)
        if environ is None:
            return False
        mark = next((text for text in environ if text in self._marks), None)
        if mark is not None:
            self.owners[pid] = self._marks[mark]
        return mark is not None if environ else None

    def _belongs(self, pid: int) -> bool | None:
        """Return whether a process is a leftover that this process can still end or reap.

        None: not known yet, because it is just being replaced by a program that it starts.
        """
        process = status(pid)
        if process is None:
            return False
        ours = process.session in self._sessions
        if process.ended:  # a zombie, which only its parent can reap
            return process.parent == os.getpid() and (ours or pid in self.owners)
        if ours:
            self.owners[pid] = process.session
        if ours or process.flags & _KERNEL_THREAD:
            return ours
        return self._is_marked(pid)


def _outlives(pid: int) -> bool:
    """Return whether a process that was killed is still there: stuck, or another user's."""
    process = status(pid)
    return process is not None and not process.ended


def note_survivor(run: Run, pid: int) -> None:
    """Note that a process of `run` is still there, which is no child of this process."""
    process = status(pid)
    if process is not None:  # else it has ended just now, and its number may be another's next
        run.still_there.append(lambda: is_stuck(pid, process.started))


def is_stuck(pid: int, started: int | None = None) -> bool:
    """Return whether a process that was killed is stuck in the kernel, or nobody can tell.

    What is in another state ends by itself: to free a gigabyte takes a while on a busy machine.
    `started` tells it from a later process of the same number, see `Status`.
    """
    process = status(pid)
    if process is None:
        return sys.platform != "linux"
    return process.stuck and started in (None, process.started)


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, os.WNOHANG)
    except Exception:  # it has ended, is another process's orphan, or an audit hook forbids it
        pass


def younger_than(oldest: int) -> list[int]:
    """Return the processes made after process `oldest`; all of them once the numbers wrapped."""
    try:
        with open("/proc/loadavg", "rb") as file:
            newest = int(file.read().split()[-1])
    except Exception:  # no /proc, or an audit hook of the host forbids to look there
        return []
    wrapped = newest < oldest
    return [pid for pid in processes() if (wrapped or pid > oldest) and pid != os.getpid()]


# How much memory a prober takes with all that it started, and how many processes that is.
#
# Resident memory, not RLIMIT_AS: GPU runtimes reserve address space beyond any sane limit.

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

MAX_PROCESSES = 1024
"""Processes of one prober. A judgement: vendors' tools start one or two, a fork bomb thousands."""


_PAUSE_OF_FILES_S = 1.0
"""Seconds between two looks at open files, which take a call for each: memory that is only written
to grows by a few GiB in that time. A judgement."""

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
    from probe_core.machine.surroundings import memory_limits

    limit, *_ = memory_limits(Machine(environ={}))
    return MEMORY_LIMIT if limit is None else min(MEMORY_LIMIT, limit // 2)


class Watch:
    """Ends the runs of probers that use too much, whoever drives them."""

    __slots__ = ("_limit", "_next", "_next_files")

    def __init__(self) -> None:
        self._limit = memory_limit()
        self._next = self._next_files = 0.0

    def check(self, children: Iterable[Watched], clock: Callable[[], float]) -> None:
        """Look at each child's tree, unless the last look was just now."""
        begin = clock()
        if begin < self._next:
            return
        with_files = begin >= self._next_files
        for child in children:
            if child.pid is not None and not child.run.over:
                prober = child.run.pid or child.pid
                if problem := excess(child.pid, prober, self._limit, with_files=with_files):
                    child.run.finish("resource", problem, clock())
        now = clock()
        self._next = now + _PAUSE_SHARE * (now - begin)
        if with_files:
            self._next_files = now + _PAUSE_OF_FILES_S


def excess(child: int, prober: int, limit: int, *, with_files: bool = True) -> str | None:
    """Return what a prober uses too much of, with all that it started; None if nothing.

    `child` is the process that the host started, the prober's supervisor where it has one;
    `with_files` says to look at memory that they have as open files as well.
    """
    pids = _tree(child) - ({child} if child != prober else set())
    if len(pids) > MAX_PROCESSES:
        return f"it started more than {MAX_PROCESSES:,} processes"
    # Forked copies share memory, which the first sum counts several times and the second divides.
    resident = sum(map(_resident, pids))
    is_over = resident > limit and sum(map(_proportional, pids)) > limit
    if is_over or (with_files and _is_over_with_files(pids, resident, limit)):
        processes = f" in {len(pids)} processes" if len(pids) > 1 else ""
        return f"it used more than {limit / (1 << 30):.3g} GiB of memory{processes}"
    return None


def _is_over_with_files(pids: Iterable[int], resident: int, limit: int) -> bool:
    """Return whether processes use too much, with what is only written to files of the kernel's.

    Of each file the larger of what is mapped and what is allocated counts. Which it is takes a walk
    through all mappings: only where both together would be too much.
    """
    from probe_core.isolation.shared import allocated, mapped

    files = allocated(pids)
    if not files or resident + sum(files.values()) <= limit:
        return False
    counted = mapped(pids, files)
    beyond = sum(max(size - counted.get(file, 0), 0) for file, size in files.items())
    return sum(map(_proportional, pids)) + beyond > limit


def _tree(child: int) -> set[int]:
    """Return a child, its descendants, and all others of its session."""
    parents: dict[int, int] = {}
    tree = {child}
    for pid in younger_than(child):
        process = status(pid)
        if process is not None:
            parents[pid] = process.parent
            if process.session == child:
                tree.add(pid)
    return tree | descendants(tree, parents)


def _resident(pid: int) -> int:
    """Return a process's resident memory; 0 where the system does not say."""
    return (resident_pages(pid) or 0) * _PAGE


def _proportional(pid: int) -> int:
    """Return a process's share of the memory it has; its resident memory before Linux 4.14."""
    return proportional_bytes(pid) or _resident(pid)
