"""Samples and events as lines: JSON for programs, plain text where there is no screen. Pure."""

from __future__ import annotations

from time import gmtime

from probe_core.commands import size
from probe_watch.figures import peak_fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.model.document import EventDoc, SampleDoc
    from probe_watch.alerts import Edge

__all__ = [
    "MORE_FIELDS",
    "alert_document",
    "alert_line",
    "event_document",
    "event_line",
    "sample_document",
    "sample_line",
    "timestamp",
]

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

MORE_FIELDS = ("activity", "throttled", "pressure", "prober")
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


def event_document(event: EventDoc, time: float) -> dict[str, object]:
    """Return a device that came, went or changed."""
    return {
        "time": timestamp(time),
        "event": event["event"],
        "device": event["device"],
        "change": event["change"],
    }


def alert_document(edge: Edge) -> dict[str, object]:
    """Return the start or the end of an alert."""
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


def event_line(event: EventDoc, time: float) -> str:
    """Return a device that came, went or changed, as a line for people."""
    return f"{timestamp(time)} {event['device']} {event['event']}: {event['change']}"
