"""Many requests at once: replicas, layers that are split, pipelines, and experts that are spread.

A layout gives every replica `tensor` devices that split each layer, times `stages` that follow each
other. A request has a prompt and an answer. The requests of a replica decode together, a token each
a step, and parts of prompts that arrive meanwhile are computed in the same steps (continuous
batching with chunked prefill). A step reads the weights once for all of them, or takes as long as
its arithmetic where that is more; it reads the cache of each request; and it costs what its layers,
its scheduler and its requests cost besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from probe_cluster.planning.efficiency import (
    Efficiency,
    EfficiencyTable,
    Range,
    ServingCosts,
    arithmetic_share,
    kind_factor,
    range_of,
    serving_costs,
    table,
)
from probe_cluster.planning.engines import ENGINES
from probe_cluster.planning.links import Link, Links
from probe_cluster.planning.members import Member
from probe_cluster.planning.model import Model
from probe_cluster.planning.predict import RESERVE, widths
from probe_cluster.shared import ClusterError, names
from probe_core.sizes import gib
from probe_core.wording import counted

ANSWER = 256
"""Tokens of an answer where nobody says: a judgement."""

# A judgement: at one token per second a short answer of 256 tokens takes over four minutes.
USABLE = 1.0
"""Tokens per second that a layout must give each user: slower ones are left out, with a note."""

_TERA = 1e12

# Twice the peak of FP8, of which TensorRT-LLM reaches three quarters of the share that it reaches
# there (perf-overview.md: 0.36 against 0.48 of dense models).
_FP4 = 1.5


class Load(NamedTuple):
    """What is asked of the servers."""

    requests: int
    """At once."""
    prompt: int
    """Tokens of each."""
    answer: int = ANSWER
    """Tokens of each."""


@dataclass(frozen=True, slots=True)
class Device:
    """One of equal devices. Bytes, bytes per second, operations per second."""

    memory: int
    bandwidth: float
    """What decoding reaches of it."""
    arithmetic: float | None
    """What prompts reach of the peak of the precision that computes; None is not known."""
    attention: float | None
    """What their attention reaches of the peak of 16 bits; None is not known."""
    layer: float
    """Seconds of a layer beyond its bytes."""
    begins: float
    """The same besides, in a step that computes prompts."""
    efficiency: Efficiency
    costs: ServingCosts
    """What many requests cost the engine."""
    inner: Link
    """To the others in its node."""
    outer: Link
    """To those in other nodes."""
    per_node: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A way to serve, and what it gives. Seconds, tokens per second, bytes."""

    replicas: int
    """Copies of the model, which share the requests."""
    tensor: int
    """Devices that split each layer of a replica."""
    stages: int
    """Groups of them that follow each other."""
    expert: bool
    """Whether experts are spread over the `tensor` devices, and attention is not split."""
    devices: int
    running: int
    """Requests that run at once on all replicas; more wait."""
    waiting: int
    """Requests that find no room for their cache."""
    total: float
    """Tokens of answers per second of all requests, prompts included in the time."""
    each: float
    """Tokens per second that one user sees while an answer is written."""
    first_token: float | None
    """Seconds until the first token of a request that comes alone; None without known FLOPS."""
    last_first_token: float | None
    """The same for the last one, where all requests come at once."""
    memory: int
    """On each device, weights and caches."""
    room: int
    """On each device."""

    @property
    def name(self) -> str:
        """The layout in words."""
        way = "expert" if self.expert else "tensor"
        parts = [counted(self.replicas, "replica")] if self.replicas > 1 else []
        parts += [f"{way} {self.tensor}"] if self.tensor > 1 else []
        parts += [f"pipeline {self.stages}"] if self.stages > 1 else []
        return " x ".join(parts) or "one device"


