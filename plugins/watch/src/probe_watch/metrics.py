"""The last round as metrics of Prometheus, served beside the screen or the lines.

What is not known is an absent series and never 0; `probe_device_up` says whether the device was
asked and answered. The label `device` is that of `probe export prometheus`, so that both join.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from time import time

from probe_core.commands import CommandError
from probe_export import ExportError
from probe_export.capacity import name_of_id, stable_names
from probe_export.prometheus import text
from probe_export.serve import Endpoint, NotYet, address
from probe_watch.figures import peak_fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import ReportDoc, SampleDoc
    from probe_export.prometheus import Family, Labels, Sample
    from probe_watch.alerts import Alerts

    Figure = Callable[[SampleDoc], float | None]

__all__ = ["CONTENT_TYPE", "Published", "families", "serving"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus 3 fails a scrape whose type is missing or another."""

_MEGA = 1e6
_END_S = 2.0
"""Seconds that the endpoint has to end: it looks every 0.2 s whether it should."""

_FIGURES: tuple[tuple[str, str, Figure], ...] = (
    ("up", "1 when the device was asked and answered; absent before.", lambda s: _is_up(s)),
    ("pending", "1 when the device was not asked yet.", lambda s: s["status"] == "pending"),
    ("asleep", "1 when the device sleeps and was not asked.", lambda s: s["status"] == "asleep"),
    ("busy_ratio", "Share of time in which the device worked at all.", lambda s: s["busy"]),
    (
        "tensor_activity_ratio",
        "Share of the peak of its matrix units.",
        peak_fraction,
    ),
    (
        "sm_activity_ratio",
        "Mean share of busy units.",
        lambda s: s["activity"] and s["activity"]["sm"],
    ),
    ("memory_used_bytes", "Memory in use.", lambda s: s["memory"] and s["memory"]["used"]),
    ("memory_total_bytes", "Memory of all.", lambda s: s["memory"] and s["memory"]["total"]),
    ("temperature_celsius", "Temperature of the chip.", lambda s: s["temperature_c"]),
    ("power_watts", "Power drawn.", lambda s: s["power_w"]),
    ("power_cap_watts", "Power that the driver keeps it below.", lambda s: s["power_cap_w"]),
    (
        "clock_hertz",
        "Clock of the compute units.",
        lambda s: _hertz(s["clocks_mhz"] and s["clocks_mhz"]["sm"]),
    ),
    (
        "memory_clock_hertz",
        "Clock of the memory.",
        lambda s: _hertz(s["clocks_mhz"] and s["clocks_mhz"]["memory"]),
    ),
    (
        "processes",
        "Processes that use the device.",
        lambda s: None if s["processes"] is None else len(s["processes"]),
    ),
)
"""Name behind ``probe_device_``, help, and the figure of a sample; None where unknown."""


def _is_up(sample: SampleDoc) -> bool | None:
    """Return whether a device answered; None of one that was not asked: nobody knows."""
    return None if sample["status"] == "pending" else sample["status"] == "ok"


def _hertz(mega: float | None) -> float | None:
    return None if mega is None else mega * _MEGA


def families(
    samples: Sequence[SampleDoc],
    names: Mapping[str, str],
    alerts: Mapping[str, Mapping[str, str]],
    age_s: float,
) -> list[Family]:
    """Return the metrics of a round. `alerts` are those that are on, by device and name.

    `names` are those of a report. A device that has none and is known by a serial number alone is
    left out: a metric's label is stored for years.
    """
    samples = [s for s in samples if _name(s["device"], names) is not None]

    def device(sample: SampleDoc) -> Labels:
        return {"device": _name(sample["device"], names) or ""}

    listed: list[Family] = [
        (f"probe_device_{name}", about, [(device(s), figure(s)) for s in samples])
        for name, about, figure in _FIGURES
    ]
    for direction in ("received", "sent"):
        rates: list[Sample] = [
            ({**device(sample), "link": _link(number, link["name"], link["kind"])}, link[direction])
            for sample in samples
            for number, link in enumerate(sample["links"])
        ]
        about = f"What the link has {direction} lately."
        listed.append((f"probe_device_link_{direction}_bytes_per_second", about, rates))
    on: list[Sample] = [
        ({**device(sample), "alert": name, "severity": severity}, 1)
        for sample in samples
        for name, severity in sorted(alerts.get(sample["device"], {}).items())
    ]
    listed.append(("probe_device_alert", "1 while an alert is on; absent otherwise.", on))
    listed.append(("probe_sample_age_seconds", "Age of these figures.", [({}, age_s)]))
    return listed


