"""What HIP shows of what ROCr left: HIP_VISIBLE_DEVICES, else CUDA_VISIBLE_DEVICES.

Source: ROCm clr, rocclr/device/rocm/rocdevice.cpp (`Device::init`) and rocclr/utils/flags.cpp
(`Flag::init`, `removeQuotes`). The same code reads GPU_DEVICE_ORDINAL for AMD's OpenCL.
"""

from __future__ import annotations

from probe_core.visibility.pool import ids_of
from probe_core.visibility.rocr import amd_uuid
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["VARIABLES", "clr_visible", "deciding", "see", "see_through"]

VARIABLES = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
"""The first that is set counts: HIP code ported from CUDA keeps its launch scripts."""

_NO_UUID = "GPU-XX"  # what ROCr calls a device without a unique id
_INT_MAX = (1 << 31) - 1


def see(devices: Sequence[DeviceDoc], environ: Mapping[str, str], rocr: View) -> View:
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
    raw = None if variable is None else environ[variable]
    view = View(runtime, rocr.pool, masks, variable=variable, value=raw)
    view.withhold_as(rocr)
    possible = rocr.possible
    for name in rocr.pool:
        if name not in possible:
            entry = rocr.entry(name)
            view.reasons[name] = (entry["reason"] or "", entry.get("variable"))
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
    if not plain or len(entry) > len(str(_INT_MAX)):
        return None
    number = int(entry)
    return number if number <= _INT_MAX and number < len(gpus) else None
