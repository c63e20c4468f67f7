"""The loop of `probe watch` with a screen: samples, keys, resizes and signals, one at a time.

The samples are awaited in an event loop, so that a key or a signal never strikes in the middle of
the code that starts and ends processes: it is a callback, and the end is a cancellation.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from probe_watch.rounds import ENDINGS, Ended, Signals, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO

    from probe_core.commands import Context
    from probe_core.model.document import ReportDoc
    from probe_core.sampling import AsyncRounds
    from probe_watch.alerts import Alerts
    from probe_watch.frame import Painter
    from probe_watch.rounds import Happening, Intake
    from probe_watch.terminal import Screen
    from probe_watch.view import View


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


# What the loop draws on: once a round, and after keys and resizes.

DRAW_S = 0.05
"""Seconds between two frames at least: a storm of resizes or keys draws twenty a second."""

HANGUP = 129
"""Exit status where the terminal is gone: 128 + SIGHUP, as shells write it."""


class Picture:
    """Draws rounds on a screen, once a round and after keys and resizes."""

    def __init__(self, screen: Screen, painter: Painter, view: View) -> None:
        self.writing = False
        self._screen = screen
        self._painter = painter
        self._view = view
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: Callable[[int], None] | None = None
        self._due: asyncio.TimerHandle | None = None
        self._drawn_at = 0.0
        self._listening = False

    def start(self, loop: asyncio.AbstractEventLoop, end: Callable[[int], None]) -> None:
        """Take the screen; `end` is called with an exit status when a key or a hangup ends it."""
        self._loop, self._end = loop, end
        self._draw()

    def take(self, happening: Happening) -> None:
        """Show a round."""
        for event in happening.events:
            self._view.remember(happening.time, event)
        for edge in happening.edges:
            self._view.remember(happening.time, edge)
        self._view.annotate(happening.time, happening.notes)
        self._view.update(happening.time, happening.samples)
        self._draw()

    def redraw(self) -> None:
        """Draw soon: at once, or when the last frame is old enough."""
        if self._loop is None or self._due is not None:
            return
        wait = max(0.0, self._drawn_at + DRAW_S - self._loop.time())
        self._due = self._loop.call_later(wait, self._draw)

    def _draw(self) -> None:
        # A terminal that is gone is the end of its user's wish, and no fault to print anywhere.
        try:
            self._draw_frame()
        except OSError:
            self._hang_up()

    def _hang_up(self) -> None:
        assert self._end is not None
        self._end(HANGUP)

    def suspend(self) -> None:
        """Give the terminal to the shell, for the time that this program is stopped."""
        self._listen(False)
        self._screen.leave()

    def close(self) -> None:
        """Give the terminal back for good; a second call does nothing."""
        self._listen(False)
        if self._due is not None:
            self._due.cancel()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_writer(self._screen.fileno())
        self._loop = None
        self._screen.close()

    def _draw_frame(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        # In the background the terminal is another program's: see termios(3).
        if self._loop is None or not self._screen.in_foreground():
            return
        self._drawn_at = self._loop.time()
        self.writing = True
        try:
            self._screen.enter()
            self._listen(True)
            columns, rows = self._screen.size
            keys = self._screen.keys is not None
            lines = self._painter.lines(self._view, columns, rows, keys=keys)
            self._screen.draw(lines)
            self._await_room()
        finally:
            self.writing = False

    def _await_room(self) -> None:
        """Write what is left of a frame as the terminal takes it."""
        assert self._loop is not None
        try:
            is_out = self._screen.flush()
        except OSError:
            self._hang_up()
            return
        if is_out:
            self._loop.remove_writer(self._screen.fileno())
        else:
            self._loop.add_writer(self._screen.fileno(), self._await_room)

    def _listen(self, listening: bool) -> None:
        keys = self._screen.keys
        if self._loop is None or self._loop.is_closed():
            return
        if keys is None or listening == self._listening:
            return
        self._listening = listening
        if listening:
            self._loop.add_reader(keys, self._read_keys)
        else:
            self._loop.remove_reader(keys)

    def _read_keys(self) -> None:
        assert self._end is not None
        for key in self._screen.read_keys():
            if key in ("q", "Q"):
                self._end(0)
            elif key == "":
                self._listen(False)  # an end can be read for ever
                self._hang_up()
            elif self._view.key(key):
                self.redraw()


def picture(context: Context, report: ReportDoc, alerts: Alerts, interval: float) -> Picture:
    """Return the screen on standard output, which is a terminal."""
    from probe_watch.frame import Painter
    from probe_watch.terminal import Screen
    from probe_watch.view import View

    keys = sys.stdin.fileno() if _is_terminal(sys.stdin) else None
    screen = Screen(sys.stdout.fileno(), keys)
    painter = Painter(context.colour, context.encodable)
    return Picture(screen, painter, View(report, alerts, interval))


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed by the caller
        return False
