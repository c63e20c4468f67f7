"""Finds the DRM nodes (card and render) of a device, which programs open to use it."""

from __future__ import annotations

from probe_core.sysfs.numbered import MAX_ENTRIES, lowest, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = ["CLASS", "by_device", "minors", "node_names"]

CLASS = "/sys/class/drm"
"""Where the kernel lists all such nodes, and the connectors of displays."""
STEMS = {"drm_card": "card", "drm_render": "renderD"}
"""Label in a sighting's ``node_index`` → how the kernel names such nodes."""


def minors(machine: Machine, folder: str) -> dict[str, int]:
    """Return ``drm_card`` and ``drm_render`` of the device at `folder`, those that it has."""
    return lowest(machine, f"{folder}/drm", STEMS)


def node_names(machine: Machine, folder: str) -> frozenset[str]:
    """Return the names of the DRM nodes of the device at `folder`: card0, renderD128."""
    numbers = minors(machine, folder)
    return frozenset(f"{STEMS[label]}{number}" for label, number in numbers.items())


def by_device(machine: Machine) -> dict[str, dict[str, int]]:
    """Return the minors of all devices, by their real folders in /sys.

    One list of /sys/class/drm, for a prober that looks at many devices:
    /sys/class/drm/card0 leads to ../../devices/…/drm/card0, whose ``device`` is the device.
    """
    devices: dict[str, dict[str, int]] = {}
    for name in machine.listdir(CLASS)[:MAX_ENTRIES]:
        for label, stem in STEMS.items():
            # Connectors (card0-DP-1) are listed as well, and are no nodes.
            if (number := number_of(name, stem)) is not None:
                device = machine.realpath(f"{CLASS}/{name}/device")
                numbers = devices.setdefault(device, {})
                numbers[label] = min(number, numbers.get(label, number))
    return devices
