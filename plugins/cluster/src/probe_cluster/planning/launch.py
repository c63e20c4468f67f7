"""The line that starts a plan: an engine's own command or JSON, with a reason for every figure.

Arguments are those of vLLM 0.33 (engine/arg_utils.py, read), llama-server 0.7.0 (build 11669),
mlx-lm 0.31 and mlx 0.31 (their parsers took our lines), and exo b5375f8 (`PlaceInstanceParams`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from probe_cluster.planning.answer import Answer
from probe_cluster.planning.choice import refusal
from probe_cluster.planning.engines import ENGINES
from probe_cluster.planning.fitting import fit
from probe_cluster.planning.members import Member, with_engine
from probe_cluster.planning.model import Model
from probe_cluster.planning.predict import Plan, split_width
from probe_cluster.planning.search import proportional
from probe_cluster.planning.serving import Layout, Load
from probe_cluster.shared import ClusterError

FORMS = ("vllm", "llama.cpp", "mlx", "exo")
"""Engines whose line can be printed."""

# Of llama.cpp's rpc-server, by its README.
_RPC_PORT = 50052


@dataclass(frozen=True, slots=True)
class Line:
    """What to run on a node, and why each figure in it is what it is."""

    node: str
    text: str
    """A shell line, or JSON; ``$MODEL`` is the file, folder or repository of the weights."""
    why: tuple[tuple[str, str], ...]
    """(argument, reason)."""


class _Command:
    """A command that is put together argument by argument, each with its reason."""

    def __init__(self, *start: str) -> None:
        self.words = list(start)
        self.why: list[tuple[str, str]] = []

    def add(self, option: str, value: object, why: str) -> None:
        """Add an option with a value."""
        self.words += [option, str(value)]
        self.why.append((f"{option} {value}", why))

    def flag(self, option: str, why: str) -> None:
        """Add an option without a value."""
        self.words.append(option)
        self.why.append((option, why))

    def line(self, node: str) -> Line:
        """Return the line for a node."""
        return Line(node, " ".join(self.words), tuple(self.why))


def launch(
    found: Answer,
    engine: str,
    *,
    layout: Layout | None = None,
    load: Load | None = None,
    reserve: float = 0.05,
) -> list[Line]:
    """Return what starts the best plan, or a layout of many requests, by an engine.

    Raises `ClusterError` where the engine cannot do it, with the reason.
    """
    if engine not in FORMS:
        raise ClusterError(f"there is no line for {engine!r}; there are {', '.join(FORMS)}")
    best = found.comparison.best
    if best is None:
        raise ClusterError(f"there is no plan to start: {found.fit.sentence}")
    if engine in _EVENLY and layout is None:
        best = _even(found, engine)
    members = {member.id: member for member in found.choice.members}
    used = [members[name] for name in dict.fromkeys(stage.node for stage in best.stages)]
    for member in used:
        problem = refusal(engine, found.model, with_engine(member, engine))
        if problem is not None:
            raise ClusterError(problem, node=member.id)
    asked = _Asked(found.model, best, used, layout, load, reserve, found)
    return _LINES[engine](asked)


# Engines that give each node as many layers as the others.
_EVENLY = ("vllm", "mlx")


def _even(found: Answer, engine: str) -> Plan:
    """Return the fastest plan whose nodes have equally many layers, but for one."""
    plans = [plan for plan in found.comparison.plans if plan.fits and plan.seconds_per_token]
    even = [plan for plan in plans if _spread(plan) <= 1]
    if even:
        return min(even, key=lambda plan: plan.seconds_per_token or 0.0)
    best = found.comparison.best
    shares = _shares(best) if best else ""
    raise ClusterError(
        f"{engine} gives every node as many layers, and no plan does: {shares};"
        " --layers-on sets them by hand"
    )


def _spread(plan: Plan) -> int:
    counts = [stage.layers for stage in plan.stages]
    return max(counts) - min(counts)


@dataclass(frozen=True, slots=True)
class _Asked:
    model: Model
    plan: Plan
    members: Sequence[Member]
    """Those that the plan uses, in its order."""
    layout: Layout | None
    load: Load | None
    reserve: float
    found: Answer

    @property
    def tokens(self) -> tuple[int, str]:
        """The context of a request, and why."""
        if self.load is not None:
            total = self.load.prompt + self.load.answer
            return total, f"{self.load.prompt} of the prompt and {self.load.answer} of the answer"
        if self.model.context:
            return self.model.context, "as asked for with --context"
        return _longest(self.members, self.model, self.reserve)

    @property
    def requests(self) -> tuple[int, str]:
        """Requests at once, and why."""
        if self.layout is None:
            return 1, "a plan of one request"
        return self.layout.running, "requests that have room at once"


def _longest(members: Sequence[Member], model: Model, reserve: float) -> tuple[int, str]:
    """Return the longest context, to 256 tokens by halving, and what ends it."""
    if not (model.cache or (model.kv_heads and model.head_dim)):
        return 4096, "nobody asked for a context, and the model's cache is not known"
    low, high = 0, model.longest or 1 << 20
    if fit(members, replace(model, context=high), reserve=reserve).ok:
        return high, "the longest that the model was made for"
    while high - low > 256:
        middle = (low + high) // 2
        fits = fit(members, replace(model, context=middle), reserve=reserve).ok
        low, high = (middle, high) if fits else (low, middle)
    return low, "the longest that the memory holds"


def _vllm(asked: _Asked) -> list[Line]:
    plan, layout, first = asked.plan, asked.layout, asked.members[0]
    if len({member.equal for member in asked.members}) > 1:
        raise ClusterError(
            "vllm needs as many GPUs on each node; here nodes have different numbers"
        )
    if layout is not None:
        tensor, stages, replicas = layout.tensor, layout.stages, layout.replicas
    else:
        tensor = split_width(first, asked.model)
        if plan.parallel == "tensor" and len(asked.members) > 1:
            tensor = first.equal * len(asked.members)
        # A node's GPUs that do not split layers follow each other.
        stages = first.equal * len(asked.members) // tensor
        replicas = 1
    command = _Command("vllm", "serve", '"$MODEL"')
    command.add("--tensor-parallel-size", tensor, "GPUs that split each layer")
    command.add("--pipeline-parallel-size", stages, "groups of them that follow each other")
    if replicas > 1:
        command.add("--data-parallel-size", replicas, "copies that share the requests")
    if layout is not None and layout.expert:
        command.flag("--enable-expert-parallel", "experts are spread over the GPUs of a group")
    command.add("--max-model-len", *asked.tokens)
    command.add("--max-num-seqs", *_per_replica(asked, replicas))
    share, why = _utilisation(first, asked.reserve)
    command.add("--gpu-memory-utilization", f"{share:.2f}", why)
    if asked.model.kv_bits <= 8:
        command.add("--kv-cache-dtype", "fp8", f"{asked.model.kv_bits:g} bits asked for")
    nodes = tensor * stages * replicas > first.equal
    if nodes:
        command.add("--distributed-executor-backend", "ray", "more GPUs than a node has")
    return [command.line(first.id), *_ray(asked, first) * nodes]


def _ray(asked: _Asked, first: Member) -> list[Line]:
    others = asked.found.choice.members
    return [
        Line(
            member.id,
            f"ray start --address={first.id}:6379",
            (("6379", f"where `ray start --head` listens on {first.id}, which comes first"),),
        )
        for member in others
        if member.id != first.id
    ]


def _per_replica(asked: _Asked, replicas: int) -> tuple[int, str]:
    number, why = asked.requests
    return -(-number // replicas), why + (" on each copy" if replicas > 1 else "")


def _utilisation(member: Member, reserve: float) -> tuple[float, str]:
    """Return vLLM's share of a GPU for weights and caches, of all its memory."""
    free = min(member.usable("available"))
    total = (member.memory or free) / max(1, member.equal)
    why = f"what is free now, less {reserve:.0%}, of all memory of a GPU"
    return min(0.99, free * (1 - reserve) / total), why


