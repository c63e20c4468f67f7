"""Searches among plain figures: the cheapest pipeline, the order of a ring, shares of layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import NamedTuple

from probe_cluster.planning.links import Links
from probe_cluster.shared import ClusterError
from probe_core.wording import counted

# The cheapest pipeline of all: every subset, every order, every number of layers.

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
        time = _closed(paths[mask], hops, mask)
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
        rates.append((step + near[at] / most, most))
        if most == layers:
            alone.append(step * layers)
    spare, together = layers, 0.0
    for rate, most in sorted(rates):
        count = min(spare, most)
        together, spare = together + rate * count, spare - count
    return min([*alone, _NEVER if spare else together])


# The order of the ring: neighbours by Thunderbolt or RDMA stand together, slow hops are few.

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
        hops = [
            [cost(first, second) for second in range(len(names))] for first in range(len(names))
        ]
        ring = _ring(_paths(hops), hops, (1 << len(names)) - 1)
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


# Share whole layers among nodes: in proportion, evenly by time, or for the fewest seconds.


def proportional(weights: Sequence[float], layers: int) -> list[int]:
    """Return layers in proportion to `weights` by largest remainder, at least one each.

    Equal remainders go to the earlier node; a node that came out with none takes one of the node
    with most. Raises `ClusterError` when there are fewer layers than nodes, or all weights are 0.
    """
    count, total = len(weights), sum(weights)
    if count > layers:
        raise ClusterError(
            f"{counted(layers, 'layer')} cannot go to {counted(count, 'node')}, one each;"
            f" give at most {counted(layers, 'node')}"
        )
    if not total > 0:
        raise ClusterError("the total memory of all nodes is 0, so it gives no shares")
    exact = [weight / total * layers for weight in weights]
    counts = [int(share) for share in exact]
    # Largest remainder first; a stable sort keeps equal ones in the order of the nodes.
    by_rest = sorted(range(count), key=lambda at: counts[at] - exact[at])
    for at in by_rest[: layers - sum(counts)]:
        counts[at] += 1
    for at in range(count):
        if counts[at] == 0:
            counts[max(range(count), key=counts.__getitem__)] -= 1
            counts[at] = 1
    return counts


def balanced(seconds: Sequence[float], caps: Sequence[int], layers: int) -> list[int]:
    """Return layers such that the slowest node takes the least time: exact, by whole layers.

    `seconds` is each node's time per layer, `caps` how many layers its memory holds. Each layer
    goes where it ends first; among equals to the earlier node.
    """
    counts = [0] * len(seconds)
    heap = [(step, at) for at, step in enumerate(seconds) if caps[at] > 0 and step < _NEVER]
    heapify(heap)
    for _ in range(layers):
        _, at = heap[0]
        counts[at] += 1
        # When this node would end one more layer; a full node is never the first again.
        after = seconds[at] * (counts[at] + 1) if counts[at] < caps[at] else _NEVER
        heapreplace(heap, (after, at))
    return counts


def fastest(seconds: Sequence[float], caps: Sequence[int], layers: int, hop: float) -> list[int]:
    """Return layers such that one token takes the least time over all nodes together.

    A token visits the nodes one after another, so times add up, and every node that is used costs
    a hop of `hop` seconds (one node alone costs none). Exact for equal hops: in a best plan at
    most one node is neither full nor empty, and it is the slowest that is used; so the nodes are
    taken by speed, and a table holds the least time for each number of layers on full nodes.
    """
    order = sorted(
        (node for node in range(len(seconds)) if caps[node] > 0 and seconds[node] < _NEVER),
        key=lambda node: (seconds[node], -caps[node], node),
    )
    # full[n]: the least time of n layers on nodes that are all full, among those looked at so far.
    full = [0.0] + [_NEVER] * layers
    history = [full]
    best, best_place, best_count = _NEVER, -1, 0
    for place, node in enumerate(order):
        step, cap = seconds[node], min(caps[node], layers)
        # This node takes the last `count` layers, the ones before it lie on full nodes.
        for count in range(1, cap + 1):
            time = full[layers - count] + count * step + (hop if count < layers else 0.0)
            if time < best:
                best, best_place, best_count = time, place, count
        if place + 1 < len(order):
            added = cap * step + hop
            with_it = [_NEVER] * cap + [time + added for time in full[: layers + 1 - cap]]
            full = list(map(min, full, with_it))
            history.append(full)
    return _traced(history, order, caps, layers, best_place, best_count)


def _traced(
    history: Sequence[Sequence[float]],
    order: Sequence[int],
    caps: Sequence[int],
    layers: int,
    last: int,
    last_layers: int,
) -> list[int]:
    """Return the layers of each node: `last_layers` on the `last` one, the others on full ones.

    Walks the tables back: a node was taken where adding it made the time less.
    """
    counts = [0] * len(caps)
    counts[order[last]] = last_layers
    remaining = layers - last_layers
    for place in range(last, 0, -1):
        if history[place][remaining] < history[place - 1][remaining]:
            cap = min(caps[order[place - 1]], layers)
            counts[order[place - 1]] = cap
            remaining -= cap
    return counts
