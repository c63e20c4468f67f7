"""What is free of GPUs' memory now, from their own samplers, which stay while somebody asks.

NVML belongs in a process of its own: there a hung driver costs a figure and not exo. The samplers
of `probe_core.samples` are that process; this keeps their last answer, so that a read takes
microseconds. A GPU that sleeps is not asked, see there. When nobody asks any more, the samplers
are ended and the libraries closed, so that GPUs can sleep.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import monotonic
from typing import Any, NamedTuple

LEAST_S = 0.1
"""Seconds between two looks at least: those of `probe_core.samples`."""

FIRST_S = 5.0
"""Seconds that a read waits for the samplers to start; libraries take up to two."""

LOOK_S = 1.0
"""Seconds that a read waits for one look; a driver that takes longer costs the fresh figure."""

IDLE_S = 30.0
"""Seconds without a read after which the samplers are ended. exo asks every second."""


class Reading(NamedTuple):
    """What was free of one GPU's memory, in bytes, and when that was read (monotonic seconds)."""

    available: int
    at: float


class FreeMemory:
    """The free memory of some GPUs; safe from any thread.

    `sample` is called with the least seconds between two looks and returns what
    `probe_core.samples` does. `devices` are ids in the report.
    """

    def __init__(self, devices: Sequence[str], sample: Callable[[float], Any]) -> None:
        self._devices = tuple(devices)
        self._sample = sample
        self._process = os.getpid()
        self._reset()

    def _reset(self) -> None:
        self._change = threading.Condition()
        self._readings: Mapping[str, Reading] = {}
        self._refreshed = -inf
        self._used_at = -inf
        self._age = inf
        self._requested = False
        self._running = False

    def read(self, max_age_s: float) -> Mapping[str, Reading]:
        """Return the last reading of each GPU that has one, looking anew where it is older.

        Microseconds where the last look is young enough, which it is for whoever asks in a rhythm:
        the samplers look twice in `max_age_s`.
        """
        now = self._used_at = monotonic()
        if self._process != os.getpid():  # a forked copy has no thread and no samplers
            self._process = os.getpid()
            self._reset()
            self._used_at = now
        if not now - self._refreshed <= max_age_s:  # also where that is no number
            self._refresh(now, max_age_s)
        return self._readings

    def _refresh(self, now: float, max_age_s: float) -> None:
        """Have the thread look, and wait for that."""
        with self._change:
            self._age = max_age_s
            first = not self._running
            if first and not self._start():
                return
            self._requested = True
            self._change.notify_all()
            self._change.wait_for(
                lambda: self._refreshed >= now or not self._running, FIRST_S if first else LOOK_S
            )

    def _start(self) -> bool:
        """Start the thread; return False where there is no room for one."""
        thread = threading.Thread(target=self._run, name="probe-exo-memory", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._running = True
        return True

    def close(self) -> None:
        """Have the thread end its samplers; a later read starts them again."""
        with self._change:
            self._used_at = -inf
            self._change.notify_all()
            self._change.wait_for(lambda: not self._running, FIRST_S)

    def _run(self) -> None:
        try:
            with self._sample(LEAST_S) as rounds:
                while self._is_in_use():
                    began = monotonic()
                    following = next(rounds, None)
                    if following is None:
                        return
                    self._take(following.documents, began)
        except Exception:  # a refused process or argument: the report's own figure stays
            pass
        finally:
            with self._change:
                self._running = False
                self._age = inf
                self._change.notify_all()

    def _is_in_use(self) -> bool:
        """Wait for the next look; False when nobody has asked for a while."""
        with self._change:
            # Whoever wants it fresher than that asks, and waits.
            pause = self._age / 2 if self._age / 2 >= LEAST_S else IDLE_S
            self._change.wait_for(
                lambda: self._requested or self._used_at == -inf, min(pause, IDLE_S)
            )
            self._requested = False
            return monotonic() - self._used_at <= IDLE_S

    def _take(self, samples: Sequence[Mapping[str, Any]], began: float) -> None:
        readings = dict(self._readings)
        for sample in samples:
            available = _available(sample)
            if sample["device"] in self._devices and available is not None:
                readings[sample["device"]] = Reading(available, began)
        with self._change:
            self._readings, self._refreshed = readings, began
            self._change.notify_all()


def _available(sample: Mapping[str, Any]) -> int | None:
    """Return what is free; None where the device sleeps, hangs or does not say."""
    memory = sample.get("memory") or {}
    total, used = memory.get("total"), memory.get("used")
    if sample.get("status") != "ok" or total is None or used is None:
        return None
    return max(0, int(total) - int(used))
