"""Read /proc to find what a child left behind: memory in use, processes that escaped its group."""

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


def _memory_limit() -> int:
    """Return 4 GiB, or half of a smaller machine: the host itself must never be short."""
    try:
        return min(4 << 30, os.sysconf("SC_PHYS_PAGES") * _PAGE // 2)
    except (AttributeError, OSError, ValueError):
        return 4 << 30


_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of linux/sched.h
EXEC_S = 0.02
"""Seconds for which a process whose environment is empty is looked at again."""

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
        fields = _stat(pid)
        return fields[0] not in b"ZX" and int(fields[3]) == session
    except (OSError, ValueError, IndexError):
        return False


def end_leftovers(started: Mapping[int, str], limit: float, clock: Callable[[], float]) -> None:
    """Kill what ended children left: processes of their sessions, and ones that hold their mark.

    `started` maps the process ids that the children had, which name their sessions, to their
    marks. Looks again until nothing is left or the clock says `limit`. A host that inherits
    orphans (process 1 of a container) is left no zombies of theirs.
    """
    if not started:
        return
    marks = {f"{MARK_VARIABLE}={mark}".encode() for mark in started.values()}
    killed: set[int] = set()
    patience = min(limit, clock() + EXEC_S)
    while True:
        found = {pid: _belongs(pid, started, marks, killed) for pid in _later_than(min(started))}
        left = [pid for pid, ours in found.items() if ours]
        for pid in left:
            killed.add(pid)
            _end(pid)
        now = clock()
        if now >= limit or not (left or (None in found.values() and now < patience)):
            return
        select.poll().poll(2)


def _end(pid: int) -> None:
    try:
        os.kill(pid, _signal.SIGKILL)
        os.waitpid(pid, os.WNOHANG)
    except OSError:  # gone, or an orphan that somebody else inherits
        pass


def _later_than(oldest: int) -> list[int]:
    """Return the processes made after process `oldest`; all of them once the numbers wrapped."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        with open("/proc/loadavg", "rb") as file:
            wrapped = int(file.read().split()[-1]) < oldest
    except (OSError, ValueError, IndexError):
        return []
    return [pid for pid in pids if (wrapped or pid > oldest) and pid != os.getpid()]


def _stat(pid: int) -> list[bytes]:
    """Return state, parent, group, session and so on of a process."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The name in parentheses may hold anything; fields count from behind it.
        return file.read().rpartition(b")")[2].split()


def _belongs(
    pid: int, sessions: Mapping[int, str], marks: set[bytes], killed: set[int]
) -> bool | None:
    """Return whether a process is a child's leftover that this process can still end.

    None: not to be told yet, because it is just being replaced by a program that it starts.
    """
    try:
        fields = _stat(pid)
        ours = int(fields[3]) in sessions
        if fields[0] in b"ZX":
            return int(fields[1]) == os.getpid() and (ours or pid in killed)
        if ours or int(fields[6]) & _KERNEL_THREAD:
            return ours
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read(1 << 20)
        return not marks.isdisjoint(environ.split(b"\0")) if environ else None
    except (OSError, ValueError, IndexError):
        return False
