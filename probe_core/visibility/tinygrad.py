"""What tinygrad shows: a variable of another name in each of its generations.

Sources: tinygrad at tags v0.9.2 to v0.11.0 (runtime/ops_nv.py, ops_amd.py: VISIBLE_DEVICES, else
CUDA_VISIBLE_DEVICES for NV and HIP_VISIBLE_DEVICES for AMD), v0.12.0 (HCQ_VISIBLE_DEVICES, and
neither vendor's variable) and v0.13.0 on (indices in DEV, as ``DEV=:0,1+NV``). A card in MIG mode:
NV of 0.14.0 subscribes to no instance (AMPERE_SMC_PARTITION_REF), and open-gpu-kernel-modules
595.45.04 then allocates no channel group while there are instances (kernel_channel_group_api.c,
`kchangrpapiConstruct_IMPL`; kernel_mig_manager.c, `kmigmgrGetInstanceRefFromDevice_IMPL`).
"""

from __future__ import annotations

from probe_core.visibility.availability import Withheld, available_to, gpus_of, ids_of, in_order
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

    Release = tuple[int, ...]


NEWEST = (0, 14)
"""What is assumed where the version is unknown."""

_OWN_SINCE, HCQ_SINCE, DEV_SINCE = (0, 9), (0, 12), (0, 13)
HCQ, DEV = "HCQ_VISIBLE_DEVICES", "DEV"

_BACKENDS = {"nvidia": ("NV", "CUDA_VISIBLE_DEVICES"), "amd": ("AMD", "HIP_VISIBLE_DEVICES")}
"""Vendor to the backend that speaks to its kernel driver, and the vendor's variable."""

_IN_MIG_MODE = "it is in MIG mode: the kernel driver serves its instances alone, and NV opens none"
_WITHOUT_INSTANCE = "it is in MIG mode without an instance: whether NV can open it is not known"

_CARD_SLOTS = 64
"""Places of the list that NV indexes before 0.13: the ioctl's whole array, empty ones too."""


def see(
    devices: Sequence[DeviceDoc], environ: Mapping[str, str], version: str | None = None
) -> list[View]:
    """Return what tinygrad's NV and AMD backends would show; `version` as in ``0.12.0``."""
    release = release_of(version)
    views = []
    for vendor, (backend, _) in _BACKENDS.items():
        pool = ids_of(_ranked(backend, devices, devices))
        if not pool:
            continue
        available = available_to(devices, "tinygrad", vendor)
        numbers = [ids_of(_ranked(backend, some, devices)) for some in available.alternatives()]
        variable, value, masks = _masks(backend, numbers, environ, release)
        view = View("tinygrad", pool, masks, variable=variable, value=value)
        view.withhold(available, pool)
        if vendor == "nvidia":
            _withhold_cut(view, devices)
        views.append(view)
    return views


def _withhold_cut(view: View, devices: Sequence[DeviceDoc]) -> None:
    """Withhold the cards in MIG mode; the kernel driver lists them, so that they keep a number."""
    from probe_core.visibility.cuda import instances_of

    for name, instances in instances_of(devices, gpus_of(devices, "nvidia")).items():
        reason, visible = (_IN_MIG_MODE, False) if instances else (_WITHOUT_INSTANCE, None)
        view.withheld.setdefault(name, Withheld("visible", "mig-mode", reason, visible, True))


def numbered(devices: Sequence[DeviceDoc]) -> dict[str, list[DeviceDoc]]:
    """Return the devices that each backend numbers, in its order; NV counts refused ones too."""
    listed = available_to(devices, "tinygrad").alternatives()[0]
    return {backend: _ranked(backend, listed, devices) for backend, _ in _BACKENDS.values()}


def _ranked(
    backend: str, devices: Sequence[DeviceDoc], installed: Sequence[DeviceDoc]
) -> list[DeviceDoc]:
    gpus = gpus_of(devices, "nvidia" if backend == "NV" else "amd")
    if not gpus:  # a processor may be AMD's
        return []
    if backend == "NV":
        from probe_core.visibility.cuda import is_instance

        # A container may be given an instance without the card that it is of.
        return in_order([gpu for gpu in gpus if not is_instance(gpu)], "nvml")
    from probe_core.visibility.amd import agents

    return agents(devices, installed)


def release_of(version: str | None) -> Release:
    """Return a version as numbers, ``(0, 12, 0)``; without one, the newest that is known."""
    if not version:
        return NEWEST
    parts = []
    for part in version.split("."):
        digits = "".join(char for char in part if char.isascii() and char.isdigit())
        parts.append(int(digits[:9]) if digits else 0)
    return tuple(parts)


