"""How close two devices are: NVLink or XGMI, a PCIe switch, a NUMA node, or only the machine."""

from __future__ import annotations

from itertools import combinations
from math import comb, factorial, prod

from probe_core.model.ids import pci_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_core.model.document import DeviceDoc

    Group = tuple[int, ...]
    Scores = Sequence[Sequence[int]]


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
            if count == 0:  # through other devices
                return 0
            return count if count is not None and 0 < count <= _MOST_LINKS else 1
    return 0


def _switches(device: DeviceDoc) -> set[tuple[str, str]]:
    """Return what the device's links lead to that is no device: switches, by kind and name."""
    peers = ((link["kind"], link.get("peer")) for link in device["links"])
    return {
        (kind, peer) for kind, peer in peers if peer is not None and not peer.startswith("uuid:")
    }


def _neighbours(device: DeviceDoc, other: DeviceDoc) -> int:
    first, second = pci_place(device), pci_place(other)
    if first is None or second is None or first[0] != second[0]:
        return 0
    return max(0, _NEIGHBOURS - abs(first[1] - second[1]))


# Divides devices into groups that work well together: always the same groups for one node.

_EXACT = 3_000
"""Divisions compared with each other at most: 8 devices in pairs have 105, 16 in fours 2.6 million.
Each costs a few microseconds, so that a request is answered within some 20 ms."""


def divide(devices: Sequence[DeviceDoc], groups: int, size: int) -> list[list[DeviceDoc]]:
    """Return `groups` lists of `size` devices each, as close together as can be.

    Among equally good divisions the one that comes first in the devices' own order is taken, and
    the groups come in the order of their first device. Raises `ValueError` when there are too few
    devices.
    """
    if groups * size > len(devices):
        raise ValueError(f"{groups}x{size} needs {groups * size} devices, there are {len(devices)}")
    score = [[closeness(device, other) for other in devices] for device in devices]
    places = tuple(range(len(devices)))
    if size == 1:
        division: Sequence[Group] = [(place,) for place in places[:groups]]
    elif _count(len(devices), groups, size) <= _EXACT:
        division = _exact(places, groups, size, score)
    else:
        division = _greedy(places, groups, size, score)
    return [[devices[place] for place in group] for group in division]


def best_group(devices: Sequence[DeviceDoc], size: int) -> list[DeviceDoc]:
    """Return the `size` devices that are closest together, the first of equals."""
    return divide(devices, 1, size)[0]


def _count(total: int, groups: int, size: int) -> int:
    """Return in how many ways `groups` unordered groups of `size` can be taken of `total`."""
    ordered = prod(comb(total - size * group, size) for group in range(groups))
    return ordered // factorial(groups)


def _together(group: Group, score: Scores) -> int:
    return sum(score[place][other] for at, place in enumerate(group) for other in group[at + 1 :])


def _exact(places: Group, groups: int, size: int, score: Scores) -> list[Group]:
    best: list[Group] = []
    best_score: int | None = None
    for division in _divisions(places, groups, size):
        total = sum(_together(group, score) for group in division)
        # The first of equals, so that each process of a node finds the same groups.
        if best_score is None or total > best_score:
            best, best_score = list(division), total
    return best


def _divisions(places: Group, groups: int, size: int) -> Iterator[tuple[Group, ...]]:
    """Yield each division once: the first device of a group comes before those of later groups."""
    if groups == 0:
        yield ()
        return
    for at in range(len(places) - groups * size + 1):
        first, behind = places[at], places[at + 1 :]
        for partners in combinations(behind, size - 1):
            remaining = tuple(place for place in behind if place not in partners)
            for tail in _divisions(remaining, groups - 1, size):
                yield ((first, *partners), *tail)


def _greedy(places: Group, groups: int, size: int, score: Scores) -> list[Group]:
    """Grow one group after another from the first free device, by the closest to the group."""
    free, division = list(places), []
    for _ in range(groups):
        group = [free.pop(0)]
        while len(group) < size:
            nearest = max(
                free, key=lambda place: (sum(score[place][other] for other in group), -place)
            )
            free.remove(nearest)
            group.append(nearest)
        division.append(tuple(sorted(group)))
    return sorted(division)
