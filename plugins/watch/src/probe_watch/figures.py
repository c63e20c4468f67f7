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

NO_PEER = "not measured: give --peer HOST:PORT"
_NO_REASON = "not known"


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


class Quantity:
    """A figure of a sample. `factor` is how much of `unit` 1 is: 100 of a ratio from 0 to 1.

    Where it is not known the reason stands under one of `fields`.
    """

    def __init__(
        self, unit: str, factor: int, value: Callable[[SampleDoc], float | None], *fields: str
    ) -> None:
        self.unit = unit
        self.factor = factor
        self.value = value
        self._fields = fields

    def of(self, sample: SampleDoc, critical: str | None = None) -> Figure:
        """Return its value in a sample, or why it is not known."""
        unknown = sample["unknown"]
        reasons = (unknown[field] for field in self._fields if field in unknown)
        return Figure(self.value(sample), sample["reason"] or next(reasons, None), critical)


QUANTITIES = {
    "busy": Quantity("%", 100, lambda sample: sample["busy"], "busy"),
    "peak": Quantity("%", 100, peak_fraction, "activity.tensor", "activity"),
    "memory": Quantity("%", 100, memory_fraction, "memory", "memory.used", "memory.total"),
    "temperature": Quantity("°C", 1, lambda sample: sample["temperature_c"], "temperature_c"),
    "power": Quantity("W", 1, lambda sample: sample["power_w"], "power_w"),
}
"""Name to what is kept of each sample, and drawn."""

_OF_RULES = {"utilisation": "peak", "memory": "memory", "temperature": "temperature"}


def figure_of_rule(rule: str, sample: SampleDoc) -> Figure | None:
    """Return what a rule is about in a sample; None for that of latency, which is in none."""
    if rule not in _OF_RULES:
        return None
    # The slowdown temperature is a GPU's own (GeForce holds 83 °C under load): what counts is that
    # the driver reports to have lowered the clock for it.
    heat = (word for word in sample["throttled"] or () if "thermal" in word)
    critical = next(heat, None) if rule == "temperature" else None
    return QUANTITIES[_OF_RULES[rule]].of(sample, critical)


KEPT_SAMPLES = 60
"""Samples that are kept of a device: a screen of 200 columns shows twenty."""

LEVELS = "▁▂▃▄▅▆▇█"


def _empty() -> dict[str, deque[float | None]]:
    return {name: deque(maxlen=KEPT_SAMPLES) for name in QUANTITIES}


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
            for name, quantity in QUANTITIES.items():
                self._kept[device][name].append(quantity.value(sample))

    def of(self, device: str) -> Mapping[str, Sequence[float | None]]:
        """Return the values of every figure of a device by name, the oldest first."""
        return {name: list(self._kept[device][name]) for name in QUANTITIES}


def spark(values: Sequence[float | None], width: int, levels: str = LEVELS) -> str:
    """Return the newest values as bars, the last at the right end; unknown ones are blank."""
    if width <= 0:
        return ""
    shown = values[-width:]
    highest = len(levels) - 1
    bars = (" " if value is None else levels[round(value * highest)] for value in shown)
    return "".join(bars).rjust(width)
