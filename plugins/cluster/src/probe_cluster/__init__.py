"""Many nodes as one: their reports (`gathering`), links (`network`), and a model (`planning`).

Nothing is imported until a name is used.
"""

from __future__ import annotations

from probe_cluster.fronts import front

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_cluster.gathering import Answer as Answer
    from probe_cluster.gathering import Gathered as Gathered
    from probe_cluster.gathering import Limits as Limits
    from probe_cluster.gathering import Node as Node
    from probe_cluster.gathering import Sink as Sink
    from probe_cluster.gathering import Target as Target
    from probe_cluster.gathering import gather as gather
    from probe_cluster.network import Network as Network
    from probe_cluster.network import measure_links as measure_links
    from probe_cluster.planning import STRATEGIES as STRATEGIES
    from probe_cluster.planning import Capacity as Capacity
    from probe_cluster.planning import Fit as Fit
    from probe_cluster.planning import Link as Link
    from probe_cluster.planning import Links as Links
    from probe_cluster.planning import Member as Member
    from probe_cluster.planning import Model as Model
    from probe_cluster.planning import Partition as Partition
    from probe_cluster.planning import Plan as Plan
    from probe_cluster.planning import Shard as Shard
    from probe_cluster.planning import Topology as Topology
    from probe_cluster.planning import best as best
    from probe_cluster.planning import capacity as capacity
    from probe_cluster.planning import compare as compare
    from probe_cluster.planning import fit as fit
    from probe_cluster.planning import member as member
    from probe_cluster.planning import merge_views as merge_views
    from probe_cluster.planning import parse_link as parse_link
    from probe_cluster.planning import plan as plan
    from probe_cluster.planning import read_members as read_members
    from probe_cluster.planning import ring_memory_weighted as ring_memory_weighted
    from probe_cluster.planning import shards as shards
    from probe_cluster.shared import ClusterError as ClusterError

_NAMES = {
    "gathering": "Answer Gathered Limits Node Sink Target gather",
    "network": "Network measure_links",
    "planning": "STRATEGIES Capacity Fit Link Links Member Model Partition Plan Shard Topology "
    "best capacity compare fit member merge_views parse_link plan read_members "
    "ring_memory_weighted shards",
    "shared": "ClusterError",
}

__all__ = [name for names in _NAMES.values() for name in names.split()]

__getattr__ = front(__name__, _NAMES)
