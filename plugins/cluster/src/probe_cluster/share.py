"""Share whole layers among nodes: in proportion, evenly by time, or for the fewest seconds."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace

from probe_cluster.errors import ClusterError
from probe_core.wording import counted

__all__ = ["balanced", "fastest", "proportional"]

_NEVER = float("inf")


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
