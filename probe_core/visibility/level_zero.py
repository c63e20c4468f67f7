"""What Level Zero shows: ZE_AFFINITY_MASK under ZE_FLAT_DEVICE_HIERARCHY.

Sources: Level Zero specification, PROG, "Affinity mask" and "Device hierarchy"; Intel
compute-runtime, shared/source/execution_environment/execution_environment.cpp
(`parseAffinityMask`, `sortNeoDevices`) and xe_hpc_core/gfx_core_helper_xe_hpc_core.cpp.
"""

from __future__ import annotations

from probe_core.visibility.availability import available_to
from probe_core.visibility.numbers import strtol, unsigned
from probe_core.visibility.pool import (
    address,
    gpus_of,
    ids_of,
    integrated,
    pci_codes,
)
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from probe_core.model.document import DeviceDoc

    Tile = tuple[int, int]

__all__ = ["VARIABLE", "level_zero_visible", "mask_of", "see", "tiles"]

VARIABLE = "ZE_AFFINITY_MASK"
_HIERARCHY = "ZE_FLAT_DEVICE_HIERARCHY"
_MODELS = ("COMPOSITE", "FLAT", "COMBINED")
_PCI_ORDER = "ZE_ENABLE_PCI_ID_DEVICE_ORDER"

# Ponte Vecchio: PCI ids 0bd0 to 0bdb (0bdf to be safe), 0b69 and 0b6e (Intel compute-runtime's
# device list).
_DATA_CENTER_MAX = (*range(0x0BD0, 0x0BE0), 0x0B69, 0x0B6E)
_NO_ADDRESS = (1 << 40, 0, 0, 0)


def see(devices: Sequence[DeviceDoc], environ: Mapping[str, str]) -> View:
    """Return what Level Zero would show of a report's devices under `environ`."""
    value = environ.get(VARIABLE)
    available = available_to(devices, "level-zero", "intel")
    numbered = [
        _driver_order(gpus_of(alternative, "intel"), environ)
        for alternative in available.alternatives()
    ]
    masks = [level_zero_visible(value, gpus, flat=_flat(gpus, environ)) for gpus in numbered]
    variable = VARIABLE if value else None
    view = View("level-zero", ids_of(numbered[0]), masks, variable=variable, value=value)
    if available.withheld:
        view.withhold(available, ids_of(gpus_of(devices, "intel")))
    return view


def _driver_order(gpus: Sequence[DeviceDoc], environ: Mapping[str, str]) -> list[DeviceDoc]:
    # `comparePciIdBusNumber`: integrated GPUs last, unless the variable asks for addresses alone.
    by_address, _ = strtol(environ.get(_PCI_ORDER, ""), 10)
    return sorted(
        gpus,
        key=lambda gpu: (not by_address and integrated(gpu), address(gpu) or _NO_ADDRESS),
    )


def _flat(gpus: Sequence[DeviceDoc], environ: Mapping[str, str]) -> bool:
    """Return whether tiles are the devices: asked for, or the default of Data Center GPU Max."""
    hierarchy = environ.get(_HIERARCHY)
    if hierarchy in _MODELS:
        return hierarchy != "COMPOSITE"
    return any(_is_max(gpu) for gpu in gpus[:1])  # the first device's family decides the default


def _is_max(gpu: DeviceDoc) -> bool:
    vendor, code = pci_codes(gpu) or (0, 0)
    named = "data center gpu max" in (gpu["name"] or "").lower()
    return named or (vendor == 0x8086 and code in _DATA_CENTER_MAX)


def tiles(gpu: DeviceDoc) -> int:
    """Return how many tiles the GPU has: as a prober reports in ``extra.tiles``, else one."""
    count = (gpu.get("extra") or {}).get("tiles")
    if isinstance(count, int) and not isinstance(count, bool) and count > 0:
        return count
    return 1


