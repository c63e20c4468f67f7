"""What old exo's nodes exchange and agree on: shares of a ring, topologies, merged views."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probe_cluster.planning.links import Links
from probe_cluster.planning.members import Member
from probe_cluster.shared import ClusterError

# Ring memory-weighted partitioning. Every node of an old exo ring computes the same partitions
# alone, so order and rounding are part of the protocol: by (memory, id) descending, ends rounded to
# five digits, the last end not forced.


class Partition(NamedTuple):
    """A node's share of the model, as a stretch of 0 to 1."""

    node_id: str
    start: float
    end: float


class Shard(NamedTuple):
    """A node's layers: `start_layer` to `end_layer`, both included, of `n_layers`."""

    node_id: str
    start_layer: int
    end_layer: int
    n_layers: int


def ring_memory_weighted(memory: Iterable[tuple[str, int]]) -> list[Partition]:
    """Return the partitions of nodes given as (id, memory in MiB), in the ring's order.

    Raises `ClusterError` when an id is there twice or no node has memory: a share of nothing is
    not defined.
    """
    nodes = sorted(memory, key=lambda node: (node[1], node[0]), reverse=True)
    _check(nodes)
    total = sum(size for _, size in nodes)
    partitions, start = [], 0.0
    for node_id, size in nodes:
        # As old exo's nodes round: one of them that rounds otherwise loads other layers.
        end = round(start + size / total, 5)
        partitions.append(Partition(node_id, start, end))
        start = end
    return partitions


def _check(nodes: Sequence[tuple[str, int]]) -> None:
    if not nodes:
        raise ClusterError("there is no node to partition among; give at least one report")
    seen = set()
    for node_id, size in nodes:
        if node_id in seen:
            raise ClusterError(f"node {node_id!r} is there twice; give each an id", node=node_id)
        if size < 0:
            raise ClusterError(f"node {node_id!r} has {size} MiB of memory", node=node_id)
        seen.add(node_id)
    if not any(size for _, size in nodes):
        names = ", ".join(repr(node_id) for node_id, _ in nodes[:8])
        raise ClusterError(
            f"the total memory of all nodes is 0, so it gives no shares: {names};"
            " set OVERRIDE_MEMORY_MB there, or probe them again"
        )


def shards(partitions: Sequence[Partition], n_layers: int) -> list[Shard]:
    """Return the layers of each partition; a node whose share holds none is left out."""
    if n_layers < 1:
        raise ClusterError(f"a model has at least 1 layer, not {n_layers}")
    result = []
    for at, partition in enumerate(partitions):
        start = int(partition.start * n_layers)
        end = int(partition.end * n_layers) - 1
        # Rounded ends may stop short of 1; the last node takes what would have none.
        if at == len(partitions) - 1:
            end = n_layers - 1
        if start <= end:
            result.append(Shard(partition.node_id, start, end, n_layers))
    return result


# The view of a cluster that old exo's nodes and pages exchange, as one immutable value.

Capabilities = Mapping[str, Any]
"""``model``, ``chip``, ``memory`` (total MiB) and ``flops`` (fp32, fp16, int8 in TFLOPS)."""

_UNKNOWN_MODEL, _UNKNOWN_CHIP = "Unknown Model", "Unknown Chip"


class Edge(NamedTuple):
    """A connection from one node to another, with words for people."""

    from_id: str
    to_id: str
    description: str


def capabilities(member: Member) -> dict[str, Any]:
    """Return a member as old exo describes a node: memory in MiB, unknown numbers 0.

    The shape has no word for unknown; `Member.reasons` keeps why.
    """
    return {
        "model": member.model or _UNKNOWN_MODEL,
        "chip": member.chip or _UNKNOWN_CHIP,
        "memory": member.memory_mib,
        "flops": {
            "fp32": member.fp32 or 0.0,
            "fp16": member.fp16 or 0.0,
            "int8": member.int8 or 0.0,
        },
    }


