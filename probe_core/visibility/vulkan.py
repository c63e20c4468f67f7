"""What the Vulkan loader shows: its order of GPUs and the variables that filter or reorder them.

Sources: Vulkan-Loader, loader/loader_linux.c (`compare_devices`), loader_environment.c,
docs/LoaderInterfaceArchitecture.md; Mesa, src/vulkan/device-select-layer; NVIDIA's MIG User Guide,
"Application Considerations" (recalled). No variable says whether a driver (ICD) for a GPU is
installed: a GPU is "visible" when nothing hides it.
"""

from __future__ import annotations

from probe_core.model.ids import NO_PLACE, driver_name, pci_place
from probe_core.visibility.availability import available_to, ids_of, integrated, pci_codes
from probe_core.visibility.numbers import strtol, too_long, unsigned
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc


VENDORS = {
    "nvidia": ("nvidia_icd.json", "nvidia_icd.x86_64.json"),
    "amd": ("radeon_icd.json", "radeon_icd.x86_64.json", "amd_icd64.json", "amd_pro_icd64.json"),
    "intel": ("intel_icd.json", "intel_icd.x86_64.json"),
    "arm": ("mali.json", "panfrost_icd.json", "panfrost_icd.aarch64.json"),
    "qualcomm": ("freedreno_icd.json", "freedreno_icd.aarch64.json", "adreno.json"),
    "broadcom": ("broadcom_icd.json", "broadcom_icd.aarch64.json"),
    "apple": ("asahi_icd.json", "asahi_icd.aarch64.json", "moltenvk_icd.json"),
    "imagination": ("powervr_mesa_icd.json", "powervr_mesa_icd.aarch64.json"),
}
"""Vendors of GPUs that a Vulkan driver exists for, and what its manifests are called."""

# For devices whose PCI id no prober reports (pci.ids).
PCI_VENDORS = {"nvidia": 0x10DE, "amd": 0x1002, "intel": 0x8086}

FILES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
SELECT, DISABLE = "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"
DRIVER_VARIABLES = (*FILES, SELECT, DISABLE)

# VkDriverId: which of the installed drivers serves a GPU is not known here.
_BY_DRIVER_ID = "VK_LOADER_DRIVER_ID_FILTER"
_IN_MIG_MODE = "it is in MIG mode: NVIDIA's driver has no Vulkan there but for profiles with +gfx"
_FIRST = "VK_LOADER_DEVICE_SELECT"
_MESA, _NO_MESA = "MESA_VK_DEVICE_SELECT", "NODEVICE_SELECT"
_FILTERS = (("VK_LOADER_DEVICE_ID_FILTER", 1), ("VK_LOADER_VENDOR_ID_FILTER", 0))
"""Variables, and which half of ``vendor:device`` each compares. Since loader 1.4.326."""
_VARIABLES = (*DRIVER_VARIABLES, *dict(_FILTERS), _MESA, _BY_DRIVER_ID)
"""What changes which GPUs are shown, or Mesa's order of them."""


def vulkan_gpus(devices: Sequence[DeviceDoc]) -> list[DeviceDoc]:
    """Return the GPUs that a Vulkan driver exists for, partitions left out."""
    return [
        device
        for device in devices
        if device["kind"] == "gpu" and device["vendor"] in VENDORS and not device["parent"]
    ]


def see_vulkan(devices: Sequence[DeviceDoc], environ: Mapping[str, str], os: str = "linux") -> View:
    """Return what a Vulkan program would see of a report's devices under `environ`."""
    available = available_to(devices, "vulkan")
    view = View("vulkan", (), [])
    for numbered in available.alternatives():
        gpus = vulkan_gpus(numbered)
        # The loader sorts on Linux alone (`linux_read_sorted_physical_devices`).
        mask = Mask(ids_of(_sorted(gpus, environ) if os == "linux" else gpus))
        view.pool += ids_of(gpus)
        view.masks.append(mask)
        if any(map(environ.get, _VARIABLES)):
            _apply_variables(view, mask, gpus, environ)
        _apply_mig(view, mask, gpus)
    view.withhold(available, ids_of(vulkan_gpus(devices)))
    return view


def _apply_mig(view: View, mask: Mask, gpus: Sequence[DeviceDoc]) -> None:
    """Leave out cards in MIG mode; of those with profiles for graphics only their driver knows."""
    for gpu in gpus:
        name = gpu["id"]
        if gpu["vendor"] == "nvidia" and name in mask.ids:
            from probe_core.visibility.cuda import in_mig_mode

            if in_mig_mode(gpu):
                mask.ids.remove(name)
                if (gpu.get("compute_capability") or "").startswith("12."):
                    mask.maybe[name] = _IN_MIG_MODE
                else:
                    view.reasons[name] = (_IN_MIG_MODE, None)


