"""Merge what many nodes say of the cluster into one view: bounded, safe in rings, newest wins."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from probe_cluster.errors import ClusterError
from probe_cluster.topology import Capabilities, Edge, Topology

__all__ = ["View", "merge_views"]


@dataclass(frozen=True)
class View:
    """What one node says: of itself, and of the others as it last heard of them."""

    topology: Topology
    """The nodes that it knows, itself among them, and the connections between them."""
    seen: Mapping[str, float]
    """Node id → when it heard from that node, in seconds since the epoch; itself: now."""


def merge_views(views: Mapping[str, View], origin: str, depth: int = 4) -> Topology:
    """Return the view of `origin`, with what its peers say, up to `depth` hops away.

    Capabilities come from the view that heard last of a node, which is usually the node's own; of
    equally old ones that of the nearer node, then of the first id. A node's edges come from its
    own view, or from a nearer one where it gave none. Edges that lead beyond the depth are left
    out. Raises `ClusterError` when `origin` gave no view.
    """
    if origin not in views:
        ids = ", ".join(sorted(views)) or "none"
        raise ClusterError(f"there is no view of node {origin!r}; there are {ids}", node=origin)
    if depth < 0:
        raise ClusterError(f"the depth is 0 or more, not {depth}")
    distance = _reached(views, origin, depth)
    order = sorted(distance, key=lambda id_: (distance[id_], id_))
    nodes = _newest(views, order)
    edges = {edge for id_ in order for edge in _edges_of(id_, order, views)}
    inside = frozenset(e for e in edges if e.from_id in nodes and e.to_id in nodes)
    return Topology(nodes, inside, views[origin].topology.active_node_id)


def _newest(views: Mapping[str, View], order: list[str]) -> dict[str, Capabilities]:
    """Return each node's capabilities from the view that heard last of it; ties to the earlier."""
    nodes: dict[str, Capabilities] = {}
    times: dict[str, float] = {}
    reached = set(order)
    for teller in order:
        if teller not in views:
            continue  # a neighbour that gave no view of its own
        view = views[teller]
        for id_, capabilities in view.topology.nodes.items():
            time = view.seen.get(id_, float("-inf"))
            if id_ in reached and (id_ not in nodes or time > times[id_]):
                nodes[id_], times[id_] = capabilities, time
    return nodes


def _reached(views: Mapping[str, View], origin: str, depth: int) -> dict[str, int]:
    """Return id → hops from the origin; every node is visited once, so a ring ends."""
    distance = {origin: 0}
    queue = deque([origin])
    while queue:
        at = queue.popleft()
        # Beyond lies what is too far, or a node that gave no view.
        if distance[at] == depth or at not in views:
            continue
        for id_ in views[at].topology.neighbours(at):
            if id_ not in distance:
                distance[id_] = distance[at] + 1
                queue.append(id_)
    return distance


def _edges_of(id_: str, order: list[str], views: Mapping[str, View]) -> set[Edge]:
    for teller in (id_, *order):
        if teller in views:
            edges = {edge for edge in views[teller].topology.edges if edge.from_id == id_}
            if edges or teller == id_:
                return edges
    return set()
