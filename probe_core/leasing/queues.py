"""The order of those who wait, which a dead or stopped one cannot hold up.

Everybody who waits has a file of its own, named by its queue and the time of its arrival, locked
while it lives and renewed at each look. It watches the nearest one ahead alone. Who needs several
devices at the head of a queue claims those that are free already, so that it is not passed over
for ever; the earliest claim alone counts, so that two never claim what the other one needs.
"""

from __future__ import annotations

import os
from time import sleep, time_ns

from probe_core.fastpath import call_c
from probe_core.leasing import LeaseError
from probe_core.leasing.locks import CLAIM, drop, renew, stale, try_take

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.leasing.folder import Folder

__all__ = ["Place", "claimed"]

_CLAIM_BYTES = 65536
_RENEW_S = 0.1
"""Seconds between two renewals of a place, see `locks.STALE_S`."""
_POLL_S = 0.02
"""Seconds between two looks where the kernel does not tell that the one ahead has gone."""
_EVENTS = 4096
"""Bytes of events that are read: many more than one file can have (inotify(7))."""
_IN_CLOSE_WRITE, _IN_NONBLOCK_CLOEXEC = 0x8, 0o2004000  # sys/inotify.h
_FRESH_S = 0.05
"""Seconds between making a place and locking it, at most: until then nobody takes it for dead."""


class Place:
    """A place in a queue: behind those who came before and still wait."""

    __slots__ = (
        "_ahead",
        "_bell",
        "_claim",
        "_folder",
        "_handle",
        "_name",
        "_queue",
        "_watched",
    )

    def __init__(self, folder: Folder, queue: str) -> None:
        self._folder = folder
        self._queue = f".queue-{queue}-"
        self._name = f"{self._queue}{time_ns():020d}-{os.getpid()}"
        self._handle = folder.open(self._name)
        self._claim = -1
        self._watched = -1
        self._bell = -1
        try_take(self._handle)
        names = sorted(os.listdir(folder.fd))
        self._ahead = [n for n in names if n.startswith(self._queue) and n < self._name]

    @property
    def arrival(self) -> str:
        """What orders places of all queues."""
        return self._name.removeprefix(self._queue)

    def first(self) -> bool:
        """Renew the place; return whether nobody is ahead who lives and is not stopped."""
        renew(self._handle)
        try_take(self._handle)
        while self._ahead:
            if self._watched < 0:
                self._watched = _opened(self._folder, self._ahead[-1])
                self._bell = _bell(self._watched)
            if self._watched >= 0 and self._waits(self._watched):
                return False
            self._forget(self._ahead.pop())
        return True

    def pause(self, remaining: float | None) -> None:
        """Sleep until the one ahead may have gone, at most `remaining` seconds."""
        if self._bell < 0:
            sleep(_POLL_S if remaining is None else min(_POLL_S, remaining))
            return
        import select

        poller = select.poll()
        poller.register(self._bell, select.POLLIN)
        if poller.poll(1000 * (_RENEW_S if remaining is None else min(_RENEW_S, remaining))):
            os.read(self._bell, _EVENTS)

    def _waits(self, handle: int) -> bool:
        status = os.fstat(handle)
        changed = status.st_mtime
        if status.st_nlink == 0 or stale(changed):  # it left the queue, or is stopped
            return False
        if try_take(handle):
            drop(handle)  # just made, and not yet locked by its own process
            return not stale(changed, _FRESH_S)
        return True

    def _forget(self, name: str) -> None:
        if self._watched < 0:
            return
        # A file that could be locked is of a dead waiter, and nobody else's to keep.
        if try_take(self._watched):
            _remove(self._folder, name)
        self._unwatch()

    def _unwatch(self) -> None:
        for handle in (self._watched, self._bell):
            if handle >= 0:
                os.close(handle)
        self._watched = self._bell = -1

    def claim(self, names: Iterable[str]) -> None:
        """Claim the devices with these lock files, in place of those claimed before."""
        text = "\n".join(sorted(names)).encode("utf-8", "surrogatepass")
        try:
            if self._claim < 0:
                self._claim = self._folder.open(CLAIM + self.arrival)
            if os.pread(self._claim, _CLAIM_BYTES, 0) != text:
                os.ftruncate(self._claim, 0)
                os.pwrite(self._claim, text, 0)
        except (LeaseError, OSError):
            return
        renew(self._claim)

    def leave(self) -> None:
        """Leave the queue. Can be called once."""
        for handle, name in ((self._claim, CLAIM + self.arrival), (self._handle, self._name)):
            if handle >= 0:
                _remove(self._folder, name)
                os.close(handle)
        self._unwatch()


def _bell(handle: int) -> int:
    """Return a file that becomes readable when a process closes the watched one, also by its end.

    -1 where the kernel has none: beyond fs.inotify.max_user_instances, or on another system.
    """
    bell = call_c("inotify_init1", _IN_NONBLOCK_CLOEXEC) if handle >= 0 else -1
    if bell < 0:
        return -1
    path = f"/proc/self/fd/{handle}".encode()
    if call_c("inotify_add_watch", bell, path, _IN_CLOSE_WRITE) < 0:
        os.close(bell)
        return -1
    return bell


def claimed(folder: Folder, before: str | None = None) -> frozenset[str]:
    """Return the lock files that the earliest claim names; none if it is not before `before`."""
    for name in sorted(os.listdir(folder.fd)):
        if not name.startswith(CLAIM):
            continue
        if before is not None and name >= CLAIM + before:
            break
        try:
            status = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
        except OSError:  # just left
            continue
        if stale(status.st_mtime):
            _remove(folder, name)
            continue
        handle = _opened(folder, name)
        if handle >= 0:
            try:
                text = os.pread(handle, _CLAIM_BYTES, 0)
            finally:
                os.close(handle)
            return frozenset(text.decode("utf-8", "replace").splitlines())
    return frozenset()


def _opened(folder: Folder, name: str) -> int:
    """Return the open file of that name; -1 where there is none, or no plain one."""
    try:
        return folder.open(name, create=False)
    except LeaseError:
        return -1


def _remove(folder: Folder, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder.fd)
    except OSError:  # another user's in a shared folder, or gone
        pass
