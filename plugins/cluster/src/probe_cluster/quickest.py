"""The plan with the least time per token of one request, links included.

Up to `EXACT_NODES` nodes it is the best of all pipelines. Beyond, the best of several searches,
with the gap to a time that no pipeline can beat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from probe_cluster.errors import ClusterError
from probe_cluster.exact import EXACT_NODES, Costs, cheapest, lower_bound
from probe_cluster.predict import Plan
from probe_cluster.setting import Setting
from probe_cluster.share import fastest
from probe_cluster.stages import token_seconds

__all__ = ["quickest"]

# A judgement: clusters have few kinds of cable, and each speed costs a plan of every group that
# it connects. tests/bench holds a plan for 1,000 nodes below 50 ms.
_THRESHOLDS = 6
"""So many speeds of link are tried as the slowest that a ring may have."""


# No pipeline can be faster by more than this, so that searching on is not worth its time.
_NEAR = 1.005


def quickest(setting: Setting, alternatives: Sequence[Callable[[Setting], Plan]]) -> Plan:
    """Return the fastest plan; exact up to `EXACT_NODES` nodes of known speed.

    The `alternatives` are candidates too, so this is never slower than any of them that fits.
    """
    steps = [token_seconds(member, setting.model) for member in setting.members]
    usable, notes = setting.usable_layers(steps, "bandwidth", "memory bandwidth")
    costs = setting.costs(steps, usable)
    fast = [at for at, most in enumerate(usable) if most]
    if len(fast) <= EXACT_NODES:
        counts = cheapest(costs, setting.model.layers)
        if counts is None:
            raise ClusterError(setting.pinned_problem())
        return replace(setting.planned("fastest", counts, notes), gap=0.0)
    if setting.pinned:
        raise ClusterError(
            f"layers by hand are planned for up to {EXACT_NODES} nodes; there are {len(fast)}"
        )
    bound = lower_bound(costs, _near(setting), setting.model.layers)
    plan = _searched(setting, costs, usable, notes, alternatives, bound)
    assert plan.seconds_per_token is not None
    return replace(plan, gap=max(0.0, plan.seconds_per_token / bound - 1))


def _searched(
    setting: Setting,
    costs: Costs,
    usable: Sequence[int],
    notes: Sequence[str],
    alternatives: Sequence[Callable[[Setting], Plan]],
    bound: float,
) -> Plan:
    """Return the best plan of several searches.

    Where links differ, each group of nodes that links of at least some speed connect is planned by
    itself, as if all its hops took that long, and judged by the hops that its ring really has.
    Of the fastest nodes, as many as can be, all pipelines are compared.
    """
    best: Plan | None = None
    for hop, group in _groups(setting):
        caps = [cap if at in group else 0 for at, cap in enumerate(usable)]
        if sum(caps) < setting.model.layers:
            continue
        counts = fastest(costs.layer, caps, setting.model.layers, hop)
        plan = setting.in_best_order("fastest", list(enumerate(counts)), notes)
        best = _faster(best, plan)
    for other in alternatives:
        best = _faster(best, _renamed(other, setting))
    for pool in _pools(setting, costs, best):
        if best is not None and (best.seconds_per_token or 0.0) <= bound * _NEAR:
            break
        few = cheapest(_of(costs, pool), setting.model.layers)
        if few is not None:
            exact = [(pool[place], count) for place, count in few]
            best = _faster(best, setting.planned("fastest", exact, notes))
    assert best is not None  # the last group is every node, and `usable_layers` found room there
    return best


def _pools(setting: Setting, costs: Costs, best: Plan | None) -> Iterator[list[int]]:
    """Give few nodes of which all pipelines are compared: the fastest, and those of the best."""
    order = sorted(
        (at for at, most in enumerate(costs.most) if most),
        key=lambda at: (costs.layer[at], -costs.most[at], at),
    )
    yield order[:EXACT_NODES]
    place = {member.id: at for at, member in enumerate(setting.members)}
    used = [place[stage.node] for stage in best.stages] if best else []
    if 0 < len(used) < EXACT_NODES:
        yield [*used, *[at for at in order if at not in used][: EXACT_NODES - len(used)]]


def _of(costs: Costs, pool: Sequence[int]) -> Costs:
    """Return the costs of a few nodes."""
    hops = [[costs.hops(first, second) for second in pool] for first in pool]

    def few(values: Sequence[float]) -> list[float]:
        return [values[at] for at in pool]

    least, most = [costs.least[at] for at in pool], [costs.most[at] for at in pool]
    return Costs(
        few(costs.layer), few(costs.fixed), least, most, lambda first, second: hops[first][second]
    )


def _near(setting: Setting) -> list[float]:
    """Return half of each node's two cheapest hops."""
    links, size = setting.links, setting.model.hop_bytes
    slow = links.default.seconds(size) + links.software
    near: dict[str, list[float]] = {member.id: [slow, slow] for member in setting.members}
    for (first, second), link in links.named().items():
        for name in (first, second):
            near[name] = sorted([*near[name], link.seconds(size) + links.software])[:2]
    return [sum(near[member.id]) / 2 for member in setting.members]


def _faster(old: Plan | None, new: Plan | None) -> Plan | None:
    if new is None or not new.fits or new.seconds_per_token is None:
        return old
    if old is None or old.seconds_per_token is None:
        return new
    return new if new.seconds_per_token < old.seconds_per_token else old


def _renamed(other: Callable[[Setting], Plan], setting: Setting) -> Plan | None:
    try:
        return replace(other(setting), strategy="fastest")
    except ClusterError:
        return None


def _groups(setting: Setting) -> Iterator[tuple[float, set[int]]]:
    """Give (hop seconds, nodes that hops of at most so long connect), the whole cluster last."""
    size = setting.model.hop_bytes
    place = {member.id: index for index, member in enumerate(setting.members)}
    software = setting.links.software
    slow = setting.links.default.seconds(size) + software
    edges = [
        (link.seconds(size) + software, place[first], place[second])
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
