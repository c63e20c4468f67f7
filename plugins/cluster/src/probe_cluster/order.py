"""The order of the ring: neighbours by Thunderbolt or RDMA stand together, slow hops are few."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from probe_cluster.links import Links

__all__ = ["pairs", "ring_order", "ring_seconds"]

# Time and memory of the exact answer more than double with each node.
_EXACT = 9
"""Up to this many nodes every ring is compared, by dynamic programming."""

# Each round of improvement compares all pairs of hops, and there may be many rounds.
_IMPROVED = 64
"""Up to this many nodes a ring is improved by turning stretches around."""

Cost = Callable[[int, int], float]


def ring_order(ids: Sequence[str], links: Links, size: int) -> list[str]:
    """Return the ids in an order whose ring passes `size` bytes on in the least time.

    Exact up to nine nodes; beyond, the fastest links are joined first and the ring is improved
    while that helps. Deterministic: it does not depend on the order given.
    """
    names = sorted(ids)
    if len(names) < 4:  # every ring of three is the same
        return names

    def cost(first: int, second: int) -> float:
        return links.between(names[first], names[second]).seconds(size)

    if len(names) <= _EXACT:
        ring = _exact(len(names), cost)
    else:
        ring = _joined(names, links, size)
        if len(names) <= _IMPROVED:
            ring = _improved(ring, cost)
    return [names[node] for node in ring]


def ring_seconds(ids: Sequence[str], links: Links, size: int) -> list[float]:
    """Return the time of each hop of the ring, the last one leading to the first node."""
    return [links.seconds(first, second, size) for first, second in pairs(ids)]


def pairs(ids: Sequence[str]) -> list[tuple[str, str]]:
    """Return the hops of the ring; a node alone has none."""
    return list(zip(ids, [*ids[1:], ids[0]], strict=True)) if len(ids) > 1 else []


def _exact(count: int, cost: Cost) -> list[int]:
    """Return the cheapest ring of all, by Held and Karp's dynamic programming.

    `best` holds for each set of nodes (a bit mask) and each node of it that a path from node 0 may
    end at: the least cost of such a path, and the node before its end.
    """
    best: dict[tuple[int, int], tuple[float, int]] = {}
    for end in range(1, count):
        best[1 << end, end] = (cost(0, end), 0)
    # Only even masks: node 0 is where every path starts. Smaller sets have smaller masks.
    for visited in range(2, 1 << count, 2):
        for end in range(1, count):
            before = visited ^ (1 << end)
            if not visited >> end & 1 or not before:
                continue
            best[visited, end] = min(
                (best[before, via][0] + cost(via, end), via)
                for via in range(1, count)
                if before >> via & 1
            )
    visited = (1 << count) - 2
    end = min(range(1, count), key=lambda node: (best[visited, node][0] + cost(node, 0), node))
    path = []
    while visited:  # from the end back to the start
        path.append(end)
        visited, end = visited ^ (1 << end), best[visited, end][1]
    return [0, *reversed(path)]


def _joined(names: Sequence[str], links: Links, size: int) -> list[int]:
    """Join the fastest named links to paths, then the paths to one, in the order of the ids."""
    place = {name: index for index, name in enumerate(names)}
    slow = links.default.seconds(size)
    edges = sorted(
        (link.seconds(size), place[first], place[second])
        for (first, second), link in links.named().items()
        if first in place and second in place
    )
    neighbours: dict[int, list[int]] = {node: [] for node in range(len(names))}
    parents = list(range(len(names)))
    for seconds, first, second in edges:
        both_are_ends = len(neighbours[first]) < 2 and len(neighbours[second]) < 2
        # A link within one path would close a ring that leaves out the other nodes.
        apart = _root(parents, first) != _root(parents, second)
        if seconds < slow and both_are_ends and apart:
            neighbours[first].append(second)
            neighbours[second].append(first)
            parents[_root(parents, first)] = _root(parents, second)
    return _walked(neighbours)


def _root(parents: list[int], node: int) -> int:
    """Return what stands for a node's path (union-find, with halving of the way there)."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


def _walked(neighbours: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the nodes path by path, each from the end that comes first."""
    ring: list[int] = []
    done: set[int] = set()
    for start in neighbours:
        node: int | None = start if len(neighbours[start]) < 2 and start not in done else None
        while node is not None:
            ring.append(node)
            done.add(node)
            node = next((near for near in neighbours[node] if near not in done), None)
    return ring


def _improved(ring: list[int], cost: Cost) -> list[int]:
    """Turn a stretch around wherever the two hops at its ends get faster by it (2-opt)."""
    count, better = len(ring), True
    while better:
        better = False
        for first in range(count - 1):
            for last in range(first + 2, count):
                ahead = ring[(last + 1) % count]
                if ahead == ring[first]:
                    continue
                now = cost(ring[first], ring[first + 1]) + cost(ring[last], ahead)
                new = cost(ring[first], ring[last]) + cost(ring[first + 1], ahead)
                # The margin keeps rounding errors from turning a stretch back and forth for ever.
                if new < now - 1e-15:
                    ring[first + 1 : last + 1] = ring[first + 1 : last + 1][::-1]
                    better = True
    return ring
