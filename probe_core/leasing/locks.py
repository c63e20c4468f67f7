"""Kernel locks: they end with the last process that holds the file open, so none can be stale.

flock(2) locks belong to the open file, not to the process: they survive ``execve`` and are kept
by children that inherit the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
from time import monotonic, sleep, time

from probe_core.leasing import VARIABLE, LeaseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.leasing.folder import Folder

__all__ = [
    "CLAIM",
    "POLL_S",
    "STALE_S",
    "Door",
    "drop",
    "is_held",
    "renew",
    "stale",
    "take",
    "try_take",
]

POLL_S = 0.005
"""Seconds between two looks, since the kernel cannot be asked to wait for several locks at once:
nobody notices 5 ms before a model loads (a judgement)."""

STALE_S = 1.0
"""Seconds after which a waiter that did not renew its place counts as stopped. It renews it every
20 ms: on a busy machine it may be late by a few turns, and then loses its place, nothing else."""

CLAIM = ".claim-"
"""What the names of claims begin with, see `queues`."""

_DOOR_POLL_S = 0.001
_DOOR_STALE_S = 0.25
"""Seconds for which nobody can have the door who is not stopped: it is held for a millisecond."""

_BUSY = (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""What flock(2) gives where the file system cannot lock: NFS without lockd, some FUSE and 9p."""


def try_take(handle: int, *, share: bool = False) -> bool:
    """Take the lock if nobody is in the way; return whether it was taken.

    Raises `LeaseError` on a file system without locks.
    """
    mode = fcntl.LOCK_SH if share else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, mode | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        if error.errno in _NO_LOCKS:
            raise _without_locks(handle, error) from None
        raise
    return True


def _without_locks(handle: int, error: OSError) -> LeaseError:
    try:
        path: str | None = os.path.dirname(os.readlink(f"/proc/self/fd/{handle}"))
    except OSError:
        path = None
    return LeaseError(
        f"the lease folder {path or ''} is on a file system without locks ({error.strerror}); "
        f"name a local folder in {VARIABLE}, for instance one in /run/lock or /tmp",
        path=path,
    )


def is_held(handle: int) -> bool | None:
    """Return whether any process that can be seen from here holds a lock on the file; takes none.

    None where the kernel does not say (macOS). Linux leaves locks of processes in other PID
    namespaces out of the list: False is no proof there. The file is known by its inode alone: the
    list has the device of the file system, which is not what stat(2) gives on overlayfs and btrfs.
    """
    try:
        with open("/proc/locks", "rb", buffering=0) as file:
            lines = (file.readall() or b"").splitlines()
    except OSError:
        return None
    inode = b":%d" % os.fstat(handle).st_ino
    fields = (line.split() for line in lines if b" FLOCK " in line)
    # "1: FLOCK  ADVISORY  WRITE 708 fd:00:393229 0 EOF"; a waiting one has "->" behind the number.
    return any(len(f) > 5 and f[1] == b"FLOCK" and f[5].endswith(inode) for f in fields)


def take(handle: int, *, deadline: float) -> bool:
    """Take the lock exclusively before the deadline (of `time.monotonic`); return whether it was.

    Not in the kernel's queue, which a process cannot leave at a time of its choice without
    signals, and those are the caller's.
    """
    while not try_take(handle):
        remaining = deadline - monotonic()
        if remaining <= 0:
            return False
        sleep(min(POLL_S, remaining))
    return True


def drop(handle: int) -> None:
    """Give the lock back, also when a child inherited the file."""
    fcntl.flock(handle, fcntl.LOCK_UN)


def renew(handle: int) -> None:
    """Set the file's time to now: its owner is not stopped."""
    try:
        os.utime(handle)
    except OSError:  # another user's file that may not be written
        pass


def stale(changed: float, limit: float = STALE_S) -> bool:
    """Return whether a file changed at that time was not renewed since; clocks that jump count."""
    return abs(time() - changed) > limit


class Door:
    """A short lock around looks at several locks, so that two requests do not keep each other out.

    It is a courtesy: what keeps two holders apart are the devices' own locks. So a process that is
    stopped with the door in its hand, or holds it out of malice, costs others a quarter of a
    second once, and a door that cannot be opened costs nothing. `passed` is whether the last look
    went on without the door.
    """

    __slots__ = ("_handle", "passed")

    NAME = ".door"

    def __init__(self, folder: Folder) -> None:
        self.passed = False
        try:
            self._handle = folder.open(self.NAME)
        except LeaseError:  # a pipe or a link in its place: whoever made it gains nothing
            self._handle = -1

    def take(self, deadline: float | None = None) -> bool:
        """Take the door; False where its holder is stopped, or at the deadline."""
        if self._handle < 0:
            return False
        since = monotonic()
        while not try_take(self._handle):
            now = monotonic()
            late = now - since > _DOOR_STALE_S and self._stuck()
            if self.passed or late or (deadline is not None and now >= deadline):
                self.passed = self.passed or late
                return False
            sleep(_DOOR_POLL_S)
        self.passed = False
        renew(self._handle)
        return True

    def _stuck(self) -> bool:
        return stale(os.fstat(self._handle).st_mtime, _DOOR_STALE_S)

    def drop(self) -> None:
        """Give the door back, if it was taken."""
        if self._handle >= 0:
            drop(self._handle)

    def close(self) -> None:
        """Close the door for good. Can be called twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
