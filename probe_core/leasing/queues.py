"""The order of those who wait, which a dead or stopped one cannot hold up.

Everybody who waits has a file of its own, named by its queue and the time of its arrival, locked
while it lives and renewed at each look. It watches the nearest one ahead alone. Who needs several
devices at the head of a queue claims those that are free already, so that it is not passed over
for ever; the earliest claim alone counts, so that two never claim what the other one needs.
"""

from __future__ import annotations

import os
from time import time_ns

from probe_core.leasing.errors import LeaseError
from probe_core.leasing.locks import drop, renew, stale, try_take

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.leasing.folder import Folder

__all__ = ["Place", "claimed"]

_CLAIM = ".claim-"
_CLAIM_BYTES = 65536
_FIRST = b"1"
"""What the first of a queue writes into its file, for the next one to look more often."""
_FRESH_S = 0.05
"""Seconds between making a place and locking it, at most: until then nobody takes it for dead."""


class Place:
    """A place in a queue: behind those who came before and still wait.

    `near` is whether the one ahead is the first, so that this one's turn comes next.
    """

    __slots__ = ("_ahead", "_claim", "_folder", "_handle", "_name", "_queue", "_watched", "near")

    def __init__(self, folder: Folder, queue: str) -> None:
        self._folder = folder
        self._queue = f".queue-{queue}-"
        self._name = f"{self._queue}{time_ns():020d}-{os.getpid()}"
        self._handle = folder.open(self._name)
        self._claim = -1
        self._watched = -1
        self.near = False
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
            if self._watched >= 0 and self._waits(self._watched):
                return False
            self._forget(self._ahead.pop())
        if os.fstat(self._handle).st_size == 0:
            os.pwrite(self._handle, _FIRST, 0)
        return True

    def _waits(self, handle: int) -> bool:
        status = os.fstat(handle)
        changed, self.near = status.st_mtime, status.st_size > 0
        if stale(changed):
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
        os.close(self._watched)
        self._watched = -1

    def claim(self, names: Iterable[str]) -> None:
        """Claim the devices with these lock files, in place of those claimed before."""
        text = "\n".join(sorted(names)).encode("utf-8", "surrogatepass")
        try:
            if self._claim < 0:
                self._claim = self._folder.open(_CLAIM + self.arrival)
            if os.pread(self._claim, _CLAIM_BYTES, 0) != text:
                os.ftruncate(self._claim, 0)
                os.pwrite(self._claim, text, 0)
        except (LeaseError, OSError):
            return
        renew(self._claim)

    def leave(self) -> None:
        """Leave the queue. Can be called once."""
        for handle, name in ((self._claim, _CLAIM + self.arrival), (self._handle, self._name)):
            if handle >= 0:
                _remove(self._folder, name)
                os.close(handle)
        if self._watched >= 0:
            os.close(self._watched)


def claimed(folder: Folder, before: str | None = None) -> frozenset[str]:
    """Return the lock files that the earliest claim names; none if it is not before `before`."""
    for name in sorted(os.listdir(folder.fd)):
        if not name.startswith(_CLAIM):
            continue
        if before is not None and name >= _CLAIM + before:
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
