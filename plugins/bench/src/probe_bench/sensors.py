"""Power, temperature and clock of a device while it is measured.

From the kernel's sensor files: nothing is opened but files of /sys, and those of a sleeping device
are not read. NVIDIA's driver shows nothing in /sys; its library, in the sampler's own process,
knows.
"""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

import probe_core
from probe_core.sysfs.hwmon import sensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, ReportDoc, SampleDoc
    from probe_core.sampling import Rounds
    from probe_core.sysfs.hwmon import Sensor


_CPU_CHIPS = ("k10temp", "zenpower", "coretemp", "cpu_thermal")
_MONITORS = "/sys/class/hwmon"
_MEMORY_LABELS = ("mem", "vram")


class Readings(NamedTuple):
    """What was shown, each the highest of several looks; None where nothing shows it."""

    power_w: float | None = None
    power_cap_w: float | None = None
    temperature_c: float | None = None
    clock_mhz: float | None = None
    reasons: tuple[str, ...] | None = None
    """What held the clock down."""


class Sensors:
    """The sensors of one device; a look takes tens of microseconds a file."""

    def __init__(self, machine: Machine, device: DeviceDoc) -> None:
        self._machine = machine
        self._folders = folders(machine, device)

    def read(self) -> Readings:
        """Return what the sensors show now."""
        readings = [s for folder in self._folders for s in sensors(self._machine, folder)]
        return highest(readings)


def folders(machine: Machine, device: DeviceDoc) -> list[str]:
    """Return the folders of /sys whose sensors belong to a device."""
    if device["kind"] != "cpu":
        addresses = [name[4:] for name in device["ids"] if name.startswith("pci:")]
        return [f"/sys/bus/pci/devices/{address}" for address in addresses[:1]]
    # Of several packages nothing here says which sensor is whose.
    if device["id"] != "cpu:0":
        return []
    names = [f"{_MONITORS}/{name}" for name in machine.listdir(_MONITORS)]
    return [f"{path}/device" for path in names if machine.read(f"{path}/name") in _CPU_CHIPS]


def highest(readings: Iterable[Sensor]) -> Readings:
    """Return the figures of one look: a card's whole power, its own clock, its hottest spot."""
    power, cap, temperature, clock = [], [], [], []
    for sensor in readings:
        label = (sensor.label or "").lower()
        if sensor.kind == "power" and sensor.number == 1:
            if sensor.item in ("input", "average"):
                power.append(sensor.value)
            elif sensor.item == "cap":
                cap.append(sensor.value)
        elif sensor.kind == "temp" and sensor.item == "input" and label not in _MEMORY_LABELS:
            temperature.append(sensor.value)
        elif sensor.kind == "freq" and sensor.item == "input" and label in ("", "sclk"):
            clock.append(sensor.value / 1e6)
    return Readings(
        power_w=max(power, default=None),
        power_cap_w=max(cap, default=None),
        temperature_c=max(temperature, default=None),
        clock_mhz=max(clock, default=None),
    )


# Live figures by the vendor's sampler.

_PERIOD_S = 0.5
"""Seconds between two rounds: drivers average power over one."""


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
        samples = following.documents if following is not None else ()
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
    names = tuple(dict.fromkeys(name for own in reasons for name in own)) if reasons else None
    pairs = ([v for v in pair if v is not None] for pair in zip(first[:4], second[:4], strict=True))
    return Readings._make((*(max(pair, default=None) for pair in pairs), names))
