"""Read /proc: which processes belong to a child, and which outlived it.

A process belongs to a child when it is in the child's session, or has the child's mark in its
environment. It escapes both only by making a session of its own *and* starting a program with an
empty environment.
"""

from __future__ import annotations

import os
import select

from probe_core.fastpath import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["MARK_VARIABLE", "Status", "end_leftovers", "lives", "read_status", "younger_than"]

MARK_VARIABLE = "PROBE_CORE_RUN"
"""Set in a child's environment to a number of its run, so that daemons it made can be found."""

_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of linux/sched.h

EXEC_S = 0.02
"""Seconds for which a process whose environment reads empty is looked at again.

During execve(2) the old environment is gone and the new one not there yet. 20 ms is a judgement:
long for that, also on a busy machine, and short for the host.
"""

_PAUSE_MS = 2
"""Time between two looks at /proc; a look takes 0.06 ms, among 2,000 processes 1.9 ms."""

_ENVIRON_BYTES = 1 << 20
"""Bytes read of an environment, which can be as large as the stack limit allows."""


def lives(pid: int, session: int) -> bool:
    """Return whether a process of that session has not ended."""
    try:
        status = read_status(pid)
        return not status.ended and status.session == session
    except Exception:  # as in `_belongs`
        return False


def end_leftovers(started: Mapping[int, str], limit: float, clock: Callable[[], float]) -> set[int]:
    """Kill what ended children left: processes of their sessions, and ones that hold their mark.

    Returns the children of which something is still there, by their process ids.

    `started` maps the process ids that the children had, which name their sessions, to their
    marks. Looks again until nothing is left or the clock says `limit`. A host that inherits
    orphans (process 1 of a container) is left no zombies of theirs.
    """
    if not started:
        return set()
    search = _Search(started)
    settled_by = min(limit, clock() + EXEC_S)
    while True:
        leftovers, unclear = search.look()
        for pid in leftovers:
            _end(pid)
        now = clock()
        if now >= limit or not (leftovers or (unclear and now < settled_by)):
            return {search.owners[pid] for pid in leftovers if _outlives(pid)}
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
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read(_ENVIRON_BYTES)
        mark = next((text for text in environ.split(b"\0") if text in self._marks), None)
        if mark is not None:
            self.owners[pid] = self._marks[mark]
        return mark is not None if environ else None

    def _belongs(self, pid: int) -> bool | None:
        """Return whether a process is a leftover that this process can still end or reap.

        None: not known yet, because it is just being replaced by a program that it starts.
        """
        try:
            status = read_status(pid)
            ours = status.session in self._sessions
            if status.ended:  # a zombie, which only its parent can reap
                return status.parent == os.getpid() and (ours or pid in self.owners)
            if ours:
                self.owners[pid] = status.session
            if ours or status.flags & _KERNEL_THREAD:
                return ours
            return self._is_marked(pid)
        except Exception:  # it has ended, is another user's, or an audit hook forbids the look
            return False


def _outlives(pid: int) -> bool:
    """Return whether a process that was killed is still there: stuck, or another user's."""
    try:
        return not read_status(pid).ended
    except (OSError, ValueError, IndexError):
        return False


class Status:
    """Fields of /proc/PID/stat, see proc_pid_stat(5)."""

    __slots__ = ("ended", "flags", "parent", "session")

    def __init__(self, fields: list[bytes]) -> None:
        self.ended = fields[0] in b"ZX"
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.flags = int(fields[6])


def read_status(pid: int) -> Status:
    """Return what /proc says of a process; raises `OSError` when it has ended."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The name in parentheses may hold anything; fields count from behind it.
        return Status(file.read().rpartition(b")")[2].split())


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, os.WNOHANG)
    except Exception:  # it has ended, is another process's orphan, or an audit hook forbids it
        pass


def younger_than(oldest: int) -> list[int]:
    """Return the processes made after process `oldest`; all of them once the numbers wrapped."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        with open("/proc/loadavg", "rb") as file:
            newest = int(file.read().split()[-1])
    except Exception:  # no /proc, or an audit hook of the host forbids to look there
        return []
    wrapped = newest < oldest
    return [pid for pid in pids if (wrapped or pid > oldest) and pid != os.getpid()]
