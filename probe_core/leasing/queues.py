"""The order of those who wait, which nobody can hold up: dead, stopped or of bad will.

Everybody who waits holds a byte of its queue's slot, the first behind all that are held. A dead
waiter's byte is free. Who has seen for a second, by its own clock, that what it waits for could be
taken, passes those ahead: they are stopped, or hold their bytes for another reason. Who needs
several devices at the head of a queue shows that it waits (`Beat`), and claims those that are free
already, so that it is not passed over for ever, not by those either who do not wait. One claims at
a time, so that two never claim what the other needs.
"""

from __future__ import annotations

from time import monotonic

from probe_core.leasing.ranges import (
    CLAIMED,
    QUEUES,
    SLOT,
    gaps,
    obstacle,
    slot,
    try_lock,
    unlock,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

STALE_S = 1.0
"""Seconds for which a device is left to those ahead: a waiter that lives takes it within a few
milliseconds. On a busy machine one may be later, and then loses its turn, nothing else."""
CLAIM_STALE_S = 0.25
"""Seconds without a beat after which who claims counts as stopped: a claim keeps those from a
device who do not wait at all."""
_LOOK_S, _BEAT_S = 0.1, 0.05
"""Seconds between two looks at what is left to others, and between two beats."""
_CLAIM = "the claim"
"""Names the slot whose first byte is locked by who may claim, and whose second one beats."""


class Beat:
    """A byte that its owner locks and unlocks in turn, as long as it is not stopped."""

    def __init__(self, handle: int, byte: int) -> None:
        self._handle = handle
        self._byte = byte
        self._is_locked = False
        self._due = 0.0
        self._seen = False

    def renew(self) -> None:
        """Show that the owner lives, if it is time to."""
        if (now := monotonic()) < self._due:
            return
        self._due = now + _BEAT_S
        if self._is_locked:
            unlock(self._handle, self._byte, 1)
        else:
            try_lock(self._handle, self._byte, 1)
        self._is_locked = not self._is_locked

    def has_changed(self) -> bool:
        """Return whether somebody else has locked or unlocked it since the last look."""
        before = self._seen
        self._seen = obstacle(self._handle, self._byte, 1) is not None
        return self._seen != before


class Place:
    """A place in a queue: behind those who came before and still wait.

    It is left when its open file of locks is unlocked or closed. `beat` is the queue's: who needs
    several devices at the head of it renews that, and is not passed meanwhile.
    """

    def __init__(self, handle: int, queue: str) -> None:
        self._handle = handle
        self._start = QUEUES + slot(queue)
        self._due = 0.0
        self._since: float | None = None
        end = self._start + SLOT - 1
        self.beat = Beat(handle, end)
        free = [(end, end), *gaps(handle, self._start, end - self._start)][-1]
        # Where somebody has locked the slot to its end nobody has a place, and all go on.
        byte = free[0] if free[1] == end else end
        while byte < end and not try_lock(handle, byte, 1):
            byte += 1
        self._length = byte - self._start

    def is_due(self, can_take: Callable[[], bool]) -> bool:
        """Return whether nobody is ahead, or those ahead leave what this one `can_take`."""
        if not self._length or obstacle(self._handle, self._start, self._length) is None:
            return True
        now = monotonic()
        if self.beat.has_changed():
            self._since = None
        elif now >= self._due:
            self._due = now + _LOOK_S
            if not can_take():
                self._since = None
            elif self._since is None:
                self._since = now
        return self._since is not None and now - self._since >= STALE_S


class Claims:
    """What those who wait for several devices claim, as one open file of locks sees it.

    Who claims locks and unlocks a byte in turn. Whether it does is judged by the clock of who
    looks, from its own first look on: a time that somebody else writes could be any.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._start = QUEUES + slot(_CLAIM)
        self._claimed: frozenset[str] | None = None
        self._looked = self._since = 0.0
        self._beat = Beat(handle, self._start + 1)

    def hold(self, name: str) -> bool:
        """Return whether another one, that is not stopped, claims the device of a name."""
        if obstacle(self._handle, slot(name) + CLAIMED, 1) is None:
            return False
        now = monotonic()
        if self._beat.has_changed() or now - self._looked > CLAIM_STALE_S:
            self._since = now
        self._looked = now
        return now - self._since <= CLAIM_STALE_S

    def make(self, names: Collection[str]) -> None:
        """Claim the devices of these names, in place of those claimed before; or nothing."""
        if self._claimed is None:
            if not try_lock(self._handle, self._start, 1):
                return
            self._claimed = frozenset()
        self._beat.renew()
        wanted = frozenset(names)
        for name in self._claimed - wanted:
            unlock(self._handle, slot(name) + CLAIMED, 1)
        for name in wanted - self._claimed:
            try_lock(self._handle, slot(name) + CLAIMED, 1)
        self._claimed = wanted
