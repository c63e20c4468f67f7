"""Part of the stand-in for Ray: where a task runs."""

from __future__ import annotations


class NodeAffinitySchedulingStrategy:
    """Run on this node; with `soft`, elsewhere if it is gone."""

    def __init__(self, node_id: str, soft: bool) -> None:
        self.node_id = node_id
        self.soft = soft
