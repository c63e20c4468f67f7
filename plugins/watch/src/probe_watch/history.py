"""What each device did in the last minute or two, for the small history behind its name."""

from __future__ import annotations

from collections import deque

from probe_watch.figures import memory_fraction, peak_fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from probe_core.model.document import SampleDoc

__all__ = ["ASCII_LEVELS", "KEPT", "LENGTH", "LEVELS", "History", "spark"]

LENGTH = 60
"""Samples that are kept of a device: a screen of 200 columns shows twenty."""

LEVELS = "▁▂▃▄▅▆▇█"
ASCII_LEVELS = "_.,-=+*#"

KEPT: dict[str, Callable[[SampleDoc], float | None]] = {
    "busy": lambda sample: sample["busy"],
    "peak": peak_fraction,
    "memory": memory_fraction,
    "temperature": lambda sample: sample["temperature_c"],
    "power": lambda sample: sample["power_w"],
}
"""Name to the figure that is kept of each sample, None where unknown. The first three are ratios,
then °C and W."""


class History:
    """The figures of the last samples of each device; None where one was not known."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, deque[float | None]]] = {}

    def add(self, samples: Iterable[SampleDoc]) -> None:
        """Take a round. Devices that are in it no more are forgotten."""
        present = {sample["device"]: sample for sample in samples}
        for device in self._kept.keys() - present.keys():
            del self._kept[device]
        for device, sample in present.items():
            figures = self._kept.setdefault(device, _empty())
            for name, figure in KEPT.items():
                figures[name].append(figure(sample))

    def values(self, device: str, name: str = "busy") -> list[float | None]:
        """Return the values of a figure of a device, the oldest first."""
        return list(self._kept.get(device, {}).get(name, ()))

    def all(self, device: str) -> Mapping[str, Sequence[float | None]]:
        """Return the values of every figure of a device, by name."""
        return {name: self.values(device, name) for name in KEPT}


def _empty() -> dict[str, deque[float | None]]:
    return {name: deque(maxlen=LENGTH) for name in KEPT}


def spark(values: Sequence[float | None], width: int, levels: str = LEVELS) -> str:
    """Return the newest values as bars, the last at the right end; unknown ones are blank."""
    if width <= 0:
        return ""
    shown = values[-width:]
    highest = len(levels) - 1
    bars = (" " if value is None else levels[round(value * highest)] for value in shown)
    return "".join(bars).rjust(width)
