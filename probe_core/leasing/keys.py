"""Under which names a device is locked: its own, and what it is a part of."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.model.document import DeviceDoc

__all__ = [
    "OUTER_LEASE",
    "Key",
    "key_of",
    "level_name",
    "outer_lease",
    "outer_lease_value",
    "stable_name",
]

OUTER_LEASE = "PROBE_LEASE"
"""Names what an outer lease gave to this process: ``<depth>;<id>,<id>``. A claim, see `leased`."""

_DEEPEST = 100
"""Depth of leases within leases at which the variable counts as nonsense (a judgement)."""


class Key:
    """The names of one device: `whole` is locked in share, `own` as asked."""

    __slots__ = ("own", "whole")

    def __init__(self, own: str, whole: str | None) -> None:
        self.own = own
        self.whole = whole


def stable_name(device: DeviceDoc) -> str:
    """Return the id by which every process names the device: PCI address, else the best other.

    A library's UUID may be missing for one process and there for the next; the bus is always.
    """
    return next((name for name in device["ids"] if name.startswith("pci:")), device["id"])


def key_of(device: DeviceDoc, installed: Sequence[DeviceDoc], outer: Mapping[str, int]) -> Key:
    """Return the names under which a device is locked.

    A partition locks its GPU in share, so that nobody can lease the whole meanwhile.
    `outer` maps what an outer lease gave to its depth: within it, leases of the next depth are
    taken, so that a command under ``probe exec`` can lease its own devices to others.
    """
    parent = device["parent"]
    if not parent:
        name = stable_name(device)
        return Key(level_name(name, outer.get(name)), None)
    gpus = [gpu for gpu in installed if parent == gpu["id"] or parent in gpu["ids"]]
    whole = stable_name(gpus[0]) if gpus else parent
    # A partition's own PCI address is its GPU's: only its own id tells it apart.
    own = level_name(device["id"], outer.get(device["id"]))
    return Key(own, None if whole in outer else whole)


def level_name(name: str, depth: int | None) -> str:
    """Return the name of a device for leases at a depth; 0 or None for the outermost."""
    return f"{name}+{depth}" if depth else name


def outer_lease(environ: Mapping[str, str]) -> dict[str, int]:
    """Return the names of the devices that an outer lease gave to this process, with its depth."""
    depth, _, names = environ.get(OUTER_LEASE, "").partition(";")
    if not (depth.isascii() and depth.isdigit()) or not 0 < int(depth[:3]) < _DEEPEST:
        return {}
    return {name: int(depth[:3]) for name in names.split(",") if name}


def outer_lease_value(environ: Mapping[str, str], devices: Iterable[DeviceDoc]) -> str:
    """Return the value of `OUTER_LEASE` for a command that is given these devices.

    It names one depth for all of them, so only leases one level deeper than each can follow.
    """
    depth = max(outer_lease(environ).values(), default=0) + 1
    names = [device["id"] if device["parent"] else stable_name(device) for device in devices]
    return f"{depth};{','.join(names)}"
