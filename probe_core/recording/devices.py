"""The devices of a machine's buses, and which of them sleep: their files could wake them."""

from __future__ import annotations

from probe_core.recording.paths import above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.recording.declared import DeviceFiles

__all__ = ["Device", "Devices"]

PCI, PLATFORM = "/sys/bus/pci/devices", "/sys/bus/platform/devices"

_ASLEEP = ("suspended", "suspending", "resuming")
"""What `power/runtime_status` says; "resuming" may still end in an error, and asleep again."""

_DEVICE_NUMBER = "dev"


class Device:
    """One device of a bus. `real` is where its folder lies; vendor and class are hex digits."""

    __slots__ = ("asleep", "folder", "name", "pci_class", "real", "vendor")

    def __init__(self, machine: Machine, bus: str, name: str) -> None:
        self.name = name
        self.folder = f"{bus}/{name}"
        self.real = machine.realpath(self.folder)
        self.asleep = machine.read(f"{self.folder}/power/runtime_status", 32) in _ASLEEP
        self.vendor = self.pci_class = ""
        if bus == PCI:
            self.vendor = _digits(machine, f"{self.folder}/vendor")
            self.pci_class = _digits(machine, f"{self.folder}/class")

    def fits(self, rule: DeviceFiles) -> bool:
        """Return whether a declaration is about this device, whatever its power state."""
        vendor = not rule.vendors or self.vendor in rule.vendors
        return vendor and (not rule.classes or self.pci_class.startswith(rule.classes))


class Devices:
    """The PCI devices, and the platform devices that the device tree describes."""

    def __init__(self, machine: Machine) -> None:
        self.pci = [Device(machine, PCI, name) for name in machine.listdir(PCI)]
        self.platform = [
            Device(machine, PLATFORM, name)
            for name in machine.listdir(PLATFORM)
            if machine.exists(f"{PLATFORM}/{name}/of_node/compatible")
        ]
        self._by_real = {device.real: device for device in self.pci}
        # A recording's own files wake nobody.
        asleep = (device for device in self.pci if device.asleep and machine.live)
        self._asleep = {device.name: device for device in asleep}

    def sleeper(self, real: str) -> Device | None:
        """Return the sleeping PCI device that reading the file at `real` could wake, if any.

        A class folder leads to a device's own: /sys/class/hwmon/hwmon0 is below the GPU's. The
        device number is no driver's file, and is how DRM and accel nodes are found.
        """
        if not real.startswith("/sys/"):
            # A driver's own files: from 515 up to 590, NVIDIA's resumes a GPU to answer for
            # /proc/driver/nvidia/gpus/ADDRESS/information (open-gpu-kernel-modules, nv-procfs.c).
            return next(filter(None, map(self._asleep.get, real.split("/"))), None)
        # The innermost device counts: a GPU's folder lies below those of its bridges.
        folders = reversed([*above(real)])
        device = next(filter(None, map(self._by_real.get, folders)), None)
        harmless = real.rpartition("/")[2] == _DEVICE_NUMBER
        return device if device and device.asleep and not harmless else None


def _digits(machine: Machine, path: str) -> str:
    return (machine.read(path, 16) or "").lower().removeprefix("0x")
