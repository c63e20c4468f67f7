"""What a holder writes into the lock file about itself: for people; the lock alone counts."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Holder", "own_record", "read_records", "write_record"]

_LIMIT = 16384
_COMMAND = 200


class Holder:
    """One holder of a device, as it signed the lock file; every field may be unknown (None)."""

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
        """Return the holder as lines of a lock file."""
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


def own_record(command: Sequence[str], *, share: bool, now: float) -> Holder:
    """Return the record of this process, holding a lease for `command` since `now`."""
    holder = Holder()
    holder.pid, holder.uid, holder.since = os.getpid(), os.getuid(), round(now, 3)
    holder.started, holder.pidns = _started(holder.pid), _pidns()
    holder.share = share
    said = " ".join(ascii(word)[1:-1] if word else "''" for word in command)
    holder.command = said if len(said) <= _COMMAND else said[: _COMMAND - 3] + "..."
    return holder


def write_record(handle: int, holder: Holder, others: Sequence[Holder] = ()) -> None:
    """Sign an open lock file; one that may not be written stays unsigned."""
    text = "".join(one.text() for one in (*others, holder))
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode("ascii", "replace")[:_LIMIT], 0)
    except OSError:
        return


def read_records(handle: int) -> list[Holder]:
    """Return what the holders wrote; text that is no record is passed over."""
    try:
        text = os.pread(handle, _LIMIT, 0).decode("ascii", "replace")
    except OSError:
        return []
    return [_parse(block) for block in text.split("\n\n") if block.strip()]


def _parse(block: str) -> Holder:
    holder = Holder()
    for line in block.split("\n"):
        name, _, value = line.partition(" ")
        if name == "command":
            # another user may have written it: no control characters reach a terminal
            holder.command = "".join(c if c.isprintable() else "?" for c in value[:_COMMAND])
        elif name == "share":
            holder.share = value == "1"
        elif name == "since":
            holder.since = _number(value)
        elif name in ("pid", "started", "pidns", "uid"):
            number = _number(value)
            setattr(holder, name, None if number is None else int(number))
    return holder


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e18 else None


def _started(pid: int) -> int | None:
    try:
        handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        said = os.read(handle, 4096)
    except OSError:
        return None
    finally:
        os.close(handle)
    # The name in parentheses may hold blanks; the 20th field behind it is the start time.
    fields = said.rpartition(b")")[2].split()
    return int(fields[19]) if len(fields) > 19 else None


def _pidns() -> int | None:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None
