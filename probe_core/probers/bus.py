"""Find every accelerator on the buses from the kernel's files: no library, no device opened.

This is the safety net under all vendor libraries: a GPU whose driver is broken is still seen, and
a vendor's library is only loaded where this prober saw the vendor's hardware.
"""

from __future__ import annotations

from probe_core.api import NotApplicable, Request, hookimpl, not_applicable
from probe_core.probers import devicetree, pci

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.machine import Machine

__all__ = ["probe_devices"]


@hookimpl
def probe_devices(request: Request) -> list[dict[str, Any]] | NotApplicable:
    """Report PCI displays and accelerators, and GPU and NPU nodes of the device tree."""
    machine = request.machine
    nodes = _device_nodes(machine)
    found = pci.devices(machine, nodes) + devicetree.devices(machine, nodes)
    return found or not_applicable("no display, GPU or accelerator is on any bus")


def _device_nodes(machine: Machine) -> dict[str, dict[str, int]]:
    """Map the real path of a device in /sys to its DRM and accel minors.

    Class folders hold links: /sys/class/drm/card0 → ../../devices/…/drm/card0.
    """
    nodes: dict[str, dict[str, int]] = {}
    for folder, prefix, label in (
        ("/sys/class/drm", "card", "drm_card"),
        ("/sys/class/drm", "renderD", "drm_render"),
        ("/sys/class/accel", "accel", "accel"),
    ):
        for name in machine.listdir(folder):
            number = name.removeprefix(prefix)
            if name.startswith(prefix) and number.isdecimal():
                device = machine.realpath(f"{folder}/{name}/device")
                nodes.setdefault(device, {})[label] = int(number)
    return nodes
