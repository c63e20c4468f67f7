"""What AMD's ROCr runtime shows: ROCR_VISIBLE_DEVICES, as its source reads it.

Source: ROCR-Runtime, runtime/hsa-runtime/core/runtime/amd_filter_device.cpp and amd_topology.cpp.
"""

from __future__ import annotations

from probe_core.visibility.availability import available_to, gpus_of, ids_of, in_order, uuids
from probe_core.visibility.numbers import strtol, to_int32
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc


ROCR_VARIABLE = "ROCR_VISIBLE_DEVICES"
_SPACE = " \t\n\v\f\r"
_SHORTEST = 5  # "GPU-" and one hexadecimal digit


def agents(
    devices: Sequence[DeviceDoc], installed: Sequence[DeviceDoc] | None = None
) -> list[DeviceDoc]:
    """Return the GPUs as ROCr numbers them: by KFD node, a partition being a GPU of its own.

    Where no prober reports the KFD nodes, the PCI addresses stand in: amdgpu registers the nodes
    in the order in which it bound the cards. `devices` may be some of those `installed`: a card
    that has partitions among them is no agent itself.
    """
    wholes = {device["parent"] for device in installed or devices if device["parent"]}
    gpus = [
        device
        for device in devices
        if device["vendor"] == "amd"
        and device["kind"] == "gpu"
        and wholes.isdisjoint((device["id"], *device["ids"]))
    ]
    return in_order(gpus, "kfd")


def amd_uuid(device: DeviceDoc) -> str | None:
    """Return ``GPU-`` and sixteen lower-case digits; None for a device without a unique id."""
    for uuid in uuids(device):
        if uuid[:4].upper() == "GPU-" and uuid[4:].strip("0"):
            return "GPU-" + uuid[4:].lower().rjust(16, "0")
    return None


def see_rocr(devices: Sequence[DeviceDoc], environ: Mapping[str, str]) -> View:
    """Return what ROCr would show of a report's devices under `environ`."""
    value = environ.get(ROCR_VARIABLE)
    variable = ROCR_VARIABLE if value is not None else None
    available = available_to(devices, "rocr", "amd")
    numbered = [agents(listed, devices) for listed in available.alternatives()]
    masks = [rocr_visible(value, gpus) for gpus in numbered]
    view = View("rocr", ids_of(numbered[0]), masks, variable=variable, value=value)
    view.withhold(available, ids_of(agents(devices)))
    return view


def rocr_visible(value: str | None, gpus: Sequence[DeviceDoc]) -> Mask:
    """Return what ``ROCR_VISIBLE_DEVICES=value`` leaves of `gpus`, given in KFD order.

    Unset shows all, empty none. Entries are trimmed; numbers are read in C's base 0 ("010" is
    eight) and must be nothing but a number; a UUID may be shortened and is of any case, but must
    fit one GPU. The first bad or repeated entry ends the list. An empty entry among those that
    are read makes ``hsa_init`` itself fail (``std::string::at`` throws), so nothing is shown.
    """
    ids = ids_of(gpus)
    if value is None:
        return Mask(ids)
    if value == "":
        return Mask.empty(ROCR_VARIABLE)
    assignment = f"{ROCR_VARIABLE}={quoted(value)}"
    picks: list[int] = []
    for entry in _entries(value)[: len(gpus)]:  # ROCr reads no more entries than there are GPUs
        if not entry:
            return Mask.broken(f"{assignment} has an empty entry, on which ROCr fails to start")
        place = _by_uuid(entry, gpus) if entry[0] in "gG" else _number(entry)
        if place is None or not 0 <= place < len(gpus) or place in picks:
            return Mask.stopped([ids[pick] for pick in picks], "ROCr", assignment, entry)
        picks.append(place)
    return Mask([ids[pick] for pick in picks], f"{assignment} omits it")


def _entries(value: str) -> list[str]:
    entries = [entry.strip(_SPACE) for entry in value.split(",")]
    # std::getline gives no empty entry after a comma at the end.
    return entries[:-1] if value.endswith(",") else entries


def _number(entry: str) -> int | None:
    number, tail = strtol(entry, 0)
    if tail:
        return None
    return to_int32(number or 0)  # stored in an int32_t: 4294967296 is zero


def _by_uuid(entry: str, gpus: Sequence[DeviceDoc]) -> int | None:
    if len(entry) < _SHORTEST:
        return None
    prefix = entry.upper()
    fits = [
        place for place, gpu in enumerate(gpus) if (amd_uuid(gpu) or "").upper().startswith(prefix)
    ]
    return fits[0] if len(fits) == 1 else None


# What HIP shows of what ROCr left: HIP_VISIBLE_DEVICES, else CUDA_VISIBLE_DEVICES.
#
# Source: ROCm clr, rocclr/device/rocm/rocdevice.cpp (`Device::init`) and rocclr/utils/flags.cpp
# (`Flag::init`, `removeQuotes`). The same code reads GPU_DEVICE_ORDINAL for AMD's OpenCL.

VARIABLES = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
"""The first that is set counts: HIP code ported from CUDA keeps its launch scripts."""

_NO_UUID = "GPU-XX"  # what ROCr calls a device without a unique id


def see_hip(devices: Sequence[DeviceDoc], environ: Mapping[str, str], rocr: View) -> View:
    """Return what HIP would show of a report's devices; `rocr` is ROCr's view of them."""
    return see_through(devices, environ, rocr, "hip", VARIABLES)


