"""The toolkit for authors of probers: what Linux shows of a device below /sys and /proc.

    from probe_core.sysfs import pci

    for function in pci.functions(request.machine, request.bus, vendors=("1ac0",)):
        yield {
            "ids": [function.id],
            "kind": "npu",
            "pci": function.pci,
            "power_state": function.power_state,
            "links": function.links(request.machine),
        }

Every function takes the `Machine`, so recorded machines work. None raises, whatever a file holds;
what cannot be read or believed is None, or is left out. Reads and lists are bounded. Nothing is
opened, written or woken: files that would wake a suspended device are not read.

`folder` is a device's folder in /sys, such as ``/sys/bus/pci/devices/0000:01:00.0``; links in it
may be followed or not. Importing this package loads none of its modules.
"""

from __future__ import annotations

__all__ = [
    "accel",
    "devicetree",
    "drivers",
    "drm",
    "drm_use",
    "fdinfo",
    "hwmon",
    "live",
    "meminfo",
    "nodes",
    "numbered",
    "pci",
    "pcie",
    "power",
    "rates",
    "sighting",
    "soc",
    "surroundings",
    "uevent",
    "users",
]
