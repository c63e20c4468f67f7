"""Power, temperature and clock of a device while it is measured, from the kernel's sensor files.

Nothing is opened but files of /sys, and those of a sleeping device are not read.
"""

from __future__ import annotations

from probe_bench.live import Readings
from probe_core.sysfs.hwmon import sensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc
    from probe_core.sysfs.hwmon import Sensor

__all__ = ["Sensors", "folders", "highest"]

_CPU_CHIPS = ("k10temp", "zenpower", "coretemp", "cpu_thermal")
_MONITORS = "/sys/class/hwmon"
_MEMORY_LABELS = ("mem", "vram")


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