def see_through(
    devices: Sequence[DeviceDoc],
    environ: Mapping[str, str],
    rocr: View,
    runtime: str,
    variables: Sequence[str],
) -> View:
    """Return what AMD's clr shows as `runtime`: ROCr's devices through the deciding variable."""
    by_id = {device["id"]: device for device in devices}
    variable, value = deciding(environ, variables)
    masks = [
        clr_visible(value, [by_id[name] for name in mask.ids], variable or variables[0])
        for mask in rocr.masks
    ]
    for mask in masks:
        if mask.code == "variable-stops-at" and rocr.variable is not None:
            # A launcher that sets both to one number hides all (unslothai/unsloth#6175).
            mask.detail = f"{mask.detail}: its numbers count what {rocr.variable} leaves"
    raw = None if variable is None else environ[variable]
    view = View(runtime, rocr.pool, masks, variable=variable, value=raw)
    view.follow(rocr)
    if variable is None and rocr.variable is not None:
        view.variable, view.value = rocr.variable, rocr.value
    return view


def deciding(environ: Mapping[str, str], names: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the deciding variable: the first that is set, to more than a pair of quotes.

    clr keeps an empty value as a blank, which then decides (and hides everything); one in double
    quotes loses them, and when nothing is left counts as unset.
    """
    for name in names:
        if name in environ:
            value = _unquoted(environ[name] or " ")
            if value:
                return name, value
    return None, None


def _unquoted(value: str) -> str:
    inner = value.strip(" ")
    if len(inner) < 2 or not inner.startswith('"') or not inner.endswith('"'):
        return value
    return inner[1:-1]


def clr_visible(value: str | None, gpus: Sequence[DeviceDoc], name: str) -> Mask:
    """Return what clr leaves of `gpus` (in ROCr's order) for the value of the variable `name`.

    None or nothing shows all; clr itself turns an empty variable into a blank, a bad entry. An
    entry is a number written as C would print it (no blank, sign or leading zero), or has
    ``GPU-`` in it and is part of a device's UUID, case-sensitive, the first device that fits.
    The first bad entry ends the list; a repeated one is skipped.
    """
    ids = ids_of(gpus)
    if not value:
        return Mask(ids)
    assignment = f"{name}={quoted(value)}"
    entries = value.split(",")
    if entries[-1] == "" and len(entries) > 1:  # the loop ends at a comma at the end
        entries.pop()
    picks: list[int] = []
    for entry in entries:
        place = _place(entry, gpus)
        if place is None:
            if not value.strip(" "):
                return Mask.empty(name)
            return Mask.stopped([ids[pick] for pick in picks], "HIP", assignment, entry)
        if place not in picks:
            picks.append(place)
    return Mask([ids[pick] for pick in picks], f"{assignment} does not name it")


def _place(entry: str, gpus: Sequence[DeviceDoc]) -> int | None:
    if "GPU-" in entry:
        fits = (place for place, gpu in enumerate(gpus) if entry in (amd_uuid(gpu) or _NO_UUID))
        return next(fits, None)
    plain = entry.isascii() and entry.isdigit() and (entry == "0" or entry[0] != "0")
    if not plain or len(entry) > _LONGEST_NUMBER:
        return None
    number = int(entry)
    return number if number < len(gpus) else None


# What AMD's clr shows on Windows, where it stands on PAL and not on ROCr.
#
# Source: ROCm clr, rocclr/device/pal/paldevice.cpp (`parseRequestedDeviceList`, `Device::init`).

_LONGEST_NUMBER = 20
"""Digits that are read of an entry: as many as 64 bits have, and far beyond any device."""


def see_pal(
    devices: Sequence[DeviceDoc],
    environ: Mapping[str, str],
    runtime: str,
    variables: Sequence[str],
) -> View:
    """Return what clr shows as `runtime` on Windows, through the first variable that decides."""
    available = available_to(devices, "hip", "amd")
    numbered = [ids_of(gpus_of(some, "amd")) for some in available.alternatives()]
    variable, value = deciding(environ, variables)
    masks = [pal_visible(value, ids, variable or variables[0]) for ids in numbered]
    raw = None if variable is None else environ[variable]
    view = View(runtime, numbered[0], masks, variable=variable, value=raw)
    view.withhold(available, ids_of(gpus_of(devices, "amd")))
    return view


def pal_visible(value: str | None, ids: Sequence[str], name: str) -> Mask:
    """Return what clr leaves of the devices (ids in PAL's order); None or nothing shows all.

    Entries are numbers of nothing but digits; empty ones are passed over, any other bad one ends
    the list. A repeated number changes nothing, and the order stays PAL's. No UUID fits here:
    PAL compares with digits of the PCI address that no tool prints.
    """
    if not value:
        return Mask(ids)
    assignment = f"{name}={quoted(value)}"
    chosen: set[int] = set()
    for entry in filter(None, value.split(",")):
        digits = entry.isascii() and entry.isdigit()
        number = int(entry[:_LONGEST_NUMBER]) if digits else len(ids)
        if number >= len(ids):
            return Mask.stopped(_in_pal_order(ids, chosen), "HIP", assignment, entry)
        chosen.add(number)
    return Mask(_in_pal_order(ids, chosen), f"{assignment} does not name it")


def _in_pal_order(ids: Sequence[str], chosen: set[int]) -> list[str]:
    return [name for place, name in enumerate(ids) if place in chosen]
