"""What an owner writes into the lock file about itself: for people, and for after its death.

While the kernel's lock is held it alone counts. A record in a file that nobody locks is of an
owner that was killed with all that watched over the lease; it names what may still use the device.
"""

from __future__ import annotations

import os

from probe_core.leasing.processes import marked, pid_namespace, started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "MARK",
    "Owner",
    "in_group",
    "living_sharers",
    "marks",
    "own_record",
    "read_owners",
    "survivors",
    "write_record",
]

MARK = "PROBE_LEASE_ID"
"""Names the leases that a process runs under, the outermost first: random, told to nobody else."""

_LIMIT = 16384
"""Bytes of a lock file that are read and written: some 40 sharers with the longest commands."""
_COMMAND = 200
"""Characters of a command: two lines of a terminal; more names no process better."""
_MARK_CHARACTERS = 64
_GROUP_CHARACTERS = 1000
"""Characters of a control group's path: systemd's own have some 200."""

_NUMBERS = ("pid", "started", "keeper", "keeper_started", "pidns", "uid", "reserve")


class Owner:
    """One owner of a device, as it signed the lock file; every field may be unknown (None)."""

    __slots__ = (
        "command",
        "group",
        "keeper",
        "keeper_started",
        "mark",
        "pid",
        "pidns",
        "reserve",
        "share",
        "since",
        "started",
        "uid",
    )

    def __init__(self) -> None:
        self.pid: int | None = None
        """Its process, in its own PID namespace."""
        self.started: int | None = None
        """When that process began, in clock ticks since boot: tells a reused number apart."""
        self.keeper: int | None = None
        """The process that holds the lease until the last process under it has ended."""
        self.keeper_started: int | None = None
        """When that one began."""
        self.pidns: int | None = None
        """Its PID namespace's inode."""
        self.uid: int | None = None
        """Its user."""
        self.since: float | None = None
        """When it took the lease, in seconds since 1970."""
        self.share = False
        """Whether it shares the device."""
        self.reserve: int | None = None
        """Bytes of the device's memory that it shares out to itself."""
        self.mark = ""
        """What the processes under the lease have in `MARK`."""
        self.group = ""
        """The control group of what runs under the lease, see `scope`; "" without one."""
        self.command = ""
        """What it runs: escaped, at most 200 characters."""

    def text(self) -> str:
        """Return the owner as lines of a lock file."""
        lines = [f"{name} {value}" for name in _NUMBERS if (value := getattr(self, name))]
        if self.uid == 0:
            lines.append("uid 0")
        if self.since is not None:
            lines.append(f"since {self.since}")
        lines += [f"share {int(self.share)}", f"mark {self.mark}"]
        if self.group:
            lines.append(f"group {self.group}")
        lines.append(f"command {self.command}")
        return "\n".join(lines) + "\n\n"

    def alive(self) -> bool | None:
        """Return whether its process runs; None when it cannot be told from here."""
        if self.pid is None or self.pidns is None or self.pidns != pid_namespace():
            return None
        return self.started is not None and started(self.pid) == self.started

    def keeper_alive(self) -> bool:
        """Return whether its keeper surely runs."""
        if self.keeper is None or self.pidns is None or self.pidns != pid_namespace():
            return False
        return self.keeper_started is not None and started(self.keeper) == self.keeper_started


def marks(environ: Mapping[str, str], depths: Mapping[str, int], mark: str) -> str:
    """Return the value of `MARK` for processes under lease `mark`: behind those of outer leases."""
    outer = environ.get(MARK, "") if depths else ""
    return f"{outer},{mark}" if outer else mark


def own_record(
    command: Sequence[str],
    *,
    share: bool,
    now: float,
    mark: str = "",
    reserve: int | None = None,
) -> Owner:
    """Return the record of this process, leasing for `command` since `now`."""
    owner = Owner()
    owner.pid, owner.uid, owner.since = os.getpid(), os.getuid(), round(now, 3)
    owner.started, owner.pidns = started(owner.pid), pid_namespace()
    owner.share, owner.mark, owner.reserve = share, mark, reserve
    text = " ".join(ascii(argument)[1:-1] if argument else "''" for argument in command)
    owner.command = text if len(text) <= _COMMAND else text[: _COMMAND - 3] + "..."
    return owner


def write_record(handle: int, *owners: Owner) -> None:
    """Sign an open lock file with these records alone; one that may not be written stays as is."""
    text = "".join(record.text() for record in owners).encode("ascii", "replace")[:_LIMIT]
    try:
        os.pwrite(handle, text, 0)
        os.ftruncate(handle, len(text))  # behind the writing: an empty file means a free device
    except OSError:
        return


def read_owners(handle: int) -> list[Owner]:
    """Return what the owners wrote; text that is no record is passed over."""
    try:
        text = os.pread(handle, _LIMIT, 0).decode("ascii", "replace")
    except OSError:
        return []
    return [_parse(block) for block in text.split("\n\n") if block.strip()]


def survivors(owners: Sequence[Owner]) -> list[int]:
    """Return the processes that still run under the leases of `owners`, of whom none holds a lock.

    An owner that lives on counts, also where its lock is gone with a file that somebody deleted.
    What another PID namespace holds is not seen from here: its lock alone protects it.
    """
    members: list[int] = []
    for owner in owners:
        if owner.alive() and owner.pid is not None:
            members.append(owner.pid)
        if owner.keeper_alive() and owner.keeper is not None:
            members.append(owner.keeper)
    marks = [owner.mark for owner in owners if owner.mark]
    if not members and marks:
        members = [pid for pids in marked(MARK, marks).values() for pid in pids]
    if not members:
        members = [pid for owner in owners for pid in in_group(owner)]
    return sorted(set(members))


def living_sharers(owners: Sequence[Owner]) -> list[Owner]:
    """Return the owners that share and have not surely ended with all that ran under their leases.

    A sharer that was killed does not erase its record; one that cannot be seen from here counts.
    """
    sharers = (owner for owner in owners if owner.share)
    return [owner for owner in sharers if owner.alive() is not False or survivors([owner])]


def in_group(owner: Owner) -> list[int]:
    """Return the processes in the control group of a lease; none where it has no such group."""
    if not owner.group or owner.pidns != pid_namespace():
        return []
    from probe_core.leasing.scope import members

    return members(owner.group)


def _parse(block: str) -> Owner:
    owner = Owner()
    for line in block.split("\n"):
        name, _, value = line.partition(" ")
        if name == "command":
            # Another user may have written it: no control characters reach a terminal.
            owner.command = "".join(c if c.isprintable() else "?" for c in value[:_COMMAND])
        elif name == "mark":
            owner.mark = value if value.isalnum() and len(value) <= _MARK_CHARACTERS else ""
        elif name == "group":
            owner.group = value if len(value) <= _GROUP_CHARACTERS else ""
        elif name == "share":
            owner.share = value == "1"
        elif name == "since":
            owner.since = _number(value)
        elif name in _NUMBERS:
            number = _number(value)
            setattr(owner, name, None if number is None else int(number))
    owner.group = _own_group(owner)
    return owner


def _own_group(owner: Owner) -> str:
    """Return the group of a record if it is one of that lease: anybody may write a record."""
    if not owner.group:
        return ""
    from probe_core.leasing.scope import is_name

    return owner.group if owner.mark and is_name(owner.group, owner.mark) else ""


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e18 else None  # within 64 bits, so that JSON readers can hold it
