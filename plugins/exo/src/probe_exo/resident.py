"""What is free of GPUs' memory now, from their own samplers, which stay while somebody asks.

NVML belongs in a process of its own: there a hung driver costs a figure and not exo. The samplers
of `probe_core.samples` are that process; this keeps their last answer, so that a read takes
microseconds. A GPU that sleeps is not asked, see there. When nobody asks any more, the samplers
are ended and the libraries closed, so that GPUs can sleep.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["FreeMemory", "Reading"]

LEAST_S, MOST_S = 0.1, 60.0
"""Bounds of the time between two looks: those of `probe_core.samples`, and a minute."""

FIRST_S = 5.0
"""Seconds that the first read waits for the samplers to start; libraries take up to two."""

IDLE_S = 30.0
"""Seconds without a read after which the samplers are ended. exo asks every second."""


class Reading(NamedTuple):
    """What was free of one GPU's memory, in bytes, and when that was read (monotonic seconds)."""

    available: int
    at: float


class FreeMemory:
    """The free memory of some GPUs; safe from any thread.

    `sample` is called with the seconds between two looks and returns what `probe_core.samples`
    does. `devices` are ids in the report.
    """

    def __init__(self, devices: Sequence[str], sample: Callable[[float], Any]) -> None:
        self._devices = tuple(devices)
        self._sample = sample
        self._lock = threading.Lock()
        self._first = threading.Event()
        self._readings: Mapping[str, Reading] = {}
        self._asked = 0.0
        self._interval = MOST_S
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def read(self, max_age_s: float) -> Mapping[str, Reading]:
        """Return the last reading of each GPU that has one; the first call waits for a round.

        `max_age_s` sets how often the samplers look: twice in that time.
        """
        interval = min(MOST_S, max(LEAST_S, max_age_s / 2))
        self._asked = time.monotonic()
        if self._process != os.getpid() or not self._is_running() or interval < self._interval:
            self._start(interval)
        self._first.wait(FIRST_S)
        return self._readings

    def close(self) -> None:
        """Have the thread end its samplers; a later read starts them again."""
        self._asked = -IDLE_S
        thread = self._thread
        if thread is not None and thread.is_alive():
            thread.join(FIRST_S)

    def _is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _start(self, interval: float) -> None:
        with self._lock:
            if self._process != os.getpid():  # a forked copy has no thread and no samplers
                self._process, self._thread = os.getpid(), None
                self._first = threading.Event()
            if self._is_running() and interval >= self._interval:
                return
            self._interval = interval
            # A thread that looks too seldom sees by the interval that it is not the latest.
            thread = threading.Thread(
                target=self._run, args=(interval,), name="probe-exo-memory", daemon=True
            )
            self._thread = thread
        thread.start()

    def _run(self, interval: float) -> None:
        try:
            with self._sample(interval) as rounds:
                for following in rounds:
                    self._take(following.samples)
                    idle = time.monotonic() - self._asked > IDLE_S
                    if idle or self._thread is not threading.current_thread():
                        return
        except Exception:  # a refused process or argument: the report's own figure stays
            pass
        finally:
            self._first.set()

    def _take(self, samples: Sequence[Mapping[str, Any]]) -> None:
        now = time.monotonic()
        readings = dict(self._readings)
        for sample in samples:
            available = _available(sample)
            if sample["device"] in self._devices and available is not None:
                readings[sample["device"]] = Reading(available, now)
        self._readings = readings
        self._first.set()


def _available(sample: Mapping[str, Any]) -> int | None:
    """Return what is free; None where the device sleeps, hangs or does not say."""
    memory = sample.get("memory") or {}
    total, used = memory.get("total"), memory.get("used")
    if sample.get("status") != "ok" or total is None or used is None:
        return None
    return max(0, int(total) - int(used))
