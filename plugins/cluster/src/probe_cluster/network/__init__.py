"""Measure latency and bandwidth between nodes, through the engine that gathered their reports."""

from __future__ import annotations

from probe_cluster.fronts import front

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_cluster.network.links import Network as Network
    from probe_cluster.network.measure import measure_links as measure_links

_NAMES = {
    "links": "Network",
    "measure": "measure_links",
}

__all__ = [name for names in _NAMES.values() for name in names.split()]

__getattr__ = front(__name__, _NAMES)
