"""The view of a cluster that old exo's nodes and pages exchange, as one immutable value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probe_cluster.errors import ClusterError
from probe_cluster.links import Links
from probe_cluster.members import Member

__all__ = ["Capabilities", "Edge", "Topology", "capabilities"]

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
