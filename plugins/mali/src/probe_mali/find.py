"""Finds the platform devices that are Mali GPUs, driven or not.

Arm's own driver registers a *misc* device, so udev's subsystem is "misc" and the class folder is
/sys/class/misc/mali0; a subsystem "mali0" never existed. The mainline drivers panfrost, panthor
and lima are DRM drivers, with a render node.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from probe_core.api import Machine

PLATFORM = "/sys/bus/platform"
TREE = "/sys/firmware/devicetree/base"
DRIVERS = ("mali", "panfrost", "panthor", "lima")
STEM = "arm,mali"
"""Beginning of a compatible that every Mali node of a device tree has, beside the SoC's own."""


def folders(machine: Machine, bus: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the real /sys folders of Mali GPUs.

    Those without a driver are found through the bus prober's sightings, or where it saw nothing
    at all, through the device tree links of all platform devices.
    """
    found = dict.fromkeys([*_misc(machine), *_driven(machine)])
    sightings = list(bus)
    known = {node_path(machine, folder) for folder in found}
    missing = {path for one in sightings for path in _mali_paths(one)} - known
    if missing or not sightings:
        for folder in _platform(machine):
            if (path := node_path(machine, folder)) and path not in known:
                mine = any(name.startswith(STEM) for name in compatibles(machine, path))
                if path in missing or (not sightings and mine and _enabled(machine, path)):
                    found[folder] = None
    return sorted(found)


def _misc(machine: Machine) -> Iterator[str]:
    for name in machine.listdir("/sys/class/misc"):
        if name[:4] == "mali" and name[4:].isdecimal():
            device = machine.realpath(f"/sys/class/misc/{name}/device")
            if machine.exists(device or "/nowhere"):
                yield device


def _driven(machine: Machine) -> Iterator[str]:
    for driver in DRIVERS:
        folder = f"{PLATFORM}/drivers/{driver}"
        for name in machine.listdir(folder):
            device = machine.realpath(f"{folder}/{name}")
            # Beside its devices a driver's folder holds "module" and files such as "bind".
            if name != "module" and machine.exists(f"{folder}/{name}/driver"):
                yield device


def _platform(machine: Machine) -> Iterator[str]:
    for name in machine.listdir(f"{PLATFORM}/devices"):
        folder = f"{PLATFORM}/devices/{name}"
        if machine.exists(f"{folder}/of_node"):
            yield machine.realpath(folder)


def _mali_paths(sighting: Mapping[str, Any]) -> Iterator[str]:
    if any(str(name).startswith(STEM) for name in sighting.get("dt") or ()):
        yield from (name[3:] for name in sighting.get("ids", ()) if name.startswith("dt:"))


def _enabled(machine: Machine, path: str) -> bool:
    return machine.read(f"{TREE}{path}/status") in (None, "okay", "ok")


def node_path(machine: Machine, folder: str) -> str | None:
    """Return the device-tree path of the device at `folder`: "/gpu@fb000000"."""
    link = f"{folder}/of_node"
    real = machine.realpath(link) if machine.exists(link) else ""
    return real.removeprefix(TREE) if real.startswith(TREE + "/") else None


def compatibles(machine: Machine, path: str) -> list[str]:
    """Return a node's compatibles, most specific first; the file holds them NUL-separated."""
    text = machine.read(f"{TREE}{path}/compatible", 4096) or ""
    return [name for name in text.split("\0") if name]
