"""What Level Zero shows: ZE_AFFINITY_MASK under ZE_FLAT_DEVICE_HIERARCHY.

Sources: Level Zero specification, PROG, "Affinity mask" and "Device hierarchy"; Intel
compute-runtime, shared/source/execution_environment/execution_environment.cpp
(`parseAffinityMask`, `sortNeoDevices`) and xe_hpc_core/gfx_core_helper_xe_hpc_core.cpp.
"""

from __future__ import annotations

from probe_core.model.ids import NO_PLACE, pci_place
from probe_core.visibility.availability import available_to, gpus_of, ids_of, integrated, pci_codes
from probe_core.visibility.numbers import strtol, unsigned
from probe_core.visibility.opencl import AFFINITY_MASK, DEVICE_SELECTOR
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from probe_core.model.document import DeviceDoc

    Tile = tuple[int, int]


_HIERARCHY = "ZE_FLAT_DEVICE_HIERARCHY"
_MODELS = ("COMPOSITE", "FLAT", "COMBINED")
_PCI_ORDER = "ZE_ENABLE_PCI_ID_DEVICE_ORDER"

# Ponte Vecchio: PCI ids 0bd0 to 0bdb (0bdf to be safe), 0b69 and 0b6e (Intel compute-runtime's
# device list).
_DATA_CENTER_MAX = (*range(0x0BD0, 0x0BE0), 0x0B69, 0x0B6E)


def see_level_zero(devices: Sequence[DeviceDoc], environ: Mapping[str, str]) -> View:
    """Return what Level Zero would show of a report's devices under `environ`."""
    value = environ.get(AFFINITY_MASK)
    available = available_to(devices, "level-zero", "intel")
    numbered = [
        _driver_order(gpus_of(alternative, "intel"), environ)
        for alternative in available.alternatives()
    ]
    masks = [level_zero_visible(value, gpus, flat=_flat(gpus, environ)) for gpus in numbered]
    variable = AFFINITY_MASK if value else None
    view = View("level-zero", ids_of(numbered[0]), masks, variable=variable, value=value)
    view.withhold(available, ids_of(gpus_of(devices, "intel")))
    return view


