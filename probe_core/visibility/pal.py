"""What AMD's clr shows on Windows, where it stands on PAL and not on ROCr.

Source: ROCm clr, rocclr/device/pal/paldevice.cpp (`parseRequestedDeviceList`, `Device::init`).
"""

from __future__ import annotations

from probe_core.visibility.hip import deciding
from probe_core.visibility.pool import gpus_of, identifier
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["pal_visible", "see"]


def see(
    devices: Sequence[Device], environ: Mapping[str, str], consumer: str, *variables: str
) -> View:
    """Return what clr shows to `consumer` on Windows, through the first variable that decides."""
    ids = [identifier(gpu) for gpu in gpus_of(devices, "amd")]
    variable, value = deciding(environ, variables)
    mask = pal_visible(value, ids, variable or variables[0])
    return View(consumer, ids, [mask], variable=variable, value=environ.get(variable or ""))


def pal_visible(value: str | None, ids: Sequence[str], name: str) -> Mask:
    """Return what clr leaves of the devices (ids in PAL's order); None or nothing shows all.

    Entries are numbers of nothing but digits; empty ones are passed over, any other bad one ends
    the list. A repeated number changes nothing, and the order stays PAL's. No UUID fits here:
    PAL compares with digits of the PCI address that no tool prints.
    """
    if not value:
        return Mask(ids)
    chosen: set[int] = set()
    stop = None
    for entry in value.split(","):
        if not entry:
            continue
        number = int(entry[:20]) if entry.isascii() and entry.isdigit() else len(ids)
        if number >= len(ids):
            stop = entry
            break
        chosen.add(number)
    found = [one for at, one in enumerate(ids) if at in chosen]
    if stop is None:
        return Mask(found, f"{name}={quoted(value)} does not name it")
    detail = f"{name}={quoted(value)}: HIP stops reading at {quoted(stop)}"
    why = f"{detail}, and it is not named before that"
    return Mask(found, why, code="variable-stops-at", detail=detail)
