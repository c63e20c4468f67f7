"""Finds the platform devices that are Mali GPUs, driven or not.

Arm's own driver registers a *misc* device, so udev's subsystem is "misc" and the class folder is
/sys/class/misc/mali0; a subsystem "mali0" never existed. The mainline drivers panfrost, panthor
and lima are DRM drivers, with a render node.
"""

from __future__ import annotations

from probe_core.sysfs import devicetree
from probe_core.sysfs.numbered import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from probe_core.api import Machine

DRIVER_FOLDER = "/sys/bus/platform/drivers"
DRIVERS = ("mali", "panfrost", "panthor", "lima")
STEM = "arm,mali"
"""Beginning of a compatible that every Mali node of a device tree has, beside the SoC's own."""


def folders(machine: Machine, bus: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the real /sys folders of Mali GPUs.

    Those without a driver are found through the bus prober's sightings, or where it saw nothing
    at all, through the device tree links of all platform devices.
    """
    gpus = dict.fromkeys([*_misc(machine), *_driven(machine)])
    sightings = list(bus)
    paths = {devicetree.node_path(machine, folder) for folder in gpus}
    missing = {path for sighting in sightings for path in _mali_paths(sighting)} - paths
    if missing or not sightings:
        for path, folder in devicetree.platform_devices(machine):
            if path in missing or (
                not sightings and path not in paths and _is_mali(machine, path, folder)
            ):
                gpus[machine.realpath(folder)] = None
    return sorted(gpus)


def _misc(machine: Machine) -> Iterator[str]:
    for _, path in entries(machine, "/sys/class/misc", "mali"):
        device = machine.realpath(f"{path}/device")
        if device and machine.exists(device):
            yield device


def _driven(machine: Machine) -> Iterator[str]:
    for driver in DRIVERS:
        folder = f"{DRIVER_FOLDER}/{driver}"
        for name in machine.listdir(folder):
            # Beside its devices a driver's folder holds "module" and files such as "bind".
            if name != "module" and machine.exists(f"{folder}/{name}/driver"):
                yield machine.realpath(f"{folder}/{name}")


def _mali_paths(sighting: Mapping[str, Any]) -> Iterator[str]:
    if any(str(name).startswith(STEM) for name in sighting.get("dt") or ()):
        yield from (name[3:] for name in sighting.get("ids", ()) if name.startswith("dt:"))


def _is_mali(machine: Machine, path: str, folder: str) -> bool:
    names = devicetree.compatibles(machine, path, folder)
    return any(name.startswith(STEM) for name in names) and devicetree.enabled(machine, path)
