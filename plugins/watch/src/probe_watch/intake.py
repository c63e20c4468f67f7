"""What becomes of each round before it is shown: alerts, their commands, the endpoint."""

from __future__ import annotations

from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_core.model.document import EventDoc, SampleDoc
    from probe_core.sampling import Round
    from probe_watch.alert_commands import AlertCommands
    from probe_watch.alerts import Alerts, Edge

__all__ = ["Happening", "Intake"]


class Happening:
    """One round with what it changed: samples, events of devices, edges of alerts, and notes."""

    __slots__ = ("edges", "events", "notes", "samples", "time")

    def __init__(
        self,
        time: float,
        samples: Sequence[SampleDoc],
        events: Sequence[EventDoc],
        edges: Sequence[Edge],
        notes: Sequence[str],
    ) -> None:
        self.time = time
        self.samples = samples
        self.events = events
        self.edges = edges
        self.notes = notes


class Intake:
    """Takes the rounds of a run. A context: what it starts has ended behind it.

    `publish` gets each happening, for the endpoint.
    """

    def __init__(
        self,
        alerts: Alerts,
        commands: AlertCommands | None = None,
        publish: Callable[[Happening], None] | None = None,
    ) -> None:
        self._alerts = alerts
        self._commands = commands
        self._publish = publish

    def __enter__(self) -> Intake:
        if self._alerts.peer is not None:
            self._alerts.peer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._alerts.peer is not None:
            self._alerts.peer.close()
        if self._commands is not None:
            self._commands.close()

    def take(self, current: Round) -> Happening:
        """Return what a round means; starts the commands of its alerts."""
        edges = self._alerts.update(monotonic(), current.time, current.samples)
        notes = [f"{finding['what']}: {finding['why']}" for finding in current.findings]
        if self._commands is not None:
            self._commands.add(edges)
            notes += self._commands.notes()
        happening = Happening(current.time, current.samples, current.events, edges, notes)
        if self._publish is not None:
            self._publish(happening)
        return happening
