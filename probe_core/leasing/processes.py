"""What /proc says of processes: when they began, who started them, which are marked or have a file.

Where there is no /proc (macOS) nothing is known: each answer is then empty.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

__all__ = [
    "ancestors",
    "descendants",
    "has_open",
    "marked",
    "openers",
    "pid_namespace",
    "processes",
    "started",
]

_ENVIRON_BYTES = 1 << 20
"""Bytes read of an environment, which can be as large as the stack limit allows (execve(2))."""

_DEEPEST = 1000
"""Generations of ancestors at most: beyond every chain of shells (a judgement)."""

_STATE, _PARENT, _STARTED = 0, 1, 19
"""Fields of /proc/PID/stat behind the name, see proc_pid_stat(5)."""


def _status(pid: int | str) -> list[bytes]:
    """Return the fields of /proc/PID/stat behind the name; empty where the process is gone."""
    try:
        handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        text = os.read(handle, 4096)
    except OSError:
        return []
    finally:
        os.close(handle)
    # The name in parentheses may hold blanks and parentheses.
    fields = text.rpartition(b")")[2].split()
    return fields if len(fields) > _STARTED else []


def started(pid: int) -> int | None:
    """Return when a process began, in clock ticks since boot; None for one that has ended."""
    fields = _status(pid)
    # A zombie has ended: only its parent has not noticed (kernel.org, fs/proc/array.c).
    return int(fields[_STARTED]) if fields and fields[_STATE] not in (b"Z", b"X") else None


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
        fields = _status(pid)
        pid = int(fields[_PARENT]) if fields else 0
        if pid <= 0:
            return


def descendants(roots: Collection[int]) -> set[int]:
    """Return the processes that descend from any of `roots`, without those."""
    children: dict[int, list[int]] = {}
    for pid in processes():
        fields = _status(pid)
        if fields and fields[_STATE] not in (b"Z", b"X"):
            children.setdefault(int(fields[_PARENT]), []).append(pid)
    members: set[int] = set()
    remaining = list(roots)
    while remaining:
        for pid in children.get(remaining.pop(), ()):
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
        for entry in _environment(pid):
            if entry.startswith(prefix):
                for mark in entry[len(prefix) :].decode("ascii", "replace").split(","):
                    if mark in members:
                        members[mark].append(pid)
    return members


def _environment(pid: int) -> Iterable[bytes]:
    try:
        handle = os.open(f"/proc/{pid}/environ", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        text = os.read(handle, _ENVIRON_BYTES)
    except OSError:
        return ()
    finally:
        os.close(handle)
    return text.split(b"\0")


def openers(path: str) -> list[int]:
    """Return the processes that have the file open, as far as this user may look.

    A file that was deleted since is asked for by its name with `` (deleted)`` behind it.
    """
    return [pid for pid in processes() if has_open(pid, path)]


def has_open(pid: int, path: str) -> bool:
    """Return whether a process has the file open."""
    try:
        files = os.listdir(f"/proc/{pid}/fd")
    except OSError:  # another user's, or just ended
        return False
    for number in files:
        try:
            if os.readlink(f"/proc/{pid}/fd/{number}") == path:
                return True
        except OSError:  # just closed
            continue
    return False


def processes(root: str = "") -> list[int]:
    """Return the numbers of all processes that /proc lists, sorted; `root` stands for /."""
    try:
        return sorted(int(name) for name in os.listdir(f"{root}/proc") if name.isdecimal())
    except OSError:
        return []
