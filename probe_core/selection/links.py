"""How close two devices are: NVLink or XGMI, a PCIe switch, a NUMA node, or only the machine."""

from __future__ import annotations

from probe_core.visibility.pool import address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["closeness", "nearness"]

_FABRIC = ("nvlink", "xgmi", "xe-link")
_STRANGER = -1_000_000  # devices of two vendors work together last
_LINKED, _SWITCHED, _NODE = 10_000, 1_000, 100


def closeness(left: Device, right: Device) -> int:
    """Return how well two devices are connected: more is closer; comparable on one node only.

    A direct fabric link counts most, then a common fabric switch or PCIe switch, then a common
    NUMA node, then how near their PCI addresses lie.
    """
    score = 0 if left.get("vendor") == right.get("vendor") else _STRANGER
    direct = _direct(left, right) or _direct(right, left)
    if direct:
        score += _LINKED + direct
    score += _SWITCHED * len(_switches(left) & _switches(right))
    numa = left.get("numa_node")
    if isinstance(numa, int) and numa == right.get("numa_node"):
        score += _NODE
    return score + _neighbours(left, right)


def _links(device: Device) -> list[Mapping[str, Any]]:
    return [link for link in device.get("links") or () if hasattr(link, "get")]


def _direct(device: Device, other: Device) -> int:
    names = {other.get("id"), *(other.get("ids") or ())}
    for link in _links(device):
        if link.get("kind") in _FABRIC and link.get("peer") in names:
            count = link.get("count")
            return count if isinstance(count, int) and 0 < count < 1000 else 1
    return 0


def _switches(device: Device) -> set[object]:
    """Return what the device's links lead to that is no device: switches, by kind and name."""
    found: set[object] = set()
    for link in _links(device):
        if link.get("peer") is not None and not str(link["peer"]).startswith("uuid:"):
            found.add((link.get("kind"), link["peer"]))
        elif link.get("switch"):
            found.add((link.get("kind"), link["switch"]))
    return found


def _neighbours(left: Device, right: Device) -> int:
    one, two = address(left), address(right)
    if one is None or two is None or one[0] != two[0]:
        return 0
    return max(0, 50 - abs(one[1] - two[1]))


def nearness(devices: Sequence[Device]) -> int:
    """Return the closeness of all pairs of a group together."""
    total = 0
    for at, device in enumerate(devices):
        total += sum(closeness(device, other) for other in devices[at + 1 :])
    return total
