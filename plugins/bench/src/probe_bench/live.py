"""Live figures of a GPU by its vendor's sampler.

NVIDIA's driver shows nothing in /sys; its library, in the sampler's own process, knows.
"""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

import probe_core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, ReportDoc, SampleDoc
    from probe_core.sampling import Rounds

__all__ = ["Live", "Readings", "joined", "of_sample"]

_PERIOD_S = 0.5
"""Seconds between two rounds: drivers average power over one."""


class Readings(NamedTuple):
    """What was shown, each the highest of several looks; None where nothing shows it."""

    power_w: float | None = None
    power_cap_w: float | None = None
    temperature_c: float | None = None
    clock_mhz: float | None = None
    reasons: tuple[str, ...] | None = None
    """What held the clock down."""


class Live:
    """The rounds of one device's sampler; `close` ends its process."""

    def __init__(self, device: DeviceDoc, report: ReportDoc) -> None:
        self._device = device["id"]
        self._rounds: Rounds | None = None
        if device["kind"] != "cpu":
            self._rounds = probe_core.samples(_PERIOD_S, devices=[device["id"]], report=report)
        self._last = 0.0

    def read(self) -> Readings:
        """Return the newest figures; none where the last ones are not half a second old."""
        if self._rounds is None or monotonic() - self._last < _PERIOD_S:
            return Readings()
        following = next(self._rounds, None)
        self._last = monotonic()
        samples = following.samples if following is not None else ()
        own = next((entry for entry in samples if entry["device"] == self._device), None)
        return of_sample(own) if own is not None else Readings()

    def close(self) -> None:
        """End the sampler."""
        if self._rounds is not None:
            self._rounds.close()


def of_sample(sample: SampleDoc) -> Readings:
    """Return the figures of a sample.

    That it was idle is no reason: the first look may come before the first kernel.
    """
    throttled, clocks = sample.get("throttled"), sample.get("clocks_mhz")
    return Readings(
        power_w=sample.get("power_w"),
        power_cap_w=sample.get("power_cap_w"),
        temperature_c=sample.get("temperature_c"),
        clock_mhz=clocks.get("sm") if clocks else None,
        reasons=None if throttled is None else tuple(r for r in throttled if r != "idle"),
    )


def joined(first: Readings, second: Readings) -> Readings:
    """Return the higher of each reading, and all reasons."""
    reasons = [own for own in (first.reasons, second.reasons) if own is not None]
    return Readings(
        power_w=_higher(first.power_w, second.power_w),
        power_cap_w=_higher(first.power_cap_w, second.power_cap_w),
        temperature_c=_higher(first.temperature_c, second.temperature_c),
        clock_mhz=_higher(first.clock_mhz, second.clock_mhz),
        reasons=tuple(dict.fromkeys(name for own in reasons for name in own)) if reasons else None,
    )


def _higher(first: float | None, second: float | None) -> float | None:
    return max((value for value in (first, second) if value is not None), default=None)
