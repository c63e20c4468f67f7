"""Samples and events as lines on standard output: JSON for programs, plain text for people.

Their loop runs in the main thread and imports no event loop, whose 30 ms a script would wait for.
"""

from __future__ import annotations

import os
import sys
from time import gmtime

from probe_core.commands import size, write_json
from probe_export.ending import until_signal
from probe_watch.figures import NODE, peak_fraction
from probe_watch.rounds import ENDINGS, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import DeviceDoc, SampleDoc
    from probe_core.sampling import Rounds
    from probe_watch.alerts import Alerts, Edge
    from probe_watch.figures import Figure
    from probe_watch.rounds import Happening, Intake


_FIELDS = (
    "busy",
    "memory",
    "temperature_c",
    "power_w",
    "power_cap_w",
    "clocks_mhz",
    "links",
    "processes",
)

MORE_FIELDS = ("activity", "throttled", "counters", "xids", "pressure", "prober")
"""What `--all` adds to each line."""


def timestamp(time: float) -> str:
    """Return seconds since 1970 as ``2026-11-21T22:14:03.512Z``."""
    # Not by rounding seconds and milliseconds apart: .9996 is the next second's .000.
    whole, thousandths = divmod(round(time * 1000), 1000)
    at = gmtime(whole)
    date = f"{at.tm_year:04}-{at.tm_mon:02}-{at.tm_mday:02}"
    return f"{date}T{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02}.{thousandths:03}Z"


def sample_document(
    sample: SampleDoc, time: float, alerts: Iterable[str], *, full: bool = False
) -> dict[str, object]:
    """Return one device in one round, its keys in the order of the reference.

    `unknown` has the reasons of the fields that are shown.
    """
    fields = _FIELDS + MORE_FIELDS if full else _FIELDS
    figures = {field: sample[field] for field in fields}  # type: ignore[literal-required]
    unknown = {
        field: reason
        for field, reason in sample["unknown"].items()
        if field.partition(".")[0] in figures
    }
    return {
        "time": timestamp(time),
        "device": sample["device"],
        "status": sample["status"],
        "reason": sample["reason"],
        **figures,
        "alerts": sorted(alerts),
        "unknown": unknown,
    }


def device_document(device: DeviceDoc, time: float) -> dict[str, object]:
    """Return what a device is, for whoever reads the lines without a report."""
    memory = device.get("memory")
    return {
        "time": timestamp(time),
        "event": "device",
        "device": device["id"],
        "kind": device["kind"],
        "vendor": device.get("vendor"),
        "name": device["name"],
        "memory": memory["kind"] if memory else None,
    }


def alert_document(edge: Edge) -> dict[str, object]:
    return {
        "time": timestamp(edge.time),
        "event": "alert",
        "device": edge.device,
        "alert": edge.rule.name,
        "state": edge.state,
        "severity": edge.severity,
        "value": edge.value,
        "threshold": edge.threshold,
        "unit": edge.rule.unit or None,
        "since": timestamp(edge.since),
        "reason": edge.reason,
    }


def sample_line(sample: SampleDoc, time: float, alerts: Iterable[str]) -> str:
    """Return a sample as ``TIME DEVICE busy=96% mem=71.2GiB/79.6GiB temp=67C …``."""
    head = f"{timestamp(time)} {sample['device']}"
    if sample["status"] != "ok":
        return f'{head} {sample["status"]} reason="{sample["reason"]}"'
    parts = [head, *_figures(sample)]
    names = ",".join(sorted(alerts))
    return " ".join([*parts, *([f"alerts={names}"] if names else [])])


def _figures(sample: SampleDoc) -> Iterable[str]:
    if sample["busy"] is not None:
        yield f"busy={sample['busy']:.0%}"
    peak = peak_fraction(sample)
    if peak is not None:
        yield f"peak={peak:.0%}"
    memory = sample["memory"]
    if memory:
        yield f"mem={_pair(_bytes(memory['used']), _bytes(memory['total']))}"
    if sample["temperature_c"] is not None:
        yield f"temp={sample['temperature_c']:.0f}C"
    power, cap = sample["power_w"], sample["power_cap_w"]
    if power is not None:
        yield f"power={_pair(f'{power:.0f}', None if cap is None else f'{cap:.0f}')}W"
    clocks = sample["clocks_mhz"]
    if clocks and clocks["sm"] is not None:
        yield f"clock={clocks['sm']:.0f}MHz"
    if sample["processes"] is not None:
        yield f"processes={len(sample['processes'])}"


def _latency(latency: Figure) -> str:
    value = latency.value
    return f'latency="{latency.reason}"' if value is None else f"latency={value:.1f}ms"


def _bytes(count: int | None) -> str | None:
    return None if count is None else size(count).replace(" ", "")


def _pair(value: str | None, limit: str | None) -> str:
    return f"{value or '?'}/{limit}" if limit else value or "?"


def alert_line(edge: Edge) -> str:
    """Return an edge as a line for people: device, value, threshold and since when."""
    head = f"{timestamp(edge.time)} {edge.device} alert {edge.rule.name} {edge.state}"
    return f"{head}: {alert_sentence(edge)}"


def alert_sentence(edge: Edge) -> str:
    """Return ``82 °C, above 80 °C since 22:10:41Z``, without device and name."""
    value = "its value is not known" if edge.value is None else edge.rule.text(edge.value)
    since = timestamp(edge.since)[11:19] + "Z"
    if edge.state == "off":
        bound = f"the alert of {since} ends"
        return f"{edge.reason}; {bound}" if edge.reason else f"{value}; {bound}"
    bound = f"above {edge.rule.text(edge.threshold)} since {since}"
    if edge.reason:
        bound = f"the device slows down ({edge.reason}) since {since}"
    return f"{value}, {bound}"


class Lines:
    """Writes a line for each sample and event: JSON, or text for people."""

    def __init__(
        self,
        context: Context,
        alerts: Alerts,
        *,
        json: bool,
        full: bool,
        devices: Sequence[DeviceDoc] = (),
    ) -> None:
        self._context = context
        self._devices = devices
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
        if self._full:
            yield from (write_json(device_document(device, time)) for device in self._devices)
            self._devices = ()
        for event in happening.events:
            yield write_json({"time": timestamp(time), **event})
        for sample in happening.samples:
            yield write_json(self._document(sample, time))
        for edge in happening.edges or ():
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
            yield f"{timestamp(time)} {event['device']} {event['event']}: {event['change']}"
        for sample in happening.samples:
            line = sample_line(sample, time, self._alerts.active(sample["device"]))
            of_peer = sample["device"] == NODE and self._alerts.peer is not None
            yield f"{line} {_latency(self._alerts.latency)}" if of_peer else line
        for edge in happening.edges or ():
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


def run_lines(samples: Callable[[], Rounds], intake: Intake, lines: Lines) -> int:
    """Run until the last round or a signal; returns the exit status.

    Raises `KeyboardInterrupt` for Ctrl-C and `OSError` for an output that takes nothing any more,
    when all that was started has ended.
    """
    with until_signal(*ENDINGS) as signals, intake, samples() as rounds:
        intake.announce(rounds)
        for current in rounds:
            lines.take(intake.take(current))
    return status_of(signals[0]) if signals else 0
