"""One probe for all who ask the same at the same time: threads, asyncio's tasks and trio's alike.

A *flight* is a probe in a thread that no caller owns. A caller takes a *seat* in the flight that
answers him, and waits. He may leave at any moment; when the last one leaves, the flight gives up.

A signal handler may ask while the thread below it does, at any of its instructions. So there is no
lock here: each step is one that Python does not divide (`setdefault`, `pop`), and whoever finds
that his flight gave up because of others takes the next one.
"""

from __future__ import annotations

import os
from time import monotonic

from probe_core.background import (
    INTERRUPTIONS,
    TICK_S,
    Call,
    notified,
    outlast,
    uninterrupted,
)
from probe_core.fastpath import native_id, new_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from probe_core.model import Report

    Probe = Callable[[int, bool], Report]
    """Takes a descriptor that becomes readable when nobody waits any more, and whether a report
    counts that was made before."""

__all__ = ["share", "share_awaited"]

NEXT_S = 0.5
"""Seconds after which a flight begins at the latest, although the one before it has not ended.

Those who ask for a fresh report meanwhile share it. So they wait for little more than their own
probe also where a driver hangs, and where none does a probe has ended by then.
"""

_flights: dict[Hashable, Flight] = {}
"""A flight by what was asked: the newest, or one from which `Flight.next` leads there."""

_running: dict[Flight, None] = {}
"""The flights that have a thread."""


def share(key: Hashable, refresh: bool, probe: Probe) -> Report:
    """Return the report of a probe that all callers with this key share.

    With `refresh` it begins after the call. Raises what the probe raised, and whatever a signal
    handler raises here: the last to leave does so when the children have ended.
    """
    seat = _Seat(key, refresh, probe)
    outlast(seat.wait, seat.leave, INTERRUPTIONS)
    return seat.report()


async def share_awaited(key: Hashable, refresh: bool, probe: Probe) -> Report:
    """Return what `share` returns, awaited in a task that may be cancelled."""
    from probe_core.awaiting import loop_event  # it imports threading, which `share` does not need

    seat = _Seat(key, refresh, probe)
    try:
        while seat.takes_another():
            done, seat.notify = loop_event()
            if not seat.board().over:
                await done.wait()
    finally:
        seat.leave()
    return seat.report()


class _Seat:
    """One caller, and the flight that he is in.

    Every method may be interrupted, and called again.
    """

    def __init__(self, key: Hashable, refresh: bool, probe: Probe) -> None:
        self.refresh = refresh
        self.notify: Callable[[], object] = bool
        self._key = key
        self._probe = probe
        self._flight: Flight | None = None
        self._has_left = False

    def wait(self) -> None:
        """Return when the flight that answers has ended."""
        while self.takes_another():
            self.board().wait()

    def takes_another(self) -> bool:
        """Return whether there is no flight yet, or it gave up although this seat was taken."""
        return self._flight is None or self._flight.gave_up

    def board(self) -> Flight:
        """Take a seat in the flight that answers, and have it begin; return it."""
        flight = _flights.setdefault(self._key, Flight(self._key, self._probe))
        self._flight = flight
        while not flight.admit(self):
            flight = self._flight = flight.next(self._probe)
            _flights[self._key] = flight
        flight.begin()
        return flight

    def leave(self) -> None:
        """Leave; the last one returns when the children have ended, the others at once."""
        if self._flight is not None and not self._has_left:
            self._flight.dismiss(self)
            self._has_left = True

    def report(self) -> Report:
        """Return what the flight brought, or raise what it met."""
        assert self._flight is not None
        report: Report = self._flight.result()
        return report


class Flight(Call):
    """One probe, and the seats that are taken in it.

    `gave_up` is whether it ended without an answer, because nobody seemed to wait, or because this
    process is a copy of the one in which it ran.
    """

    def __init__(self, key: Hashable, probe: Probe, before: Flight | None = None) -> None:
        super().__init__()
        self._key = key
        self._probe = probe
        self._before = before
        self._next: dict[str, Flight] = {}
        self._seats: dict[_Seat, None] = {}
        self._begun = self._fresh = False

    def admit(self, seat: _Seat) -> bool:
        """Give a caller a seat, unless this flight cannot answer him any more.

        It notes first what others look at last, and looks last at what they note first.
        """
        self._fresh = self._fresh or seat.refresh
        self._seats[seat] = None
        is_late = self.over or self._closed or (seat.refresh and self._begun)
        if is_late or self._is_below():
            self._seats.pop(seat, None)
            return False
        return True

    def _is_below(self) -> bool:
        """Return whether this thread does the probe, in which a handler or a finalizer asks."""
        own = native_id()
        return own == self.caller or (own == self.thread and own in uninterrupted)

    def next(self, probe: Probe) -> Flight:
        """Return the flight that begins when this one has ended, or soon: one for all who ask."""
        return self._next.setdefault("next", Flight(self._key, probe, self))

    def dismiss(self, seat: _Seat) -> None:
        """Take a seat back; where it was the last, end the children and wait for that."""
        self._seats.pop(seat, None)
        if self._seats:
            self.join()
        else:
            self.give_up(seat)

    def drop(self) -> None:
        """End it in a copy of the process, in which its thread is missing."""
        self.gave_up = self.over = True
        self.thread, self._pipe_lock = 0, new_lock()
        self._close()

    def _work(self) -> None:
        _running[self] = None
        if self.thread != os.getpid():  # the number of the main thread, which gevent has do it all
            uninterrupted.add(self.thread)
        try:
            self._await_turn()
            self._begun = True
            super()._work()
        finally:
            if self._result is None and (self._closed or not isinstance(self._error, Exception)):
                self.gave_up, self._error = True, None
            uninterrupted.discard(self.thread)

    def _do(self, wake_fd: int) -> object:
        return self._probe(wake_fd, self._fresh)

    def _await_turn(self) -> None:
        before, until = self._before, monotonic() + NEXT_S
        self._before = None
        while before is not None and not before.over and not self._closed:
            now = monotonic()
            if now >= until:
                return
            before.wait(min(until, now + TICK_S))

    def _end(self) -> None:
        _running.pop(self, None)
        if _flights.get(self._key) is self:
            _flights.pop(self._key, None)
        super()._end()

    def _tell(self) -> None:
        for seat in list(self._seats):
            notified(seat.notify)


def _drop_all() -> None:
    """Begin without flights in a copy of the process, and without their descriptors."""
    for flight in [*_running, *_flights.values()]:
        flight.drop()
    _running.clear()
    _flights.clear()
    uninterrupted.clear()


# The interpreter keeps the function, and with it this module's names, until its very end: those
# that go with them must be few, so this is no part of `probing`.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_all)