def _llama(asked: _Asked) -> list[Line]:
    plan, layout = asked.plan, asked.layout
    several = len(asked.members) > 1
    if layout is not None and (layout.tensor > 1 or layout.replicas > 1):
        raise ClusterError(
            f"one llama-server runs one copy, and splits no layers: not {layout.name}"
        )
    if plan.parallel == "tensor" and several:
        raise ClusterError("llama.cpp splits no layers across computers")
    first, others = asked.members[0], asked.members[1:]
    command = _Command("llama-server", "-m", '"$MODEL"')
    command.add("-ngl", asked.model.layers + 1, "all layers and the output head on the devices")
    number, why = asked.requests
    tokens, reason = asked.tokens
    command.add("-c", number * tokens, f"{number} x {tokens} tokens: {reason}")
    command.add("-np", number, why)
    if several:
        command.add(
            "--rpc",
            ",".join(f"{member.id}:{_RPC_PORT}" for member in others),
            "the other nodes, where rpc-server runs",
        )
        layers = {stage.node: stage.layers for stage in plan.stages}
        # llama.cpp puts remote devices before its own, and rpc-server offers all of a node's GPUs.
        shares = [each for m in (*others, first) for each in _of_devices(m, layers[m.id])]
        command.add("-ts", ",".join(map(str, shares)), f"layers of the plan: {_shares(plan)}")
    elif len(first.pools) > 1:
        shares = [round(pool / 2**30) for pool in first.pools]
        command.add("-ts", ",".join(map(str, shares)), "free GiB of each GPU, in their order")
    if asked.model.kv_bits < 16:
        kind = {8.5: "q8_0", 5.5: "q5_0", 4.5: "q4_0"}.get(asked.model.kv_bits)
        if kind is None:
            raise ClusterError(f"llama.cpp keeps no cache of {asked.model.kv_bits:g} bits")
        command.add("-ctk", kind, "asked for with --kv-bits")
        command.add("-ctv", kind, "asked for with --kv-bits")
    command.add("--fit", "off", "else llama.cpp changes what the plan says")
    remote = f"rpc-server -H 0.0.0.0 -p {_RPC_PORT}"
    port = ((f"-p {_RPC_PORT}", "rpc-server's usual port, as --rpc names it"),)
    return [*(Line(member.id, remote, port) for member in others), command.line(first.id)]