def _apply_variables(
    view: View, mask: Mask, gpus: Sequence[DeviceDoc], environ: Mapping[str, str]
) -> None:
    _apply_drivers(view, mask, gpus, environ)
    for variable, half in _FILTERS:
        _apply_filter(view, mask, gpus, variable, environ.get(variable), half)
    _apply_mesa(view, mask, gpus, environ)
    _apply_driver_ids(view, mask, environ)


def _sorted(gpus: Sequence[DeviceDoc], environ: Mapping[str, str]) -> list[DeviceDoc]:
    chosen = environ.get(_FIRST)
    codes = _pair(chosen) if chosen else None
    first = next((gpu for gpu in gpus if codes and pci_codes(gpu) == codes), None)
    return sorted(
        gpus, key=lambda gpu: (gpu is not first, integrated(gpu), pci_place(gpu) or NO_PLACE)
    )


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
    if not any(map(environ.get, DRIVER_VARIABLES)):
        return
    from probe_core.visibility.vulkan_drivers import Filters

    filters = Filters(environ)
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


# What ggml's Vulkan backend shows: GGML_VK_VISIBLE_DEVICES over the Vulkan loader's order.
#
# Source: ggml, src/ggml-vulkan/ggml-vulkan.cpp (`ggml_vk_instance_init`): without the variable it
# takes discrete and integrated GPUs; the variable's numbers count every physical device. A
# software
# renderer (Mesa's lavapipe, "llvmpipe") is one: its type, CPU, is the last that the loader sorts
# by
# (Vulkan-Loader, loader_linux.c, `determine_priority_type_value`), so it stands behind the GPUs.

GGML_VARIABLE = "GGML_VK_VISIBLE_DEVICES"

OF_DRIVERS = (*DRIVER_VARIABLES, GGML_VARIABLE)
"""What acts by the installed drivers: where one is set, `vulkan_drivers` is imported."""


def see_ggml(environ: Mapping[str, str], vulkan: View) -> View:
    """Return what ggml would show; `vulkan` is the loader's view."""
    value = environ.get(GGML_VARIABLE)
    masks = [Mask(mask.ids) for mask in vulkan.masks]
    if value is not None:
        from probe_core.visibility.vulkan_drivers import Filters

        software = Filters(environ).may_leave_software()
        masks = [ggml_visible(value, mask.ids, software=software) for mask in vulkan.masks]
    variable, shown_value = (
        (GGML_VARIABLE, value) if value is not None else (vulkan.variable, vulkan.value)
    )
    view = View("ggml-vulkan", vulkan.pool, masks, variable=variable, value=shown_value)
    view.reasons = dict(vulkan.reasons)
    view.withhold_as(vulkan)
    if vulkan.masks[0].maybe and masks[0].code != "variable-empty":
        # What Vulkan itself shows is not known, so neither is what the numbers mean.
        reason = next(iter(vulkan.masks[0].maybe.values()))
        for mask in masks:
            mask.ids, mask.maybe = [], dict.fromkeys(vulkan.possible, reason)
    return view


def ggml_visible(value: str | None, ids: Sequence[str], *, software: bool = False) -> Mask:
    """Return what ``GGML_VK_VISIBLE_DEVICES=value`` leaves of the loader's GPUs (ids in order).

    Unset shows all GPUs, empty none. Commas and blanks separate numbers; reading ends at what is
    none, or does not fit in 64 bits. A number without a device (-1 too) makes the backend throw,
    and show nothing. A number given twice gives the device twice. With `software` the number behind
    the last GPU may be a software renderer's.
    """
    if value is None:
        return Mask(ids)
    assignment = f"{GGML_VARIABLE}={quoted(value)}"
    picks: list[str] = []
    doubt: str | None = None
    for entry in value.replace(",", " ").split():
        number, tail = strtol(entry, 10)
        if number is None or too_long(entry):
            return _doubted(Mask.stopped(picks, "ggml", assignment, entry), doubt)
        place = unsigned(number)
        if place >= len(ids) + software:
            return Mask.broken(f"{assignment}: no device {number}, so ggml starts without GPUs")
        if place == len(ids):
            doubt = f"{assignment}: ggml throws on {number} unless a software renderer is installed"
        picks += ids[place : place + 1]
        if tail:
            return _doubted(Mask.stopped(picks, "ggml", assignment, tail), doubt)
    if not picks and doubt is None:
        return Mask.empty(GGML_VARIABLE)
    return _doubted(Mask(picks, f"{assignment} does not name it"), doubt)


def _doubted(mask: Mask, doubt: str | None) -> Mask:
    """Return the mask of a list with a number that may be a software renderer's, or nobody's."""
    if doubt is None:
        return mask
    unsure = Mask([], mask.reason, code="variable-breaks", detail=doubt)
    unsure.maybe = dict.fromkeys(mask.ids, doubt)
    return unsure
