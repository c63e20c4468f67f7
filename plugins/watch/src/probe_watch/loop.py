"""The loop of `probe watch`: rounds come in, everything else reacts to them.

The samples are awaited in an event loop, so that a signal or a key never strikes in the middle of
the code that starts and ends processes: it is a callback, and the end is a cancellation.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from time import monotonic

from probe_watch.outputs import Happening
from probe_watch.picture import Picture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from probe_core.sampling import AsyncRounds, Round
    from probe_watch.alert_commands import AlertCommands
    from probe_watch.alerts import Alerts
    from probe_watch.outputs import Lines

__all__ = ["Watch"]

_ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP")

COMMANDS_S = 0.1
"""Seconds between two looks at the commands of `--on-alert` that run."""


class _Ended(KeyboardInterrupt):
    """A signal in the middle of a write that waits for its reader: nothing else ends that.

    Of this type because asyncio lets no other exception out of a callback.
    """


class Watch:
    """One run: `samples` begins the rounds, `output` makes the screen or the lines for them."""

    def __init__(
        self,
        samples: Callable[[], AsyncRounds],
        alerts: Alerts,
        output: Callable[[], Lines | Picture],
        *,
        commands: AlertCommands | None = None,
    ) -> None:
        self._samples = samples
        self._alerts = alerts
        self._make_output = output
        self._commands = commands
        self._publish: Callable[[Happening], None] | None = None
        self._status = 0
        self._notes: list[str] = []
        self._polling = False
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, publish: Callable[[Happening], None] | None = None) -> int:
        """Run until the last round, a key or a signal; returns the exit status.

        `publish` gets each round, for the endpoint.
        Raises `KeyboardInterrupt` for Ctrl-C and `OSError` for an output that is gone, when all
        that was started has ended.
        """
        self._publish = publish
        self._output = self._make_output()
        handlers: dict[int, Any] = {}
        try:
            self._install(handlers)
            if self._alerts.peer is not None:
                self._alerts.peer.start()
            asyncio.run(self._main())
        except _Ended:
            pass
        finally:
            try:
                if self._alerts.peer is not None:
                    self._alerts.peer.close()
                self._output.close()
                if self._commands is not None:
                    self._commands.close()
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        if self._status == 128 + signal.SIGINT:
            raise KeyboardInterrupt
        return self._status

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        if self._status:  # a signal came before there was a task to cancel
            return
        rounds: AsyncRounds | None = None
        try:
            self._output.start(self._loop, self._end)
            rounds = self._samples()
            async for current in rounds:
                self._take(current)
        except asyncio.CancelledError:
            pass
        finally:
            if rounds is not None:
                await rounds.aclose()

    def _take(self, current: Round) -> None:
        edges = self._alerts.update(monotonic(), current.time, current.samples)
        notes = [*self._notes, *(finding["what"] for finding in current.findings)]
        self._notes = []
        if self._commands is not None:
            added = (self._commands.add(edge) for edge in edges)
            notes += [note for note in added if note] + self._poll_commands()
        happening = Happening(current.time, current.samples, current.events, edges, notes)
        if self._publish is not None:
            self._publish(happening)
        self._output.take(happening)

    def _poll_commands(self) -> list[str]:
        """Look after the commands, and again soon while one of them runs."""
        assert self._commands is not None
        notes = self._commands.poll()
        if self._commands.busy and not self._polling and self._loop is not None:
            self._polling = True
            self._loop.call_later(COMMANDS_S, self._poll_again)
        return notes

    def _poll_again(self) -> None:
        self._polling = False
        self._notes += self._poll_commands()

    def _end(self, status: int) -> None:
        """End the run: from a key, or from a signal by way of the loop."""
        self._status = status
        if self._task is not None:
            self._task.cancel()

    def _install(self, handlers: dict[int, Any]) -> None:
        """Take the signals that end, stop and resize; `handlers` keeps what was there."""
        if threading.current_thread() is not threading.main_thread():
            return
        reactions: dict[str, Callable[[int, FrameType | None], None]] = dict.fromkeys(
            _ENDINGS, self._on_end
        )
        if isinstance(self._output, Picture):
            reactions |= {
                "SIGWINCH": self._on_change,
                "SIGCONT": self._on_change,
                "SIGTSTP": self._on_stop,
            }
        for name, reaction in reactions.items():
            number = getattr(signal, name, None)  # Windows has two of them
            # A caller that ignores a signal (nohup, a shell's background) has it ignored here, too.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                handlers[number] = signal.getsignal(number)
                signal.signal(number, reaction)

    def _on_end(self, number: int, frame: FrameType | None) -> None:
        self._status = 128 + number
        if self._output.writing:
            raise _Ended
        self._call(self._end, self._status)

    def _on_change(self, number: int, frame: FrameType | None) -> None:
        if isinstance(self._output, Picture):
            self._call(self._output.redraw)

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self._call(self._stop)

    def _call(self, function: Callable[..., None], *arguments: int) -> None:
        """Call a function in the loop, from a signal handler; nothing where it has ended."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    def _stop(self) -> None:
        """Stop as Ctrl-Z wants it: with the terminal as it was, until the shell goes on."""
        if not isinstance(self._output, Picture):
            return
        self._output.suspend()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._on_stop)
        self._output.redraw()
