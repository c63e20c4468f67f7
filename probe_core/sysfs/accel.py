"""Finds the nodes of compute accelerators (/dev/accel/accelN), which NPUs and Gaudis have."""

from __future__ import annotations

from probe_core.sysfs.numbered import entries, lowest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = ["CLASS", "by_device", "minors"]

CLASS = "/sys/class/accel"
"""Where the kernel lists all such nodes."""
STEMS = {"accel": "accel"}
"""Label in a sighting's ``node_index`` → how the kernel names such nodes."""


def minors(machine: Machine, folder: str) -> dict[str, int]:
    """Return ``accel`` of the device at `folder`, if it has one."""
    return lowest(machine, f"{folder}/accel", STEMS)


def by_device(machine: Machine) -> dict[str, dict[str, int]]:
    """Return the minors of all devices, by their real folders in /sys."""
    devices: dict[str, dict[str, int]] = {}
    for number, path in entries(machine, CLASS, "accel"):
        devices.setdefault(machine.realpath(f"{path}/device"), {}).setdefault("accel", number)
    return devices
