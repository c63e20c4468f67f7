"""What the loops with and without a screen share: each round's way, and the signals that end it.

A round goes to the alerts, their commands and the endpoint before it is shown.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from probe_core.model.document import EventDoc, SampleDoc
    from probe_core.sampling import Round, Rounds
    from probe_watch.alert_commands import AlertCommands
    from probe_watch.alerts import Alerts, Edge


class Happening:
    """One round with what it changed: samples, events of devices, edges of alerts, and notes.

    `edges` is None of another computer's or of a file's: the node that takes it makes them.
    """

    def __init__(
        self,
        time: float,
        samples: Sequence[SampleDoc],
        events: Sequence[EventDoc],
        edges: Sequence[Edge] | None,
        notes: Sequence[str],
    ) -> None:
        self.time = time
        self.samples = samples
        self.events = events
        self.edges = edges
        self.notes = notes


class Intake:
    """Takes the rounds of a run. A context: what it starts has ended behind it.

    `publish` gets the time and the samples of each round, for the endpoint.
    """

    def __init__(
        self,
        alerts: Alerts,
        commands: AlertCommands | None = None,
        publish: Callable[[float, Sequence[SampleDoc]], None] | None = None,
    ) -> None:
        self.alerts = alerts
        self._commands = commands
        self._publish = publish

    def __enter__(self) -> Intake:
        if self.alerts.peer is not None:
            self.alerts.peer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.alerts.peer is not None:
            self.alerts.peer.close()
        if self._commands is not None:
            self._commands.close()

    def announce(self, rounds: Rounds) -> None:
        """Publish which devices there are, before a driver is asked: it may hang for seconds."""
        if self._publish is not None:
            listed = rounds.listed()
            self._publish(listed.time, listed.documents)

    def take(self, current: Round) -> Happening:
        """Return what a round means; starts the commands of its alerts."""
        edges = self.alerts.update(monotonic(), current.time, current.documents)
        notes = [f"{finding['what']}: {finding['why']}" for finding in current.findings]
        if self._commands is not None:
            self._commands.add(edges)
            notes += self._commands.notes()
        happening = Happening(current.time, current.documents, current.events, edges, notes)
        if self._publish is not None:
            self._publish(current.time, current.documents)
        return happening


# Signals while a command runs: reactions for its time, and what was there before at its end.

ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP")

HANGUP = 129
"""Exit status where the terminal is gone: 128 + SIGHUP, as shells write it."""


class Ended(KeyboardInterrupt):
    """A signal that ends the command, raised where it struck. `number` is the signal's.

    Of this type because asyncio lets no other exception out of a callback, and because nothing
    catches it by mistake.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def status_of(number: int) -> int:
    """Return the exit status for a signal as shells write it; raises for Ctrl-C, as others do."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    return 128 + number


@contextmanager
def reacting(names: Iterable[str], reaction: Callable[[int], object]) -> Iterator[None]:
    """Call `reaction` at these signals, while the block runs; those that do not exist are left out.

    A signal that the caller ignores (nohup, a shell's background job) stays ignored.
    """
    before: dict[int, Any] = {}
    # Python lets no other thread install a handler.
    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name, None) for name in names):
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, lambda caught, frame: reaction(caught))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