def _driver_order(gpus: Sequence[DeviceDoc], environ: Mapping[str, str]) -> list[DeviceDoc]:
    # `comparePciIdBusNumber`: integrated GPUs last, unless the variable asks for addresses alone.
    by_address, _ = strtol(environ.get(_PCI_ORDER, ""), 10)
    return sorted(
        gpus,
        key=lambda gpu: (not by_address and integrated(gpu), pci_place(gpu) or NO_PLACE),
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
    assignment = f"{AFFINITY_MASK}={quoted(value or '')}"
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
    allowed, _ = _chosen(environ.get(AFFINITY_MASK), gpus, available, flat)
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


# What ONEAPI_DEVICE_SELECTOR leaves of SYCL's (DPC++) devices, see `opencl.see_sycl`.
#
# Sources: intel/llvm, sycl/doc/EnvironmentVariables.md, sycl/source/detail/device_filter.cpp
# (`Parse_ONEAPI_DEVICE_SELECTOR`) and platform_impl.cpp (`filterDeviceFilter`).

_BACKENDS = ("opencl", "level_zero", "cuda", "hip", "native_cpu", "offload", "*")
_KINDS = ("cpu", "gpu", "fpga", "acc", "*")
_INT_MAX = (1 << 31) - 1


class Selector:
    """One filter: backend, kind of device or its number, a sub-device, and whether it discards."""

    __slots__ = ("backend", "discards", "kind", "number", "sub")

    def __init__(
        self, backend: str, kind: str | None, number: int | None, sub: str | None, discards: bool
    ) -> None:
        self.backend = backend
        self.kind = kind
        self.number = number
        self.sub = sub
        self.discards = discards

    def fits(self, backend: str, number: int) -> bool:
        """Return whether the filter names the GPU with this number under this backend."""
        if self.backend not in ("*", backend):
            return False
        if self.number is not None:
            return self.number == number
        return self.fits_gpus()

    def fits_gpus(self) -> bool:
        """Return whether the filter names GPUs by their kind."""
        return self.kind in ("gpu", "*")


def selected(
    value: str, backends: Mapping[str, Sequence[str]], devices: Mapping[str, DeviceDoc]
) -> Mask:
    """Return what ``ONEAPI_DEVICE_SELECTOR=value`` leaves of each backend's devices (ids in order).

    A device is taken when an accepting filter names it and no
    discarding one (``!``) does; discarding filters alone start from everything. Each backend
    numbers its devices from 0, and the order stays the backend's. A value that cannot be parsed
    makes SYCL throw: nothing is shown.
    """
    selectors, fault = parse_selector(value)
    assignment = f"{DEVICE_SELECTOR}={quoted(value)}"
    if fault is not None:
        return Mask.broken(f"{assignment}: {fault}, and SYCL refuses to start")
    accepted = [
        name
        for backend, ids in backends.items()
        for number, name in enumerate(ids)
        if _accepts(selectors, backend, number, devices.get(name))
    ]
    mask = Mask(accepted, f"{assignment} does not take it")
    if _reaches_opencl(selectors):
        doubt = f"{assignment} takes it through OpenCL, if Intel's OpenCL driver is installed"
        names = (name for name in backends.get("level_zero", ()) if name not in accepted)
        mask.maybe = dict.fromkeys(names, doubt)
    return mask


def _reaches_opencl(selectors: Sequence[Selector]) -> bool:
    """Return whether a GPU may be taken through OpenCL: Intel's, for SYCL bans the other vendors'.

    Its numbers count the devices of all OpenCL platforms, CPUs and FPGA emulators among them, so
    that which GPU one means is not known here (platform_impl.cpp, `IsBannedPlatform`,
    `filterDeviceFilter`).
    """
    own = [selector for selector in selectors if selector.backend in ("*", "opencl")]
    gpus = [selector for selector in own if selector.number is not None or selector.fits_gpus()]
    if any(selector.discards and selector.number is None for selector in gpus):
        return False
    return any(not selector.discards for selector in gpus)


def _accepts(
    selectors: Sequence[Selector], backend: str, number: int, device: DeviceDoc | None
) -> bool:
    fits = [selector for selector in selectors if selector.fits(backend, number)]
    if any(selector.discards for selector in fits):
        return False
    return any(selector.sub is None or _has_sub(selector.sub, device) for selector in fits)


def _has_sub(sub: str, device: DeviceDoc | None) -> bool:
    count = 1 if device is None else tiles(device)
    if count < 2:  # not partitionable: SYCL says so and leaves it out
        return False
    if sub.startswith("*"):
        return True
    number, _ = strtol(sub, 10)
    return number is not None and 0 <= number < count


def parse_selector(value: str) -> tuple[list[Selector], str | None]:
    """Return the filters of a selector, or no filter and what is wrong with it."""
    selectors: list[Selector] = []
    for entry in _pieces(value.lower(), ";"):
        # `Parse_ONEAPI_DEVICE_SELECTOR` looks for a backend's name anywhere in the text before
        # the colon, so that "xcuda:0" is CUDA's.
        prefix, *targets = _pieces(entry, ":") or [""]
        discards = prefix.startswith("!")
        backend = next((name for name in _BACKENDS if name in prefix), None)
        if backend is None:
            return [], f"{quoted(entry)} names no backend"
        if len(targets) != 1:
            return [], f"{quoted(entry)} is not backend:devices"
        if not discards and any(selector.discards for selector in selectors):
            return [], f"{quoted(entry)} takes devices after a filter that discards some"
        for text in _pieces(targets[0], ","):
            selector, fault = _device(backend, text, discards)
            if selector is None:
                return [], fault
            selectors.append(selector)
    if selectors and all(selector.discards for selector in selectors):
        selectors.append(Selector("*", "*", None, None, False))
    return selectors, None


def _pieces(text: str, mark: str) -> list[str]:
    return [piece for piece in text.split(mark) if piece]


def _device(backend: str, text: str, discards: bool) -> tuple[Selector | None, str | None]:
    parts = _pieces(text, ".")
    if not parts or len(parts) > 3:
        return None, f"{quoted(text)} is no device"
    kind = next((name for name in _KINDS if name in parts[0]), None)
    number = None
    if kind is None:
        number, _ = strtol(parts[0], 10)
        if number is None or not -_INT_MAX - 1 <= number <= _INT_MAX:
            return None, f"{quoted(parts[0])} is no device number"
    sub = parts[1] if len(parts) > 1 else None
    if sub is not None and (fault := _sub_fault(kind, sub)) is not None:
        return None, fault
    return Selector(backend, kind, number, sub, discards), None


def _sub_fault(kind: str | None, sub: str) -> str | None:
    if kind not in (None, "*"):
        return f"sub-devices of a kind ({kind}) cannot be asked for"
    if sub.startswith("*"):
        return None
    if kind == "*":
        return "a numbered sub-device needs a numbered device"
    return None if strtol(sub, 10)[0] is not None else f"{quoted(sub)} is no sub-device number"
