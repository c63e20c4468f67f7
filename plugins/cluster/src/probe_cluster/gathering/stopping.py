"""Ctrl-C and other signals end a gather, and not the command: what came is shown."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def stopped_by_signals(stop: asyncio.Event, ended_by: list[int]) -> Iterator[None]:
    """Let the first SIGINT, SIGTERM or SIGHUP end the gather, which then shows what came.

    The second ends the command as if there were no handler.
    """
    loop = asyncio.get_running_loop()
    taken: list[int] = []

    def end(number: int) -> None:
        ended_by.append(number)
        stop.set()
        release()

    def release() -> None:
        while taken:
            loop.remove_signal_handler(taken.pop())

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        # Windows has no such loop, and threads other than the main one no signals.
        with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
            number = getattr(signal, name)
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` ignores SIGHUP
                loop.add_signal_handler(number, end, number)
                taken.append(number)
    try:
        yield
    finally:
        release()
