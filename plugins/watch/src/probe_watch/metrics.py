"""The rounds of `probe watch` at the endpoint of `probe export prometheus`, with its alerts."""

from __future__ import annotations

from probe_export.live import Metrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import SampleDoc
    from probe_export.prometheus import Family, Labels
    from probe_watch.alerts import Alerts


class Published(Metrics):
    """The last round, for scrapes. The alerts are copied: one may come in the middle of a round."""

    def __init__(self, alerts: Alerts, context: Context) -> None:
        super().__init__(context.report, more=self._families)
        self._alerts = alerts
        self._on: dict[str, dict[str, str]] = {}

    def publish(self, time: float, samples: Sequence[SampleDoc]) -> None:
        self._on = {s["device"]: self._alerts.active(s["device"]) for s in samples}
        super().publish(time, samples)

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