def _of_devices(member: Member, layers: int) -> list[int]:
    """Return the layers of each device of a node, by the memory that is free on it."""
    if len(member.pools) < 2 or layers < len(member.pools):
        return [layers]
    return proportional([float(pool) for pool in member.pools], layers)


def _mlx(asked: _Asked) -> list[Line]:
    first, plan, layout = asked.members[0], asked.plan, asked.layout
    command = _Command("mlx_lm.server", "--model", '"$MODEL"')
    if layout is not None and layout.replicas > 1:
        raise ClusterError(f"one mlx_lm.server runs one copy: not {layout.name}")
    number, why = asked.requests
    command.add("--decode-concurrency", number, why)
    if asked.model.kv_bits < 16:
        if asked.model.kv_bits not in (4, 8):
            raise ClusterError(f"mlx-lm keeps no cache of {asked.model.kv_bits:g} bits; 4 and 8")
        command.add("--kv-bits", f"{asked.model.kv_bits:g}", "asked for with --kv-bits")
    tensor = plan.parallel == "tensor" if layout is None else layout.tensor > 1
    nodes = len(asked.members) if layout is None else layout.devices
    if nodes < 2:
        return [command.line(first.id)]
    if not tensor:
        why = "nodes follow each other, evenly; without it they split each layer"
        command.flag("--pipeline", why)
    backend = "jaccl" if _rdma(asked) else "ring"
    start = _Command("mlx.launch")
    start.add("--backend", backend, "RDMA" if backend == "jaccl" else "sockets")
    start.add(
        "--hostfile",
        "hosts.json",
        f"written by mlx.distributed_config --hosts {','.join(m.id for m in asked.members)}",
    )
    start.words += command.words
    start.why += command.why
    return [start.line(first.id)]


def _rdma(asked: _Asked) -> bool:
    ids = [member.id for member in asked.members]
    links = [asked.found.links.between(a, b) for a in ids for b in ids if a != b]
    return bool(links) and all(link.reduce is not None for link in links)


def _exo(asked: _Asked) -> list[Line]:
    plan, model, first = asked.plan, asked.model, asked.members[0]
    number = len(asked.members) if asked.layout is None else asked.layout.devices
    tensor = plan.parallel == "tensor" if asked.layout is None else asked.layout.tensor > 1
    if asked.layout is not None and asked.layout.replicas > 1:
        raise ClusterError(f"one instance of exo is one copy: not {asked.layout.name}")
    uneven = (model.kv_heads or number) % number or (model.hidden or number) % number
    if tensor and model.kind != "mla" and uneven:
        raise ClusterError(
            f"exo splits layers over as many nodes as divide the KV heads: not {number}"
        )
    if not tensor and number > 1 and "gemma-4" in (model.name or ""):
        raise ClusterError("exo refuses pipelines of Gemma 4 (placement.py)")
    rdma = number > 1 and _rdma(asked)
    body = {
        "model_id": "$MODEL",
        "sharding": "Tensor" if tensor else "Pipeline",
        "instance_meta": "MlxJaccl" if rdma else "MlxRing",
        "min_nodes": number,
    }
    why = (
        ("model_id", "the card of the model in exo, such as mlx-community/…"),
        ("sharding", "nodes split each layer" if tensor else "nodes follow each other"),
        ("instance_meta", "RDMA joins them" if rdma else "sockets join them"),
        ("min_nodes", "nodes of the plan; exo shares the layers itself, by free memory"),
    )
    return [Line(first.id, f"POST /place_instance {json.dumps(body)}", why)]


def _shares(plan: Plan) -> str:
    return ", ".join(f"{stage.node} {stage.layers}" for stage in plan.stages)


_LINES: dict[str, Callable[[_Asked], list[Line]]] = {
    "vllm": _vllm,
    "llama.cpp": _llama,
    "mlx": _mlx,
    "exo": _exo,
}
assert set(_LINES) == set(FORMS) <= set(ENGINES)
