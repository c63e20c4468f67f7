"""The order of those who wait, which a dead or stopped one cannot hold up.

Everybody who waits holds a byte of its queue's slot, the next behind all that are held, and lets a
second one beat: locked and unlocked in turn. A dead waiter's byte is free, a stopped one's beats no
more. Who needs several devices at the head of a queue claims those that are free already, so that
it is not passed over for ever; one claims at a time, so that two never claim what the other needs.
"""

from __future__ import annotations

from time import monotonic

from probe_core.leasing.ranges import (
    CLAIMED,
    QUEUES,
    SLOT,
    Pulse,
    locked,
    obstacle,
    slot,
    try_lock,
    unlock,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["PAUSE_S", "Claims", "Place"]

PAUSE_S = 0.02
"""Seconds between two looks of who is not first (a judgement)."""
STALE_S = 1.0
"""Seconds without a beat after which a waiter counts as stopped. On a busy machine one may be late
by a few turns, and then loses its place, nothing else."""
CLAIM_STALE_S = 0.25
"""The same for a claim, which keeps those from a device who do not wait at all."""
_BEAT_S = 0.05
"""Seconds between two beats: more than `PAUSE_S`, so that no look misses one."""
_MOST_AHEAD = 1024
"""Places ahead that are watched, the nearest: beyond, somebody holds them who is no waiter."""
_CLAIM = "the claim"
"""Names the slot whose first byte is locked by who may claim."""


class Beat:
    """A byte that its owner locks and unlocks in turn."""

    __slots__ = ("_byte", "_due", "_handle", "_is_locked")

    def __init__(self, handle: int, byte: int) -> None:
        self._handle = handle
        self._byte = byte
        self._is_locked = False
        self._due = 0.0

    def renew(self) -> None:
        """Show that the owner lives, if it is time to."""
        now = monotonic()
        if now < self._due:
            return
        self._due = now + _BEAT_S
        if self._is_locked:
            unlock(self._handle, self._byte, 1)
        else:
            try_lock(self._handle, self._byte, 1)
        self._is_locked = not self._is_locked


class Place:
    """A place in a queue: behind those who came before and still wait.

    It is left when its open file of locks is unlocked or closed.
    """

    __slots__ = ("_ahead", "_beat", "_handle", "_pulses", "_start")

    def __init__(self, handle: int, queue: str) -> None:
        self._handle = handle
        self._start = QUEUES + slot(queue)
        self._ahead = self._waiting()
        number = self._ahead[-1] + 1 if self._ahead else 0
        while 2 * number + 1 < SLOT and not try_lock(handle, self._start + 2 * number, 1):
            self._ahead.append(number)
            number += 1
        # Where somebody has locked the slot to its end nobody has a place, and all go on.
        has_place = 2 * number + 1 < SLOT
        self._beat = Beat(handle, self._start + 2 * number + 1) if has_place else None
        self._pulses: dict[int, Pulse] = {}

    def _waiting(self) -> list[int]:
        """Return the places that are held, in order: the last ones, where there are many."""
        held: list[int] = []
        for begin, end in reversed(list(locked(self._handle, self._start, SLOT))):
            places = range((begin - self._start + 1) // 2, (end - self._start + 1) // 2)
            held = [*places[-_MOST_AHEAD:], *held]
        return held[-_MOST_AHEAD:]

    def first(self) -> bool:
        """Renew the place; return whether nobody is ahead who lives and is not stopped.

        The nearest is watched alone, for it is all that most have to wait for; with the first that
        does not beat all others are, so that many who are stopped cost no more than two.
        """
        if self._beat is not None:
            self._beat.renew()
        while self._ahead:
            if len(self._pulses) > 1:
                waits = [number for number in self._ahead if self._waits(number)]
                self._ahead = waits
                return not waits
            nearest = self._ahead[-1]
            if self._waits(nearest):
                return False
            is_stopped = self._is_held(self._ahead.pop())
            watched = self._ahead if is_stopped else self._ahead[-1:]
            self._pulses = {number: self._pulse_of(number) for number in watched}
        return True

    def _waits(self, number: int) -> bool:
        if number not in self._pulses:
            self._pulses[number] = self._pulse_of(number)
        return self._is_held(number) and self._pulses[number].beats(STALE_S)

    def _pulse_of(self, number: int) -> Pulse:
        return Pulse(self._handle, self._start + 2 * number + 1)

    def _is_held(self, number: int) -> bool:
        return obstacle(self._handle, self._start + 2 * number, 1) is not None


class Claims:
    """What those who wait for several devices claim, as one open file of locks sees it."""

    __slots__ = ("_beat", "_claimed", "_handle", "_pulse", "_start")

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._start = QUEUES + slot(_CLAIM)
        self._claimed: frozenset[str] = frozenset()
        self._pulse: Pulse | None = None
        self._beat: Beat | None = None

    def hold(self, name: str) -> bool:
        """Return whether another one, that is not stopped, claims the device of a name."""
        if obstacle(self._handle, slot(name) + CLAIMED, 1) is None:
            return False
        if self._pulse is None:
            self._pulse = Pulse(self._handle, self._start + 1)
        return self._pulse.beats(CLAIM_STALE_S)

    def make(self, names: Collection[str]) -> None:
        """Claim the devices of these names, in place of those claimed before; or nothing."""
        if self._beat is None:
            if not try_lock(self._handle, self._start, 1):
                return
            self._beat = Beat(self._handle, self._start + 1)
        self._beat.renew()
        wanted = frozenset(names)
        for name in self._claimed - wanted:
            unlock(self._handle, slot(name) + CLAIMED, 1)
        for name in wanted - self._claimed:
            try_lock(self._handle, slot(name) + CLAIMED, 1)
        self._claimed = wanted
