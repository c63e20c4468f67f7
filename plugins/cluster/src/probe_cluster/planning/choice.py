"""Which engine runs a model on these nodes where none is named, and why; and which cannot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from probe_cluster.planning.engines import ENGINES, engine_name, usual_engine
from probe_cluster.planning.links import Links
from probe_cluster.planning.members import Capacity, Member, class_of, with_engine
from probe_cluster.planning.model import Model
from probe_cluster.planning.precision import FORMATS
from probe_cluster.shared import ClusterError, names


class Choice(NamedTuple):
    """An engine, the nodes that it runs on, and why it is the one."""

    engine: str
    reason: str
    members: tuple[Member, ...]
    """With the figures of that engine."""


def choices(
    members: Sequence[Member], model: Model, links: Links, engine: str, *, many: bool = False
) -> list[Choice]:
    """Return the engines that can run a model on these nodes, or on some of them.

    One that is named is the only one. Else each node has the one that is usual for its hardware;
    where these differ, llama.cpp joins all of them, and each other one its own. The caller plans
    with each and takes the fastest, so that a node more is never worse. Of `many` requests vLLM is
    one of them on all GPUs that it runs on. Raises `ClusterError` for an engine that cannot run it
    there.
    """
    engine = engine_name(engine)
    if engine != "auto":
        for member in members:
            problem = refusal(engine, model, member)
            if problem is not None:
                raise ClusterError(problem, node=member.id)
        if ENGINES[engine].alone and len(members) > 1:
            raise ClusterError(
                f"{engine} runs a model on one computer, and there are {len(members)};"
                " give one, or --engine llama.cpp"
            )
        return [_choice(engine, "as asked for", members)]
    usual = [_usual(member, model) for member in members]
    if len({name for name, _ in usual}) == 1:
        found = [(usual[0][0], usual[0][1], members)]
    else:
        found = [("llama.cpp", "it runs on all of these computers", members)]
        for name, reason in dict.fromkeys(usual):
            own = [m for m, each in zip(members, usual, strict=True) if each[0] == name]
            if name != "llama.cpp":
                found.append((name, f"{reason}, on {names([m.id for m in own])} alone", own))
    if many and model.form != "gguf" and {name for name, _, _ in found} != {"vllm"}:
        own = [m for m in members if _is_gpu(m) and refusal("vllm", model, m) is None]
        found = [each for each in found if each[0] != "vllm" or not own]
        found += [("vllm", "it computes many requests together", own)] if own else []
    able = [
        _choice(*_exo(name, reason, own, links))
        for name, reason, own in found
        if not any(refusal(name, model, member) for member in own)
    ]
    if not able:
        problems = [refusal(name, model, own[0]) for name, _, own in found]
        raise ClusterError("; ".join(dict.fromkeys(filter(None, problems))))
    return able


def _is_gpu(member: Member) -> bool:
    return member.offer is not None and member.offer.kind == "gpu"


def _choice(engine: str, reason: str, members: Sequence[Member]) -> Choice:
    return Choice(engine, reason, tuple(with_engine(member, engine) for member in members))


_REASONS = {
    "mlx": "it is made for Apple silicon",
    "vllm": "it is usual on GPUs with HBM",
    "llama.cpp": "it runs on any device",
}


def _usual(member: Member, model: Model) -> tuple[str, str]:
    """Return the engine that is usual for a node, and why."""
    if model.form == "gguf":
        return "llama.cpp", f"{model.quant or 'the file'} is a GGUF file"
    if member.offer and member.offer.kind in ("accelerator", "npu"):
        chip = member.offer.chip or "this accelerator"
        return "none", f"no engine that is planned for is known to run on {chip}, which is no GPU"
    name = usual_engine(member.class_)
    if member.offer and (_foreign(name, member.offer) or _too_old(name, member.offer)):
        name = "llama.cpp"
    vendor = member.offer.vendor if member.offer else None
    servers = vendor in ("nvidia", "amd") and name == "llama.cpp"
    if model.form == "safetensors" and not model.published and servers:
        return "vllm", f"{model.quant or 'the file'} is of safetensors"
    return name, _REASONS[name]


# What MLX's own backend for several Macs and exo are made for.
_THUNDERBOLT = ("rdma", "thunderbolt")


def _exo(
    name: str, reason: str, members: Sequence[Member], links: Links
) -> tuple[str, str, Sequence[Member]]:
    """Return exo in place of MLX for several Macs that Thunderbolt joins."""
    if name != "mlx" or len(members) < 2:
        return name, reason, members
    ids = [member.id for member in members]
    kinds = {links.between(first, second).kind for first, second in pairwise(ids)}
    if all(kind.startswith(_THUNDERBOLT) for kind in kinds):
        return "exo", f"it runs MLX on Macs that {' and '.join(sorted(kinds))} joins", members
    return name, reason, members


# Of vLLM: docs.vllm.ai, features/quantization (v0.15: "Supported Hardware"); that NVFP4 and MXFP4
# run from Ampere on by Marlin is recalled. BF16: its issues 946 and 1157. Its installation page
# (v0.31): compute capability 7.5 or higher (v0.14: 7.0), and of AMD gfx90a, gfx942, gfx950,
# gfx1100, gfx1101, gfx1150, gfx1151, gfx1200 and gfx1201. What shares their architecture is not
# refused, nor is MI100, whose speeds are published. MLX's page: SM 7.5.
_BEFORE_TURING = ("fermi", "kepler", "maxwell", "pascal", "volta")
_BEFORE_CDNA = ("gcn", "rdna1", "rdna2")
_FROM_AMPERE = ("nvfp4", "mxfp4", "int4", "bf16")
_NOT_ON_AMD = ("awq", "gptq", "int8", "int4", "bnb_4bit", "nvfp4")


def refusal(name: str, model: Model, member: Member) -> str | None:
    """Return why an engine cannot run a model on a node; None where nothing speaks against it."""
    engine, offer = ENGINES[name], member.offer
    vendor = offer.vendor if offer else None
    if engine.computes and offer and offer.kind in ("accelerator", "npu"):
        return f"{name} is not known to run on {offer.chip}, which is no GPU"
    if engine.vendors and offer and offer.kind != "cpu" and vendor not in engine.vendors:
        return f"{name} runs on GPUs of {', '.join(engine.vendors)}, not on {offer.chip}"
    if offer and _foreign(name, offer):
        able = refusal("llama.cpp", model, member) is None
        other = ", or --engine llama.cpp" if able else ""
        return f"{name} does not run on Windows: run it in WSL{other}"
    if offer and (least := _too_old(name, offer)):
        older = f"{name} runs on GPUs {least}, and {offer.chip} is older"
        able = refusal("llama.cpp", model, member) is None
        return f"{older}: give --engine llama.cpp" if able else older
    # How a model was published can be converted; what a person asks for, or has as a file, not.
    asked = model.form is not None and not model.published and engine.forms
    if asked and model.form not in engine.forms:
        others = [other for other, each in ENGINES.items() if model.form in each.forms]
        what = model.quant or f"{model.form} files"
        return f"{name} does not run {what}; {', '.join(others)} do"
    if engine.single and offer and not offer.unified and len(offer.pools) > 1:
        count = f"{len(offer.pools)} count on {member.id}"
        return f"{name} uses one GPU of a computer, and {count}: give --devices primary"
    if engine.computes != "vllm" or offer is None or model.quant is None:
        return None
    if model.quant == "bf16" and model.published:
        return None  # then it is started with --dtype half
    return _unable(name, model.quant, vendor, offer.arch or "", offer.chip or "this GPU")


class Runnable(NamedTuple):
    """Whether an engine that is planned for runs a model on what a node offers."""

    refused: str | None
    """Why none of them does; None where one does, or another might."""
    unplanned: str | None
    """Why none is known to run there, of weights that another engine may convert."""


def runnable(model: Model, offer: Capacity) -> Runnable:
    """Return whether an engine runs a model on what a node offers: the usual one, or any."""
    own = Member("", None, offer=offer, class_=class_of(offer))
    name, reason = _usual(own, model)
    problem = refusal(name, model, own)
    if problem is None:
        return Runnable(None, reason if name == "none" else None)
    able = any(refusal(other, model, own) is None for other in ENGINES if ENGINES[other].computes)
    return Runnable(None if able else problem, None)


def _foreign(name: str, offer: Capacity) -> bool:
    """Return whether an engine does not run on the operating system of the node."""
    return offer.os == "windows" and not ENGINES[name].windows


def _too_old(name: str, offer: Capacity) -> str | None:
    """Return from which GPUs on an engine runs where this one is before them, else None."""
    arch, computes = offer.arch or "", ENGINES[name].computes
    if computes in ("vllm", "mlx") and arch.startswith(_BEFORE_TURING):
        return "of NVIDIA from Turing on"
    if computes == "vllm" and arch.startswith(_BEFORE_CDNA):
        return "of AMD from MI100 and RX 7000 on"
    return None


def _unable(name: str, quant: str, vendor: str | None, arch: str, chip: str) -> str | None:
    """Return why a server's kernels cannot run a quantisation on a chip."""
    if vendor == "amd" and quant in _NOT_ON_AMD:
        return f"{name} does not run {quant} on GPUs of AMD ({chip}); fp8 and bf16 it does"
    if vendor == "nvidia" and quant in _FROM_AMPERE and arch.startswith("turing"):
        return f"{name} runs {quant} from Ampere on; {chip} is Turing"
    return None


def converted(model: Model, engine: str) -> str | None:
    """Return a sentence where an engine cannot read the weights as they were published."""
    form = FORMATS.get(model.quant or "")
    if not model.published or form is None or form in ENGINES[engine].forms:
        return None
    if not ENGINES[engine].forms:
        return None
    return (
        f"the weights are published as {model.quant}, which {engine} does not read:"
        " give --bits of the file that you have"
    )
