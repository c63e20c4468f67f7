"""Types of live figures: what a sampler yields, and what a round of samples holds.

For type checkers alone: no module imports this while it runs, so that `typing` costs nobody its
start. `model.sample_fields` is the table that values are checked against; a test holds both equal.
"""

from __future__ import annotations

from typing import Literal, Required, TypeAlias, TypedDict

__all__ = [
    "ActivityDoc",
    "EventDoc",
    "LiveClocksDoc",
    "LiveLinkDoc",
    "LiveMemoryDoc",
    "PressureDoc",
    "ProcessDoc",
    "RawSample",
    "SampleDoc",
    "SampleStatus",
]

SampleStatus: TypeAlias = Literal["ok", "asleep", "unresponsive", "unavailable"]


class LiveMemoryDoc(TypedDict):
    """Bytes of memory; `used` is what cannot be allocated now."""

    used: int | None
    total: int | None


class LiveClocksDoc(TypedDict):
    """Clocks of now in MHz, of the compute units and of the memory."""

    sm: float | None
    memory: float | None


class ActivityDoc(TypedDict):
    """Shares of the peak that units reach, 0 to 1: not `busy`, which one busy unit makes 1."""

    sm: float | None
    tensor: float | None
    memory: float | None


class PressureDoc(TypedDict):
    """Shares of the last ten seconds in which tasks waited for a resource, 0 to 1."""

    cpu: float | None
    memory: float | None
    io: float | None


class LiveLinkDoc(TypedDict):
    """One link of a device; `received` and `sent` are bytes per second."""

    kind: str | None
    name: str | None
    generation: int | None
    width: int | None
    received: float | None
    sent: float | None


class ProcessDoc(TypedDict):
    """One process that uses a device; `memory` are bytes of the device's memory."""

    pid: int | None
    user: str | None
    memory: int | None


class SampleDoc(TypedDict):
    """One device in one round: every key is always there.

    What is null has its reason in `unknown`, by field ("power_w", "clocks_mhz.memory"). A status
    other than "ok" has its reason in `reason`, and then all figures are null.
    """

    device: str
    prober: str | None
    status: SampleStatus
    reason: str | None
    busy: float | None
    activity: ActivityDoc | None
    memory: LiveMemoryDoc | None
    temperature_c: float | None
    power_w: float | None
    power_cap_w: float | None
    clocks_mhz: LiveClocksDoc | None
    throttled: list[str] | None
    links: list[LiveLinkDoc]
    processes: list[ProcessDoc] | None
    pressure: PressureDoc | None
    unknown: dict[str, str]


class RawSample(TypedDict, total=False):
    """What `sample_devices` yields of one device: `device` and whatever is known."""

    device: Required[str]
    status: str
    reason: str
    busy: float
    activity: dict[str, float]
    memory: dict[str, int]
    temperature_c: float
    power_w: float
    power_cap_w: float
    clocks_mhz: dict[str, float]
    throttled: list[str]
    links: list[dict[str, str | int | float]]
    processes: list[dict[str, str | int]]
    pressure: dict[str, float]
    unknown: dict[str, str]


class EventDoc(TypedDict):
    """A device that came, went or changed between two rounds; `change` is a sentence."""

    event: Literal["added", "removed", "changed"]
    device: str
    change: str
