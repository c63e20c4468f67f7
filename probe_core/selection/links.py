"""How close two devices are: NVLink or XGMI, a PCIe switch, a NUMA node, or only the machine."""

from __future__ import annotations

from probe_core.visibility.pool import address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["closeness", "nearness"]

_FABRIC = ("nvlink", "xgmi", "xe-link")

# Each kind of nearness outweighs all that follow it: up to 999 links of a fabric, up to nine
# common switches, and less than 100 for neighbouring addresses.
_OTHER_VENDOR = -1_000_000  # devices of two vendors work together last
_LINKED, _SWITCHED, _NODE = 10_000, 1_000, 100
_MOST_LINKS = 999
_NEIGHBOURS = 50


def closeness(device: DeviceDoc, other: DeviceDoc) -> int:
    """Return how well two devices are connected: more is closer; comparable on one node only.

    A direct fabric link counts most, then a common fabric switch or PCIe switch, then a common
    NUMA node, then how near their PCI addresses lie.
    """
    score = 0 if device["vendor"] == other["vendor"] else _OTHER_VENDOR
    direct = _direct(device, other) or _direct(other, device)
    if direct:
        score += _LINKED + direct
    score += _SWITCHED * len(_switches(device) & _switches(other))
    numa = device.get("numa_node")
    if numa is not None and numa == other.get("numa_node"):
        score += _NODE
    return score + _neighbours(device, other)


def _direct(device: DeviceDoc, other: DeviceDoc) -> int:
    """Return how many links of a fabric lead from one device to the other."""
    names = {other["id"], *other["ids"]}
    for link in device["links"]:
        if link.get("kind") in _FABRIC and link.get("peer") in names:
            count = link.get("count")
            return count if count is not None and 0 < count <= _MOST_LINKS else 1
    return 0


def _switches(device: DeviceDoc) -> set[tuple[str, str]]:
    """Return what the device's links lead to that is no device: switches, by kind and name."""
    peers = ((link["kind"], link.get("peer")) for link in device["links"])
    return {
        (kind, peer) for kind, peer in peers if peer is not None and not peer.startswith("uuid:")
    }


def _neighbours(device: DeviceDoc, other: DeviceDoc) -> int:
    first, second = address(device), address(other)
    if first is None or second is None or first[0] != second[0]:
        return 0
    return max(0, _NEIGHBOURS - abs(first[1] - second[1]))


def nearness(devices: Sequence[DeviceDoc]) -> int:
    """Return the closeness of all pairs of a group together."""
    total = 0
    for place, device in enumerate(devices):
        total += sum(closeness(device, other) for other in devices[place + 1 :])
    return total
