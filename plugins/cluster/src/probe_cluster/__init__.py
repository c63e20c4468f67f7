"""Many nodes as one: what each offers, how they are connected, and how to share a model among them.

Pure functions over reports, standard library only. Nothing is imported until a name is used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_cluster.capacities import Capacity as Capacity
    from probe_cluster.capacities import capacity as capacity
    from probe_cluster.errors import ClusterError as ClusterError
    from probe_cluster.fitting import Fit as Fit
    from probe_cluster.fitting import fit as fit
    from probe_cluster.gather_model import Answer as Answer
    from probe_cluster.gather_model import Limits as Limits
    from probe_cluster.gather_model import Sink as Sink
    from probe_cluster.gather_model import Target as Target
    from probe_cluster.gathering import Gathered as Gathered
    from probe_cluster.gathering import Node as Node
    from probe_cluster.gathering import gather as gather
    from probe_cluster.links import Link as Link
    from probe_cluster.links import Links as Links
    from probe_cluster.links import parse_link as parse_link
    from probe_cluster.members import Member as Member
    from probe_cluster.members import member as member
    from probe_cluster.model import Model as Model
    from probe_cluster.network_model import Network as Network
    from probe_cluster.networking import measure_links as measure_links
    from probe_cluster.planning import STRATEGIES as STRATEGIES
    from probe_cluster.planning import Plan as Plan
    from probe_cluster.planning import best as best
    from probe_cluster.planning import compare as compare
    from probe_cluster.planning import plan as plan
    from probe_cluster.reading import read_members as read_members
    from probe_cluster.ring import Partition as Partition
    from probe_cluster.ring import Shard as Shard
    from probe_cluster.ring import ring_memory_weighted as ring_memory_weighted
    from probe_cluster.ring import shards as shards
    from probe_cluster.topology import Topology as Topology
    from probe_cluster.views import merge_views as merge_views

_MODULES = {
    "Capacity": "capacities",
    "capacity": "capacities",
    "ClusterError": "errors",
    "Fit": "fitting",
    "fit": "fitting",
    "Answer": "gather_model",
    "Limits": "gather_model",
    "Sink": "gather_model",
    "Target": "gather_model",
    "Gathered": "gathering",
    "Node": "gathering",
    "gather": "gathering",
    "Link": "links",
    "Links": "links",
    "parse_link": "links",
    "Member": "members",
    "member": "members",
    "Model": "model",
    "Network": "network_model",
    "measure_links": "networking",
    "STRATEGIES": "planning",
    "Plan": "planning",
    "best": "planning",
    "compare": "planning",
    "plan": "planning",
    "read_members": "reading",
    "Partition": "ring",
    "Shard": "ring",
    "ring_memory_weighted": "ring",
    "shards": "ring",
    "Topology": "topology",
    "merge_views": "views",
}

__all__ = [*_MODULES]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'probe_cluster' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"probe_cluster.{module}"), name)
    globals()[name] = value
    return value
