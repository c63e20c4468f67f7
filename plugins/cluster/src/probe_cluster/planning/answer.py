"""A question about a model and nodes: which engine, whether the model fits, and the plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from probe_cluster.planning.choice import Choice, choices, converted
from probe_cluster.planning.efficiency import hop_software
from probe_cluster.planning.engines import ENGINES, engine_name, file_form
from probe_cluster.planning.fitting import RAISED, Fit, fit, raised_room
from probe_cluster.planning.links import Links, routed
from probe_cluster.planning.members import Member, with_nvlink
from probe_cluster.planning.model import Model
from probe_cluster.planning.model_spec import parse_model
from probe_cluster.planning.predict import RESERVE, Plan
from probe_cluster.planning.search import pairs
from probe_cluster.planning.serving import Load, Serving, serve, throughput
from probe_cluster.planning.strategies import STRATEGIES, Comparison, compare
from probe_cluster.shared import ClusterError


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine makes of a model on nodes."""

    choice: Choice
    """The engine, the nodes that it runs on, and why it is the one."""
    model: Model
    """As the engine stores it."""
    links: Links
    """With what the engine adds to each hop."""
    fit: Fit
    comparison: Comparison
    notes: tuple[str, ...]
    """What the engine cannot read or split."""

    @property
    def seconds(self) -> float:
        """Seconds of a token of the best plan; infinite without one, or with an unknown time."""
        best = self.comparison.best
        return float("inf") if best is None else best.seconds_per_token or float("inf")


def answer(
    members: Sequence[Member],
    model: Mapping[str, Any],
    *,
    links: Links | None = None,
    engine: str = "auto",
    policy: str = "available",
    use: str = "available",
    reserve: float = RESERVE,
    strategies: Sequence[str] = tuple(STRATEGIES),
    pinned: Mapping[str, int] | None = None,
) -> Answer:
    """Return the fastest answer of all engines that can run the model, or of the one named.

    `model` has the options of `parse_model`. Raises `ClusterError` for what makes no sense, and
    where the engine cannot run the model on these nodes.
    """
    plan = _Plan(policy, use, reserve, strategies, pinned)
    return _answers(members, model, links or Links(), engine, plan, many=False)[0]


def answer_many(
    members: Sequence[Member],
    model: Mapping[str, Any],
    load: Load,
    *,
    links: Links | None = None,
    engine: str = "auto",
    policy: str = "available",
    use: str = "available",
    reserve: float = RESERVE,
    strategies: Sequence[str] = tuple(STRATEGIES),
    pinned: Mapping[str, int] | None = None,
) -> tuple[Answer, Serving]:
    """Return the answer that serves many requests with the most throughput, and how.

    One request is served by the engine that `answer` takes. Raises `ClusterError` as `answer` and
    `serve` do.
    """
    plan = _Plan(policy, use, reserve, strategies, pinned)
    many = load.requests > 1
    found = _answers(members, model, links or Links(), engine, plan, many=many)
    served: list[tuple[Answer, Serving]] = []
    problem: ClusterError | None = None
    for each in found if many else found[:1]:
        on, name = each.choice.members, each.choice.engine
        try:
            how = serve(on, each.model, load, engine=name, links=each.links, reserve=reserve)
        except ClusterError as error:
            problem = problem or error
        else:
            served.append((each, how))
    if not served:
        raise problem or ClusterError("there is no node; give at least one report")
    first, *others = sorted(served, key=lambda pair: -pair[1].most.total)
    if not others:
        return first
    shown = ", ".join(f"{a.choice.engine} {_throughput(how)}" for a, how in others)
    reason = f"of {load.requests} requests it gives {_throughput(first[1])} tokens/s, {shown}"
    choice = first[0].choice._replace(reason=reason)
    return replace(first[0], choice=choice), first[1]


def _throughput(served: Serving) -> str:
    totals = served.total_range(served.most) or (served.most.total,)
    return " to ".join(throughput(total) for total in totals)


class _Plan(NamedTuple):
    """What is asked of each engine's plan: the options of `answer`."""

    policy: str
    use: str
    reserve: float
    strategies: Sequence[str]
    pinned: Mapping[str, int] | None


def _answers(
    members: Sequence[Member],
    model: Mapping[str, Any],
    links: Links,
    engine: str,
    plan: _Plan,
    *,
    many: bool,
) -> list[Answer]:
    """Return the answers of all engines, the one that is fastest for one user first."""
    form = file_form(engine_name(engine)) or model.get("form")
    asked = parse_model({**model, "form": form})
    members, links = with_nvlink(members, links)
    answers = []
    problem: ClusterError | None = None
    found = choices(members, asked, links, engine, many=many)
    # One strategy is asked of all the nodes.
    for choice in found if len(plan.strategies) == len(STRATEGIES) else found[:1]:
        try:
            answers.append(_answered(choice, asked, model, links, plan))
        except ClusterError as error:
            problem = problem or error
    if not answers:
        raise problem or ClusterError("there is no node; give at least one report")
    # Of equals the first, which runs on most nodes.
    return sorted(answers, key=lambda each: (each.comparison.best is None, each.seconds))


def _answered(
    choice: Choice,
    asked: Model,
    options: Mapping[str, Any],
    links: Links,
    plan: _Plan,
) -> Answer:
    model = asked
    if asked.quant == "mxfp4":
        model = parse_model({**options, "form": file_form(choice.engine)})
    own = links.among([member.id for member in choice.members], hop_software(choice.engine))
    fits = fit(choice.members, model, plan.policy, reserve=plan.reserve)
    found = compare(
        choice.members,
        model,
        links=own,
        use=plan.use,
        reserve=plan.reserve,
        strategies=plan.strategies,
        pinned=plan.pinned,
    )
    notes = (
        converted(model, choice.engine),
        _offloaded(choice, fits),
        _raised(choice, fits, plan.reserve),
        _assumed(routed(own, model.hop_bytes), found.best),
    )
    return Answer(choice, model, own, fits, found, tuple(filter(None, notes)))


def _assumed(links: Links, plan: Plan | None) -> str | None:
    """Return a sentence where the plan's nodes talk over links that nobody named."""
    hops = [] if plan is None else pairs([stage.node for stage in plan.stages])
    if not any(links.is_assumed(*hop) for hop in hops):
        return None
    return f"a connection that is not named counts as {links.default.kind}"


def _offloaded(choice: Choice, fits: Fit) -> str | None:
    """Return a sentence where host memory would hold what the devices do not."""
    if fits.ok or ENGINES[choice.engine].computes != "llama-cpp":
        return None
    offers = [member.offer for member in choice.members if member.offer]
    host = sum(offer.ram_available or 0 for offer in offers if not offer.unified)
    if host < fits.required - fits.have:
        return None
    return "layers in host memory are not planned; `probe fit` counts them"


def _raised(choice: Choice, fits: Fit, reserve: float) -> str | None:
    """Return a sentence where Macs would hold the model if their GPUs had more of the memory."""
    offers = [member.offer for member in choice.members if member.offer]
    rooms = ((sum(offer.pools) * (1 - reserve), raised_room(offer, reserve)) for offer in offers)
    holds = sum(max(room) for room in rooms) >= fits.required
    return RAISED if holds and not fits.ok else None
