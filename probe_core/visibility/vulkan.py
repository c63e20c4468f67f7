"""What the Vulkan loader shows: its order of GPUs and the variables that filter or reorder them.

Sources: Vulkan-Loader, loader/loader_linux.c (`compare_devices`), loader_environment.c,
docs/LoaderInterfaceArchitecture.md; Mesa, src/vulkan/device-select-layer. No variable says whether
a driver (ICD) for a GPU is installed: a GPU is "visible" when nothing hides it.
"""

from __future__ import annotations

from probe_core.visibility.availability import available_to
from probe_core.visibility.numbers import strtol, unsigned
from probe_core.visibility.pool import address, driver_name, ids_of, integrated, pci_codes
from probe_core.visibility.view import Mask, View, quoted
from probe_core.visibility.vulkan_drivers import PCI_VENDORS, VENDORS, Filters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["see", "vulkan_gpus"]

# VkDriverId: which of the installed drivers serves a GPU is not known here.
_BY_DRIVER_ID = "VK_LOADER_DRIVER_ID_FILTER"
_FIRST = "VK_LOADER_DEVICE_SELECT"
_MESA, _NO_MESA = "MESA_VK_DEVICE_SELECT", "NODEVICE_SELECT"
_FILTERS = (("VK_LOADER_DEVICE_ID_FILTER", 1), ("VK_LOADER_VENDOR_ID_FILTER", 0))
"""Variables, and which half of ``vendor:device`` each compares. Since loader 1.4.326."""


def vulkan_gpus(devices: Sequence[DeviceDoc]) -> list[DeviceDoc]:
    """Return the GPUs that a Vulkan driver exists for, partitions left out."""
    return [
        device
        for device in devices
        if device["kind"] == "gpu" and device["vendor"] in VENDORS and not device["parent"]
    ]


def see(devices: Sequence[DeviceDoc], environ: Mapping[str, str], os: str = "linux") -> View:
    """Return what a Vulkan program would see of a report's devices under `environ`."""
    available = available_to(devices, "vulkan")
    view = View("vulkan", (), [])
    for numbered in available.alternatives():
        gpus = vulkan_gpus(numbered)
        # The loader sorts on Linux alone (`linux_read_sorted_physical_devices`).
        mask = Mask(ids_of(_sorted(gpus, environ) if os == "linux" else gpus))
        view.pool += ids_of(gpus)
        view.masks.append(mask)
        _apply_variables(view, mask, gpus, environ)
    if available.withheld:
        view.withhold(available, ids_of(vulkan_gpus(devices)))
    return view


def _apply_variables(
    view: View, mask: Mask, gpus: Sequence[DeviceDoc], environ: Mapping[str, str]
) -> None:
    _apply_drivers(view, mask, gpus, environ)
    for variable, half in _FILTERS:
        _apply_filter(view, mask, gpus, variable, environ.get(variable), half)
    _apply_mesa(view, mask, gpus, environ)
    _apply_driver_ids(view, mask, environ)


def _sorted(gpus: Sequence[DeviceDoc], environ: Mapping[str, str]) -> list[DeviceDoc]:
    codes = _pair(environ.get(_FIRST, ""))
    first = None
    if codes is not None:
        first = next((gpu for gpu in gpus if pci_codes(gpu) == codes), None)

    def rank(gpu: DeviceDoc) -> tuple[bool, bool, bool, tuple[int, ...]]:
        place = address(gpu)
        return gpu is not first, integrated(gpu), place is None, place or ()

    return sorted(gpus, key=rank)


def _pair(text: str) -> tuple[int, int] | None:
    """Read ``vendor:device`` as ``sscanf("%x:%x")`` does."""
    vendor, tail = strtol(text, 16)
    if vendor is None or tail[:1] != ":":
        return None
    device, _ = strtol(tail[1:], 16)
    return None if device is None else (unsigned(vendor, 32), unsigned(device, 32))


def _hide(view: View, mask: Mask, name: str, variable: str, value: str) -> None:
    if name in mask.ids:
        mask.ids.remove(name)
        view.reasons[name] = (f"{variable}={quoted(value)} leaves it out", variable)
        view.variable, view.value = variable, value


def _doubt(mask: Mask, name: str, variable: str, value: str) -> None:
    if name in mask.ids:
        mask.ids.remove(name)
        mask.maybe[name] = (
            f"{variable}={quoted(value)} decides by the installed drivers, which are not known here"
        )


def _apply_drivers(
    view: View, mask: Mask, gpus: Sequence[DeviceDoc], environ: Mapping[str, str]
) -> None:
    """Apply the lists of driver manifests: a GPU none of whose drivers is left is not shown."""
    filters = Filters(environ)
    if filters.variable is None:
        return
    for gpu in gpus:
        passes = filters.leave(gpu["vendor"] or "", driver_name(gpu))
        if passes is None:
            _doubt(mask, gpu["id"], filters.variable, filters.value)
        elif not passes:
            _hide(view, mask, gpu["id"], filters.variable, filters.value)
    view.variable, view.value = filters.variable, filters.value


def _apply_filter(
    view: View,
    mask: Mask,
    gpus: Sequence[DeviceDoc],
    variable: str,
    value: str | None,
    half: int,
) -> None:
    """Apply a filter of PCI ids: numbers or ranges in C's base 0."""
    ranges = [_range(entry) for entry in (value or "").lower().split(",") if entry]
    if not ranges or value is None:
        return
    for gpu in gpus:
        code = _code(gpu, half)
        if code is None:
            _doubt(mask, gpu["id"], variable, value)
        elif not any(low <= code <= high for low, high in ranges):
            _hide(view, mask, gpu["id"], variable, value)


def _code(gpu: DeviceDoc, half: int) -> int | None:
    """Return the PCI id of the vendor (half 0) or of the model (half 1); None when unknown."""
    codes = pci_codes(gpu)
    if codes is not None:
        return codes[half]
    return None if half else PCI_VENDORS.get(gpu["vendor"] or "")


def _range(entry: str) -> tuple[int, int]:
    low, tail = strtol(entry, 0)
    high = strtol(tail[1:], 0)[0] if tail else low
    return unsigned(low or 0, 32), unsigned(high or 0, 32)


def _apply_mesa(
    view: View, mask: Mask, gpus: Sequence[DeviceDoc], environ: Mapping[str, str]
) -> None:
    """Apply Mesa's layer: the chosen GPU first, and alone when the value ends in ``!``."""
    value = environ.get(_MESA)
    codes = _pair(value or "")
    if not value or codes is None or environ.get(_NO_MESA):
        return
    fits = [gpu["id"] for gpu in gpus if pci_codes(gpu) == codes]
    first = next((name for name in mask.ids if name in fits), None)
    if first is None:
        return
    mask.ids.remove(first)
    mask.ids.insert(0, first)
    if value.endswith("!"):
        for name in mask.ids[1:]:
            _hide(view, mask, name, _MESA, value)


def _apply_driver_ids(view: View, mask: Mask, environ: Mapping[str, str]) -> None:
    value = environ.get(_BY_DRIVER_ID)
    if value:
        for name in list(mask.ids):
            _doubt(mask, name, _BY_DRIVER_ID, value)
        view.variable, view.value = _BY_DRIVER_ID, value
