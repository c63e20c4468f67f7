"""The rounds of `probe watch` at the endpoint of `probe export prometheus`, with its alerts."""

from __future__ import annotations

from contextlib import contextmanager

from probe_core.commands import CommandError
from probe_export import ExportError
from probe_export.live import Metrics
from probe_export.serve import Endpoint, address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import SampleDoc
    from probe_export.prometheus import Family, Labels
    from probe_watch.alerts import Alerts

__all__ = ["Published", "serving"]


class Published:
    """The last round, for scrapes. The alerts are copied: one may come in the middle of a round."""

    def __init__(self, alerts: Alerts, context: Context) -> None:
        self._alerts = alerts
        self._on: dict[str, dict[str, str]] = {}
        self.metrics = Metrics(context.report, more=self._families)

    def publish(self, time: float, samples: Sequence[SampleDoc]) -> None:
        """Take a round that began at `time`, in seconds since 1970."""
        self._on = {s["device"]: self._alerts.active(s["device"]) for s in samples}
        self.metrics.publish(time, samples)

    def _families(self, labels: Mapping[str, Labels]) -> list[Family]:
        families: list[Family] = []
        on = [
            ({**labels[device], "alert": name, "severity": severity}, 1)
            for device, alerts in self._on.items()
            if device in labels
            for name, severity in sorted(alerts.items())
        ]
        if on:
            about = "1 while an alert is on; absent otherwise."
            families.append(("probecore_alert", "gauge", about, list(on)))
        peer = self._alerts.peer
        if peer is not None and peer.figure.value is not None:
            about = "Time of a TCP connection."
            row = {"peer": peer.name}, peer.figure.value / 1000
            families.append(("probecore_peer_latency_seconds", "gauge", about, [row]))
        return families


@contextmanager
def serving(place: str, published: Published) -> Iterator[str]:
    """Serve ``/metrics`` while the block runs; yields its address.

    Raises `CommandError` where the place is none, or is taken.
    """
    try:
        endpoint = Endpoint(address(place), published.metrics.text)
    except ExportError as error:
        raise CommandError(str(error)) from None
    published.metrics.with_uuids = endpoint.on_loopback
    with endpoint:
        yield endpoint.url
