"""How long one layer takes on a node, and how many layers its memory holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from probe_cluster.planning.efficiency import Range, range_of
from probe_cluster.planning.engines import ENGINES
from probe_cluster.planning.links import Links
from probe_cluster.planning.members import Member
from probe_cluster.planning.model import Model
from probe_cluster.planning.search import pairs, ring_seconds
from probe_cluster.shared import ClusterError
from probe_core.sizes import gib
from probe_core.wording import counted

# Activations and buffers grow with the batch, which a plan does not know: a judgement.
RESERVE = 0.05
"""Share of each memory left for activations and the runtime's own buffers: our declared default."""

_TERA = 1e12

# Engines split among powers of two; 8 is the widest of the published speeds.
_WIDTHS = (2, 4, 8)


def token_seconds(member: Member, model: Model) -> float | None:
    """Return the time of one layer for one token, or None when the bandwidth is not known.

    Where a node's equal devices split each layer faster than one of them runs it, that time.
    """
    return _quickest(member, model)[0]


def splits(member: Member, model: Model) -> bool:
    """Return whether the equal devices of a node split each layer, as that is faster."""
    return _quickest(member, model)[1] > 1


def split_width(member: Member, model: Model) -> int:
    """Return by how many of a node's devices each layer is split; 1 where that is no faster."""
    return _quickest(member, model)[1]


def _quickest(member: Member, model: Model) -> tuple[float | None, int]:
    """Return the least time of one layer, and by how many of the node's devices.

    All devices work in groups of that width, one group after the other.
    """
    best, by = whole_seconds(member, model), 1
    if best is None or member.width < 2:
        return best, by
    for width in widths(model):
        if member.width % width == 0:
            reduce = member.inner.reduce_among(width)
            assert reduce is not None, member.inner
            seconds = split_seconds([member] * width, model, reduce)
            if seconds is not None and seconds < best:
                best, by = seconds, width
    return best, by


def whole_seconds(member: Member, model: Model) -> float | None:
    """Return the least time of one layer for one token, or None when the bandwidth is not known.

    Decoding reads every active weight once per token: memory bandwidth bounds it, unless the
    arithmetic takes longer still (S. Williams et al., "Roofline", CACM 52(4), 2009). Peaks are
    theoretical, so this is a lower bound, unless what devices of its class reach is known.
    """
    if member.bandwidth is None:
        return None
    reading = model.layer_read_bytes / member.bandwidth
    efficiency = member.efficiency
    if efficiency is None:
        return max(reading, prompt_seconds(member, model) or 0.0)
    reading /= efficiency.share_of(model.quant, model.bits)
    beyond = efficiency.layer_seconds(model.kind, norms=model.norms, layers=model.layers)
    return max(reading, prompt_seconds(member, model) or 0.0) + beyond


def prompt_seconds(member: Member, model: Model) -> float | None:
    """Return the least time of one layer per prompt token: arithmetic bounds it. None: unknown."""
    tera = member.half
    return None if tera is None else model.layer_operations / (tera * _TERA)


