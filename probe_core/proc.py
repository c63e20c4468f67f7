"""What /proc shows of processes: each of its files is read here, and nowhere else.

Every answer is bounded. What cannot be read is None: the process has ended, is another user's, an
audit hook of the host forbids the look, or the system has no /proc (macOS). `root` stands for /.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

__all__ = [
    "HeldLock",
    "Status",
    "ancestors",
    "arguments",
    "descendants",
    "descriptor_numbers",
    "descriptors",
    "environment",
    "groups",
    "held_locks",
    "open_files",
    "openers",
    "parents",
    "pending",
    "pid_namespace",
    "processes",
    "program",
    "proportional_bytes",
    "resident_pages",
    "started",
    "status",
    "target",
    "uptime",
    "user",
    "user_name",
]

_STATUS_BYTES = 4096
_MOST_DESCRIPTORS = 1 << 16
"""Descriptors that are told one by one where nothing lists them: closing them takes 10 ms."""
_FDINFO_BYTES = 1 << 22
"""Bytes read of what is known of a descriptor: 40,000 locks. Of 700, as it was, who had locked more
hid what else he holds, also from root."""
_DEEPEST = 1000
"""Generations of ancestors at most: beyond every chain of shells (a judgement)."""
_ENVIRON_BYTES = 1 << 20
"""Bytes read of an environment, which can be as large as the stack limit allows (execve(2))."""

_STATE, _PARENT, _SESSION, _FLAGS, _STARTED = 0, 1, 3, 6, 19
"""Fields of /proc/PID/stat behind the name, see proc_pid_stat(5)."""


class Status:
    """What /proc/PID/stat says of a process; `started` counts clock ticks since boot.

    `stuck` says that it waits in the kernel and takes no signal (D, uninterruptible sleep).
    """

    __slots__ = ("ended", "flags", "name", "parent", "session", "started", "stuck")

    def __init__(self, name: bytes, fields: list[bytes]) -> None:
        self.name = name
        # A zombie has ended: only its parent has not noticed (kernel.org, fs/proc/array.c).
        self.ended = fields[_STATE] in (b"Z", b"X")
        self.stuck = fields[_STATE] == b"D"
        self.parent = int(fields[_PARENT])
        self.session = int(fields[_SESSION])
        self.flags = int(fields[_FLAGS])
        self.started = int(fields[_STARTED])


def status(pid: int, root: str = "") -> Status | None:
    """Return what the kernel says of a process."""
    head, _, rest = (_read(f"{root}/proc/{pid}/stat", _STATUS_BYTES) or b"").rpartition(b")")
    try:
        # The name in parentheses may hold blanks and parentheses: fields count from behind it.
        return Status(head.partition(b"(")[2], rest.split())
    except (IndexError, ValueError):
        return None


def started(pid: int) -> int | None:
    """Return when a process began, in clock ticks since boot; None for one that has ended."""
    process = status(pid)
    return None if process is None or process.ended else process.started


def pid_namespace() -> int | None:
    """Return the inode of this process's PID namespace."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except Exception:
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


def parents() -> dict[int, int]:
    """Return the parent of each process that runs, all from one look."""
    found = ((pid, status(pid)) for pid in processes())
    return {pid: one.parent for pid, one in found if one is not None and not one.ended}


def descendants(roots: Collection[int], family: Mapping[int, int] | None = None) -> set[int]:
    """Return the processes that descend from any of `roots`, without those.

    `family` maps processes to their parents; unless given it is looked at now.
    """
    children: dict[int, list[int]] = {}
    for pid, parent in (parents() if family is None else family).items():
        children.setdefault(parent, []).append(pid)
    members, remaining = set(roots), list(roots)
    while remaining:
        for pid in children.get(remaining.pop(), ()):
            if pid not in members:
                members.add(pid)
                remaining.append(pid)
    return members.difference(roots)


def environment(pid: int) -> list[bytes] | None:
    """Return the entries of the environment that a process started with, ``NAME=value`` each.

    Empty while the process is just being replaced by a program that it starts.
    """
    text = _read(f"/proc/{pid}/environ", _ENVIRON_BYTES)
    return None if text is None else [entry for entry in text.split(b"\0") if entry]


def descriptor_numbers(pid: int, root: str = "") -> list[str] | None:
    """Return the numbers of a process's descriptors; None of another user's process."""
    try:
        return os.listdir(f"{root}/proc/{pid}/fd")
    except Exception:
        return None


def target(pid: int, number: str, root: str = "") -> str | None:
    """Return what a descriptor leads to; None where it was just closed."""
    try:
        return os.readlink(f"{root}/proc/{pid}/fd/{number}")
    except Exception:
        return None


def descriptors(pid: int, root: str = "") -> Iterator[tuple[str, str]]:
    """Yield the open descriptors of a process, each with its own path and what it leads to.

    None of another user's process. A deleted file's name has `` (deleted)`` behind it.
    """
    for number in descriptor_numbers(pid, root) or ():
        if (path := target(pid, number, root)) is not None:
            yield f"{root}/proc/{pid}/fd/{number}", path