@dataclass(frozen=True, slots=True)
class Serving:
    """The layouts worth having, and which nodes they are of."""

    load: Load
    layouts: tuple[tuple[str, Layout], ...]
    """(what it is best at, layout)."""
    nodes: tuple[str, ...]
    notes: tuple[str, ...]
    like: Range | None = None
    """How far throughputs of such devices were off; None where no measured case is like it."""

    @property
    def most(self) -> Layout:
        """The layout with the most throughput."""
        return next(layout for best_at, layout in self.layouts if _THROUGHPUT in best_at)

    def total_range(self, layout: Layout) -> tuple[float, float] | None:
        """Return the least and most of a layout's total in nine cases of ten."""
        if self.like is None:
            return None
        return layout.total / self.like.factor, layout.total * self.like.factor


def serve(
    members: Sequence[Member],
    model: Model,
    load: Load,
    *,
    engine: str,
    links: Links | None = None,
    reserve: float = RESERVE,
) -> Serving:
    """Return the few layouts worth having: fastest for one user, most throughput, fewest devices.

    Devices of a layout are equal, so of different nodes the group with most throughput serves.
    Raises `ClusterError` where no layout holds the model and one request.
    """
    _check(load, model)
    each = replace(model, context=load.prompt + load.answer)
    best: tuple[float, list[Layout], list[Member]] | None = None
    problems: list[str] = []
    for group in _equal(members):
        device = device_of(group, model, links or Links(), reserve)
        if device is None:
            ids = names([member.id for member in group])
            problems.append(
                f"--requests needs an engine, and none is planned for on {ids}"
                if engine == "none"
                else f"how fast {engine} is on {ids} was never measured"
            )
            continue
        found = list(layouts(device, len(group), each, load, engine))
        if not found:
            problems.append(_no_room(group, device, each))
            continue
        most = max(layout.total for layout in found)
        if best is None or most > best[0]:
            best = most, found, group
    if best is None:
        raise ClusterError("; ".join(problems) or "there is no node; give at least one report")
    _, all_layouts, group = best
    used = {member.id for member in group}
    others = [member.id for member in members if member.id not in used]
    notes = [f"{names(others)}: another kind of device, not used"] if others else []
    usable = [layout for layout in all_layouts if layout.each >= USABLE]
    notes += _too_slow(all_layouts, usable)
    chosen = _worth(usable or all_layouts)
    efficiency = group[0].efficiency
    like = None
    if efficiency is not None and not efficiency.measured:
        like = range_of(efficiency.computes, group[0].class_ or "", "serving")
    return Serving(load, chosen, tuple(member.id for member in group), tuple(notes), like)


def _too_slow(all_layouts: Sequence[Layout], usable: Sequence[Layout]) -> list[str]:
    """Return the note about layouts that nobody could use; none where none of the few is one."""
    rule = f"below {USABLE:g} token/s for each user is too slow to use"
    if not usable:
        return [f"no layout is fast enough: {rule}"]
    left_out = dict.fromkeys(each for _, each in _worth(all_layouts) if each.each < USABLE)
    return [
        f"{layout.name} of {counted(layout.devices, 'device')} is left out:"
        f" {layout.each:.2g} token/s each; {rule}"
        for layout in left_out
    ]


def _check(load: Load, model: Model) -> None:
    for name, value, least in (
        ("requests", load.requests, 1),
        ("prompt", load.prompt, 1),
        ("answer", load.answer, 1),
    ):
        if not least <= value <= 1 << 24:
            raise ClusterError(f"the {name} is {value}; it must be {least} to {1 << 24}")
    together = load.prompt + load.answer
    if model.longest is not None and together > model.longest:
        raise ClusterError(
            f"prompt and answer are {together} tokens; {model.name or 'the model'} was made for"
            f" {model.longest} at most"
        )
    if not (model.cache or (model.kv_heads and model.head_dim)):
        raise ClusterError(
            "the KV cache of the model is not known, so how many requests fit is not; name a known"
            " model, or give its config.json"
        )


_VOCABULARY = 150_000
"""Tokens that today's models have about."""


