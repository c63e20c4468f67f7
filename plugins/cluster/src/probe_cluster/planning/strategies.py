"""Strategies that share a model's layers among nodes, and the comparison of their predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from probe_cluster.planning.fitting import fit
from probe_cluster.planning.links import Links
from probe_cluster.planning.members import Member
from probe_cluster.planning.model import Model
from probe_cluster.planning.old_exo import ring_memory_weighted, shards
from probe_cluster.planning.predict import (
    RESERVE,
    Plan,
    prompt_seconds,
    token_seconds,
    undivided,
)
from probe_cluster.planning.search import (
    EXACT_NODES,
    Costs,
    balanced,
    cheapest,
    fastest,
    lower_bound,
    proportional,
)
from probe_cluster.planning.setting import Setting
from probe_cluster.planning.tensor import tensor_plan
from probe_cluster.shared import ClusterError

# The plan with the least time per token of one request, links included.
#
# Up to `EXACT_NODES` nodes it is the best of all pipelines. Beyond, the best of several searches,
# with the gap to a time that no pipeline can beat.

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
    return Costs(few(costs.layer), least, most, lambda first, second: hops[first][second])


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


STRATEGIES: dict[str, str] = {
    "memory": "ring memory-weighted, exactly as old exo's nodes compute it",
    "proportional": "whole layers in proportion to free memory, at least one each, as exo does now",
    "flops": "arithmetic ends everywhere at the same time: best for long prompts",
    "bandwidth": "the slowest stage is as fast as can be: best for many requests at once",
    "fastest": "the least time per token of one request; leaves out nodes that would slow it",
}
"""Strategy → what it is for."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All strategies side by side."""

    plans: tuple[Plan, ...]
    """The plans, in the order of `STRATEGIES`; then ``tensor`` where layers can be split."""
    refused: tuple[tuple[str, str], ...]
    """(strategy, why it gives no plan)."""
    setting: Setting | None = None
    """What the plans were made of: their costs can be checked with it."""

    @property
    def best(self) -> Plan | None:
        """The plan that fits and takes the least time per token; None when there is none.

        A plan of unknown time counts as slower than any known one; of equals the last is meant,
        which looks at most.
        """
        fitting = [plan for plan in reversed(self.plans) if plan.fits]
        return min(fitting, key=_time, default=None)


def _time(plan: Plan) -> float:
    return float("inf") if plan.seconds_per_token is None else plan.seconds_per_token


def plan(
    strategy: str,
    members: Sequence[Member],
    model: Model,
    *,
    links: Links | None = None,
    use: str = "available",
    reserve: float = RESERVE,
    pinned: Mapping[str, int] | None = None,
) -> Plan:
    """Return the plan of one strategy.

    `use` is ``available`` or ``total`` memory; `pinned` gives nodes their layers by hand, 0 leaves
    a node out. ``memory`` shares by total memory and ``proportional`` by `use`, and both look at
    nothing else, so their plans may not fit: see `Plan.fits`. Raises
    `ClusterError` for an unknown strategy, nodes with the same id or of unknown memory, and a
    model that the strategy cannot place.
    """
    if strategy not in STRATEGIES:
        raise ClusterError(f"{strategy!r} is no strategy; there are {', '.join(STRATEGIES)}")
    settings = _settings(members, model, links or Links(), use, reserve, pinned)
    return _quickest_of(strategy, settings)[0]


def compare(
    members: Sequence[Member],
    model: Model,
    *,
    links: Links | None = None,
    use: str = "available",
    reserve: float = RESERVE,
    pinned: Mapping[str, int] | None = None,
    strategies: Sequence[str] = tuple(STRATEGIES),
) -> Comparison:
    """Return the plans of all strategies; raises `ClusterError` where no strategy could plan."""
    settings = _settings(members, model, links or Links(), use, reserve, pinned)
    plans: list[tuple[Plan, Setting]] = []
    refused: list[tuple[str, str]] = []
    for strategy in strategies:
        try:
            plans.append(_quickest_of(strategy, settings))
        except ClusterError as error:
            refused.append((strategy, str(error)))
    # Only where all strategies are compared: it is no pipeline, and most engines lack it.
    split = tensor_plan(settings[0]) if len(strategies) == len(STRATEGIES) else None
    if split is not None:
        plans.append((split, settings[0]))
    fitting = [entry for entry in reversed(plans) if entry[0].fits]
    _, setting = min(fitting, key=lambda entry: _time(entry[0]), default=(None, settings[0]))
    return Comparison(tuple(plan for plan, _ in plans), tuple(refused), setting)


