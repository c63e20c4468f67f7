"""Under which names a device is locked: its own, and what it is a part of."""

from __future__ import annotations

from probe_core.leasing.folder import file_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["HELD", "Key", "held_here", "key_of", "note_held"]

HELD = "PROBE_LEASE"
"""Names what an outer lease gave to this process: ``<depth>;<id>,<id>``."""


class Key:
    """The lock files of one device: `whole` is taken in share, `own` as asked."""

    __slots__ = ("own", "whole")

    def __init__(self, own: str, whole: str | None) -> None:
        self.own = own
        self.whole = whole


def stable_name(device: Device) -> str:
    """Return the id by which every process names the device: PCI address, else the best other."""
    ids = [str(i) for i in device.get("ids") or ()]
    found = next((i for i in ids if i.startswith("pci:")), None)
    return found or str(device.get("id") or (ids[0] if ids else "unknown"))


def key_of(device: Device, every: Sequence[Device], held: Mapping[str, int]) -> Key:
    """Return the device's lock files.

    A partition takes its GPU's lock in share, so that nobody can lease the whole meanwhile.
    `held` maps what an outer lease holds to its depth: within it, leases of the next depth are
    taken, so that a command under ``probe exec`` can hand its own devices on.
    """
    name = stable_name(device)
    parent = device.get("parent")
    whole = None
    if parent:
        names = [one for one in every if parent in (one.get("id"), *(one.get("ids") or ()))]
        above = stable_name(names[0]) if names else str(parent)
        # A partition's own PCI address is its GPU's: only its own id tells it apart.
        name = str(device.get("id"))
        whole = None if above in held else file_name(above)
    depth = held.get(name, held.get(stable_name(device)) if not parent else None)
    return Key(file_name(f"{name}+{depth}" if depth else name), whole)


def held_here(environ: Mapping[str, str]) -> dict[str, int]:
    """Return the names of the devices that an outer lease gave to this process, with its depth."""
    depth, _, names = environ.get(HELD, "").partition(";")
    if not (depth.isascii() and depth.isdigit()) or not 0 < int(depth[:3]) < 100:
        return {}
    return {name: int(depth[:3]) for name in names.split(",") if name}


def note_held(environ: Mapping[str, str], devices: Iterable[Device]) -> str:
    """Return the value that tells a command what it was given."""
    depth = max(held_here(environ).values(), default=0) + 1
    names = [str(one.get("id")) if one.get("parent") else stable_name(one) for one in devices]
    return f"{depth};{','.join(names)}"
