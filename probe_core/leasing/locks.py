"""Kernel locks: they end with the last process that holds the file open, so none can be stale.

flock(2) locks belong to the open file, not to the process: they survive ``execve`` and are kept
by children that inherit the file. So a lease lasts as long as anything the command started, and
left its files open to, could still be using the device.
"""

from __future__ import annotations

import errno
import fcntl
from time import monotonic, sleep

__all__ = ["POLL_S", "take", "try_take"]

POLL_S = 0.005
"""Seconds between two looks, where the kernel cannot be asked to wait for several locks at once:
nobody notices 5 ms before a model loads (a judgement)."""

_QUEUE_POLLS = 4
"""Looks of the queue's head for one of those behind it, whose turn comes later anyway."""


def try_take(handle: int, *, share: bool = False) -> bool:
    """Take the lock if nobody is in the way; return whether it was taken."""
    mode = fcntl.LOCK_SH if share else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, mode | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
            return False
        raise
    return True


def take(handle: int, *, deadline: float | None) -> bool:
    """Take the lock exclusively, waiting in the kernel's queue; return whether it was taken.

    With a `deadline` (of `time.monotonic`) the lock is looked at again and again instead: a
    process cannot leave the kernel's queue at a time of its choice without signals, which are
    the caller's.
    """
    if deadline is None:
        fcntl.flock(handle, fcntl.LOCK_EX)
        return True
    while not try_take(handle):
        remaining = deadline - monotonic()
        if remaining <= 0:
            return False
        sleep(min(_QUEUE_POLLS * POLL_S, remaining))
    return True


def drop(handle: int) -> None:
    """Give the lock back, also when a child inherited the file."""
    fcntl.flock(handle, fcntl.LOCK_UN)