def level_zero_visible(value: str | None, gpus: Sequence[DeviceDoc], *, flat: bool = False) -> Mask:
    """Return what ``ZE_AFFINITY_MASK=value`` leaves of `gpus`, given in the driver's order.

    Unset, empty and ``default`` show all. Entries are numbers of devices, or of tiles where the
    hierarchy is `flat`; ``device.tile`` is known to the composite hierarchy alone. Bad entries
    are skipped, repeated ones change nothing, and the order stays the driver's. In the flat
    hierarchy a device's id is repeated for each of its tiles that is seen.
    """
    available = _tiles_of(gpus)
    chosen, skipped = _chosen(value, gpus, available, flat)
    mask = Mask(_ids([tile for tile in available if tile in chosen], gpus, flat))
    assignment = f"{VARIABLE}={quoted(value or '')}"
    mask.reason = f"{assignment} does not name it"
    if skipped and value:
        mask.code = "variable-skips"
        mask.detail = f"{assignment}: {quoted(skipped[0])} names nothing here"
    return mask


def _tiles_of(gpus: Sequence[DeviceDoc]) -> list[Tile]:
    """Return each tile as its device's place and its number on the device."""
    return [(place, number) for place, gpu in enumerate(gpus) for number in range(tiles(gpu))]


def _chosen(
    value: str | None, gpus: Sequence[DeviceDoc], available: Sequence[Tile], flat: bool
) -> tuple[set[Tile], list[str]]:
    """Return the tiles that a mask names, and its entries that name none."""
    if value is None or value in ("", "default"):
        return set(available), []
    chosen: set[Tile] = set()
    skipped: list[str] = []
    for entry in value.split(","):
        named = _flat_entry(entry, available) if flat else _composite_entry(entry, gpus)
        chosen.update(named)
        if not named:
            skipped.append(entry)
    return chosen, skipped


def mask_of(devices: Sequence[DeviceDoc], environ: Mapping[str, str], ids: Collection[str]) -> str:
    """Return the mask that shows the devices with these ids alone; "" when it would name none.

    Tiles that the environment's own mask hides stay hidden.
    """
    numbered = available_to(devices, "level-zero", "intel").alternatives()[0]
    gpus = _driver_order(gpus_of(numbered, "intel"), environ)
    flat = _flat(gpus, environ)
    available = _tiles_of(gpus)
    allowed, _ = _chosen(environ.get(VARIABLE), gpus, available, flat)
    entries = []
    for number, (place, tile) in enumerate(available):
        if gpus[place]["id"] in ids and (place, tile) in allowed:
            whole = all((place, other) in allowed for other in range(tiles(gpus[place])))
            composite = str(place) if whole else f"{place}.{tile}"
            entries.append(str(number) if flat else composite)
    return ",".join(dict.fromkeys(entries))


def _ids(chosen: Sequence[Tile], gpus: Sequence[DeviceDoc], flat: bool) -> list[str]:
    places = [place for place, _ in chosen]
    return [gpus[place]["id"] for place in (places if flat else dict.fromkeys(places))]


def _flat_entry(entry: str, available: Sequence[Tile]) -> list[Tile]:
    parts = _parts(entry)
    number = _number(parts[0])
    if len(parts) > 1 or number is None or number >= len(available):
        return []
    return [available[number]]


def _composite_entry(entry: str, gpus: Sequence[DeviceDoc]) -> list[Tile]:
    device, *tile_parts = _parts(entry)
    number = _number(device)
    if number is None or number >= len(gpus) or len(tile_parts) > 1:
        return []
    count = tiles(gpus[number])
    if not tile_parts:
        return [(number, tile) for tile in range(count)]
    tile = _number(tile_parts[0])
    return [(number, tile)] if tile is not None and tile < count else []


def _parts(entry: str) -> list[str]:
    parts = entry.split(".")
    return parts[:-1] if len(parts) > 1 and parts[-1] == "" else parts  # "0." is "0"


def _number(text: str) -> int | None:
    # std::stoul in base 0, stored in 32 bits: what follows the digits is ignored, -1 is huge.
    # Intel's driver lets the exception of a text without digits escape; the table says "skip it".
    number, _ = strtol(text, 0)
    return None if number is None else unsigned(number, 32)
