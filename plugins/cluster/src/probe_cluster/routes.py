"""Routes between nodes over the links of others: a hub, a line or a star of cables.

A route passes data on node by node, so its time is the sum of its links' times. It counts where it
is faster than the two nodes' own link, which for a pair that nobody named is the default one. The
nodes between must forward (IP forwarding, or a bridge): the kind of link says through which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise

from probe_cluster.links import Link, Links

__all__ = ["routed"]

_MOST = 64
"""Nodes with links of their own for which routes are looked for: a millisecond for eight, and what
has more nodes than that has a switch."""

_Neighbours = Mapping[str, Mapping[str, Link]]


def routed(links: Links, size: int) -> Links:
    """Return links in which each pair has its fastest route for `size` bytes."""
    neighbours: dict[str, dict[str, Link]] = {}
    for (first, second), link in links.named().items():
        neighbours.setdefault(first, {})[second] = link
        neighbours.setdefault(second, {})[first] = link
    if not 2 < len(neighbours) <= _MOST:
        return links
    better = Links(links.named(), links.default, links.software)
    for start in sorted(neighbours):
        for end, way in _routes(neighbours, start, size).items():
            if start < end and len(way) > 2:
                route = _joined(way, neighbours)
                if route.seconds(size) < links.between(start, end).seconds(size):
                    better.replace(start, end, route)
    return better


def _routes(neighbours: _Neighbours, start: str, size: int) -> dict[str, tuple[str, ...]]:
    """Return the fastest way from a node to each other that links lead to (Dijkstra)."""
    done: dict[str, tuple[str, ...]] = {}
    queue: list[tuple[float, int, tuple[str, ...]]] = [(0.0, 1, (start,))]
    while queue:
        seconds, nodes, way = heappop(queue)  # of equally fast ones that through fewer nodes
        if way[-1] in done:
            continue
        done[way[-1]] = way
        for end, link in neighbours[way[-1]].items():
            if end not in done:
                heappush(queue, (seconds + link.seconds(size), nodes + 1, (*way, end)))
    return done


def _joined(way: Sequence[str], neighbours: _Neighbours) -> Link:
    """Return one link with the time of a way: latencies add up, and so do the bytes' times."""
    parts = [neighbours[first][second] for first, second in pairwise(way)]
    kinds = dict.fromkeys(part.kind for part in parts)
    return Link(
        f"{'+'.join(kinds)} via {', '.join(way[1:-1])}",
        1 / sum(1 / part.bandwidth for part in parts),
        sum(part.latency for part in parts),
    )
