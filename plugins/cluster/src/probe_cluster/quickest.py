"""The plan with the least time per token of one request, links included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from probe_cluster.errors import ClusterError
from probe_cluster.predict import Plan
from probe_cluster.setting import Setting
from probe_cluster.share import fastest
from probe_cluster.stages import token_seconds

__all__ = ["quickest"]

# A judgement: clusters have few kinds of cable, and each speed costs a plan of every group that
# it connects. tests/bench holds a plan for 1,000 nodes below 50 ms.
_THRESHOLDS = 6
"""So many speeds of link are tried as the slowest that a ring may have."""


def quickest(setting: Setting, alternatives: Sequence[Callable[[Setting], Plan]]) -> Plan:
    """Return the fastest plan found. Exact where all links are alike.

    Where they differ, each group of nodes that links of at least some speed connect is planned by
    itself, as if all its hops took that long, and judged by the hops that its ring really has.
    The `others` are candidates too, so this is never slower than any of them that fits.
    """
    steps = [token_seconds(member, setting.model) for member in setting.members]
    usable, notes = setting.usable_layers(steps, "bandwidth", "memory bandwidth")
    seconds = [float("inf") if step is None else step for step in steps]
    best: Plan | None = None
    for hop, group in _groups(setting):
        caps = [cap if at in group else 0 for at, cap in enumerate(usable)]
        if sum(caps) < setting.model.layers:
            continue
        counts = fastest(seconds, caps, setting.model.layers, hop)
        plan = setting.in_best_order("fastest", list(enumerate(counts)), notes)
        best = _faster(best, plan)
    for other in alternatives:
        best = _faster(best, _renamed(other, setting))
    assert best is not None  # the last group is every node, and `usable_layers` found room there
    return best


def _faster(old: Plan | None, new: Plan | None) -> Plan | None:
    if new is None or not new.fits or new.seconds_per_token is None:
        return old
    if old is None or old.seconds_per_token is None:
        return new
    return new if new.seconds_per_token < old.seconds_per_token else old


def _renamed(other: Callable[[Setting], Plan], setting: Setting) -> Plan | None:
    from dataclasses import replace

    try:
        return replace(other(setting), strategy="fastest")
    except ClusterError:
        return None


def _groups(setting: Setting) -> Iterator[tuple[float, set[int]]]:
    """Give (hop seconds, nodes that hops of at most so long connect), the whole cluster last."""
    size = setting.model.hop_bytes
    place = {member.id: index for index, member in enumerate(setting.members)}
    slow = setting.links.default.seconds(size)
    edges = [
        (link.seconds(size), place[first], place[second])
        for (first, second), link in setting.links.named().items()
    ]
    faster = sorted({seconds for seconds, _, _ in edges if seconds < slow})
    step = max(1, -(-len(faster) // _THRESHOLDS))  # rounded up, so that no more are tried
    for limit in faster[::step]:
        near = [(first, second) for seconds, first, second in edges if seconds <= limit]
        for group in _connected(near):
            yield limit, group
    # The whole cluster as if all its hops were slow, and as if all were as fast as the fastest:
    # the second finds the plan of nodes that are joined by that kind of link alone.
    cluster = set(range(len(setting.members)))
    for hop in sorted({slow, *faster[:1]}):
        yield hop, cluster


def _connected(pairs: Sequence[tuple[int, int]]) -> list[set[int]]:
    groups: list[set[int]] = []
    for first, second in pairs:
        touched = [group for group in groups if first in group or second in group]
        groups = [group for group in groups if group not in touched]
        groups.append({first, second}.union(*touched))
    return groups
