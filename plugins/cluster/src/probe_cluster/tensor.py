"""Tensor parallelism across nodes: each layer is split among all of them, over links of RDMA."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from probe_cluster.efficiency import table
from probe_cluster.exact import EXACT_NODES
from probe_cluster.links import Links
from probe_cluster.predict import Part, Plan, predicted, split
from probe_cluster.setting import Setting
from probe_cluster.stages import split_seconds, widths

__all__ = ["tensor_plan"]


# distributed-llama splits layers over sockets too, at 0.9 ms an all-reduce; exo and vLLM do not.
_LINKS = ("rdma", "roce", "infiniband")


def tensor_plan(setting: Setting) -> Plan | None:
    """Return the fastest plan that splits each layer; None where none is possible.

    Only nodes that are joined pairwise by links of which the time of an all-reduce is known.
    """
    best: Plan | None = None
    for group, reduce in _groups(setting):
        members = [setting.members[at] for at in group]
        seconds = split_seconds(members, setting.model, reduce)
        if seconds is None or not all(_holds(setting, at, len(group)) for at in group):
            continue
        parts = [
            Part(setting.members[at], setting.model.layers, setting.rooms[at], setting.caps[at])
            for at in group
        ]
        pipeline = predicted("tensor", parts, setting.model, setting.links)
        plan = split(pipeline, setting.model, seconds)
        if best is None or (plan.seconds_per_token or 0.0) < (best.seconds_per_token or 0.0):
            best = plan
    return best


def _holds(setting: Setting, at: int, width: int) -> bool:
    """Return whether a node holds its part of all layers, and of MLA the whole cache."""
    model = setting.model
    cache = model.kv_bytes
    own = cache if model.kind == "mla" else cache / width
    return model.weight_bytes / width + own <= setting.rooms[at]


def _groups(setting: Setting) -> Iterator[tuple[tuple[int, ...], float]]:
    """Give groups of nodes with the seconds of their slowest all-reduce."""
    costs = _reduces(setting.cables)
    names = [member.id for member in setting.members]
    joined = [at for at, name in enumerate(names) if any(name in pair for pair in costs)]
    # A group has at most eight nodes; more candidates than that are not compared one by one.
    if setting.pinned or len(joined) > EXACT_NODES:
        return
    for width in widths(setting.model):
        for group in combinations(joined, width):
            pairs = [tuple(sorted((names[a], names[b]))) for a, b in combinations(group, 2)]
            if all(pair in costs for pair in pairs):
                yield group, max(costs[pair] for pair in pairs)


def _reduces(links: Links) -> dict[tuple[str, ...], float]:
    known = {kind: table()["reduce"][kind] * 1e-6 for kind in _LINKS}
    named = links.named().items()
    return {pair: known[link.kind] for pair, link in named if link.kind in known}