def open_files() -> Collection[int]:
    """Return the numbers of the descriptors that this process may have open."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return [int(name) for name in os.listdir(folder)]
        except Exception:  # a container without it
            continue
    return range(min(os.sysconf("SC_OPEN_MAX"), _MOST_DESCRIPTORS))


def arguments(pid: int, root: str = "") -> list[bytes]:
    """Return the arguments that a process was started with, or has written over them since."""
    text = _read(f"{root}/proc/{pid}/cmdline", _STATUS_BYTES) or b""
    return text.removesuffix(b"\0").split(b"\0") if text else []


def groups(pid: int, root: str = "") -> str | None:
    """Return the text of /proc/PID/cgroup, which names the container or the job of a process."""
    text = _read(f"{root}/proc/{pid}/cgroup", _STATUS_BYTES)
    return None if text is None else text.decode("utf-8", "replace")


class HeldLock:
    """A lock that a process holds now: on the file `path`, by its open file at `descriptor`.

    `ranges` are the first byte and the one behind the last, of each range of bytes. The path is
    that of the process's own mounts, where anything may lie: `identity` tells which file it is.
    """

    __slots__ = ("descriptor", "path", "pid", "ranges")

    def __init__(self, pid: int, path: str, descriptor: str, ranges: list[tuple[int, int]]) -> None:
        self.pid = pid
        self.path = path
        self.descriptor = descriptor
        self.ranges = ranges

    def identity(self) -> tuple[int, int] | None:
        """Return device and inode of the file; None where it was just closed."""
        try:
            status = os.stat(self.descriptor)
        except OSError:
            return None
        return status.st_dev, status.st_ino


def held_locks(prefix: str) -> Iterator[HeldLock]:
    """Yield the locks on files whose paths begin so, as far as this user may look.

    Of locks that belong to an open file (flock(2), F_OFD_SETLK) each process is named that has it
    open, inherited or not; one that opened the file itself is not. The kernel writes ``lock:``
    below such a descriptor (proc_pid_fdinfo(5), Linux 4.1). A deleted file has `` (deleted)``
    behind its path.
    """
    for pid in processes():
        for descriptor, target in descriptors(pid):
            if target.startswith(prefix):
                info = _read(descriptor.replace("/fd/", "/fdinfo/"), _FDINFO_BYTES) or b""
                ranges = _lock_ranges(info)
                if ranges:
                    yield HeldLock(pid, target, descriptor, ranges)


def _lock_ranges(info: bytes) -> list[tuple[int, int]]:
    """Return the ranges of lines as ``lock: 1: OFDLCK ADVISORY WRITE -1 fe:00:2148535 0 EOF``."""
    ranges: list[tuple[int, int]] = []
    for line in info.splitlines():
        fields = line.split()
        if line.startswith(b"lock:") and len(fields) > 8 and fields[7].isdigit():
            end = int(fields[8]) + 1 if fields[8].isdigit() else 1 << 63
            ranges.append((int(fields[7]), end))
    return ranges


def openers(paths: Collection[str], root: str = "") -> list[int]:
    """Return the processes that have one of these files open, as far as this user may look.

    A deleted file is asked for by its name with `` (deleted)`` behind it.
    """
    return [
        pid
        for pid in processes(root)
        if any(target in paths for _, target in descriptors(pid, root))
    ]


def user(pid: int, root: str = "") -> int | None:
    """Return the number of the user that a process belongs to: the real one of proc(5), status."""
    real = _status_field(pid, b"Uid:", root)
    return int(real) if real.isdigit() else None


def user_name(uid: int | None) -> str | None:
    """Return the name of a user, its number where the system has no name; None for None."""
    if uid is None:
        return None
    import pwd  # not on Windows

    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


def pending(pid: int) -> frozenset[int]:
    """Return the signals that were sent to a process, and which it blocks (ShdPnd)."""
    try:
        mask = int(_status_field(pid, b"ShdPnd:"), 16)
    except ValueError:
        return frozenset()
    return frozenset(number for number in range(1, mask.bit_length() + 1) if mask >> number - 1 & 1)


def _status_field(pid: int, name: bytes, root: str = "") -> bytes:
    """Return the first word behind a name in /proc/PID/status; empty where there is none."""
    for line in (_read(f"{root}/proc/{pid}/status", _STATUS_BYTES) or b"").splitlines():
        fields = line.split()
        if fields[:1] == [name] and len(fields) > 1:
            return fields[1]
    return b""


def resident_pages(pid: int) -> int | None:
    """Return how many pages of memory a process has."""
    fields = (_read(f"/proc/{pid}/statm", _STATUS_BYTES) or b"").split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else None


def proportional_bytes(pid: int) -> int | None:
    """Return a process's share of the memory that it has; None before Linux 4.14, too."""
    lines = (_read(f"/proc/{pid}/smaps_rollup", _STATUS_BYTES) or b"").splitlines()
    share = next((line.split()[1] for line in lines if line.startswith(b"Pss:")), b"")
    return int(share) * 1024 if share.isdigit() else None


def program(pid: int, root: str = "") -> str | None:
    """Return the name of the program that a process runs, 15 characters at most (TASK_COMM_LEN)."""
    text = _read(f"{root}/proc/{pid}/comm", _STATUS_BYTES) or b""
    return text.decode("utf-8", "replace").strip() or None


def uptime(root: str = "") -> float | None:
    """Return the seconds since boot."""
    text = (_read(f"{root}/proc/uptime", _STATUS_BYTES) or b"").partition(b" ")[0]
    try:
        return float(text)
    except ValueError:
        return None


def processes(root: str = "") -> list[int]:
    """Return the numbers of all processes that /proc lists, sorted."""
    try:
        return sorted(int(name) for name in os.listdir(f"{root}/proc") if name.isdecimal())
    except Exception:
        return []


def _read(path: str, limit: int) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except Exception:
        return None
    try:
        parts, size = [], 0
        while size < limit and (part := os.read(handle, limit - size)):
            parts.append(part)
            size += len(part)
        return b"".join(parts)
    except Exception:
        return None
    finally:
        os.close(handle)