def _masks(
    backend: str, numbers: Sequence[Sequence[str]], environ: Mapping[str, str], release: Release
) -> tuple[str | None, str | None, list[Mask]]:
    """Return the variable that decides, its value, and what it leaves of each list of ids."""
    if release >= DEV_SINCE and not (environ.get(HCQ) or environ.get(DEV)):
        return None, None, [Mask(ids) for ids in numbers]
    if release >= DEV_SINCE and environ.get(HCQ):
        detail = f"{HCQ} is set, which tinygrad since 0.13 refuses: use DEV=:0+{backend}"
        return HCQ, environ[HCQ], [Mask.broken(detail) for _ in numbers]
    dev = None
    if environ.get(DEV):
        from probe_core.visibility.tinygrad_dev import dev_of

        dev = dev_of(environ[DEV], backend, release)
    if dev and dev.fault is not None:
        detail = f"{dev.fault}, and tinygrad raises"
        return DEV, environ[DEV], [Mask.broken(detail) for _ in numbers]
    variable, value = _deciding(environ, release, backend, dev.indices if dev else "")
    slots = _CARD_SLOTS if backend == "NV" and release < DEV_SINCE else 0
    ranges = release >= DEV_SINCE
    name = variable or ""
    masks = [tinygrad_visible(value, ids, name, ranges=ranges, slots=slots) for ids in numbers]
    if dev is None or dev.doubt is None:
        return variable, value, masks
    return DEV, environ[DEV], [_doubted(mask, dev.doubt) for mask in masks]


def _doubted(mask: Mask, doubt: str) -> Mask:
    """Return a mask of which only a program that names the device gets anything."""
    unsure = Mask([], mask.reason, code="variable-breaks", detail=doubt)
    unsure.reasons = mask.reasons
    unsure.maybe = dict.fromkeys([*mask.ids, *mask.maybe], doubt)
    return unsure


def _deciding(
    environ: Mapping[str, str], release: Release, backend: str, indices: str
) -> tuple[str | None, str | None]:
    if release >= DEV_SINCE:
        return (DEV, indices) if indices else (None, None)
    names: tuple[str, ...] = ()
    if release >= HCQ_SINCE:
        names = (HCQ,)
    elif release >= _OWN_SINCE:
        names = ("VISIBLE_DEVICES", dict(_BACKENDS.values())[backend])
    name = next((name for name in names if name in environ), None)
    return (name, environ[name]) if name is not None and environ[name].strip(" ,") else (None, None)


def tinygrad_visible(
    value: str | None, ids: Sequence[str], name: str, *, ranges: bool = False, slots: int = 0
) -> Mask:
    """Return what a list of indices leaves of `ids`; unset or empty leaves all.

    tinygrad reads each entry with Python's ``int`` and indexes a list with it: one that is no
    number or lies beyond the list raises, and the backend has no device; -1 is the last one. With
    `ranges` (since 0.13) ``0-3`` is a range, and a minus has no other meaning. The list has `slots`
    places at least, of which those behind the last device raise only when they are opened.
    """
    if not value:
        return Mask(ids)
    places = range(max(len(ids), slots))
    try:
        picks = [places[index] for index in _indices(value, ranges, len(ids))]
    except (ValueError, IndexError):
        detail = f"{name}={quoted(value)} is no list of its devices, and tinygrad raises on it"
        return Mask.broken(detail)
    if not picks:
        return Mask(ids)
    return _picked(picks, ids, f"{name}={quoted(value)}")


def _picked(picks: Sequence[int], ids: Sequence[str], assignment: str) -> Mask:
    end = next((at for at, place in enumerate(picks) if place >= len(ids)), len(picks))
    mask = Mask([ids[place] for place in picks[:end]], f"{assignment} does not name it")
    if end < len(picks):
        mask.code = "variable-breaks"
        mask.detail = f"{assignment} names a place without a device, on which tinygrad raises"
        named = [ids[place] for place in picks[end:] if place < len(ids)]
        mask.maybe = {name: mask.detail for name in named if name not in mask.ids}
    return mask


def _indices(value: str, ranges: bool, count: int) -> list[int]:
    if ranges and "-" in value:
        first, last = value.split("-")[:2]
        low, high = int(first), int(last)
        if high >= count and low <= high:
            raise IndexError(high)
        return list(range(low, high + 1))
    return [int(entry) for entry in value.split(",") if entry.strip()]
