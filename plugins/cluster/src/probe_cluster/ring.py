"""Ring memory-weighted partitioning, with exactly the results that old exo's nodes agree on.

Every node of an old exo ring computes the same partitions alone, so order and rounding are part
of the protocol: by (memory, id) descending, ends rounded to five digits, the last end not forced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from probe_cluster.errors import ClusterError

__all__ = ["Partition", "Shard", "ring_memory_weighted", "shards"]


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
