"""What tinygrad shows: a variable of another name in each of its generations.

Sources: tinygrad at tags v0.9.2 to v0.11.0 (runtime/ops_nv.py, ops_amd.py: VISIBLE_DEVICES, else
CUDA_VISIBLE_DEVICES for NV and HIP_VISIBLE_DEVICES for AMD), v0.12.0 (HCQ_VISIBLE_DEVICES, and
neither vendor's variable) and v0.13.0 on (indices in DEV, as ``DEV=:0,1+NV``).
"""

from __future__ import annotations

from probe_core.visibility.pool import gpus_of, ids_of, in_order
from probe_core.visibility.rocr import agents
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

    Release = tuple[int, ...]

__all__ = [
    "DEV_SINCE",
    "HCQ",
    "HCQ_SINCE",
    "NEWEST",
    "dev_indices",
    "release_of",
    "see",
    "tinygrad_visible",
]

NEWEST = (0, 14)
"""What is assumed where the version is unknown."""

_OWN_SINCE, HCQ_SINCE, DEV_SINCE = (0, 9), (0, 12), (0, 13)
HCQ = "HCQ_VISIBLE_DEVICES"

_BACKENDS = {"nvidia": ("NV", "CUDA_VISIBLE_DEVICES"), "amd": ("AMD", "HIP_VISIBLE_DEVICES")}
"""Vendor to the backend that speaks to its kernel driver, and the vendor's variable."""


def see(
    devices: Sequence[DeviceDoc], environ: Mapping[str, str], version: str | None = None
) -> list[View]:
    """Return what tinygrad's NV and AMD backends would show; `version` as in ``0.12.0``."""
    release = release_of(version)
    views = []
    for vendor, (backend, vendor_variable) in _BACKENDS.items():
        gpus = agents(devices) if vendor == "amd" else in_order(gpus_of(devices, vendor), "nvml")
        if gpus:
            views.append(_view(gpus, environ, release, backend, vendor_variable))
    return views


def release_of(version: str | None) -> Release:
    """Return a version as numbers, ``(0, 12, 0)``; without one, the newest that is known."""
    if not version:
        return NEWEST
    parts = []
    for part in version.split("."):
        digits = "".join(char for char in part if char.isascii() and char.isdigit())
        parts.append(int(digits[:9]) if digits else 0)
    return tuple(parts)


def _view(
    gpus: Sequence[DeviceDoc],
    environ: Mapping[str, str],
    release: Release,
    backend: str,
    vendor_variable: str,
) -> View:
    ids = ids_of(gpus)
    if release >= DEV_SINCE and environ.get(HCQ):
        detail = f"{HCQ} is set, which tinygrad since 0.13 refuses: use DEV=:0+{backend}"
        mask = Mask.broken(detail)
        return View("tinygrad", ids, [mask], variable=HCQ, value=environ[HCQ])
    variable, value = _deciding(environ, release, backend, vendor_variable)
    mask = tinygrad_visible(value, ids, variable or "", ranges=release >= DEV_SINCE)
    return View("tinygrad", ids, [mask], variable=variable, value=value)


def _deciding(
    environ: Mapping[str, str], release: Release, backend: str, vendor_variable: str
) -> tuple[str | None, str | None]:
    if release >= DEV_SINCE:
        indices = dev_indices(environ.get("DEV", ""), backend)
        return ("DEV", indices) if indices else (None, None)
    names: tuple[str, ...] = ()
    if release >= HCQ_SINCE:
        names = (HCQ,)
    elif release >= _OWN_SINCE:
        names = ("VISIBLE_DEVICES", vendor_variable)
    name = next((name for name in names if name in environ), None)
    return (name, environ[name]) if name is not None and environ[name].strip(" ,") else (None, None)


def dev_indices(value: str, backend: str) -> str:
    """Return the indices that ``DEV`` gives `backend`: ``0,1`` in ``NVK:0,1+NV;AMD``, else ""."""
    for target in value.split(";"):
        front, plus, renderer = target.rpartition("+")
        name = renderer.split(":")[0].upper()
        if name in ("", backend):
            return front.rpartition(":")[2] if plus and ":" in front else ""
    return ""


def tinygrad_visible(
    value: str | None, ids: Sequence[str], name: str, *, ranges: bool = False
) -> Mask:
    """Return what a list of indices leaves of `ids`; unset or empty leaves all.

    tinygrad reads each entry with Python's ``int`` and indexes a list with it: one that is no
    number or lies beyond the list raises, and the backend has no device; -1 is the last one. With
    `ranges` (since 0.13) ``0-3`` is a range, and a minus has no other meaning.
    """
    if not value:
        return Mask(ids)
    try:
        picks = [ids[index] for index in _indices(value, ranges, len(ids))]
    except (ValueError, IndexError):
        detail = f"{name}={quoted(value)} is no list of its devices, and tinygrad raises on it"
        return Mask.broken(detail)
    if not picks:
        return Mask(ids)
    return Mask(picks, f"{name}={quoted(value)} does not name it")


def _indices(value: str, ranges: bool, count: int) -> list[int]:
    if ranges and "-" in value:
        first, last = value.split("-")[:2]
        low, high = int(first), int(last)
        if high >= count and low <= high:
            raise IndexError(high)
        return list(range(low, high + 1))
    return [int(entry) for entry in value.split(",") if entry.strip()]