def _settings(
    members: Sequence[Member],
    model: Model,
    links: Links,
    use: str,
    reserve: float,
    pinned: Mapping[str, int] | None,
) -> list[Setting]:
    """Return the question as it is, and where nodes hold more with no layer split, as that too."""
    whole = [undivided(member, model, use, reserve) for member in members]
    settings: list[Setting] = []
    problem: ClusterError | None = None
    differ = any(a is not b for a, b in zip(whole, members, strict=True))
    for own in [members, whole] if differ else [members]:
        try:
            settings.append(Setting(own, model, links, use, reserve, pinned))
        except ClusterError as error:
            problem = problem or error
    if not settings and problem is not None:
        raise problem
    return settings


def _quickest_of(strategy: str, settings: Sequence[Setting]) -> tuple[Plan, Setting]:
    """Return the plan that fits in the least time; raises the first `ClusterError` without one."""
    plans: list[tuple[Plan, Setting]] = []
    problem: ClusterError | None = None
    for setting in settings:
        try:
            plans.append((_plan(strategy, setting), setting))
        except ClusterError as error:
            problem = problem or error
    if not plans and problem is not None:
        raise problem
    return min(plans, key=lambda entry: (not entry[0].fits, _time(entry[0])))


def best(
    members: Sequence[Member],
    model: Model,
    *,
    links: Links | None = None,
    use: str = "available",
    reserve: float = RESERVE,
    pinned: Mapping[str, int] | None = None,
) -> Plan:
    """Return the plan with the least predicted time per token that fits.

    Raises `ClusterError` with what would fit when there is none.
    """
    comparison = compare(members, model, links=links, use=use, reserve=reserve, pinned=pinned)
    if comparison.best is not None:
        return comparison.best
    answer = fit(members, model, use, reserve=reserve)
    if not answer.ok:
        raise ClusterError(answer.sentence)
    raise ClusterError(
        "no strategy gives a plan: " + "; ".join(reason for _, reason in comparison.refused)
    )


def _plan(strategy: str, setting: Setting) -> Plan:
    if strategy == "memory":
        return _ring(setting)
    if strategy == "proportional":
        return _proportional(setting)
    if strategy == "flops":
        return _balanced(setting, strategy, "fp16", "FLOPS")
    if strategy == "bandwidth":
        return _balanced(setting, strategy, "bandwidth", "memory bandwidth")
    return quickest(setting, [_ring, _proportional])


def _ring(setting: Setting) -> Plan:
    if setting.pinned:
        raise ClusterError("old exo's nodes compute it alone, so it takes no layers by hand")
    memory = [(member.id, member.memory_mib) for member in setting.members]
    by_id = {member.id: at for at, member in enumerate(setting.members)}
    ring = shards(ring_memory_weighted(memory), setting.model.layers)
    counts = [(by_id[shard.node_id], shard.end_layer - shard.start_layer + 1) for shard in ring]
    return setting.planned("memory", counts)


def _proportional(setting: Setting) -> Plan:
    # Today's exo counts the memory that is free (ram_available), old exo the memory in all.
    memory = {at: sum(m.usable(setting.use)) for at, m in enumerate(setting.members)}
    order = sorted(memory, key=lambda at: (-memory[at], setting.members[at].id))
    free = [at for at in order if setting.members[at].id not in setting.pinned]
    spare = setting.model.layers - sum(setting.pinned.values())
    shares = proportional([float(memory[at]) for at in free], spare) if spare else []
    counts = dict(zip(free, shares, strict=False))
    counts |= {at: setting.pinned.get(setting.members[at].id, counts.get(at, 0)) for at in order}
    return setting.planned("proportional", [(at, counts[at]) for at in order])


def _balanced(setting: Setting, strategy: str, field: str, quantity: str) -> Plan:
    """Share such that the slowest node, by arithmetic or by memory bandwidth, is fastest."""
    measure = prompt_seconds if strategy == "flops" else token_seconds
    steps = [measure(member, setting.model) for member in setting.members]
    usable, notes = setting.usable_layers(steps, field, quantity)
    seconds = [float("inf") if step is None else step for step in steps]
    by_hand = [setting.pinned.get(member.id) for member in setting.members]
    free = [most if layers is None else 0 for most, layers in zip(usable, by_hand, strict=True)]
    spare = setting.model.layers - sum(setting.pinned.values())
    if sum(free) < spare:
        raise ClusterError(setting.pinned_problem())
    shares = balanced(seconds, free, spare) if spare else [0] * len(free)
    layers_of = [
        share if layers is None else layers for share, layers in zip(shares, by_hand, strict=True)
    ]
    counts = [(at, layers) for at, layers in enumerate(layers_of) if layers]
    return setting.in_best_order(strategy, counts, notes)
