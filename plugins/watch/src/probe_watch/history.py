"""What each device did in the last minute or two, for the small history behind its name."""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.sample_document import SampleDoc

__all__ = ["ASCII_LEVELS", "LEVELS", "History", "spark"]

LENGTH = 60
"""Samples that are kept of a device: a screen of 200 columns shows twenty."""

LEVELS = "▁▂▃▄▅▆▇█"
ASCII_LEVELS = "_.,-=+*#"


class History:
    """The `busy` of the last samples of each device; None where it was not known."""

    def __init__(self) -> None:
        self._values: dict[str, deque[float | None]] = {}

    def add(self, samples: Iterable[SampleDoc]) -> None:
        """Take a round. Devices that are in it no more are forgotten."""
        present = {sample["device"]: sample["busy"] for sample in samples}
        for device in self._values.keys() - present.keys():
            del self._values[device]
        for device, busy in present.items():
            self._values.setdefault(device, deque(maxlen=LENGTH)).append(busy)

    def values(self, device: str) -> list[float | None]:
        """Return the values of a device, the oldest first."""
        return list(self._values.get(device, ()))


def spark(values: Sequence[float | None], width: int, levels: str = LEVELS) -> str:
    """Return the newest values as bars, the last at the right end; unknown ones are blank."""
    if width <= 0:
        return ""
    shown = values[-width:]
    highest = len(levels) - 1
    bars = (" " if value is None else levels[round(value * highest)] for value in shown)
    return "".join(bars).rjust(width)
