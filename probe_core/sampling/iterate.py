"""The iterators that hosts use: one round after another, in a rhythm, until nobody asks."""

from __future__ import annotations

import os
import time
from sys import is_finalizing

from probe_core.sampling.engine import Engine
from probe_core.sampling.rhythm import Rhythm, is_readable
from probe_core.sampling.round import Round

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["AsyncRounds", "Rounds"]


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # An interpreter that ends runs no other thread, and waiting for one would never return.
        # The processes end without: their pipes close with this process.
        if not getattr(self, "_closed", True) and not is_finalizing():
            self.close()

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

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