@dataclass(frozen=True)
class Topology:
    """Nodes, and who is connected to whom."""

    nodes: Mapping[str, Capabilities] = field(default_factory=dict)
    """Id → capabilities."""
    edges: frozenset[Edge] = frozenset()
    """Connections, each in one direction."""
    active_node_id: str | None = None
    """The node that works now."""

    @classmethod
    def of(
        cls, members: Iterable[Member], links: Links | None = None, active: str | None = None
    ) -> Topology:
        """Return the topology of members; every named link is an edge both ways.

        Raises `ClusterError` for an id that is there twice, and a link to a node that is not.
        """
        nodes: dict[str, Capabilities] = {}
        for member in members:
            if member.id in nodes:
                raise ClusterError(f"node {member.id!r} is there twice", node=member.id)
            nodes[member.id] = capabilities(member)
        named = (links or Links()).named()
        (links or Links()).check(nodes)
        edges = {Edge(a, b, link.kind) for (a, b), link in named.items()}
        edges |= {Edge(edge.to_id, edge.from_id, edge.description) for edge in edges}
        return cls(nodes, frozenset(edges), active)

    def neighbours(self, node_id: str) -> list[str]:
        """Return the ids that a node's edges lead to, in order."""
        return sorted({edge.to_id for edge in self.edges if edge.from_id == node_id})

    def to_json(self) -> dict[str, Any]:
        """Return the document in old exo's shape, always in the same order."""
        graph: dict[str, list[dict[str, str]]] = {}
        for edge in sorted(self.edges):
            graph.setdefault(edge.from_id, []).append(edge._asdict())
        return {
            "nodes": {id_: dict(self.nodes[id_]) for id_ in sorted(self.nodes)},
            "peer_graph": graph,
            "active_node_id": self.active_node_id,
        }

    @classmethod
    def from_json(cls, document: Any) -> Topology:
        """Return the topology of a document; raises `ClusterError` naming what is wrong in it."""
        if not isinstance(document, Mapping) or not isinstance(document.get("nodes"), Mapping):
            raise ClusterError("it is no topology: it has no 'nodes'")
        nodes = {str(id_): _checked(str(id_), node) for id_, node in document["nodes"].items()}
        graph = document.get("peer_graph")
        graph = {} if graph is None else graph
        if not isinstance(graph, Mapping):
            raise ClusterError("its 'peer_graph' is no table")
        edges = frozenset(edge for id_, peers in graph.items() for edge in _edges(str(id_), peers))
        active = document.get("active_node_id")
        return cls(nodes, edges, active if isinstance(active, str) else None)


def _checked(id_: str, capabilities: Any) -> Capabilities:
    if not isinstance(capabilities, Mapping):
        raise ClusterError(f"node {id_!r} has no capabilities", node=id_)
    memory: Any = capabilities.get("memory")
    # 2^40 MiB are an exbibyte: no node has that, and a sum of such numbers stays exact.
    if type(memory) not in (int, float) or not 0 <= memory < 1 << 40:
        raise ClusterError(f"node {id_!r} has {memory!r} MiB of memory", node=id_)
    flops = capabilities.get("flops")
    table = flops if isinstance(flops, Mapping) else {}
    return {
        "model": str(capabilities.get("model") or _UNKNOWN_MODEL),
        "chip": str(capabilities.get("chip") or _UNKNOWN_CHIP),
        "memory": int(memory),
        "flops": {name: _flop(id_, name, table.get(name)) for name in ("fp32", "fp16", "int8")},
    }


def _flop(id_: str, name: str, value: Any) -> float:
    if value is None:
        return 0.0
    if type(value) not in (int, float) or not 0 <= value < 1e9:
        raise ClusterError(f"node {id_!r} has {value!r} TFLOPS of {name}", node=id_)
    return float(value)


def _edges(id_: str, peers: Any) -> list[Edge]:
    if not isinstance(peers, list):
        raise ClusterError(f"the peers of node {id_!r} are no list", node=id_)
    edges = []
    for peer in peers:
        if not isinstance(peer, Mapping) or not isinstance(peer.get("to_id"), str):
            raise ClusterError(f"a peer of node {id_!r} has no 'to_id'", node=id_)
        start = peer.get("from_id")
        description = peer.get("description")
        from_id = start if isinstance(start, str) else id_
        edges.append(Edge(from_id, peer["to_id"], str(description or "")))
    return edges


# Merge what many nodes say of the cluster into one view: bounded, safe in rings, newest wins.


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