def _buffers(device: Device, model: Model, split: Split) -> float:
    """Return the bytes that a server keeps for one step: its activations and logits.

    vLLM runs the largest step before it counts what is left for caches (gpu_worker.py,
    determine_available_memory). Of a token there are the outputs of the widest matrices of a layer
    at once, three times its feed-forward width, and a few vectors, with experts one for each.
    Figures of gpustack's Qwen3-32B: room for 16 requests on an H100, 19 on an A100.
    """
    if device.efficiency.computes != "vllm" or not model.hidden:
        return 0.0
    widths = (model.active_params or model.params) / model.layers / model.hidden
    vectors = 3 + (model.experts[1] if model.experts else 1)
    token = 2 * (widths / split.tensor + vectors * model.hidden)
    return device.costs.chunk * (token + _VOCABULARY / 2)


def _equal(members: Sequence[Member]) -> list[list[Member]]:
    """Return groups of nodes whose devices are alike."""
    groups: dict[tuple[str | None, float | None, int], list[Member]] = {}
    for member in members:
        # Memories that differ by a tenth, as free memory does, are alike.
        key = (member.chip, member.bandwidth, member.equal)
        groups.setdefault(key, []).append(member)
    return list(groups.values())


def device_of(
    group: Sequence[Member],
    model: Model,
    links: Links,
    reserve: float,
    figures: EfficiencyTable | None = None,
) -> Device | None:
    """Return what each of the equal devices of `group` reaches, by figures of efficiency.toml.

    None where its like was never measured.
    """
    first, efficiency = group[0], group[0].efficiency
    if first.bandwidth is None or efficiency is None or efficiency.engine is None:
        return None
    pools = [pool for member in group for pool in member.usable("available")]
    ids = [member.id for member in group]
    slowest = [links.between(a, b) for a in ids[:8] for b in ids[:8] if a != b]
    outer = max(slowest, key=lambda link: link.seconds(model.hop_bytes), default=links.default)
    arithmetic, attention = _arithmetic(first, efficiency, model, figures or table())
    chunk = ENGINES[efficiency.engine].chunk(min(pools), first.chip)
    costs = serving_costs(efficiency, first.class_, figures or table(), chunk)
    return Device(
        memory=int(min(pools) * (1 - reserve)),
        bandwidth=first.bandwidth * efficiency.share_of(model.quant, model.bits),
        arithmetic=arithmetic,
        attention=attention,
        layer=efficiency.layer_seconds(model.kind, figures, norms=model.norms) * costs.layer,
        begins=costs.begins
        * kind_factor(figures or table(), efficiency.computes, model.kind, efficiency.arch),
        efficiency=efficiency,
        costs=costs,
        inner=first.inner,
        outer=outer,
        per_node=max(1, first.equal),
    )


# Architectures whose tensor cores compute in FP8, of NVIDIA since Ada and Hopper. INT8 is older.
_FP8 = ("ada", "hopper", "blackwell", "cdna3", "cdna4")
_INT8 = (*_FP8, "ampere")


def _arithmetic(
    member: Member, efficiency: Efficiency, model: Model, figures: EfficiencyTable
) -> tuple[float | None, float | None]:
    """Return operations per second of one device: on weights, and of attention in 16 bits.

    Weights compute in the precision that the engine and the chip have for how they are stored.
    """
    half = member.half
    arch = (member.offer.arch if member.offer else None) or ""
    share = arithmetic_share(efficiency, member.class_, arch, figures)
    if share is None or half is None:
        return None, None
    kinds = figures["arithmetic"]["kind"]
    peak, eight, server = half, member.int8, efficiency.computes == "vllm"
    # FP8 and INT8 have the same peak where there is FP8.
    if server and eight is not None:
        floating = model.quant in ("fp8", "fp8_fp4") and arch.startswith(_FP8)
        if floating or (model.quant == "int8" and arch.startswith(_INT8)):
            peak = eight * figures["arithmetic"]["bits"]["8"]
    # MI355X computes in MXFP4, and no faster than in FP8 (vLLM's recipe of Llama 3.3 70B).
    if server and eight is not None and model.quant == "mxfp4" and arch.startswith("cdna4"):
        peak = eight * figures["arithmetic"]["bits"]["8"]
    if model.quant in ("nvfp4", "mxfp4") and arch.startswith("blackwell"):
        if eight is None:
            return None, None
        peak = _FP4 * eight * figures["arithmetic"]["bits"]["8"]
    each = _TERA * share / max(1, member.equal)
    return peak * each * kinds.get(model.kind, 1.0), half * each


