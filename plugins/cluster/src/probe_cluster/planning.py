"""Strategies that share a model's layers among nodes, and the comparison of their predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probe_cluster.errors import ClusterError
from probe_cluster.fitting import fit
from probe_cluster.links import Links
from probe_cluster.members import Member
from probe_cluster.model import Model
from probe_cluster.predict import Plan
from probe_cluster.quickest import quickest
from probe_cluster.ring import ring_memory_weighted, shards
from probe_cluster.setting import Setting
from probe_cluster.share import balanced, proportional
from probe_cluster.stages import RESERVE, prompt_seconds, token_seconds, undivided
from probe_cluster.tensor import tensor_plan

__all__ = ["STRATEGIES", "Comparison", "Plan", "best", "compare", "plan"]

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
