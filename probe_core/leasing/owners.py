"""What an owner writes into the lock file about itself: for people; the lock alone counts."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Owner", "own_record", "read_owners", "write_record"]

_LIMIT = 16384
"""Bytes of a lock file that are read and written: some 50 sharers with the longest commands."""
_COMMAND = 200
"""Characters of a command: two lines of a terminal; more names no process better."""


class Owner:
    """One owner of a device, as it signed the lock file; every field may be unknown (None)."""

    __slots__ = ("command", "pid", "pidns", "share", "since", "started", "uid")

    def __init__(self) -> None:
        self.pid: int | None = None
        """Its process, in its own PID namespace."""
        self.started: int | None = None
        """When that process began, in clock ticks since boot: tells a reused number apart."""
        self.pidns: int | None = None
        """Its PID namespace's inode."""
        self.uid: int | None = None
        """Its user."""
        self.since: float | None = None
        """When it took the lease, in seconds since 1970."""
        self.share = False
        """Whether it shares the device."""
        self.command = ""
        """What it runs: escaped, at most 200 characters."""

    def text(self) -> str:
        """Return the owner as lines of a lock file."""
        lines = [f"{name} {value}" for name, value in self._numbers() if value is not None]
        return "\n".join([*lines, f"share {int(self.share)}", f"command {self.command}"]) + "\n\n"

    def _numbers(self) -> list[tuple[str, float | None]]:
        return [
            ("pid", self.pid),
            ("started", self.started),
            ("pidns", self.pidns),
            ("uid", self.uid),
            ("since", self.since),
        ]

    def alive(self) -> bool | None:
        """Return whether its process runs; None when it cannot be told from here."""
        if self.pid is None or self.pidns is None or self.pidns != _pidns():
            return None
        return self.started is not None and _started(self.pid) == self.started


def own_record(command: Sequence[str], *, share: bool, now: float) -> Owner:
    """Return the record of this process, leasing for `command` since `now`."""
    owner = Owner()
    owner.pid, owner.uid, owner.since = os.getpid(), os.getuid(), round(now, 3)
    owner.started, owner.pidns = _started(owner.pid), _pidns()
    owner.share = share
    text = " ".join(ascii(argument)[1:-1] if argument else "''" for argument in command)
    owner.command = text if len(text) <= _COMMAND else text[: _COMMAND - 3] + "..."
    return owner


def write_record(handle: int, owner: Owner, sharers: Sequence[Owner] = ()) -> None:
    """Sign an open lock file; one that may not be written stays unsigned."""
    text = "".join(record.text() for record in (*sharers, owner))
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode("ascii", "replace")[:_LIMIT], 0)
    except OSError:
        return


def read_owners(handle: int) -> list[Owner]:
    """Return what the owners wrote; text that is no record is passed over."""
    try:
        text = os.pread(handle, _LIMIT, 0).decode("ascii", "replace")
    except OSError:
        return []
    return [_parse(block) for block in text.split("\n\n") if block.strip()]


def _parse(block: str) -> Owner:
    owner = Owner()
    for line in block.split("\n"):
        name, _, value = line.partition(" ")
        if name == "command":
            # Another user may have written it: no control characters reach a terminal.
            owner.command = "".join(c if c.isprintable() else "?" for c in value[:_COMMAND])
        elif name == "share":
            owner.share = value == "1"
        elif name == "since":
            owner.since = _number(value)
        elif name in ("pid", "started", "pidns", "uid"):
            number = _number(value)
            setattr(owner, name, None if number is None else int(number))
    return owner


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e18 else None  # within 64 bits, so that JSON readers can hold it


def _started(pid: int) -> int | None:
    """Return when a process began, in clock ticks since boot (proc_pid_stat(5), field 22)."""
    try:
        handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(handle, 4096)
    except OSError:
        return None
    finally:
        os.close(handle)
    # The name in parentheses may hold blanks; the 20th field behind it is the start time.
    fields = text.rpartition(b")")[2].split()
    return int(fields[19]) if len(fields) > 19 else None


def _pidns() -> int | None:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None
