"""What Level Zero shows: ZE_AFFINITY_MASK under ZE_FLAT_DEVICE_HIERARCHY.

Sources: Level Zero specification, PROG, "Affinity mask" and "Device hierarchy"; Intel
compute-runtime, shared/source/execution_environment/execution_environment.cpp
(`parseAffinityMask`, `sortNeoDevices`) and xe_hpc_core/gfx_core_helper_xe_hpc_core.cpp.
"""

from __future__ import annotations

from probe_core.visibility.numbers import strtol, unsigned
from probe_core.visibility.pool import address, gpus_of, identifier, integrated, strangers
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["VARIABLE", "level_zero_visible", "mask_of", "see", "tiles"]

VARIABLE = "ZE_AFFINITY_MASK"
_HIERARCHY = "ZE_FLAT_DEVICE_HIERARCHY"
_MODELS = ("COMPOSITE", "FLAT", "COMBINED")


def see(devices: Sequence[Device], environ: Mapping[str, str]) -> View:
    """Return what Level Zero would see of a report's devices under `environ`."""
    gpus = _driver_order(gpus_of(devices, "intel"), environ)
    value = environ.get(VARIABLE)
    mask = level_zero_visible(value, gpus, flat=_flat(gpus, environ))
    variable = VARIABLE if value else None
    pool = [identifier(gpu) for gpu in gpus]
    view = View("level-zero", pool, [mask], variable=variable, value=value)
    for name, reason in strangers(devices, "intel").items():
        view.pool.append(name)
        view.reasons[name] = (reason, None)
    return view


def _driver_order(gpus: Sequence[Device], environ: Mapping[str, str]) -> list[Device]:
    # `comparePciIdBusNumber`: integrated GPUs last, unless the variable asks for addresses alone.
    number, _ = strtol(environ.get("ZE_ENABLE_PCI_ID_DEVICE_ORDER", ""), 10)
    last = (1 << 40, 0, 0, 0)
    return sorted(gpus, key=lambda gpu: (not number and integrated(gpu), address(gpu) or last))


def _flat(gpus: Sequence[Device], environ: Mapping[str, str]) -> bool:
    """Return whether tiles are the devices: asked for, or the default of Data Center GPU Max."""
    said = environ.get(_HIERARCHY)
    if said in _MODELS:
        return said != "COMPOSITE"
    return any(_is_max(gpu) for gpu in gpus[:1])  # the first device's family decides the default


def _is_max(gpu: Device) -> bool:
    # Ponte Vecchio: PCI ids 0bd0 to 0bdb, 0b69 and 0b6e (Intel compute-runtime's device list).
    code = str((gpu.get("pci") or {}).get("id") or "").lower()
    named = "data center gpu max" in str(gpu.get("name") or "").lower()
    return code.startswith("8086:0bd") or code in ("8086:0b69", "8086:0b6e") or named


def tiles(gpu: Device) -> int:
    """Return how many tiles the GPU has: as a prober told, else one."""
    extra = gpu.get("extra")
    for place in (gpu, extra if isinstance(extra, dict) else {}):
        count = place.get("tiles")
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            return count
    return 1


def level_zero_visible(value: str | None, gpus: Sequence[Device], *, flat: bool = False) -> Mask:
    """Return what ``ZE_AFFINITY_MASK=value`` leaves of `gpus`, given in the driver's order.

    Unset, empty and ``default`` show all. Entries are numbers of devices, or of tiles where the
    hierarchy is `flat`; ``device.tile`` is known to the composite hierarchy alone. Bad entries
    are skipped, repeated ones change nothing, and the order stays the driver's. In the flat
    hierarchy a device's id is repeated for each of its tiles that is seen.
    """
    places = [(at, tile) for at, gpu in enumerate(gpus) for tile in range(tiles(gpu))]
    chosen, skipped = _chosen(value, gpus, places, flat)
    mask = Mask(_ids([place for place in places if place in chosen], gpus, flat))
    mask.why = f"{VARIABLE}={quoted(value or '')} does not name it"
    if skipped and value:
        mask.code = "variable-skips"
        mask.detail = f"{VARIABLE}={quoted(value)}: {quoted(skipped[0])} names nothing here"
    return mask


def _chosen(
    value: str | None,
    gpus: Sequence[Device],
    places: Sequence[tuple[int, int]],
    flat: bool,
) -> tuple[set[tuple[int, int]], list[str]]:
    """Return the (device, tile) places that a mask names, and its entries that name none."""
    if value is None or value in ("", "default"):
        return set(places), []
    chosen: set[tuple[int, int]] = set()
    skipped: list[str] = []
    for entry in value.split(","):
        found = _flat_entry(entry, places) if flat else _composite_entry(entry, gpus)
        chosen.update(found)
        if not found:
            skipped.append(entry)
    return chosen, skipped


def mask_of(devices: Sequence[Device], environ: Mapping[str, str], wanted: Sequence[str]) -> str:
    """Return the mask that shows the `wanted` devices (ids) alone; "" when it would name none.

    Tiles that the environment's own mask hides stay hidden.
    """
    gpus = _driver_order(gpus_of(devices, "intel"), environ)
    flat = _flat(gpus, environ)
    places = [(at, tile) for at, gpu in enumerate(gpus) for tile in range(tiles(gpu))]
    left = _chosen(environ.get(VARIABLE), gpus, places, flat)[0]
    entries = []
    for number, (at, tile) in enumerate(places):
        if identifier(gpus[at]) in wanted and (at, tile) in left:
            whole = all((at, other) in left for other in range(tiles(gpus[at])))
            entries.append(str(number) if flat else str(at) if whole else f"{at}.{tile}")
    return ",".join(dict.fromkeys(entries))


def _ids(places: Sequence[tuple[int, int]], gpus: Sequence[Device], flat: bool) -> list[str]:
    if flat:
        return [identifier(gpus[at]) for at, _ in places]
    return [identifier(gpus[at]) for at in dict.fromkeys(at for at, _ in places)]


def _flat_entry(entry: str, places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    parts = _parts(entry)
    number = _number(parts[0])
    if len(parts) > 1 or number is None or number >= len(places):
        return []
    return [places[number]]


def _composite_entry(entry: str, gpus: Sequence[Device]) -> list[tuple[int, int]]:
    first, *others = _parts(entry)
    number = _number(first)
    if number is None or number >= len(gpus) or len(others) > 1:
        return []
    if not others:
        return [(number, tile) for tile in range(tiles(gpus[number]))]
    tile = _number(others[0])
    return [(number, tile)] if tile is not None and tile < tiles(gpus[number]) else []


def _parts(entry: str) -> list[str]:
    parts = entry.split(".")
    return parts[:-1] if len(parts) > 1 and parts[-1] == "" else parts  # "0." is "0"


def _number(text: str) -> int | None:
    # std::stoul in base 0, stored in 32 bits: what follows the digits is ignored, -1 is huge.
    # Intel's driver lets the exception of a text without digits escape; the table says "skip it".
    number, _ = strtol(text, 0)
    return None if number is None else unsigned(number, 32)
