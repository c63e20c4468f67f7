"""What a plan costs: time per token, the slowest stage, and every node's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from probe_cluster.efficiency import SPLITTING, table
from probe_cluster.links import Links
from probe_cluster.members import Member
from probe_cluster.model import Model
from probe_cluster.order import pairs, ring_seconds
from probe_cluster.stages import prompt_seconds, splits, token_seconds
from probe_core.wording import counted, gib

__all__ = ["PEAKS", "Part", "Plan", "Share", "Stage", "predicted", "split"]

PEAKS = "theoretical peaks: a lower bound of the time"
"""What the time of a node rests on whose like was never measured."""


class Part(NamedTuple):
    """What a strategy decided: `layers` on `member`, which has `room` bytes for at most `most`."""

    member: Member
    layers: int
    room: int
    most: int


@dataclass(frozen=True, slots=True)
class Stage:
    """One node's part. Layers are numbered from 0, both ends included."""

    node: str
    """The node's id."""
    start_layer: int
    """Its first layer."""
    end_layer: int
    """Its last layer."""
    memory: int
    """Bytes that its layers take, KV cache included."""
    room: int
    """Bytes that it has for them."""
    most: int
    """Layers that its memories hold, each layer in one of them."""
    seconds: float | None
    """Least time for one token; None when its bandwidth is not known."""
    link: str | None
    """Kind of the link to the next node; None for a node alone."""
    hop_seconds: float
    """Time of that hop for one token."""
    split_with: tuple[str, ...] = ()
    """Nodes with which it splits each of its layers."""

    @property
    def layers(self) -> int:
        """How many layers it has."""
        return self.end_layer - self.start_layer + 1


@dataclass(frozen=True, slots=True)
class Plan:
    """Who runs which layers, and the prediction. Times say what they rest on."""

    strategy: str
    """One of `STRATEGIES`."""
    stages: tuple[Stage, ...]
    """The nodes that are used, in the order of the ring."""
    seconds_per_token: float | None
    """One token through all stages and hops; None when a bandwidth is not known."""
    slowest_stage: float | None
    """Seconds of the slowest stage: with many requests in flight, one token per so long."""
    seconds_per_prompt_token: float | None
    """Arithmetic of one prompt token over all stages; None when FLOPS are not known."""
    hop_seconds: float
    """What of `seconds_per_token` is hops."""
    fits: bool
    """Whether every stage's memory suffices."""
    notes: tuple[str, ...]
    """What does not fit, is not used or is not known: sentences that name the node."""
    parallel: str = "pipeline"
    """``one`` node, or a ``pipeline`` of nodes; ``tensor`` where each layer is split."""
    gap: float | None = None
    """At most this share slower than the best pipeline; 0 is exact, None is not known."""
    basis: tuple[str, ...] = ()
    """What the time rests on: a sentence for each kind of node."""
    factor: float | None = None
    """In nine cases of ten the time is at most so many times larger or smaller; None where it is
    a lower bound, from theoretical peaks or a measured bandwidth."""

    @property
    def tokens_per_second(self) -> float | None:
        """Of one request; None when a bandwidth is not known."""
        return 1 / self.seconds_per_token if self.seconds_per_token else None


def predicted(
    strategy: str,
    parts: Sequence[Part],
    model: Model,
    links: Links,
    notes: Sequence[str] = (),
) -> Plan:
    """Return the plan in which each of `parts` follows the one before."""
    hops = ring_seconds([part.member.id for part in parts], links, model.hop_bytes)
    stages = _stages(parts, model, links, hops)
    sentences = [*notes, *filter(None, map(_too_big, stages))]
    sentences += [_no_bandwidth(part.member) for part in parts if part.member.bandwidth is None]
    seconds = [stage.seconds for stage in stages if stage.seconds is not None]
    complete = len(seconds) == len(stages)
    return Plan(
        strategy=strategy,
        stages=tuple(stages),
        seconds_per_token=sum(seconds) + sum(hops) if complete else None,
        slowest_stage=max(seconds) if complete else None,
        seconds_per_prompt_token=_prompt(parts, model),
        hop_seconds=sum(hops),
        fits=all(stage.layers <= stage.most for stage in stages),
        notes=tuple(sentences),
        parallel=_parallel(parts, model),
        basis=_basis(parts),
        factor=table()["range"] if all(map(_is_fitted, parts)) else None,
    )


def _is_fitted(part: Part) -> bool:
    """Return whether the node's speed is a fit on published ones, with an error that is known."""
    efficiency = part.member.efficiency
    return efficiency is not None and not efficiency.measured


class Share(NamedTuple):
    """Layers of `members`, which split each of them where they are several."""

    members: Sequence[Member]
    rooms: Sequence[int]
    layers: int
    memory: int
    """Bytes on each member."""
    most: int
    seconds: float
    link: str | None
    """To the next ones; None where there are none."""
    hop: float


