"""What HIP shows of what ROCr left: HIP_VISIBLE_DEVICES, else CUDA_VISIBLE_DEVICES.

Source: ROCm clr, rocclr/device/rocm/rocdevice.cpp (`Device::init`) and rocclr/utils/flags.cpp
(`Flag::init`, `removeQuotes`). The same code reads GPU_DEVICE_ORDINAL for AMD's OpenCL.
"""

from __future__ import annotations

from probe_core.visibility.pool import identifier
from probe_core.visibility.rocr import amd_uuid
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["clr_visible", "deciding", "see", "see_through"]

_NO_UUID = "GPU-XX"  # what ROCr calls a device without a unique id
_INT_MAX = (1 << 31) - 1


def see(devices: Sequence[Device], environ: Mapping[str, str], rocr: View) -> View:
    """Return what HIP would see of a report's devices; `rocr` is ROCr's view of them."""
    return see_through(devices, environ, rocr, "hip", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def see_through(
    devices: Sequence[Device],
    environ: Mapping[str, str],
    rocr: View,
    consumer: str,
    *variables: str,
) -> View:
    """Return what AMD's clr shows to `consumer`: ROCr's devices through the deciding variable."""
    known = {identifier(device): device for device in devices}
    left = [known[name] for name in rocr.visible]
    variable, value = deciding(environ, variables)
    mask = clr_visible(value, left, variable or variables[0])
    view = View(consumer, rocr.pool, [mask], variable=variable, value=environ.get(variable or ""))
    for name in rocr.pool:
        if name not in rocr.visible:
            entry = rocr.entry(name)
            view.reasons[name] = (entry["reason"], entry["variable"])
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


def clr_visible(value: str | None, gpus: Sequence[Device], name: str) -> Mask:
    """Return what clr leaves of `gpus` (in ROCr's order) for the value of the variable `name`.

    None or nothing shows all; clr itself turns an empty variable into a blank, a bad entry. An
    entry is a number written as C would print it (no blank, sign or leading zero), or has
    ``GPU-`` in it and is part of a device's UUID, case-sensitive, the first device that fits.
    The first bad entry ends the list; a repeated one is skipped.
    """
    if not value:
        return Mask([identifier(gpu) for gpu in gpus])
    picks: list[int] = []
    entries = value.split(",")
    if entries[-1] == "" and len(entries) > 1:  # the loop ends at a comma at the end
        entries.pop()
    for entry in entries:
        at = _index(entry, gpus)
        if at is None:
            return _stopped(value, picks, entry, gpus, name)
        if at not in picks:
            picks.append(at)
    return Mask([identifier(gpus[at]) for at in picks], f"{name}={quoted(value)} does not name it")


def _index(entry: str, gpus: Sequence[Device]) -> int | None:
    if "GPU-" in entry:
        for at, gpu in enumerate(gpus):
            if entry in (amd_uuid(gpu) or _NO_UUID):
                return at
        return None
    plain = entry.isascii() and entry.isdigit() and (entry == "0" or entry[0] != "0")
    if not plain or len(entry) > 10:
        return None
    number = int(entry)
    return number if number <= _INT_MAX and number < len(gpus) else None


def _stopped(
    value: str, picks: Sequence[int], entry: str, gpus: Sequence[Device], name: str
) -> Mask:
    ids = [identifier(gpus[at]) for at in picks]
    if not value.strip(" "):
        return Mask([], f"{name} is empty, which hides every device", code="variable-empty")
    detail = f"{name}={quoted(value)}: HIP stops reading at {quoted(entry)}"
    return Mask(
        ids,
        f"{detail}, and it is not named before that",
        code="variable-stops-at",
        detail=detail,
    )
