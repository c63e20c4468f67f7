"""Under which names a device is locked: its own, and what it is a part of."""

from __future__ import annotations

from probe_core.leasing.folder import file_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["OUTER_LEASE", "Key", "key_of", "level_file", "outer_lease", "outer_lease_value"]

OUTER_LEASE = "PROBE_LEASE"
"""Names what an outer lease gave to this process: ``<depth>;<id>,<id>``. A claim, see `outer`."""

_DEEPEST = 100
"""Depth of leases within leases at which the variable counts as nonsense (a judgement)."""


class Key:
    """The lock files of one device: `whole` is taken in share, `own` as asked."""

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
    """Return the device's lock files.

    A partition takes its GPU's lock in share, so that nobody can lease the whole meanwhile.
    `outer` maps what an outer lease gave to its depth: within it, leases of the next depth are
    taken, so that a command under ``probe exec`` can lease its own devices to others.
    """
    parent = device["parent"]
    if not parent:
        name = stable_name(device)
        return Key(level_file(name, outer.get(name)), None)
    gpus = [gpu for gpu in installed if parent == gpu["id"] or parent in gpu["ids"]]
    whole = stable_name(gpus[0]) if gpus else parent
    # A partition's own PCI address is its GPU's: only its own id tells it apart.
    own = level_file(device["id"], outer.get(device["id"]))
    return Key(own, None if whole in outer else file_name(whole))


def level_file(name: str, depth: int | None) -> str:
    """Return the lock file of a device for leases at a depth; 0 or None for the outermost."""
    return file_name(f"{name}+{depth}" if depth else name)


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
