"""What the loops with and without a screen share: each round's way, and the signals that end it.

A round goes to the alerts, their commands and the endpoint before it is shown.
"""

from __future__ import annotations

import signal
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


def status_of(number: int) -> int:
    """Return the exit status for a signal as shells write it; raises for Ctrl-C, as others do."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    return 128 + number
