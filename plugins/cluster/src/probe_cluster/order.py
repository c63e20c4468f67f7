"""The order of the ring: neighbours by Thunderbolt or RDMA stand together, slow hops are few."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from probe_cluster.links import Links

__all__ = ["pairs", "ring_order", "ring_seconds"]

_EXACT = 9
"""Up to this many nodes every ring is compared, by dynamic programming."""
_IMPROVED = 64
"""Up to this many nodes a found ring is improved by turning stretches around."""

Cost = Callable[[int, int], float]


def ring_order(ids: Sequence[str], links: Links, size: int) -> list[str]:
    """Return the ids in an order whose ring passes `size` bytes on in the least time.

    Exact up to nine nodes; beyond, the fastest links are joined first and the ring is improved
    while that helps. Deterministic: it does not depend on the order given.
    """
    names = sorted(ids)
    if len(names) < 4:  # every ring of three is the same
        return names

    def cost(left: int, right: int) -> float:
        return links.between(names[left], names[right]).seconds(size)

    if len(names) <= _EXACT:
        found = _exact(len(names), cost)
    else:
        found = _joined(names, links, size)
        if len(names) <= _IMPROVED:
            found = _improved(found, cost)
    return [names[at] for at in found]


def ring_seconds(ids: Sequence[str], links: Links, size: int) -> list[float]:
    """Return the time of each hop of the ring, the last one leading to the first node."""
    return [links.between(left, right).seconds(size) for left, right in pairs(ids)]


def pairs(ids: Sequence[str]) -> list[tuple[str, str]]:
    """Return the hops of the ring; a node alone has none."""
    return list(zip(ids, [*ids[1:], ids[0]], strict=True)) if len(ids) > 1 else []


def _exact(count: int, cost: Cost) -> list[int]:
    """Held and Karp's dynamic programming: the best way through each set of nodes, by its end."""
    ways: dict[tuple[int, int], tuple[float, int]] = {}
    for end in range(1, count):
        ways[1 << end, end] = (cost(0, end), 0)
    for visited in range(2, 1 << count, 2):
        for end in range(1, count):
            before = visited ^ (1 << end)
            if not visited >> end & 1 or not before:
                continue
            ways[visited, end] = min(
                (ways[before, via][0] + cost(via, end), via)
                for via in range(1, count)
                if before >> via & 1
            )
    visited = (1 << count) - 2
    end = min(range(1, count), key=lambda at: (ways[visited, at][0] + cost(at, 0), at))
    found = []
    while visited:
        found.append(end)
        visited, end = visited ^ (1 << end), ways[visited, end][1]
    return [0, *reversed(found)]


def _joined(names: Sequence[str], links: Links, size: int) -> list[int]:
    """Join the fastest named links to paths, then the paths to one, in the order of the ids."""
    place = {name: at for at, name in enumerate(names)}
    slow = links.default.seconds(size)
    edges = sorted(
        (link.seconds(size), place[left], place[right])
        for (left, right), link in links.named().items()
        if left in place and right in place
    )
    neighbours: dict[int, list[int]] = {at: [] for at in range(len(names))}
    group = list(range(len(names)))
    for seconds, left, right in edges:
        ends = len(neighbours[left]) < 2 and len(neighbours[right]) < 2
        if seconds < slow and ends and _root(group, left) != _root(group, right):
            neighbours[left].append(right)
            neighbours[right].append(left)
            group[_root(group, left)] = _root(group, right)
    return _walked(neighbours)


def _root(group: list[int], at: int) -> int:
    while group[at] != at:
        group[at] = group[group[at]]
        at = group[at]
    return at


def _walked(neighbours: Mapping[int, Sequence[int]]) -> list[int]:
    found: list[int] = []
    done: set[int] = set()
    for start in neighbours:
        at: int | None = start if len(neighbours[start]) < 2 and start not in done else None
        while at is not None:
            found.append(at)
            done.add(at)
            at = next((near for near in neighbours[at] if near not in done), None)
    return found


def _improved(found: list[int], cost: Cost) -> list[int]:
    """Turn a stretch around wherever the two hops at its ends get faster by it."""
    count, better = len(found), True
    while better:
        better = False
        for first in range(count - 1):
            for last in range(first + 2, count):
                ahead = found[(last + 1) % count]
                if ahead == found[first]:
                    continue
                now = cost(found[first], found[first + 1]) + cost(found[last], ahead)
                new = cost(found[first], found[last]) + cost(found[first + 1], ahead)
                if new < now - 1e-15:
                    found[first + 1 : last + 1] = found[first + 1 : last + 1][::-1]
                    better = True
    return found