def layer_cap(member: Member, model: Model, use: str, reserve: float) -> int:
    """Return how many whole layers the node's memories hold, `reserve` of each left free.

    Raises `ClusterError` when the node's memory is not known.
    """
    rooms = [int(pool * (1 - reserve)) for pool in member.usable(use)]
    width = _quickest(member, model)[1]
    if width == 1 or len(rooms) < member.width:
        return sum(room // model.layer_bytes for room in rooms)
    # Each device holds its part of every layer; MLA's cache whole.
    cache = model.kv_bytes_per_layer
    own = cache if model.kind == "mla" else cache / width
    part = (model.layer_bytes - cache) / width + own
    rooms.sort(reverse=True)
    return sum(int(room // part) for room in rooms[width - 1 :: width])


def check_reserve(reserve: float) -> None:
    """Raise `ClusterError` for what is no share of a memory."""
    if not 0 <= reserve < 1:
        raise ClusterError(f"the reserve is a share of the memory below 1, not {reserve}")


def undivided(member: Member, model: Model, use: str, reserve: float) -> Member:
    """Return the node with no layer split, where it holds more layers so: its memories differ.

    Raises `ClusterError` when the node's memory is not known.
    """
    if member.width < 2 or not splits(member, model):
        return member
    whole = replace(member, width=1)
    more = layer_cap(whole, model, use, reserve) > layer_cap(member, model, use, reserve)
    return whole if more else member


def widths(model: Model) -> list[int]:
    """Return into how many parts the layers of a model can be split; none without known heads.

    A width divides the heads and the KV heads. MLA keeps one latent vector for all heads, on
    every node, so the KV heads do not count there.
    """
    if not model.heads:
        return []
    kv_heads = model.heads if model.kind == "mla" else model.kv_heads or model.heads
    return [width for width in _WIDTHS if not (model.heads % width or kv_heads % width)]


def split_seconds(members: Sequence[Member], model: Model, reduce: float) -> float | None:
    """Return the seconds of a layer that is split among `members`; None for unknown speeds.

    `reduce` is the seconds of one all-reduce, of which a layer has two. What a layer costs beyond
    its bytes does not shrink by being split (measured on 2 and 4 M3 Ultra: exo issue 1468).
    """
    cache = model.kv_bytes_per_layer
    # MLA's cache is on every node.
    whole = cache if model.kind == "mla" else 0
    part = (model.layer_read_bytes - whole) / len(members) + whole
    slowest = 0.0
    for member in members:
        if member.bandwidth is None or member.efficiency is None:
            return None
        reading = part / (member.bandwidth * member.efficiency.share_of(model.quant, model.bits))
        # Arithmetic bounds a part as it does the whole layer.
        least = max(reading, (prompt_seconds(member, model) or 0.0) / len(members))
        beyond = member.efficiency.layer_seconds(model.kind, norms=model.norms, layers=model.layers)
        slowest = max(slowest, least + beyond)
    return slowest + 2 * reduce


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
    like: Range | None = None
    """How far predictions of such plans were off; None where no measured case is like it, and
    where the time is a lower bound, from theoretical peaks or a measured bandwidth."""
    bound: bool = True
    """Whether the time is such a lower bound."""

    @property
    def tokens_per_second(self) -> float | None:
        """Of one request; None when a bandwidth is not known."""
        return 1 / self.seconds_per_token if self.seconds_per_token else None

    @property
    def tokens_range(self) -> tuple[float, float] | None:
        """Least and most of `tokens_per_second` in nine cases of ten; None where not known."""
        speed = self.tokens_per_second
        if speed is None or self.like is None:
            return None
        return speed / self.like.factor, speed * self.like.factor


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
        like=_like(parts, _parallel(parts, model)),
        bound=not all(map(_is_fitted, parts)),
    )


def _is_fitted(part: Part) -> bool:
    """Return whether the node's speed is a fit on published ones, with an error that is known."""
    efficiency = part.member.efficiency
    return efficiency is not None and not efficiency.measured


def _like(parts: Sequence[Part], parallel: str) -> Range | None:
    """Return how far predictions of such plans were off: of one engine on one class of device."""
    if not all(map(_is_fitted, parts)):
        return None
    classes = {(part.member.efficiency, part.member.class_) for part in parts}
    keys = {(each.computes, class_) for each, class_ in classes if each is not None}
    if len(keys) != 1:
        return None
    computes, class_ = keys.pop()
    # One after another, whether the devices are in one computer or in several.
    several = parallel == "one" and any(len(part.member.pools) > 1 for part in parts)
    return range_of(computes, class_ or "", "pipeline" if several else parallel)


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
        like=_like(parts, "tensor"),
        bound=not all(map(_is_fitted, parts)),
    )


def _cannot_split(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return a sentence about an engine that the speeds are of, and that splits no layers."""
    engines = {part.member.efficiency.engine for part in parts if part.member.efficiency}
    others = sorted(engine for engine in engines if engine and not ENGINES[engine].across)
    able = ", ".join(name for name, engine in ENGINES.items() if engine.across)
    return tuple(f"{engine} splits no layers across nodes; {able} do" for engine in others)


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