def layouts(device: Device, nodes: int, model: Model, load: Load, engine: str) -> Iterator[Layout]:
    """Give every layout that holds the model and at least one request of each replica.

    `model` has the context of `load`, prompt and answer.
    """
    able = ENGINES[engine]
    for tensor in _tensor_widths(device, nodes, model, engine):
        groups = _groups(device, nodes, tensor)
        for expert in (False, True) if _spreads(model, engine, tensor) else (False,):
            for stages in range(1, min(groups, model.layers) + 1):
                if stages > 1 and (expert or (able.alone and tensor * stages > device.per_node)):
                    break
                for replicas in _copies(min(groups // stages, load.requests)):
                    layout = layout_of(
                        device, model, load, engine, replicas, tensor, stages, expert
                    )
                    if layout is not None:
                        yield layout


# Of more copies not each number is looked at.
_EACH = 16


def _copies(most: int) -> list[int]:
    """Return numbers of replicas: what fewer devices may have is among those of more."""
    doubled = [1 << bit for bit in range(_EACH.bit_length(), most.bit_length())]
    return sorted({*range(1, min(most, _EACH) + 1), *doubled, most})


def _groups(device: Device, nodes: int, tensor: int) -> int:
    """Return how many groups of so many devices there are: in each node, or of whole nodes."""
    if tensor <= device.per_node:
        return nodes * (device.per_node // tensor)
    return nodes // (tensor // device.per_node)


def _tensor_widths(device: Device, nodes: int, model: Model, engine: str) -> list[int]:
    """Return by how many devices a layer can be split: in a node, or over links that carry it."""
    able, found = ENGINES[engine], [1]
    for width in _server_widths(model) if able.cards else widths(model):
        inside = able.cards and width <= device.per_node
        across = able.across and device.outer.reduce is not None
        whole = width % device.per_node == 0 and width // device.per_node <= nodes
        if inside or (across and whole):
            found.append(width)
    return found


def _server_widths(model: Model) -> list[int]:
    """Return the widths of vLLM and its like, which copy KV heads where there are fewer."""
    heads, kv_heads = model.heads or 0, model.kv_heads or model.heads or 1
    return [
        width
        for width in (2, 4, 8)
        if heads
        and heads % width == 0
        and (model.kind == "mla" or not (kv_heads % width and width % kv_heads))
    ]


def _spreads(model: Model, engine: str, tensor: int) -> bool:
    return tensor > 1 and model.experts is not None and ENGINES[engine].computes == "vllm"


def layout_of(
    device: Device,
    model: Model,
    load: Load,
    engine: str,
    replicas: int,
    tensor: int,
    stages: int,
    expert: bool,
) -> Layout | None:
    """Return a layout and what it gives; None where it holds not even one request.

    `model` has the context of `load`, prompt and answer.
    """
    split = Split(tensor, stages, expert)
    largest = _largest_part(model, stages)
    weights = _weights(model, tensor, expert) * largest
    cache = model.kv_bytes * largest / _cache_parts(model, tensor, expert)
    room = device.memory - weights - _buffers(device, model, split)
    if room < cache:
        return None
    most = int(room // cache) if cache else load.requests
    wanted = -(-load.requests // replicas)
    running = min(wanted, most)
    # vLLM keeps all stages of a pipeline busy with parts of the requests; llama.cpp and MLX send
    # all requests through one stage after another.
    together = max(1.0, running / stages) if ENGINES[engine].cards else float(running)
    step = _step(device, model, load, split, together)
    pause = _pause(device, model, load, split, together)
    prompt = _prompt(device, model, load, split)
    cycle = load.answer * step + together * pause
    busy = min(load.requests, replicas * running)
    before = (wanted - running) / running * cycle
    return Layout(
        replicas=replicas,
        tensor=tensor,
        stages=stages,
        expert=expert,
        devices=replicas * tensor * stages,
        running=busy,
        waiting=load.requests - busy,
        total=busy * load.answer / cycle,
        each=load.answer / (cycle - pause),
        first_token=prompt,
        last_first_token=None if prompt is None else before + running * prompt,
        memory=int(weights + running * cache),
        room=device.memory,
    )


class Split(NamedTuple):
    """How the devices of a replica share it: as in `Layout`."""

    tensor: int
    stages: int
    expert: bool


def _cache_parts(model: Model, tensor: int, expert: bool) -> int:
    """Return over how many devices the cache of the requests is spread.

    MLA keeps one vector for all heads on each device; with experts spread each has requests of its
    own.
    """
    if expert:
        return tensor
    return 1 if model.kind == "mla" else min(tensor, model.kv_heads or tensor)


def _weights(model: Model, tensor: int, expert: bool) -> float:
    """Return the bytes of weights of each device, were there one stage."""
    if not expert or model.experts is None:
        return model.weight_bytes / tensor
    common = model.weight_bytes - _experts(model)
    return common + _experts(model) / tensor


def _experts(model: Model) -> float:
    """Return the bytes of all routed experts."""
    if model.experts is None:
        return 0.0
    share = model.experts[1] / model.experts[0]
    return (model.weight_bytes - model.read_at_once(1)) / (1 - share) if share < 1 else 0.0


def _step(device: Device, model: Model, load: Load, split: Split, together: float) -> float:
    """Return the seconds in which `together` requests get a token each, without any prompt."""
    middle = model.kv_bytes_at(load.prompt + load.answer // 2)
    parts = _cache_parts(model, split.tensor, split.expert)
    cache = together * middle / parts / (device.bandwidth * device.costs.cache)
    # Each stage prepares its inputs: no engine schedules ahead in a pipeline.
    besides = split.stages * (device.costs.step + (together - 1) * device.costs.request)
    return _pass(device, model, split, together) + cache + besides


def _pause(device: Device, model: Model, load: Load, split: Split, together: float) -> float:
    """Return the seconds by which one prompt delays the steps that compute parts of it.

    What a step reads for the tokens of answers serves the prompt, too, so only arithmetic beyond
    that, and the attention of the prompt to itself, take longer; but SGLang computes prompts in
    steps of their own, while answers wait.
    """
    if not device.arithmetic:
        return 0.0
    # Where requests end one after another, so many begin in a step.
    part = min(float(device.costs.chunk), max(1.0, together / load.answer) * load.prompt)
    beside = together if device.costs.mixed else 0.0
    longer = _pass(device, model, split, beside + part) + model.layers * device.begins
    if beside:
        longer -= _pass(device, model, split, beside)
    return load.prompt / part * longer + _attention(device, model, load, split)


def _largest_part(model: Model, stages: int) -> float:
    """Return the part of a model's layers that the largest of so many stages has."""
    return -(-model.layers // stages) / model.layers


def _pass(device: Device, model: Model, split: Split, tokens: float) -> float:
    """Return the seconds of so many tokens through all layers, without reading any cache."""
    reading = _read(model, tokens, split, device.costs.apart) / device.bandwidth
    computing = 0.0
    if device.arithmetic:
        operations = tokens * 2 * (model.active_params or model.params)
        computing = operations / split.tensor / device.arithmetic
    seconds = max(reading, computing)
    seconds += model.layers * device.layer
    if split.tensor > 1:
        seconds += model.layers * 2 * _reduce(device, model, split.tensor, tokens)
    # The stage with the most layers paces the others.
    seconds *= _largest_part(model, split.stages) * split.stages
    if split.stages > 1:
        link = device.inner if split.stages * split.tensor <= device.per_node else device.outer
        seconds += split.stages * link.seconds(int(model.hop_bytes * tokens))
    return seconds


def _attention(device: Device, model: Model, load: Load, split: Split) -> float:
    """Return the seconds of a prompt's attention, which grow with the square of its tokens.

    A token attends to those before it, in a layer with a window to so many of them.
    """
    if not (device.attention and model.heads and model.head_dim):
        return 0.0
    pairs = 0.0
    for layers, window in _windows(model):
        seen = load.prompt if window is None else min(load.prompt, 2 * window)
        pairs += layers * load.prompt * seen / 2
    # A multiplication and an addition per value, of keys and of values.
    operations = 4.0 * pairs * model.heads * model.head_dim
    return operations / (device.attention * split.tensor)


def _windows(model: Model) -> list[tuple[int, int | None]]:
    """Return how many layers attend to how many tokens; None to all."""
    groups = [(group.layers, group.window) for group in model.cache if group.values]
    return groups or [(model.layers, None)]


def _read(model: Model, tokens: float, split: Split, apart: float) -> float:
    """Return the bytes of weights that each device reads for so many tokens at once.

    Tokens use fewer different experts together than were each to choose anew: `apart` of them.
    """
    chosen = 1 + (tokens - 1) * apart if tokens > 1 else tokens
    if not split.expert:
        return model.read_at_once(chosen) / split.tensor
    active = _experts(model) * (model.experts or (1, 1))[1] / (model.experts or (1, 1))[0]
    common = model.read_at_once(1) - active
    return common + (model.read_at_once(chosen) - common) / split.tensor


def _reduce(device: Device, model: Model, tensor: int, tokens: float) -> float:
    """Return the seconds of one all-reduce of the activations of so many tokens."""
    link = device.inner if tensor <= device.per_node else device.outer
    size = 2 * (tensor - 1) / tensor * model.hop_bytes * tokens
    share = device.costs.reduce_pcie if link.kind.startswith("pcie") else device.costs.reduce
    return (link.reduce_among(tensor) or link.latency) + size / (link.bandwidth * share)


def _prompt(device: Device, model: Model, load: Load, split: Split) -> float | None:
    """Return the seconds of a prompt that comes alone, which end with its first token."""
    if not device.arithmetic:
        return None
    part = min(device.costs.chunk, load.prompt)
    passes = load.prompt / part
    each = _pass(device, model, split, part) + model.layers * device.begins + device.costs.step
    seconds = passes * each
    return seconds + _attention(device, model, load, split)


_THROUGHPUT = "throughput"


def throughput(total: float) -> str:
    """Return tokens per second as a page shows them."""
    return f"{total:,.0f}" if total >= 10 else f"{total:.2g}"


def _worth(found_layouts: Sequence[Layout]) -> tuple[tuple[str, Layout], ...]:
    """Return the layouts that are best at something, each once."""
    serving = [layout for layout in found_layouts if not layout.waiting] or list(found_layouts)
    chosen = {
        "one user": max(serving, key=lambda each: (each.each, -each.devices)),
        _THROUGHPUT: max(serving, key=lambda each: (each.total, -each.devices)),
        "fewest devices": min(serving, key=lambda each: (each.devices, -each.total)),
    }
    found: dict[Layout, list[str]] = {}
    for name, layout in chosen.items():
        found.setdefault(layout, []).append(name)
    return tuple((", ".join(own), layout) for layout, own in found.items())


def _no_room(group: Sequence[Member], device: Device, model: Model) -> str:
    count = len(group) * device.per_node
    each, verb = ("", "does") if count == 1 else (" each", "do")
    return (
        f"{counted(count, 'device')} of {names([m.id for m in group])} with {gib(device.memory)}"
        f"{each} {verb} not hold {gib(model.weight_bytes)} of weights and the cache of one request,"
        f" {gib(model.kv_bytes)}"
    )
