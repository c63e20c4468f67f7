"""What the Vulkan loader shows: its order of GPUs and the variables that filter or reorder them.

Sources: Vulkan-Loader, loader/loader_linux.c (`compare_devices`), loader_environment.c,
docs/LoaderInterfaceArchitecture.md; Mesa, src/vulkan/device-select-layer. Whether a driver (ICD)
for a GPU is installed is not told by any variable: a GPU is "visible" when nothing hides it.
"""

from __future__ import annotations

from probe_core.visibility.numbers import strtol, unsigned
from probe_core.visibility.pool import address, driver_name, identifier, integrated
from probe_core.visibility.view import Mask, View, quoted
from probe_core.visibility.vulkan_drivers import PCI_VENDORS, VENDORS, Filters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["see", "vulkan_gpus"]

_UNKNOWN = "VK_LOADER_DRIVER_ID_FILTER"  # VkDriverId: which driver serves a GPU is not known here
_FILTERS = (("VK_LOADER_DEVICE_ID_FILTER", 1), ("VK_LOADER_VENDOR_ID_FILTER", 0))


def vulkan_gpus(devices: Sequence[Device]) -> list[Device]:
    """Return the GPUs that a Vulkan driver exists for, partitions left out."""
    return [
        device
        for device in devices
        if device.get("kind") == "gpu"
        and device.get("vendor") in VENDORS
        and not device.get("parent")
        and driver_name(device) not in ("vfio-pci", "pci-stub")
    ]


def see(devices: Sequence[Device], environ: Mapping[str, str], os: str = "linux") -> View:
    """Return what a Vulkan program would see of a report's devices under `environ`."""
    gpus = vulkan_gpus(devices)
    ranked = _sorted(gpus, environ) if os == "linux" else gpus
    mask = Mask([identifier(gpu) for gpu in ranked])
    view = View("vulkan", [identifier(gpu) for gpu in gpus], [mask])
    _drivers(view, mask, gpus, environ)
    for variable, part in _FILTERS:
        _filter(view, mask, gpus, variable, environ.get(variable), part)
    _mesa(view, mask, gpus, environ)
    _doubt(view, mask, environ)
    return view


def _sorted(gpus: Sequence[Device], environ: Mapping[str, str]) -> list[Device]:
    chosen = _pair(environ.get("VK_LOADER_DEVICE_SELECT", ""))
    first = next((gpu for gpu in gpus if chosen is not None and _codes(gpu) == chosen), None)

    def rank(gpu: Device) -> tuple[bool, bool, bool, tuple[int, ...]]:
        place = address(gpu)
        return gpu is not first, integrated(gpu), place is None, place or ()

    return sorted(gpus, key=rank)


def _codes(gpu: Device) -> tuple[int, int] | None:
    code = str((gpu.get("pci") or {}).get("id") or "")
    try:
        vendor, device = code.split(":")
        return int(vendor, 16), int(device, 16)
    except ValueError:
        return None


def _pair(text: str) -> tuple[int, int] | None:
    """Read ``vendor:device`` as ``sscanf("%x:%x")`` does."""
    vendor, rest = strtol(text, 16)
    if vendor is None or rest[:1] != ":":
        return None
    device, _ = strtol(rest[1:], 16)
    return None if device is None else (unsigned(vendor, 32), unsigned(device, 32))


def _hide(view: View, mask: Mask, name: str, variable: str, value: str) -> None:
    if name in mask.ids:
        mask.ids.remove(name)
        view.reasons[name] = (f"{variable}={quoted(value)} leaves it out", variable)
        view.variable, view.value = variable, value


def _drivers(view: View, mask: Mask, gpus: Sequence[Device], environ: Mapping[str, str]) -> None:
    """Apply the lists of driver manifests: a GPU none of whose drivers is left is not seen."""
    filters = Filters(environ)
    if filters.variable is None:
        return
    for gpu in gpus:
        left = filters.leave(str(gpu["vendor"]), driver_name(gpu))
        if left is None:
            _unsure(mask, identifier(gpu), filters.variable, filters.value)
        elif not left:
            _hide(view, mask, identifier(gpu), filters.variable, filters.value)
    view.variable, view.value = filters.variable, filters.value


def _filter(
    view: View,
    mask: Mask,
    gpus: Sequence[Device],
    variable: str,
    value: str | None,
    part: int,
) -> None:
    """Apply a filter of PCI ids: numbers or ranges in C's base 0, since loader 1.4.326."""
    ranges = [_range(entry) for entry in (value or "").lower().split(",") if entry]
    if not ranges or value is None:
        return
    for gpu in gpus:
        codes = _codes(gpu)
        code = codes[part] if codes else None if part else PCI_VENDORS.get(str(gpu["vendor"]))
        if code is None:
            _unsure(mask, identifier(gpu), variable, value)
        elif not any(low <= code <= high for low, high in ranges):
            _hide(view, mask, identifier(gpu), variable, value)


def _range(entry: str) -> tuple[int, int]:
    low, rest = strtol(entry, 0)
    high = strtol(rest[1:], 0)[0] if rest else low
    return unsigned(low or 0, 32), unsigned(high or 0, 32)


def _mesa(view: View, mask: Mask, gpus: Sequence[Device], environ: Mapping[str, str]) -> None:
    """Apply Mesa's layer: the chosen GPU first, and alone when the value ends in ``!``."""
    value = environ.get("MESA_VK_DEVICE_SELECT")
    chosen = _pair(value or "")
    if not value or chosen is None or environ.get("NODEVICE_SELECT"):
        return
    found = [identifier(gpu) for gpu in gpus if _codes(gpu) == chosen]
    first = next((name for name in mask.ids if name in found), None)
    if first is None:
        return
    mask.ids.remove(first)
    mask.ids.insert(0, first)
    if value.endswith("!"):
        for name in mask.ids[1:]:
            _hide(view, mask, name, "MESA_VK_DEVICE_SELECT", value)


def _doubt(view: View, mask: Mask, environ: Mapping[str, str]) -> None:
    value = environ.get(_UNKNOWN)
    if value:
        for name in list(mask.ids):
            _unsure(mask, name, _UNKNOWN, value)
        view.variable, view.value = _UNKNOWN, value


def _unsure(mask: Mask, name: str, variable: str, value: str) -> None:
    if name in mask.ids:
        mask.ids.remove(name)
        mask.maybe[name] = (
            f"{variable}={quoted(value)} decides by the installed drivers, which are not known here"
        )
