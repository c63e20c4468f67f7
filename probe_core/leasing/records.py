"""What the owner of a lease writes about itself, for people: no lock is given or taken by it.

Each lease has a file of its own, which its owner alone can write, and holds a lock on it for as
long as the lease lasts: that, and whose file it is, the kernel tells. The rest is what the owner
says. A record without a lock is of an owner that was killed with all that watched over the lease;
it tells by which mark to find what may still use the devices.
"""

from __future__ import annotations

import os
from stat import S_ISREG
from time import monotonic

from probe_core.leasing.ranges import is_over, obstacle, try_lock, unlock
from probe_core.proc import pid_namespace, started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from probe_core.leasing.folder import Folder

MARK = "PROBE_LEASE_ID"
"""Names the leases that a process runs under, the outermost first: random ids."""

COMMAND = 200
"""Characters of a command: two lines of a terminal; more names no process better."""
_LIMIT = 65536
"""Bytes of a record that are written and read: some thousand devices."""
_MARK_CHARACTERS = 64
_MODE = 0o644
_NUMBERS = ("pid", "started", "keeper", "keeper_started", "pidns", "reserve")
_MOST, _MOST_S = 512, 0.25
"""Records of a user that are read, and seconds in which their names are: who may write here can
make any number of files."""
_MOST_BYTES, _MOST_DEVICES = 1 << 20, 4096
"""Bytes and devices of all records of a user that are read: 2 KiB and 8 of each (a judgement)."""
_OPEN = os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Record:
    """One lease; each field may be unknown (None). `file`, `uid`, `living` are the kernel's."""

    # Of its file: the name, device and inode, whose it is, whether somebody holds the lock on it.
    name: str = ""
    file: tuple[int, int] | None = None
    uid: int | None = None
    living: bool = False
    # The owner's process in its own PID namespace, the inode of that, and when the process began,
    # in clock ticks since boot: it tells a reused number apart. The same of the keeper, which holds
    # the lease until the last process under it has ended.
    pid: int | None = None
    pidns: int | None = None
    started: int | None = None
    keeper: int | None = None
    keeper_started: int | None = None
    # When it took the lease, in seconds since 1970; whether it shares the devices; the bytes of
    # each device's memory that it shares out to itself.
    since: float | None = None
    share: bool = False
    reserve: int | None = None
    # What the processes under the lease have in `MARK`, and what it runs: escaped, at most 200
    # characters.
    mark: str = ""
    command: str = ""

    def __init__(self) -> None:
        # The names under which the devices are locked, see `ranges`, and what they are parts of.
        self.devices: list[str] = []
        self.wholes: list[str] = []

    def text(self) -> str:
        """Return the record as the lines of its file."""
        lines = [f"{name} {value}" for name in _NUMBERS if (value := getattr(self, name))]
        if self.since is not None:
            lines.append(f"since {self.since}")
        lines += [f"share {int(self.share)}", f"mark {self.mark}", f"command {self.command}"]
        # Ids are of ASCII letters, see `model.ids`.
        lines += [f"device {ascii(name)[1:-1]}" for name in self.devices]
        lines += [f"whole {ascii(name)[1:-1]}" for name in self.wholes]
        return "\n".join(lines) + "\n"

    def alive(self) -> bool | None:
        """Return whether its process runs; None when it cannot be told from here."""
        return self._runs(self.pid, self.started)

    def running(self) -> set[int | None]:
        """Return its process and its keeper, each if it surely runs."""
        owners = ((self.pid, self.started), (self.keeper, self.keeper_started))
        return {pid for pid, began in owners if self._runs(pid, began)}

    def _runs(self, pid: int | None, began: int | None) -> bool | None:
        if pid is None or self.pidns is None or self.pidns != pid_namespace():
            return None
        return began is not None and started(pid) == began


def marks(environ: Mapping[str, str], depths: Mapping[str, int], mark: str) -> str:
    """Return the value of `MARK` for processes under lease `mark`: behind those of outer leases."""
    outer = environ.get(MARK, "") if depths else ""
    return f"{outer},{mark}" if outer else mark


def own_record(
    command: Sequence[str], *, share: bool, mark: str, reserve: int | None = None
) -> Record:
    """Return the record of a lease that this process takes for `command`."""
    record = Record()
    record.name = mark
    record.pid, record.started, record.pidns = os.getpid(), started(os.getpid()), pid_namespace()
    record.share, record.mark, record.reserve = share, mark, reserve
    record.command = command_text(command)
    return record


