"""Turns counters that only grow into rates: what a sampler remembers between two rounds."""

from __future__ import annotations

from time import monotonic

__all__ = ["NEEDS_TWO", "WENT_BACK", "Rates"]

NEEDS_TWO = "a rate needs two readings"
"""Why there is no rate of a counter that was read for the first time."""

WENT_BACK = "the counter went back: the driver or the device was reset"
"""Why there is no rate of a counter that is smaller than before."""

MAX_KEYS = 16_384
"""Counters remembered at most: a bound on memory, should a machine invent new names for ever."""


class Rates:
    """Counters by key, each with its last reading and the time of it; one per sampler.

    A rate is divided by the time between the two readings themselves, and not by the interval that
    was asked for: a busy machine is late by a tenth. `reason` says why the last call had no answer.
    """

    def __init__(self) -> None:
        self._last: dict[object, tuple[float, float]] = {}
        self.reason = NEEDS_TWO

    def per_second(
        self, key: object, counter: float, at: float | None = None, *, wrap: float | None = None
    ) -> float | None:
        """Return how fast a counter grows, per second; None at first and when it went back.

        `at` is the time of the reading in seconds, the driver's own where it has one; without it
        that of now, on the monotonic clock. `wrap` is where the counter begins again at 0: one wrap
        between two readings is mended.
        """
        now = monotonic() if at is None else at
        before, last = self._last.get(key, (now, None))
        has_room = last is not None or len(self._last) < MAX_KEYS
        if has_room and (last is None or now > before):
            self._last[key] = (now, counter)
        if last is None or now <= before:
            self.reason = NEEDS_TWO
            return None
        grown = counter - last
        if grown < 0 and wrap is not None:
            grown += wrap
        if grown < 0:
            self.reason = WENT_BACK
            return None
        return grown / (now - before)

    def forget(self) -> None:
        """Forget all readings: the devices were not looked at for a while."""
        self._last.clear()
