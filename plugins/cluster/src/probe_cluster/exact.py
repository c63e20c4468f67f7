"""The cheapest pipeline of all: every subset, every order, every number of layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

__all__ = ["EXACT_NODES", "Costs", "cheapest", "lower_bound"]

# The table doubles with each node: 8 nodes take 3 ms, 10 nodes 14 ms (tests/bench).
EXACT_NODES = 10
"""Up to this many nodes every pipeline is compared."""

_NEVER = float("inf")


class Costs(NamedTuple):
    """What one token costs, in seconds: the sum over the nodes that are used, and their ring.

    A ring of k > 1 nodes has k hops; a node alone has none.
    """

    layer: Sequence[float]
    """Of one layer on each node; infinite where it is not known."""
    fixed: Sequence[float]
    """Of a node that is used, whatever its layers are."""
    least: Sequence[int]
    """Layers that a node must have: what a person pinned, else 0."""
    most: Sequence[int]
    """Layers that it can have."""
    hops: Callable[[int, int], float]
    """From a node to another one."""
    must: Collection[int] = ()
    """Nodes that have some layers in any case, besides those with a least."""


def cheapest(costs: Costs, layers: int) -> list[tuple[int, int]] | None:
    """Return (node, layers) in the order of the cheapest ring; None where nothing holds the model.

    Exact: Held and Karp's table gives the cheapest ring of every subset at once. A subset then
    gives each of its nodes the fewest layers it may have, and the others to the fastest up to
    what they hold, which no other choice can beat while layers cost the same. Costs that fall,
    room that grows and nodes that are added only ever lower the minimum.
    """
    nodes = [at for at, step in enumerate(costs.layer) if step < _NEVER and costs.most[at] > 0]
    needed = {*costs.must, *(at for at, least in enumerate(costs.least) if least)}
    if not needed.issubset(nodes):
        return None
    hops = [[costs.hops(first, second) for second in nodes] for first in nodes]
    paths = _paths(hops)
    pinned = sum(1 << place for place, at in enumerate(nodes) if at in needed)
    by_speed = sorted(range(len(nodes)), key=lambda place: costs.layer[nodes[place]])
    best, best_mask = _NEVER, 0
    for mask in range(1, 1 << len(nodes)):
        if mask & pinned != pinned:
            continue
        used = [nodes[place] for place in by_speed if mask >> place & 1]
        counts = _filled(costs, used, layers)
        if counts is None:
            continue
        time = _closed(paths[mask], hops, mask) + sum(costs.fixed[at] for at in used)
        time += sum(costs.layer[at] * count for at, count in zip(used, counts, strict=True))
        if time < best:
            best, best_mask = time, mask
    if not best_mask:
        return None
    used = [nodes[place] for place in by_speed if best_mask >> place & 1]
    shares = dict(zip(used, _filled(costs, used, layers) or (), strict=True))
    return [(nodes[place], shares[nodes[place]]) for place in _ring(paths, hops, best_mask)]


def _filled(costs: Costs, used: Sequence[int], layers: int) -> list[int] | None:
    """Return the layers of each of `used`, which are sorted by speed; None where they lack room."""
    counts = [max(1, costs.least[at]) for at in used]
    spare = layers - sum(counts)
    if spare < 0:
        return None
    for place, at in enumerate(used):
        # Pinned layers are as many as they are.
        limit = costs.least[at] or costs.most[at]
        extra = min(spare, limit - counts[place])
        if extra < 0:
            return None
        counts[place] += extra
        spare -= extra
    return None if spare else counts


def _paths(hops: Sequence[Sequence[float]]) -> list[dict[int, float]]:
    """Return for each subset: end → least cost of a path from its first node through all of it."""
    paths: list[dict[int, float]] = [{}]
    for mask in range(1, 1 << len(hops)):
        low = mask & -mask
        start = low.bit_length() - 1
        if mask == low:
            paths.append({start: 0.0})
            continue
        ends: dict[int, float] = {}
        others = mask ^ low
        while others:
            bit = others & -others
            others ^= bit
            end = bit.bit_length() - 1
            before = paths[mask ^ bit]
            ends[end] = min([cost + hops[via][end] for via, cost in before.items()])
        paths.append(ends)
    return paths


def _closed(path: dict[int, float], hops: Sequence[Sequence[float]], mask: int) -> float:
    """Return the cost of the cheapest ring of a subset."""
    start = (mask & -mask).bit_length() - 1
    if mask == mask & -mask:
        return 0.0
    return min([cost + hops[end][start] for end, cost in path.items()])


def _ring(
    paths: Sequence[dict[int, float]], hops: Sequence[Sequence[float]], mask: int
) -> list[int]:
    """Return a subset in the order of its cheapest ring, walked back from its end."""
    start = (mask & -mask).bit_length() - 1
    target, ring = start, []
    while mask != 1 << start:
        costs = {end: cost + hops[end][target] for end, cost in paths[mask].items()}
        target = min(costs, key=lambda end: (costs[end], end))
        ring.append(target)
        mask ^= 1 << target
    return [start, *reversed(ring)]


def lower_bound(costs: Costs, near: Sequence[float], layers: int) -> float:
    """Return seconds that no pipeline can beat, for more nodes than can be compared.

    `near` is half of each node's two cheapest hops, which it has at least when it is not alone:
    it is entered and left. Spread over the layers that it could hold, the layers go to the
    cheapest. A node alone has no hops.
    """
    alone, rates = [_NEVER], []
    for at, step in enumerate(costs.layer):
        most = min(costs.most[at], layers)
        if step == _NEVER or not most:
            continue
        rates.append((step + (costs.fixed[at] + near[at]) / most, most))
        if most == layers:
            alone.append(costs.fixed[at] + step * layers)
    spare, together = layers, 0.0
    for rate, most in sorted(rates):
        count = min(spare, most)
        together, spare = together + rate * count, spare - count
    return min([*alone, _NEVER if spare else together])
