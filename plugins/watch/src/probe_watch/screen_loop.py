"""The loop of `probe watch` with a screen: samples, keys, resizes and signals, one at a time.

The samples are awaited in an event loop, so that a key or a signal never strikes in the middle of
the code that starts and ends processes: it is a callback, and the end is a cancellation.
"""

from __future__ import annotations

import asyncio
import os
import signal

from probe_watch.signals import ENDINGS, Ended, Signals, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from probe_core.sampling import AsyncRounds
    from probe_watch.intake import Intake
    from probe_watch.picture import Picture

__all__ = ["ScreenLoop"]


class ScreenLoop:
    """One run: `samples` begins the rounds."""

    def __init__(
        self, samples: Callable[[], AsyncRounds], intake: Intake, picture: Picture
    ) -> None:
        self._samples = samples
        self._intake = intake
        self._picture = picture
        self._status = 0
        self._signal = 0
        self._error: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self) -> int:
        """Run until the last round, a key or a signal; returns the exit status.

        Raises `KeyboardInterrupt` for Ctrl-C, when all that was started has ended and the terminal
        is as it was.
        """
        reactions = {
            **dict.fromkeys((*ENDINGS, "SIGQUIT"), self._on_end),
            "SIGWINCH": self._on_change,
            "SIGCONT": self._on_change,
            "SIGTSTP": self._on_stop,
        }
        try:
            with Signals(reactions), self._intake:
                asyncio.run(self._main())
        except Ended:
            pass
        finally:
            self._picture.close()
        if self._error is not None:
            raise self._error
        return status_of(self._signal) if self._signal else self._status

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._on_error)
        self._task = asyncio.current_task()
        if self._signal:  # it came before there was a task to cancel
            return
        rounds: AsyncRounds | None = None
        try:
            self._picture.start(self._loop, self._end)
            rounds = self._samples()
            async for current in rounds:
                self._picture.take(self._intake.take(current))
        except asyncio.CancelledError:
            pass
        finally:
            self._picture.close()  # before what may take a second: ending the processes
            if rounds is not None:
                await rounds.aclose()

    def _end(self, status: int) -> None:
        """End the run: from a key, a hangup, or a signal by way of the loop."""
        self._status = status
        if self._task is not None:
            self._task.cancel()

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the run with a mistake in a callback, which asyncio would print on the screen."""
        self._error = context.get("exception") or RuntimeError(str(context.get("message")))
        self._end(1)

    def _on_end(self, number: int) -> None:
        if self._signal:
            return
        self._signal = number
        # Where a terminal has no name to open, a write to it may wait for ever.
        if self._picture.writing:
            raise Ended(number)
        self._call(self._end, 0)

    def _on_change(self, number: int) -> None:
        self._call(self._picture.redraw)

    def _on_stop(self, number: int) -> None:
        self._call(self._stop)

    def _call(self, function: Callable[..., None], *arguments: int) -> None:
        """Call a function in the loop, from a signal handler; nothing where it has ended."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    def _stop(self) -> None:
        """Stop as Ctrl-Z wants it: with the terminal as it was, until the shell goes on."""
        self._picture.suspend()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)
        self._picture.redraw()