def split(shares: Sequence[Share], model: Model) -> Plan:
    """Return the plan of shares that follow each other, in which layers are split."""
    stages: list[Stage] = []
    start = 0
    for share in shares:
        stages += _split_stages(share, start)
        start += share.layers
    hops, seconds = sum(share.hop for share in shares), [share.seconds for share in shares]
    parts = [
        Part(member, share.layers, room, share.most)
        for share in shares
        for member, room in zip(share.members, share.rooms, strict=True)
    ]
    prompts = [_split_prompt(share, model) for share in shares]
    arithmetic = [prompt for prompt in prompts if prompt is not None]
    return Plan(
        strategy="tensor",
        stages=tuple(stages),
        seconds_per_token=sum(seconds) + hops,
        slowest_stage=max(seconds),
        seconds_per_prompt_token=sum(arithmetic) if len(arithmetic) == len(prompts) else None,
        hop_seconds=hops,
        fits=True,
        notes=_cannot_split(parts),
        parallel="tensor",
        basis=_basis(parts),
        factor=table()["range"] if all(map(_is_fitted, parts)) else None,
    )


def _cannot_split(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return a sentence about an engine that the speeds are of, and that splits no layers."""
    engines = {part.member.efficiency.engine for part in parts if part.member.efficiency}
    others = sorted(engine for engine in engines if engine and engine not in SPLITTING)
    return tuple(
        f"{engine} splits no layers across nodes; {' and '.join(SPLITTING)} do" for engine in others
    )


def _split_stages(share: Share, start: int) -> list[Stage]:
    """Return a stage for each member; the first one's hop is that of all."""
    names = [member.id for member in share.members]
    return [
        Stage(
            node=name,
            start_layer=start,
            end_layer=start + share.layers - 1,
            memory=share.memory,
            room=room,
            most=share.most,
            seconds=share.seconds,
            link=share.link,
            hop_seconds=share.hop if place == 0 else 0.0,
            split_with=tuple(other for other in names if other != name),
        )
        for place, (name, room) in enumerate(zip(names, share.rooms, strict=True))
    ]


def _split_prompt(share: Share, model: Model) -> float | None:
    """Return the arithmetic of one prompt token, of which each member has an equal part."""
    steps = [prompt_seconds(member, model) for member in share.members]
    slowest = max((step for step in steps if step is not None), default=None)
    if slowest is None or None in steps:
        return None
    return slowest * share.layers / len(steps)


def _parallel(parts: Sequence[Part], model: Model) -> str:
    if len(parts) > 1:
        return "pipeline"
    return "tensor" if any(splits(part.member, model) for part in parts) else "one"


def _basis(parts: Sequence[Part]) -> tuple[str, ...]:
    sentences = [
        part.member.efficiency.basis if part.member.efficiency else PEAKS for part in parts
    ]
    return tuple(dict.fromkeys(sentences))


def _stages(
    parts: Sequence[Part], model: Model, links: Links, hops: Sequence[float]
) -> list[Stage]:
    """Return a stage per part; `hops` are the seconds to each next one, none for a node alone."""
    kinds = [links.between(a, b).kind for a, b in pairs([part.member.id for part in parts])]
    stages, start = [], 0
    for index, part in enumerate(parts):
        link, hop = (kinds[index], hops[index]) if hops else (None, 0.0)
        stages.append(_stage(part, start, model, link, hop))
        start += part.layers
    return stages


def _stage(part: Part, start: int, model: Model, link: str | None, hop: float) -> Stage:
    step = token_seconds(part.member, model)
    return Stage(
        node=part.member.id,
        start_layer=start,
        end_layer=start + part.layers - 1,
        memory=model.layer_bytes * part.layers,
        room=part.room,
        most=part.most,
        seconds=None if step is None else step * part.layers,
        link=link,
        hop_seconds=hop,
    )


def _too_big(stage: Stage) -> str | None:
    if stage.layers <= stage.most:
        return None
    need, room = gib(stage.memory), gib(stage.room)
    return (
        f"node {stage.node!r} has {room} for its {counted(stage.layers, 'layer')}, which"
        f" need{'s' * (stage.layers == 1)} {need}:"
        f" {stage.most} would fit"
    )


def _no_bandwidth(member: Member) -> str:
    reason = member.reasons.get("bandwidth", "its report does not give")
    return f"the time of node {member.id!r} is unknown: {reason}"


def _prompt(parts: Sequence[Part], model: Model) -> float | None:
    total = 0.0
    for part in parts:
        step = prompt_seconds(part.member, model)
        if step is None:
            return None
        total += step * part.layers
    return total