def command_text(command: Sequence[str], limit: int = COMMAND) -> str:
    """Return a command as one line of ASCII, escaped and of at most `limit` characters."""
    text = " ".join(ascii(argument)[1:-1] if argument else "''" for argument in command)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def sign(folder: Folder, record: Record) -> int:
    """Write the record of a lease; return its locked file, -1 where there can be none.

    It gets its name when it is locked and whole: nobody meets it before.
    """
    inside = folder.records()
    if inside < 0:
        return -1
    hidden = f".{record.name}"
    handle = -1
    try:
        flags = _OPEN | os.O_RDWR | os.O_CREAT | os.O_EXCL
        # Nobody else opens it before it is locked: a read lock would keep its owner's away.
        handle = os.open(hidden, flags, 0o600, dir_fd=inside)
        try_lock(handle, 0, 1)
        os.fchmod(handle, _MODE)
        rewrite(handle, record)
        os.rename(hidden, record.name, src_dir_fd=inside, dst_dir_fd=inside)
    except BaseException as error:  # a full disk, or Ctrl-C
        if handle >= 0:
            os.close(handle)
            _remove(hidden, inside)
        if not isinstance(error, OSError):
            raise
        folder.notes.append(f"{folder.records_path} has no record of this lease: {error.strerror}")
        return -1
    finally:
        os.close(inside)
    return handle


def rewrite(handle: int, record: Record) -> None:
    """Write a record into its open file; on a full disk what can be is written."""
    text = record.text().encode("ascii", "replace")[:_LIMIT]
    try:
        os.pwrite(handle, text, 0)
        os.ftruncate(handle, len(text))
    except OSError:
        return


def unsign(path: str, handle: int) -> None:
    """Remove the record of a lease that ends, and unlock its file, which children may have open."""
    _remove(path)
    unlock(handle)


def read_records(folder: Folder) -> list[Record]:
    """Return the records in a folder; what is none, or is not its owner's alone, is passed over."""
    inside = folder.records(create=False)
    if inside < 0:
        return []
    budgets: dict[int, _Budget] = {}
    try:
        found = [_read(name, inside, budgets) for name in _names(inside)]
    finally:
        os.close(inside)
    return [record for record in found if record is not None]


def _read(name: str, inside: int, budgets: dict[int, _Budget]) -> Record | None:
    try:
        handle = os.open(name, _OPEN | os.O_RDONLY, dir_fd=inside)
    except OSError:  # just ended, a link, or not to be read
        return None
    try:
        status = os.fstat(handle)
        # A second name may be a link that somebody made to a file of another user's.
        if not S_ISREG(status.st_mode) or status.st_nlink != 1:
            return None
        record = budgets.setdefault(status.st_uid, _Budget()).read(handle)
        if record is not None:
            record.name, record.uid = name, status.st_uid
            record.file = status.st_dev, status.st_ino
            # A write lock, which its owner alone can have: others may open it for reading.
            record.living = obstacle(handle, 0, 1, share=True) is not None
        return record
    except OSError:
        return None
    finally:
        os.close(handle)


class _Budget:
    """What is still read of one user's records."""

    def __init__(self) -> None:
        self._bytes, self._devices = _MOST_BYTES, _MOST_DEVICES

    def read(self, handle: int) -> Record | None:
        """Return a record; None for one that is beyond the budget."""
        if self._bytes < 0 or self._devices < 0:
            return None
        text = os.pread(handle, min(_LIMIT, self._bytes + 1), 0)
        self._bytes -= len(text)
        if self._bytes < 0:
            return None
        record = _parse(text.decode("ascii", "replace"))
        self._devices -= len(record.devices) + len(record.wholes)
        return record if self._devices >= 0 else None


def _names(inside: int) -> list[str]:
    """Return the names of records, so many of each user's that none hides another one's."""
    until = monotonic() + _MOST_S
    names: list[str] = []
    counts: dict[int, int] = {}
    with os.scandir(inside) as entries:
        for number, entry in enumerate(entries):
            if is_over(number, until):
                break
            name = entry.name
            if name.isalnum() and len(name) <= _MARK_CHARACTERS and name.isascii():
                user = _owner(entry)
                counts[user] = counts.get(user, 0) + 1
                if counts[user] <= _MOST:
                    names.append(name)
    return sorted(names)


def _owner(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_uid
    except OSError:  # it has just ended
        return -1


def tidy(folder: Folder, names: Collection[str]) -> None:
    """Remove records of leases of which nothing is left."""
    inside = folder.records() if names else -1
    if inside >= 0:
        for name in names:
            _remove(name, inside)
        os.close(inside)


def _remove(name: str, inside: int | None = None) -> None:
    try:
        os.unlink(name, dir_fd=inside)
    except OSError:  # another process was faster, or somebody tidied the folder
        pass


def _parse(text: str) -> Record:
    record = Record()
    for line in text.split("\n"):
        name, _, value = line.partition(" ")
        if name == "command":
            # Another user may have written it: no control characters reach a terminal.
            record.command = _printable(value[:COMMAND])
        elif name == "device":
            record.devices.append(_printable(value))
        elif name == "whole":
            record.wholes.append(_printable(value))
        elif name == "mark":
            record.mark = value if value.isalnum() and len(value) <= _MARK_CHARACTERS else ""
        elif name == "share":
            record.share = value == "1"
        elif name == "since":
            record.since = _number(value)
        elif name in _NUMBERS:
            number = _number(value)
            setattr(record, name, None if number is None else int(number))
    return record


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e18 else None  # within 64 bits, so that JSON readers can hold it
