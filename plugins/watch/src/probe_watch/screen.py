"""The loop of `probe watch` with a screen: rounds, keys and signals, one at a time.

Everything runs in one event loop, so that a key or a signal never strikes in the middle of the code
that starts and ends processes: it is a callback, and the end is a cancellation.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from probe_export.ending import reacting
from probe_watch.hosts import STARTS_A_SECOND, Host
from probe_watch.rounds import ENDINGS, HANGUP, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from probe_core.sampling import AsyncRounds
    from probe_watch.app import WatchApp
    from probe_watch.node import Node
    from probe_watch.recorded import Recording
    from probe_watch.rounds import Intake

    Source = Callable[[WatchApp], Coroutine[Any, Any, None]]


def run_screen(app: WatchApp, source: Source, intake: Intake) -> int:
    """Run until `source`, which fills the nodes of the app, or a key or a signal ends it.

    Returns the exit status. Raises `KeyboardInterrupt` for Ctrl-C, when all that was started has
    ended and the terminal is as it was.
    """
    loop = asyncio.new_event_loop()
    signals: list[int] = []
    failures: list[BaseException] = []
    work: list[asyncio.Task[None]] = []

    async def follow() -> None:
        try:
            await source(app)
        except Exception as error:
            failures.append(error)
        app.exit(0)

    def end(number: int) -> None:
        signals.append(number)
        if not loop.is_closed():
            loop.call_soon_threadsafe(app.exit, HANGUP)

    def fail(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # A mistake in a callback, which asyncio would print on the screen.
        failures.append(context.get("exception") or RuntimeError(str(context.get("message"))))
        app.exit(1)

    app.started = lambda: work.append(loop.create_task(follow()))
    with (
        reacting((*ENDINGS, "SIGQUIT"), end),
        intake,
        asyncio.Runner(loop_factory=lambda: loop) as runner,
    ):
        runner.get_loop().set_exception_handler(fail)
        if not signals:  # one may come before there is an app to end
            runner.run(app.run_async(mouse=False))
    if failures:
        raise failures[0]
    return status_of(signals[0]) if signals else app.return_value or app.return_code or 0


# Where rounds come from.


def local(samples: Callable[[], AsyncRounds], node: Node, intake: Intake) -> Source:
    async def follow(app: WatchApp) -> None:
        rounds = samples()
        try:
            async for current in rounds:
                app.take(node, intake.take(current))
        finally:
            await rounds.aclose()

    return follow


def remote(interval: float, command: Sequence[str]) -> Source:
    async def follow(app: WatchApp) -> None:
        async with asyncio.TaskGroup() as group:
            for number, node in enumerate(app.nodes.values()):
                host = Host(app, node, interval)
                group.create_task(host.follow(command, number / STARTS_A_SECOND))

    return follow


class Replay:
    """Plays a recording: a round after another, as fast as it was recorded or as keys have it."""

    SLOWEST, FASTEST = 0.25, 64.0

    def __init__(self, recording: Recording, app: WatchApp) -> None:
        self._recording = recording
        self._app = app
        self._speed = 1.0
        self._at = -1
        self._moved = asyncio.Event()

    @property
    def where(self) -> str:
        """Return ``frame 3 of 60  2×``, with the time of the recording."""
        at = max(0, self._at)
        time = datetime.fromtimestamp(self._recording.times[at], UTC)
        return f"{time:%Y-%m-%d}  frame {at + 1} of {len(self._recording)}  {self._speed:g}×"

    def hurry(self, factor: float) -> None:
        self._speed = min(self.FASTEST, max(self.SLOWEST, self._speed * factor))
        self._moved.set()

    def step(self, count: int) -> None:
        self._app.paused = True
        self._go(max(0, min(len(self._recording) - 1, self._at + count)))
        self._moved.set()

    def _go(self, number: int) -> None:
        first = number
        if number != self._at + 1:  # the figures before it are another past
            self._app.node.forget()
            first = max(0, number - PAST)
        for at in range(first, number + 1):
            happening = self._recording.round(at)
            if happening is not None:
                self._app.node.take(happening)
        self._at = number
        self._app.show()

    async def follow(self, app: WatchApp) -> None:
        """Play to the end, and stay there until the user leaves."""
        app.node.describe(self._recording.devices)
        app.replay = self
        app.refresh_bindings()
        if self._recording.note:
            app.note(self._recording.note)
        self._go(0)
        while True:
            times, following = self._recording.times, self._at + 1
            is_still = app.paused or following >= len(times)
            pause = 3600.0 if is_still else max(0.0, times[following] - times[self._at])
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), min(pause, 10.0) / self._speed)
            except TimeoutError:
                if not app.paused and following < len(times):
                    self._go(following)


PAST = 60
"""Rounds before the one that is shown whose figures are its history."""
