"""Reads a device's sensors: temperature, power, voltage, fans and clocks, in units for people.

The driver of a device registers a folder hwmonN below it; /sys/class/hwmon lists all of them, in an
order that changes from boot to boot. Sensors are known by their label ("edge", "PPT"), their number
means something else on the next card.
"""

from __future__ import annotations

from probe_core.sysfs import power
from probe_core.sysfs.numbered import MAX_ENTRIES, entries, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.machine import Machine

__all__ = ["ITEMS", "UNITS", "Sensor", "places", "sensors"]

UNITS = {
    "temp": ("°C", 1e-3),
    "power": ("W", 1e-6),
    "energy": ("J", 1e-6),
    "in": ("V", 1e-3),
    "curr": ("A", 1e-3),
    "fan": ("rpm", 1),
    "freq": ("Hz", 1),
    "humidity": ("%", 1e-3),
}
"""Kind of a sensor → its unit, and what the file's number is in that unit (sysfs-class-hwmon)."""

ITEMS = ("input", "average", "cap", "max", "crit")
"""What is read of a sensor. A card's power has either ``input`` or ``average`` (MangoHud#1620)."""

MAX_SENSORS = 256
"""Readings of one device at most: a bound on time, at a hundredth of a second."""


class Sensor:
    """One reading.

    `chip` is the driver's name for its sensors ("amdgpu"), `kind` a key of `UNITS`, `number` its
    place among its kind, `item` one of `ITEMS`, `label` the driver's name for it ("junction"; None
    without one), `value` in `unit`.
    """

    def __init__(
        self, chip: str | None, kind: str, number: int, item: str, label: str | None, value: float
    ) -> None:
        self.chip = chip
        self.kind = kind
        self.number = number
        self.item = item
        self.label = label
        self.value = value
        self.unit = UNITS[kind][0]

    def __repr__(self) -> str:
        return f"Sensor({self.kind}{self.number}_{self.item}={self.value} {self.unit})"


def sensors(machine: Machine, folder: str) -> list[Sensor]:
    """Return the readings of the device at `folder`; none of one that sleeps.

    A sensor that refuses (EAGAIN, EPERM while the device goes to sleep) is left out.
    """
    if power.asleep(power.status(machine, folder)):
        return []
    readings: list[Sensor] = []
    for _, path in entries(machine, f"{folder}/hwmon", "hwmon"):
        for sensor in _chip(machine, path):
            if len(readings) >= MAX_SENSORS:
                return readings
            readings.append(sensor)
    return readings


def places(machine: Machine, folder: str) -> dict[str, str]:
    """Return where a device's sensors are, for whoever reads them again and again.

    Keys are a sensor's name ("temp1") and, where it has one, its kind and label ("temp edge");
    values the path to which ``_input`` or another of `ITEMS` is appended.
    """
    stems: dict[str, str] = {}
    for _, path in entries(machine, f"{folder}/hwmon", "hwmon"):
        for name in machine.listdir(path)[:MAX_ENTRIES]:
            channel, _, item = name.partition("_")
            kind = channel.rstrip("0123456789")
            if kind not in UNITS:
                continue
            stems.setdefault(channel, f"{path}/{channel}")
            if item == "label" and (label := machine.read(f"{path}/{name}", 64)):
                stems.setdefault(f"{kind} {label.lower()}", f"{path}/{channel}")
    return stems


def _chip(machine: Machine, path: str) -> Iterator[Sensor]:
    chip = machine.read(f"{path}/name", 64) or None
    for name in machine.listdir(path)[:MAX_ENTRIES]:
        channel, _, item = name.partition("_")
        kind = channel.rstrip("0123456789")
        number = number_of(channel, kind)
        if kind not in UNITS or number is None or item not in ITEMS:
            continue
        raw = machine.read_int(f"{path}/{name}")
        # 64 bits is the widest that the kernel writes; what is longer is no reading.
        if raw is not None and abs(raw) < 1 << 64:
            label = machine.read(f"{path}/{channel}_label", 64) or None
            yield Sensor(chip, kind, number, item, label, raw * UNITS[kind][1])
