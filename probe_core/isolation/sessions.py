"""Read /proc to find what a child left behind: memory in use, processes that escaped its group."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal  # the same constants, without the enums that signal builds

__all__ = ["MARK_VARIABLE", "kill_marked", "resident_bytes"]

MARK_VARIABLE = "PROBE_CORE_RUN"
"""Set in a child's environment to a number of its run, so that daemons it made can be found."""

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident_bytes(pid: int) -> int:
    """Return a process's resident memory; 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def kill_marked(session: int, mark: str) -> int:
    """Kill every process of `session`, and every one whose environment holds `mark`.

    Returns how many were killed. Processes of other users cannot be read and are not ours.
    """
    killed = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdecimal() and _belongs(int(name), session, mark):
            try:
                os.kill(int(name), _signal.SIGKILL)
                killed += 1
            except OSError:
                pass
    return killed


def _belongs(pid: int, session: int, mark: str) -> bool:
    if pid == os.getpid():
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything; fields count from behind it.
            fields = file.read().rpartition(b")")[2].split()
        if int(fields[3]) == session:
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"{MARK_VARIABLE}={mark}".encode() in file.read(1 << 20)
    except (OSError, ValueError, IndexError):
        return False
