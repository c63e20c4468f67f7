"""What AMD's ROCr runtime shows: ROCR_VISIBLE_DEVICES, as its source reads it.

Source: ROCR-Runtime, runtime/hsa-runtime/core/runtime/amd_filter_device.cpp and amd_topology.cpp.
"""

from __future__ import annotations

from probe_core.visibility.availability import available_to
from probe_core.visibility.numbers import strtol, to_int32
from probe_core.visibility.pool import ids_of, in_order, uuids
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["VARIABLE", "agents", "amd_uuid", "rocr_visible", "see"]

VARIABLE = "ROCR_VISIBLE_DEVICES"
_SPACE = " \t\n\v\f\r"
_SHORTEST, _LONGEST = 5, 20  # "GPU-" and one to sixteen hexadecimal digits


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


def see(devices: Sequence[DeviceDoc], environ: Mapping[str, str]) -> View:
    """Return what ROCr would show of a report's devices under `environ`."""
    value = environ.get(VARIABLE)
    variable = VARIABLE if value is not None else None
    available = available_to(devices, "rocr", "amd")
    numbered = [agents(listed, devices) for listed in available.alternatives()]
    masks = [rocr_visible(value, gpus) for gpus in numbered]
    view = View("rocr", ids_of(numbered[0]), masks, variable=variable, value=value)
    if available.withheld:
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
        return Mask.empty(VARIABLE)
    assignment = f"{VARIABLE}={quoted(value)}"
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
    if not _SHORTEST <= len(entry) <= _LONGEST:
        return None
    prefix = entry.upper()
    fits = [
        place for place, gpu in enumerate(gpus) if (amd_uuid(gpu) or "").upper().startswith(prefix)
    ]
    return fits[0] if len(fits) == 1 else None
