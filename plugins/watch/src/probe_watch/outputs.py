"""Rounds on standard output: a line for each sample and each event."""

from __future__ import annotations

import os
import sys

from probe_core.commands import write_json
from probe_watch.figures import NODE
from probe_watch.lines import (
    alert_document,
    alert_line,
    event_document,
    event_line,
    sample_document,
    sample_line,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.commands import Context
    from probe_core.model.document import SampleDoc
    from probe_watch.alerts import Alerts
    from probe_watch.intake import Happening

__all__ = ["Lines"]


class Lines:
    """Writes a line for each sample and event: JSON, or text for people."""

    def __init__(self, context: Context, alerts: Alerts, *, json: bool, full: bool) -> None:
        self._context = context
        self._alerts = alerts
        self._json = json
        self._full = full

    def take(self, happening: Happening) -> None:
        """Write a round. Raises `OSError` where standard output takes nothing any more."""
        for note in happening.notes:
            self._context.err(f"probe watch: {note}")
        lines = self._documents(happening) if self._json else self._texts(happening)
        try:
            for line in lines:
                # A reader of a pipe acts on a line when it comes, not when a buffer is full.
                self._context.out(line)
                self._context.flush()
        except KeyboardInterrupt:
            _discard()
            raise

    def _documents(self, happening: Happening) -> Iterator[str]:
        time = happening.time
        for event in happening.events:
            yield write_json(event_document(event, time))
        for sample in happening.samples:
            yield write_json(self._document(sample, time))
        for edge in happening.edges:
            yield write_json(alert_document(edge))

    def _document(self, sample: SampleDoc, time: float) -> dict[str, object]:
        alerts = self._alerts.active(sample["device"])
        document = sample_document(sample, time, alerts, full=self._full)
        if self._full and sample["device"] == NODE:
            latency = self._alerts.latency
            document["latency_ms"] = latency.value
            if latency.reason is not None:
                document["unknown"] = {**sample["unknown"], "latency_ms": latency.reason}
        return document

    def _texts(self, happening: Happening) -> Iterator[str]:
        time = happening.time
        for event in happening.events:
            yield event_line(event, time)
        for sample in happening.samples:
            yield sample_line(sample, time, self._alerts.active(sample["device"]))
        for edge in happening.edges:
            yield alert_line(edge)


def _discard() -> None:
    """Drop what waits in standard output, whose reader takes nothing.

    Python's own flush at the end of the process would wait for that reader again.
    """
    try:
        target = sys.stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
    except (OSError, ValueError, AttributeError):  # no file: nothing of it waits
        return
    os.dup2(null, target)
    os.close(null)
