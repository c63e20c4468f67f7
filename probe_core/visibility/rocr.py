"""What AMD's ROCr runtime shows: ROCR_VISIBLE_DEVICES, as its source reads it.

Source: ROCR-Runtime, runtime/hsa-runtime/core/runtime/amd_filter_device.cpp and amd_topology.cpp.
"""

from __future__ import annotations

from probe_core.visibility.numbers import strtol, to_int32
from probe_core.visibility.pool import gpus_of, identifier, in_order, partitions, strangers, uuids
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["VARIABLE", "agents", "amd_uuid", "rocr_visible", "see"]

VARIABLE = "ROCR_VISIBLE_DEVICES"
_SPACE = " \t\n\v\f\r"
_SHORTEST, _LONGEST = 5, 20  # "GPU-" and one to sixteen hexadecimal digits


def agents(devices: Sequence[Device]) -> list[Device]:
    """Return the GPUs as ROCr numbers them: by KFD node, a partition being a GPU of its own.

    Where no prober told the KFD nodes, the PCI addresses stand in: amdgpu registers the nodes in
    the order in which it bound the cards.
    """
    found: list[Device] = []
    for gpu in gpus_of(devices, "amd"):
        found += partitions(devices, gpu) or [gpu]
    return in_order(found, "kfd")


def amd_uuid(device: Device) -> str | None:
    """Return ``GPU-`` and sixteen lower-case digits; None for a device without a unique id."""
    for uuid in uuids(device):
        if uuid[:4].upper() == "GPU-" and uuid[4:].strip("0"):
            return "GPU-" + uuid[4:].lower().rjust(16, "0")
    return None


def see(devices: Sequence[Device], environ: Mapping[str, str]) -> View:
    """Return what ROCr would see of a report's devices under `environ`."""
    gpus = agents(devices)
    value = environ.get(VARIABLE)
    mask = rocr_visible(value, gpus)
    variable = VARIABLE if value is not None else None
    view = View("rocr", [identifier(gpu) for gpu in gpus], [mask], variable=variable, value=value)
    for name, reason in strangers(devices, "amd").items():
        view.pool.append(name)
        view.reasons[name] = (reason, None)
    return view


def rocr_visible(value: str | None, gpus: Sequence[Device]) -> Mask:
    """Return what ``ROCR_VISIBLE_DEVICES=value`` leaves of `gpus`, given in KFD order.

    Unset shows all, empty none. Entries are trimmed; numbers are read in C's base 0 ("010" is
    eight) and must be nothing but a number; a UUID may be shortened and is of any case, but must
    fit one GPU. The first bad or repeated entry ends the list. An empty entry among those that
    are read makes ``hsa_init`` itself fail (``std::string::at`` throws), so nothing is shown.
    """
    if value is None:
        return Mask([identifier(gpu) for gpu in gpus])
    if value == "":
        return Mask([], f"{VARIABLE} is empty, which hides every device", code="variable-empty")
    entries = [entry.strip(_SPACE) for entry in _lines(value)]
    picks: list[int] = []
    for entry in entries[: len(gpus)]:  # ROCr reads no more entries than there are GPUs
        if not entry:
            return _failed(value)
        at = _uuid(entry, gpus) if entry[0] in "gG" else _number(entry)
        if at is None or not 0 <= at < len(gpus) or at in picks:
            return _stopped(value, picks, entry, gpus)
        picks.append(at)
    return Mask([identifier(gpus[at]) for at in picks], f"{VARIABLE}={quoted(value)} omits it")


def _lines(value: str) -> list[str]:
    # std::getline gives no empty entry after a comma at the end.
    entries = value.split(",")
    return entries[:-1] if entries[-1] == "" else entries


def _number(entry: str) -> int | None:
    number, rest = strtol(entry, 0)
    if rest:
        return None
    return to_int32(number or 0)  # stored in an int32_t: 4294967296 is zero


def _uuid(entry: str, gpus: Sequence[Device]) -> int | None:
    if not _SHORTEST <= len(entry) <= _LONGEST:
        return None
    prefix = entry.upper()
    found = [at for at, gpu in enumerate(gpus) if (amd_uuid(gpu) or "").upper().startswith(prefix)]
    return found[0] if len(found) == 1 else None


def _stopped(value: str, picks: Sequence[int], entry: str, gpus: Sequence[Device]) -> Mask:
    detail = f"{VARIABLE}={quoted(value)}: ROCr stops reading at {quoted(entry)}"
    why = f"{detail}, and it is not named before that"
    ids = [identifier(gpus[at]) for at in picks]
    return Mask(ids, why, code="variable-stops-at", detail=detail)


def _failed(value: str) -> Mask:
    detail = f"{VARIABLE}={quoted(value)} has an empty entry, on which ROCr fails to start"
    return Mask([], detail, code="variable-breaks", detail=detail)
