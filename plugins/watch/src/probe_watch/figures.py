"""The figures of a sample that have a threshold, and what they were in the last minute or two.

Each has the reason where it is not known. Utilisation of the peak is a counter of its own (GPM of
NVIDIA's data centre GPUs): `busy` is the share of time in which anything ran, 100 % with a single
SM at work, and is never taken for it.
"""

from __future__ import annotations

from collections import defaultdict, deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from probe_core.model.document import SampleDoc


NODE = "node:self"
"""The id of the node's own figures among those of its devices."""

NO_PEER = "not measured: latency needs a peer (--peer HOST:PORT)"
_NO_REASON = "not known"

PEAK_FIELDS = ("activity.tensor", "activity")
MEMORY_FIELDS = ("memory", "memory.used", "memory.total")
"""Fields of a sample under which the reason of an unknown fraction stands."""


class Figure:
    """A value in its rule's unit; None where unknown, and then `reason` says why.

    `critical` is the device's own word for having reached its limit, None where it has not.
    """

    def __init__(
        self, value: float | None, reason: str | None = None, critical: str | None = None
    ) -> None:
        self.value = value
        self.reason = None if value is not None else reason or _NO_REASON
        self.critical = critical


def reason_of(sample: SampleDoc, *fields: str) -> str:
    """Return why the first of `fields` that has a reason is not known."""
    unknown = sample["unknown"]
    reasons = (unknown[field] for field in fields if field in unknown)
    return sample["reason"] or next(reasons, _NO_REASON)


def memory_fraction(sample: SampleDoc) -> float | None:
    """Return the share of a device's memory that is in use, 0 to 1; None where unknown."""
    memory = sample["memory"]
    if memory is None or memory["used"] is None or not memory["total"]:
        return None
    return memory["used"] / memory["total"]


def peak_fraction(sample: SampleDoc) -> float | None:
    """Return the share of the matrix units' peak, 0 to 1; None where unknown."""
    activity = sample["activity"]
    return activity["tensor"] if activity else None


def _utilisation(sample: SampleDoc) -> Figure:
    return Figure(peak_fraction(sample), reason_of(sample, *PEAK_FIELDS))


def _memory(sample: SampleDoc) -> Figure:
    return Figure(memory_fraction(sample), reason_of(sample, *MEMORY_FIELDS))


def _temperature(sample: SampleDoc) -> Figure:
    # The slowdown temperature is a GPU's own (GeForce holds 83 °C under load): what counts is that
    # the driver reports to have lowered the clock for it.
    heat = (word for word in sample["throttled"] or () if "thermal" in word)
    return Figure(sample["temperature_c"], reason_of(sample, "temperature_c"), next(heat, None))


FIGURES: dict[str, Callable[[SampleDoc], Figure]] = {
    "utilisation": _utilisation,
    "memory": _memory,
    "temperature": _temperature,
}
"""Name of a rule to its figure of a sample; that of latency is no figure of a sample."""


KEPT_SAMPLES = 60
"""Samples that are kept of a device: a screen of 200 columns shows twenty."""

LEVELS = "▁▂▃▄▅▆▇█"

KEPT: dict[str, Callable[[SampleDoc], float | None]] = {
    "busy": lambda sample: sample["busy"],
    "peak": peak_fraction,
    "memory": memory_fraction,
    "temperature": lambda sample: sample["temperature_c"],
    "power": lambda sample: sample["power_w"],
}
"""Name to the figure that is kept of each sample, None where unknown. The first three are ratios,
then °C and W."""


def _empty() -> dict[str, deque[float | None]]:
    return {name: deque(maxlen=KEPT_SAMPLES) for name in KEPT}


class History:
    """The figures of the last samples of each device; None where one was not known."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, deque[float | None]]] = defaultdict(_empty)

    def add(self, samples: Iterable[SampleDoc]) -> None:
        """Take a round. Devices that are in it no more are forgotten."""
        present = {sample["device"]: sample for sample in samples}
        for device in self._kept.keys() - present.keys():
            del self._kept[device]
        for device, sample in present.items():
            for name, figure in KEPT.items():
                self._kept[device][name].append(figure(sample))

    def of(self, device: str) -> Mapping[str, Sequence[float | None]]:
        """Return the values of every figure of a device by name, the oldest first."""
        return {name: list(self._kept[device][name]) for name in KEPT}


def spark(values: Sequence[float | None], width: int, levels: str = LEVELS) -> str:
    """Return the newest values as bars, the last at the right end; unknown ones are blank."""
    if width <= 0:
        return ""
    shown = values[-width:]
    highest = len(levels) - 1
    bars = (" " if value is None else levels[round(value * highest)] for value in shown)
    return "".join(bars).rjust(width)
