"""Share a model among nodes: what each offers, how they are connected, and what a plan costs.

Pure functions over reports, standard library only.
"""

from __future__ import annotations

from probe_cluster.fronts import front

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_cluster.planning.answer import Answer as Answer
    from probe_cluster.planning.answer import answer as answer
    from probe_cluster.planning.answer import answer_many as answer_many
    from probe_cluster.planning.choice import Choice as Choice
    from probe_cluster.planning.efficiency import Range as Range
    from probe_cluster.planning.fitting import Fit as Fit
    from probe_cluster.planning.fitting import NodeFit as NodeFit
    from probe_cluster.planning.fitting import fit as fit
    from probe_cluster.planning.fitting import node_fit as node_fit
    from probe_cluster.planning.launch import Line as Line
    from probe_cluster.planning.launch import launch as launch
    from probe_cluster.planning.links import Link as Link
    from probe_cluster.planning.links import Links as Links
    from probe_cluster.planning.links import parse_link as parse_link
    from probe_cluster.planning.members import Capacity as Capacity
    from probe_cluster.planning.members import Member as Member
    from probe_cluster.planning.members import capacity as capacity
    from probe_cluster.planning.members import member as member
    from probe_cluster.planning.model import Model as Model
    from probe_cluster.planning.model_spec import parse_model as parse_model
    from probe_cluster.planning.old_exo import Partition as Partition
    from probe_cluster.planning.old_exo import Shard as Shard
    from probe_cluster.planning.old_exo import Topology as Topology
    from probe_cluster.planning.old_exo import View as View
    from probe_cluster.planning.old_exo import merge_views as merge_views
    from probe_cluster.planning.old_exo import ring_memory_weighted as ring_memory_weighted
    from probe_cluster.planning.old_exo import shards as shards
    from probe_cluster.planning.predict import Plan as Plan
    from probe_cluster.planning.reading import read_members as read_members
    from probe_cluster.planning.serving import Layout as Layout
    from probe_cluster.planning.serving import Load as Load
    from probe_cluster.planning.serving import Serving as Serving
    from probe_cluster.planning.serving import serve as serve
    from probe_cluster.planning.strategies import STRATEGIES as STRATEGIES
    from probe_cluster.planning.strategies import best as best
    from probe_cluster.planning.strategies import compare as compare
    from probe_cluster.planning.strategies import plan as plan
    from probe_cluster.planning.whatif import what_if as what_if

_NAMES = {
    "answer": "Answer answer answer_many",
    "choice": "Choice",
    "efficiency": "Range",
    "fitting": "Fit NodeFit fit node_fit",
    "launch": "Line launch",
    "links": "Link Links parse_link",
    "members": "Capacity Member capacity member",
    "model": "Model",
    "model_spec": "parse_model",
    "old_exo": "Partition Shard Topology View merge_views ring_memory_weighted shards",
    "predict": "Plan",
    "reading": "read_members",
    "serving": "Layout Load Serving serve",
    "strategies": "STRATEGIES best compare plan",
    "whatif": "what_if",
}

__all__ = [name for names in _NAMES.values() for name in names.split()]

__getattr__ = front(__name__, _NAMES)
