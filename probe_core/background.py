"""Work that is done once, in a thread of its own, and waited for no longer than one wants to.

A probe is such work, which all share who ask the same at the same time.

Not the pools of `concurrent.futures`: their threads would stay in the host, and its exit waits for
one that a driver keeps. Signal handlers run in the middle of whatever the caller's thread does, and
may raise or ask for the same work. So no step here waits for a lock without a limit, and who does
the work is decided by one that Python does not divide (`setdefault`).
"""

from __future__ import annotations

import os
from time import monotonic, sleep

from probe_core.fastpath import native_id, new_lock, start_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

    from probe_core.model import Report

    Probe = Callable[[int, bool], Report]
    """Takes a descriptor that becomes readable when nobody waits any more, and whether a report
    counts that was made before."""

__all__ = [
    "INTERRUPTIONS",
    "PATIENCE_S",
    "TICK_S",
    "Call",
    "OwnThread",
    "Seat",
    "await_exit",
    "notified",
    "outlast",
    "share",
    "uninterrupted",
]

TICK_S = 0.1
"""Seconds after which each of two threads looks at what the other has set.

The waiting thread: on Windows no signal interrupts the wait for a lock, and macOS may deliver a
signal to any thread, which does not wake the main one. The working thread: it notices here that it
must stop. A person does not notice a tenth of a second after Ctrl-C.
"""

PATIENCE_S = 2.0
"""Seconds that work has to end once nobody wants its answer: four times what ending children
takes."""

INTERRUPTIONS = 32
"""Exceptions of signal handlers that one call outlasts.

Twice as many as a Ctrl-C key that is held down makes, 30 a second, while children are ended.
"""

_EXIT_S, _EXIT_PAUSE_S = 0.1, 0.0001
"""Seconds to wait for the kernel's part of a thread's end at most, and between two looks at it."""

_EXIT_LOOKS = 8
"""Looks without a pause between them: they see most threads end, and the shortest pause is longer.

Measured: 0.09 ms instead of 0.2 at the median, with less of the processor's time.
"""

uninterrupted: set[int] = set()
"""Threads of ours, by the kernel's numbers, in which the host's signal handlers never run: they
need no other thread for this."""


class OwnThread:
    """Some work: in a thread, or in the caller's where none can start. A subclass has its `_work`.

    `over` is whether it has ended. `thread` is its own thread, by the kernel's number, `caller` the
    one that it had to do with instead; 0 stands for none.
    """

    def __init__(self, work: Callable[[], object] = bool) -> None:
        self._task = work
        self.over = False
        self.thread = self.caller = 0
        self._first: dict[str, object] = {}
        self._ended = new_lock()
        self._ended.acquire()

    def begin(self, in_place: bool = True) -> None:
        """Start the thread, unless somebody has.

        Where there is no room for one the caller's thread does it all; without `in_place` it is
        over then, and nothing was done.
        """
        if not self._first:  # several may start a thread: the first that begins does the work
            try:
                start_thread(self._run, False)
            except RuntimeError:  # no room, or an interpreter that is ending
                if in_place:
                    self._run(True)
                elif self._claim(self):
                    self._end()

    def wait(self, until: float = float("inf")) -> None:
        """Return when it has ended, or at a time on the monotonic clock."""
        while not self.over and (left_s := until - monotonic()) > 0:
            if self._ended.acquire(True, min(TICK_S, left_s)):
                self._ended.release()

    def join(self) -> None:
        """Return when the kernel, too, is done with a thread that is over."""
        if self.over and self.thread:
            await_exit(self.thread)

    def _claim(self, by: object) -> bool:
        """Return whether nobody else began it: who comes later does nothing. May be repeated."""
        return self._first.setdefault("by", by) is by

    def _run(self, in_place: bool) -> None:
        if not self._claim(object()):
            return
        if in_place:
            self.caller = native_id()
        else:
            self.thread = native_id()
        try:
            self._work()
        finally:
            self._end()

    def _work(self) -> None:
        self._task()

    def _end(self) -> None:
        self.over = True
        self._ended.release()


