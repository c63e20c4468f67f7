"""What AMD's clr shows on Windows, where it stands on PAL and not on ROCr.

Source: ROCm clr, rocclr/device/pal/paldevice.cpp (`parseRequestedDeviceList`, `Device::init`).
"""

from __future__ import annotations

from probe_core.visibility.availability import available_to
from probe_core.visibility.hip import deciding
from probe_core.visibility.pool import gpus_of, ids_of
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["pal_visible", "see"]

_LONGEST_NUMBER = 20
"""Digits that are read of an entry: as many as 64 bits have, and far beyond any device."""


def see(
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
    if available.withheld:
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
