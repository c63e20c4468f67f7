"""Read /proc: a prober's memory in use, and processes that outlived their child.

A process belongs to a child when it is in the child's session, or has the child's mark in its
environment. It escapes both only by making a session of its own *and* starting a program with an
empty environment.
"""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Mapping
else:
    import _signal  # the same constants, without the enums that signal builds

__all__ = ["MARK_VARIABLE", "MEMORY_LIMIT", "end_leftovers", "lives", "resident_bytes"]

MARK_VARIABLE = "PROBE_CORE_RUN"
"""Set in a child's environment to a number of its run, so that daemons it made can be found."""

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
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


def _memory_limit() -> int:
    """Return 4 GiB, or half of a smaller machine: the host itself must never be short."""
    # 4 GiB is a judgement: far more than asking a driver takes, far less than a node has.
    try:
        return min(4 << 30, os.sysconf("SC_PHYS_PAGES") * _PAGE // 2)
    except (AttributeError, OSError, ValueError):
        return 4 << 30


MEMORY_LIMIT = _memory_limit()
"""Resident bytes that one prober may use."""


def resident_bytes(pid: int) -> int:
    """Return a process's resident memory; 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def lives(pid: int, session: int) -> bool:
    """Return whether a process of that session has not ended."""
    try:
        status = _read_status(pid)
        return not status.ended and status.session == session
    except Exception:  # as in `_belongs`
        return False


def end_leftovers(started: Mapping[int, str], limit: float, clock: Callable[[], float]) -> None:
    """Kill what ended children left: processes of their sessions, and ones that hold their mark.

    `started` maps the process ids that the children had, which name their sessions, to their
    marks. Looks again until nothing is left or the clock says `limit`. A host that inherits
    orphans (process 1 of a container) is left no zombies of theirs.
    """
    if not started:
        return
    search = _Search(started)
    settled_by = min(limit, clock() + EXEC_S)
    while True:
        leftovers, unclear = search.look()
        for pid in leftovers:
            _end(pid)
        now = clock()
        if now >= limit or not (leftovers or (unclear and now < settled_by)):
            return
        select.poll().poll(_PAUSE_MS)


class _Search:
    """Looks for the leftovers of some children, and remembers which processes it has named."""

    def __init__(self, started: Mapping[int, str]) -> None:
        self._oldest = min(started)
        self._sessions = frozenset(started)
        self._marks = {f"{MARK_VARIABLE}={mark}".encode() for mark in started.values()}
        self._named: set[int] = set()

    def look(self) -> tuple[list[int], bool]:
        """Return the leftovers' process ids, and whether a process could not be told apart yet."""
        belongs = {pid: self._belongs(pid) for pid in _younger_than(self._oldest)}
        leftovers = [pid for pid, ours in belongs.items() if ours]
        self._named.update(leftovers)
        return leftovers, None in belongs.values()

    def _belongs(self, pid: int) -> bool | None:
        """Return whether a process is a leftover that this process can still end or reap.

        None: not known yet, because it is just being replaced by a program that it starts.
        """
        try:
            status = _read_status(pid)
            ours = status.session in self._sessions
            if status.ended:  # a zombie, which only its parent can reap
                return status.parent == os.getpid() and (ours or pid in self._named)
            if ours or status.flags & _KERNEL_THREAD:
                return ours
            with open(f"/proc/{pid}/environ", "rb") as file:
                environ = file.read(_ENVIRON_BYTES)
            return not self._marks.isdisjoint(environ.split(b"\0")) if environ else None
        except Exception:  # it has ended, is another user's, or an audit hook forbids the look
            return False


class _Status:
    """The fields of /proc/PID/stat that matter here; see proc_pid_stat(5)."""

    __slots__ = ("ended", "flags", "parent", "session")

    def __init__(self, fields: list[bytes]) -> None:
        self.ended = fields[0] in b"ZX"
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.flags = int(fields[6])


def _read_status(pid: int) -> _Status:
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The name in parentheses may hold anything; fields count from behind it.
        return _Status(file.read().rpartition(b")")[2].split())


def _end(pid: int) -> None:
    try:
        os.kill(pid, _signal.SIGKILL)
        os.waitpid(pid, os.WNOHANG)
    except Exception:  # it has ended, is another process's orphan, or an audit hook forbids it
        pass


def _younger_than(oldest: int) -> list[int]:
    """Return the processes made after process `oldest`; all of them once the numbers wrapped."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        with open("/proc/loadavg", "rb") as file:
            newest = int(file.read().split()[-1])
    except Exception:  # no /proc, or an audit hook of the host forbids to look there
        return []
    wrapped = newest < oldest
    return [pid for pid in pids if (wrapped or pid > oldest) and pid != os.getpid()]
