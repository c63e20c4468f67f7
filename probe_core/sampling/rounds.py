"""What one look at all devices brought."""

from __future__ import annotations

import os
import select
import time
from sys import is_finalizing

from probe_core.sampling.engine import Engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_core.model.document import EventDoc, FindingDoc, SampleDoc
    from probe_core.model.sample_fields import Sample


class Round:
    """One look at all devices.

    `number` counts from 1. `time` is when it began, in seconds since 1970 (UTC). `samples` has one
    `Sample` for each device that is known and asked for, in the order of the report, then the
    node's own (``node:self``); `documents` has the same as plain data. `events` tells which
    devices came, went or changed since the last round. `findings` is what a person should know now;
    the same finding is not repeated in each round.
    """

    def __init__(
        self,
        number: int,
        time: float,
        samples: Sequence[SampleDoc],
        events: Sequence[EventDoc] = (),
        findings: Sequence[FindingDoc] = (),
    ) -> None:
        self.number = number
        self.time = time
        self.documents = list(samples)
        self._samples: list[Sample] | None = None
        self.events = list(events)
        self.findings = list(findings)

    def __repr__(self) -> str:
        return f"Round({self.number}, {len(self.documents)} samples, {len(self.events)} events)"

    @property
    def samples(self) -> list[Sample]:
        """The samples, typed: ``sample.busy``, ``sample.memory.used``; ``sample["busy"]``, too."""
        if self._samples is None:
            from probe_core.model.sample_fields import Sample

            self._samples = [Sample.of(document) for document in self.documents]
        return self._samples

    def sample(self, device: str) -> Sample | None:
        """Return the sample of a device, by its id in the report; None without one."""
        return next((sample for sample in self.samples if sample.device == device), None)


# When the next round begins: on multiples of the interval, on the monotonic clock.

PIECE_S = 1.0
"""Seconds of sleep at most before Python looks for signals.

One that comes between its last look and the system call interrupts nothing: its handler would run
after the whole pause, which may be an hour.
"""


def is_readable(fd: int, seconds: float = 0.0) -> bool:
    """Return whether a pipe has something, waiting for it at most some seconds; -1 never has.

    On Windows only sockets can be waited for: there nobody wakes the caller early.
    """
    if fd < 0 or os.name == "nt":
        if seconds:
            time.sleep(seconds)
        return False
    return bool(select.select([fd], [], [], seconds)[0])


class Rhythm:
    """Waits until the next round is due. A round that takes longer than the interval skips beats.

    `clock` and `sleep` are replaced by tests that have no hour.
    """

    def __init__(
        self,
        interval: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.clock = clock
        self._interval = interval
        self._sleep = sleep
        self._due: float | None = None

    def wait(self, wake_fd: int = -1) -> None:
        """Return when the next round is due, the first at once, or when `wake_fd` is readable."""
        now = self.clock()
        if self._due is None:
            self._due = now
        pause = self._due - now
        while pause > 0:
            piece = min(pause, PIECE_S)
            pause -= piece
            if wake_fd < 0:
                self._sleep(piece)
            elif is_readable(wake_fd, piece):
                break
        late = max(0.0, self.clock() - self._due)
        beats = int(late / self._interval) + 1 if self._interval else 1
        self._due += beats * self._interval


# The iterators that hosts use: one round after another, in a rhythm, until nobody asks.


class Rounds:
    """An iterator of rounds; a context manager too. Closing it ends all processes.

    It belongs to one thread at a time. A copy of the process (fork) may not use it.
    """

    def __init__(self, make: Callable[[], Engine], rhythm: Rhythm, count: int | None) -> None:
        self._make = make
        self._rhythm = rhythm
        self._count = count
        self._number = 0
        self._engine: Engine | None = None
        self._process = os.getpid()
        self._closed = False

    def __iter__(self) -> Rounds:
        return self

    def __enter__(self) -> Rounds:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        # An interpreter that ends runs no other thread, and waiting for one would never return.
        # The processes end without: their pipes close with this process.
        if not getattr(self, "_closed", True) and not is_finalizing():
            self.close()

    def listed(self) -> Round:
        """Return what a first round will have, before anything is asked: round 0.

        It takes milliseconds, whatever a driver does: each device that the buses show is there,
        ``pending``. For whoever must show something before the first round.
        """
        if self._engine is None:
            self._engine = self._make()
        return Round(0, time.time(), self._engine.listed())

    def __next__(self) -> Round:
        following = self.advance(-1)
        if following is None:
            raise StopIteration
        return following

    def advance(self, wake_fd: int) -> Round | None:
        """Wait for the next round's time, and return the round; None when there is none.

        When `wake_fd` becomes readable it ends, as after any exception: no process is left.
        """
        if self._closed or self._number == self._count or os.getpid() != self._process:
            self.close()
            return None
        try:
            return self._observe(wake_fd)
        except BaseException:
            self.close()
            raise

    def _observe(self, wake_fd: int) -> Round | None:
        def is_cancelled() -> bool:
            return is_readable(wake_fd)

        if self._engine is None:
            self._engine = self._make()
        self._rhythm.wait(wake_fd)
        engine = self._engine
        # Another thread may have closed it during the wait, as hosts do when they end.
        if engine is None or is_cancelled():
            self.close()
            return None
        self._number += 1
        now = time.time()
        samples, events, findings = engine.observe(self._number, is_cancelled, wake_fd)
        if is_cancelled():
            self.close()
            return None
        return Round(self._number, now, samples, events, findings)

    def close(self) -> None:
        """End all processes; a second call does nothing. Takes a second at most."""
        engine = getattr(self, "_engine", None)
        if engine is not None and os.getpid() == self._process:
            engine.close()
            self._engine = None
        self._closed = True


class AsyncRounds:
    """The same for an event loop: asyncio, or trio."""

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds

    def __aiter__(self) -> AsyncRounds:
        return self

    async def __aenter__(self) -> AsyncRounds:
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._rounds.close()

    async def __anext__(self) -> Round:
        from probe_core.awaiting import in_thread

        try:
            following = await in_thread(self._rounds.advance)
        except BaseException:
            self._rounds.close()
            raise
        if following is None:
            raise StopAsyncIteration
        return following

    async def aclose(self) -> None:
        """End all processes; a second call does nothing."""
        self._rounds.close()
