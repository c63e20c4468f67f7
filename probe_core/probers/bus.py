"""Find every accelerator on the buses from the kernel's files: no library, no device opened.

This is the safety net under all vendor libraries: a GPU whose driver is broken is still seen, and
a vendor's library is only loaded where this prober saw the vendor's hardware.
"""

from __future__ import annotations

from probe_core.api import NotApplicable, Request, hookimpl, not_applicable
from probe_core.probers import devicetree, pci

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.model.document import Sighting

    Answer = list[Sighting] | NotApplicable

__all__ = ["Scan", "probe_devices"]


@hookimpl
def probe_devices(request: Request) -> Answer:
    """Report PCI displays and accelerators, and GPU and NPU nodes of the device tree."""
    return Scan(request.machine).answer()


class Scan:
    """A look at the buses: first at what kind each device is, which two files of each tell.

    `vendors` are the PCI vendor ids of the devices that compute or display, four hexadecimal digits
    each: they decide which probers run. A dozen files more describe each device.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._functions = pci.candidates(machine)
        self._nodes = devicetree.candidates(machine)
        self.vendors = {function.vendor for function in self._functions}

    def answer(self) -> Answer:
        """Return a sighting of each device, or that there is none."""
        if not (self._functions or self._nodes):
            return not_applicable("no display, GPU or accelerator is on any bus")
        from probe_core.machine.remembering import remembering

        machine = remembering(self._machine)
        minors = _minors(machine)
        described = (pci.describe(machine, function, minors) for function in self._functions)
        sightings = [sighting for sighting in described if sighting]
        sightings += devicetree.describe(machine, self._nodes, minors)
        return sightings or not_applicable("no display, GPU or accelerator is on any bus")


def _minors(machine: Machine) -> dict[str, dict[str, int]]:
    """Return the DRM and accel minors of all devices, by their real folders in /sys."""
    from probe_core.sysfs import accel, drm

    minors = drm.by_device(machine)
    for folder, numbers in accel.by_device(machine).items():
        minors.setdefault(folder, {}).update(numbers)
    return minors