class Call(OwnThread):
    """A blocking call that can be told to give up: a subclass does it in `_do`.

    Told so, the descriptor that `_do` is given becomes readable. `gave_up` is whether there is no
    answer because nobody waited for one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gave_up = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._closed = False
        self._give_up_by = 0.0
        # The thread makes and closes the pipe: a signal handler that raises in the caller's thread,
        # at any moment, leaves no descriptor.
        self._pipe = -1, -1
        self._pipe_lock = new_lock()

    def give_up(self, by: object) -> None:
        """Have it end, and wait for that, but not for ever. May be repeated, with the same `by`."""
        if not self.over:
            self._closed = True
            if self._claim(by):  # a thread that begins later does nothing
                self.gave_up = True
                self._end()
            self._wake()
            self._give_up_by = self._give_up_by or monotonic() + PATIENCE_S
            self.wait(self._give_up_by)
        self.join()

    def result(self) -> Any:
        """Return what the call returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._result

    def _work(self) -> None:
        try:
            self._open()
            if not self._closed:
                self._result = self._do(self._pipe[0])
        except BaseException as error:
            self._error = error
            if self.caller:
                raise

    def _do(self, wake_fd: int) -> object:
        raise NotImplementedError

    def _end(self) -> None:
        super()._end()
        self._tell()
        self._close()

    def _tell(self) -> None:
        """Tell event loops that it is over."""

    def _open(self) -> None:
        """Make the pipe; without it the call ends by itself alone."""
        is_mine = self._pipe_lock.acquire(True, PATIENCE_S)  # as in `_close`
        try:
            self._pipe = os.pipe()
        except OSError:  # no descriptor is free
            pass
        finally:
            if is_mine:
                self._pipe_lock.release()

    def _wake(self) -> None:
        """Make the descriptor readable, unless a thread below a handler holds the lock."""
        if self._pipe_lock.acquire(True, TICK_S):
            try:
                if self._pipe[1] >= 0:
                    os.write(self._pipe[1], b"x")
            finally:
                self._pipe_lock.release()

    def _close(self) -> None:
        # Without the lock `_wake` would write to another file's descriptor. Not for ever: a signal
        # handler that raises as `_wake` gets the lock leaves it locked for good.
        is_mine = self._pipe_lock.acquire(True, PATIENCE_S)
        try:
            pipe, self._pipe = self._pipe, (-1, -1)
            for fd in pipe:
                if fd >= 0:
                    os.close(fd)
        finally:
            if is_mine:
                self._pipe_lock.release()


def notified(notify: Callable[[], object]) -> None:
    """Wake an event loop, unless it was closed meanwhile: nobody waits then."""
    try:
        notify()
    except RuntimeError:
        pass


def await_exit(thread_id: int) -> None:
    """Wait until the kernel, too, is done with a thread of ours that ended; Linux only.

    That is usually 20 µs after the interpreter is, and 60 ms were seen on a busy machine. A host
    may count its threads, or fork.
    """
    if thread_id == native_id():  # gevent and eventlet make no thread
        return
    exit_by = monotonic() + _EXIT_S
    looks = 0
    while os.path.exists(f"/proc/self/task/{thread_id}") and monotonic() < exit_by:
        sleep(_EXIT_PAUSE_S if looks > _EXIT_LOOKS else 0.0)
        looks += 1


def outlast(action: Callable[[], None], cleanup: Callable[[], None], times: int) -> None:
    """Call `action`, then `cleanup`, and `cleanup` again each time that it was interrupted.

    Each level handles what is raised anywhere in the levels inside it, also while those handle an
    exception. A loop has a gap between catching one exception and trying again.
    """
    try:
        if times:
            outlast(action, cleanup, times - 1)
        else:
            action()
    finally:
        cleanup()


# One probe for all who ask the same at the same time: threads, asyncio's tasks and trio's alike.
#
# A *flight* is a probe in a thread that no caller owns. A caller takes a *seat* in the flight that
# answers him, and waits. He may leave at any moment; when the last one leaves, the flight gives up.
#
# A signal handler may ask while the thread below it does, at any of its instructions. So there is
# no lock here: each step is one that Python does not divide, and whoever finds that his flight gave
# up because of others takes the next one.

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
    seat = Seat(key, refresh, probe)
    outlast(seat.wait, seat.leave, INTERRUPTIONS)
    return seat.report()


class Seat:
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
        self._seats: dict[Seat, None] = {}
        self._begun = self._fresh = False

    def admit(self, seat: Seat) -> bool:
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

    def dismiss(self, seat: Seat) -> None:
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
# must lead to few others, so this is no part of `probing`.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_all)