def _name(identity: str, names: Mapping[str, str]) -> str | None:
    return names.get(identity) or name_of_id(identity)


def _link(number: int, name: str | None, kind: str | None) -> str:
    return name or f"{kind or 'link'}{number}"


class Published:
    """The last round, for the threads that answer scrapes."""

    def __init__(self, alerts: Alerts) -> None:
        self._names: dict[str, str] = {}
        self._alerts = alerts
        self._round: tuple[float, Sequence[SampleDoc], dict[str, dict[str, str]]] | None = None

    def name(self, report: ReportDoc) -> None:
        """Take the names of devices from a report: of those that are known by a serial number."""
        self._names = stable_names(report["devices"])

    def publish(self, time: float, samples: Sequence[SampleDoc]) -> None:
        """Take a round. The alerts are copied: a scrape may come in the middle of the next."""
        alerts = {s["device"]: self._alerts.active(s["device"]) for s in samples}
        self._round = time, list(samples), alerts

    @property
    def lacks_names(self) -> bool:
        """Whether the last round has a device that only a report names, such as a MIG instance."""
        samples = self._round[1] if self._round is not None else ()
        return any(_name(s["device"], self._names) is None for s in samples)

    def text(self) -> str:
        """Return the metrics. Raises `NotYet` before the first round."""
        if self._round is None:
            raise NotYet
        began, samples, alerts = self._round
        listed = families(samples, self._names, alerts, max(0.0, time() - began))
        peer = self._alerts.peer
        if peer is not None:
            value = peer.figure.value
            latency: Sample = ({"peer": peer.name}, None if value is None else value / 1000)
            listed.append(("probe_peer_latency_seconds", "Time of a TCP connection.", [latency]))
        return text(listed)


class Naming:
    """Publishes rounds, and gets the names of devices that only a report has.

    A probe takes as long as the slowest driver, so it is made beside the rounds, once, and only
    where a device has no other name.
    """

    def __init__(self, published: Published, context: Context, report: ReportDoc | None) -> None:
        self._published = published
        self._context = context
        self._has_asked = report is not None
        if report is not None:
            published.name(report)

    def publish(self, time: float, samples: Sequence[SampleDoc]) -> None:
        """Take a round."""
        self._published.publish(time, samples)
        if not self._has_asked and self._published.lacks_names:
            self._has_asked = True
            threading.Thread(target=self._ask, daemon=True).start()

    def _ask(self) -> None:
        # Options that a probe refuses were refused by the samplers already.
        with suppress(CommandError):
            self._published.name(self._context.report())


@contextmanager
def serving(place: str, published: Published) -> Iterator[str]:
    """Serve ``/metrics`` while the block runs; yields its address.

    Raises `CommandError` where the place is none, or is taken.
    """
    try:
        endpoint = Endpoint(address(place), published.text, CONTENT_TYPE, 0.0)
    except ExportError as error:
        raise CommandError(str(error)) from None
    ended = threading.Event()
    thread = threading.Thread(target=endpoint.serve_until, args=(ended,), daemon=True)
    thread.start()
    try:
        yield endpoint.url
    finally:
        ended.set()
        thread.join(_END_S)
