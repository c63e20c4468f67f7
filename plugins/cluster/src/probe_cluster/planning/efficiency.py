"""What a device reaches of its theoretical bandwidth with an engine: figures of efficiency.toml."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, TypedDict, cast

from probe_cluster.planning.engines import ENGINES, engine_name, usual_engine
from probe_cluster.planning.precision import PRECISIONS
from probe_core.commands import bandwidth as rate_text

# Makers' names of cards with high-bandwidth memory, which chips of their architecture may lack.
_HBM = re.compile(
    r"\b(?:A100|A800|A30|H100|H200|H800|H20|GH200|B100|B200|GB200|B300|GB300|V100|P100|"
    r"MI\d{2,3}[AX]?|Radeon VII|Instinct)\b",
    re.IGNORECASE,
)
# Without the instructions that llama.cpp multiplies quantised weights with, or with few of them.
_BEFORE_VOLTA = ("pascal", "maxwell", "kepler", "fermi")
_CDNA = "cdna"
_APPLE = re.compile(r"\bM(\d+)\b")
# NVIDIA's modules, whose few watts and slow cores feed the GPU: a GB10 reads 1.7 x their share, and
# takes a third of their time of a layer.
_JETSON = re.compile(r"\b(?:Jetson|Orin|Thor|Xavier|Tegra)\b", re.IGNORECASE)
# Intel's graphics since Battlemage read at twice the share of Alchemist's. Older ones have names
# without "Arc", and nothing was measured of them.
_ARC = re.compile(r"\bArc\b", re.IGNORECASE)
_BATTLEMAGE = re.compile(r"\b(?:B\d{2,3}|\d{3}V)\b", re.IGNORECASE)

USUAL_CORES = 8
"""Cores of a CPU that does not say how many it has: a judgement."""

# Precisions of llama.cpp without blocks in blocks, whose scales cost arithmetic.
SIMPLE = frozenset(
    "f32 fp32 f16 fp16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q8_k_xl iq4_nl mxfp4 mxfp4_moe".split()
)


# Before Vega 20 no instruction multiplies four pairs of bytes, as which llama.cpp computes
# quantised weights, so arithmetic bounds what Polaris reads.
_WITHOUT_DOT = re.compile(r"gcn(?!51)")


class EfficiencyTable(TypedDict):
    """The tables of efficiency.toml; its comments say what they hold."""

    share: dict[str, float | dict[str, float]]
    tau: dict[str, dict[str, float]]
    kind: dict[str, float | dict[str, float]]
    hop: dict[str, float]
    bound: dict[str, float]
    simple: dict[str, float]
    dies: dict[str, float]
    cores: dict[str, float]
    step: dict[str, float]
    generation: dict[str, dict[str, float]]
    arithmetic: dict[str, dict[str, float]]
    serving: dict[str, dict[str, float]]


class ServingCosts(NamedTuple):
    """What many requests cost an engine."""

    cache: float
    """Share of the bandwidth of weights at which the caches of requests are read."""
    apart: float
    """How many of the experts that tokens would choose were each to choose anew they use."""
    reduce: float
    """Share of a link's bandwidth that all-reduces reach."""
    reduce_pcie: float
    """The same of PCIe, where they go through the host's memory."""
    layer: float
    """What a layer costs beyond its bytes, times that of one request."""
    begins: float
    """Seconds of a layer more, where a step computes prompts: it is too large for a CUDA graph."""
    mixed: bool
    """Whether prompts are computed in the steps of answers."""
    step: float
    """Seconds of a step beyond its layers: what the scheduler does."""
    request: float
    """Seconds of a step for each further request: sampling, text, the network."""
    chunk: int
    """Tokens of prompts in one step."""


class Efficiency(NamedTuple):
    """How a class of device runs models with an engine."""

    share: float
    """Of the theoretical bandwidth, where weights have the bits of Q4_K_M."""
    tau: float
    """Seconds of a layer of a dense model beyond its bytes."""
    basis: str
    """What it rests on."""
    measured: bool = False
    """Whether the bandwidth is a measured one, which no fit on published speeds is about."""
    engine: str | None = None
    """Name of the engine."""
    computes: str = ""
    """What the engine computes with, as efficiency.toml names it."""
    arch: str = ""
    """Architecture of the device, where its generation has figures of its own."""
    bound: tuple[float, float] | None = None
    """Where arithmetic bounds the share: that of memory, and that of each bit of a weight."""

    def layer_seconds(
        self,
        kind: str,
        figures: EfficiencyTable | None = None,
        *,
        norms: bool = False,
        layers: int | None = None,
    ) -> float:
        """Return the seconds of a layer beyond its bytes, by kind of model.

        `norms` is whether norms stand on both sides of each part of a layer; of so many `layers`
        each has its part of what the engine takes for a token besides.
        """
        figures = figures or table()
        more = kind_factor(figures, self.computes, "norms") if norms else 1.0
        more *= generation_factor(figures, self.computes, self.arch)
        besides = step_seconds(figures, self.computes, self.engine) / layers if layers else 0.0
        return self.tau * kind_factor(figures, self.computes, kind, self.arch) * more + besides

    def share_of(self, quant: str | None, bits: float) -> float:
        """Return the share at which weights of a precision are read: simple blocks read faster.

        Arithmetic is that of weights: the more `bits` one has, the more is read for it.
        """
        if self.measured:
            return self.share
        share = self.share if self.bound is None else min(self.bound[0], self.bound[1] * bits)
        if quant not in SIMPLE:
            return share
        return min(1.0, share * table()["simple"].get(self.computes, 1.0))


@cache
def table() -> EfficiencyTable:
    """Return the figures."""
    path = os.path.join(os.path.dirname(__file__), "efficiency.toml")
    with open(path, "rb") as file:
        return cast("EfficiencyTable", tomllib.load(file))


def arithmetic_share(
    efficiency: Efficiency, class_: str | None, arch: str, figures: EfficiencyTable
) -> float | None:
    """Return the share of its dense peak that a device reaches; None where it is not known."""
    shares = figures["arithmetic"]
    share = shares.get(efficiency.computes, {}).get(class_ or "")
    if share is None or efficiency.computes != "vllm":
        return share
    return (
        share * _of_arch(shares["arch"], arch) * shares["engine"].get(efficiency.engine or "", 1.0)
    )


def serving_costs(
    efficiency: Efficiency, class_: str | None, figures: EfficiencyTable, chunk: int
) -> ServingCosts:
    """Return what many requests cost an engine on a class of device.

    The figures are the engine's own, or of what it computes with; a class may have factors of them.
    """
    costs = figures["serving"]
    own = costs["all"] | costs.get(efficiency.engine or "", costs.get(efficiency.computes, {}))
    for name, factor in costs.get(class_ or "", {}).items():
        own[name] *= factor
    return ServingCosts(
        cache=own["cache"],
        apart=own["apart"],
        reduce=own["reduce"],
        reduce_pcie=own["reduce-pcie"],
        layer=own["layer"],
        begins=own["begins"] * 1e-6,
        mixed=ENGINES[efficiency.engine or "none"].mixed,
        step=own["step"] * 1e-6,
        request=own["request"] * 1e-6,
        chunk=chunk,
    )


class Range(NamedTuple):
    """How far predictions of a class were off, by figures fitted without their owner's."""

    factor: float
    """In nine cases of ten the speed was at most so many times larger or smaller."""
    cases: int
    """Published speeds of the class."""
    publications: int
    """Those that published them."""
    wider: str = ""
    """Of which cases the factor is, where those of the class are too few."""


@cache
def _ranges() -> dict[tuple[str, str, str], Range]:
    path = os.path.join(os.path.dirname(__file__), "ranges.toml")
    with open(path, "rb") as file:
        classes = tomllib.load(file)["classes"]
    return {
        (engine, hardware, mode): Range(factor, cases, publications, wider)
        for engine, hardware, mode, cases, publications, factor, wider in classes
    }


def range_of(computes: str, class_: str, mode: str) -> Range | None:
    """Return how far predictions of a class were off; None where no measured case is like it.

    `mode` is ``one`` device, a ``pipeline`` of several, or ``tensor``, where they split layers; and
    ``serving`` for the throughput of many requests, however devices share the model.
    """
    return _ranges().get((computes, class_, mode))


def kind_factor(figures: EfficiencyTable, computes: str, kind: str, arch: str = "") -> float:
    """Return what a kind of model costs each layer, times a dense one's.

    A maker's own figure comes first, then an engine's own.
    """
    makers = [_CDNA] if computes == "vllm" and arch.startswith(_CDNA) else []
    for name in (*makers, computes):
        own = figures["kind"].get(name)
        value = own.get(kind) if isinstance(own, dict) else None
        if value is not None:
            return value
    general = figures["kind"].get(kind)
    return general if isinstance(general, float) else 1.0


def generation_factor(figures: Mapping[str, Any], computes: str, arch: str) -> float:
    """Return what layers cost besides on a generation of chips, times what they do on its class."""
    return _of_arch(figures["generation"].get(computes, {}), arch)


def _of_arch(factors: Mapping[str, float], arch: str) -> float:
    """Return the factor of an architecture, whose name starts as the factor's; 1 of others."""
    return next((factor for name, factor in factors.items() if arch.startswith(name)), 1.0)


def step_seconds(figures: Mapping[str, Any], computes: str, engine: str | None) -> float:
    """Return the seconds of a token of one request that an engine takes beyond its layers.

    The figure is the engine's own, or of what it computes with.
    """
    steps = figures["step"]
    return float(steps.get(engine, steps.get(computes, 0.0))) * 1e-6


def core_seconds(figures: Mapping[str, Any], computes: str, cores: int | None) -> float:
    """Return the seconds for which threads of so many cores wait for each other in each layer."""
    return float(figures["cores"].get(computes, 0.0)) * 1e-6 * (cores or USUAL_CORES)


def device_class(
    kind: str, vendor: str | None, name: str | None, arch: str | None, unified: bool
) -> str | None:
    """Return the class of a device; None for one whose like was never measured."""
    if kind == "cpu":
        return "cpu"
    if vendor == "apple":
        match = _APPLE.search(name or "")
        return None if match is None else "apple-m1-m2" if int(match[1]) < 3 else "apple-m3"
    if kind == "gpu" and vendor == "intel":
        if not _ARC.search(name or ""):
            return None
        return "arc" if _BATTLEMAGE.search(name or "") else "arc-alchemist"
    if kind != "gpu" or vendor not in ("nvidia", "amd"):
        return None
    # The P100 has HBM, yet no more arithmetic for each byte than a card with GDDR; the Tegra X1 of
    # a Jetson Nano shares LPDDR4 with its CPU, and is as far below it as its arithmetic.
    if vendor == "nvidia" and (arch or "").startswith(_BEFORE_VOLTA):
        return "gddr-pascal"
    if vendor == "nvidia" and _JETSON.search(name or ""):
        return "jetson"
    if unified:
        return "unified" if vendor == "nvidia" else "apu"
    if _HBM.search(name or ""):
        return "hbm" if vendor == "nvidia" else "hbm-cdna"
    if vendor == "amd":
        return "radeon-gcn" if _WITHOUT_DOT.match(arch or "") else "radeon"
    return "gddr-new" if (arch or "").startswith(("ada", "blackwell")) else "gddr-old"


Q4_K_M = PRECISIONS["q4_k_m"].common
"""Bits of a weight in the precision that most rows have."""

# Operations of FP32 that a GTX 1050 Ti has for each byte that it can read: 2.14 TFLOPS, 112 GB/s.
MEASURED_PASCAL = 19.1

# Since Hopper each multiprocessor has twice as many lanes of FP32 as of integers, with which
# llama.cpp multiplies quantised weights; before as many.
_WIDE = ("hopper", "blackwell")


def integer_operations(fp32: float, arch: str | None) -> float:
    """Return the operations that llama.cpp's kernels can use of so many of FP32."""
    return fp32 / 2 if (arch or "").startswith(_WIDE) else fp32


def bound_of(
    figures: Mapping[str, Any], computes: str, class_: str, operations: float | None
) -> float | None:
    """Return the share that arithmetic allows for each bit of a weight; None where none is bound.

    llama.cpp's kernels are bound by it where a device has few `operations` for each byte it can
    read: cards with HBM, and Apple's M1 and M2.
    """
    bound = figures["bound"].get(class_)
    if bound is None or operations is None or computes != "llama-cpp":
        return None
    return float(bound * operations / Q4_K_M)


def bounded_share(
    figures: Mapping[str, Any],
    computes: str,
    class_: str,
    operations: float | None,
    bits: float = Q4_K_M,
) -> float | None:
    """Return the share of the bandwidth of a class; None where nothing was measured.

    A P40 has 1.8 times as many `operations` for each byte as the card that Pascal's figure was
    fitted on, and reads 1.8 times as large a share; others are bound by the `bits` of a weight
    (`bound_of`).
    """
    shares = figures["share"]
    own = shares.get(computes)
    share = own.get(class_) if isinstance(own, dict) else None
    if share is None:
        share = shares.get(class_)
    if not isinstance(share, float) or operations is None or computes != "llama-cpp":
        return share if isinstance(share, float) else None
    if class_ == "gddr-pascal":
        return float(min(shares["gddr-old"], share * operations / MEASURED_PASCAL))
    bound = bound_of(figures, computes, class_, operations)
    return share if bound is None else min(share, bound * bits)


def efficiency_of(
    class_: str | None,
    engine: str = "auto",
    operations: float | None = None,
    *,
    dies: int = 1,
    cores: int | None = None,
    arch: str | None = None,
    figures: Mapping[str, Any] | None = None,
) -> Efficiency | None:
    """Return what a class of device reaches with an engine; None where nothing was measured.

    ``auto`` is the usual engine of the class; `operations` are those for each byte that the device
    can read; an Ultra of Apple has two `dies`; a CPU has `cores`. Raises `ClusterError` for an
    unknown engine.
    """
    engine = engine_name(engine)
    if engine == "auto":
        engine = usual_engine(class_)
    computes = ENGINES[engine].computes or ""
    figures = figures or table()
    tau = figures["tau"].get(computes, {}).get(class_ or "")
    share = bounded_share(figures, computes, class_ or "", operations)
    memory = bounded_share(figures, computes, class_ or "", None)
    if tau is None or share is None or memory is None:
        return None
    per_bit = bound_of(figures, computes, class_ or "", operations)
    if dies > 1:
        tau *= figures["dies"].get(computes, 1.0)
    tau *= 1e-6
    if class_ == "cpu":
        tau += core_seconds(figures, computes, cores)
    layer = tau * 1e6 * generation_factor(figures, computes, arch or "")
    basis = f"{engine} on {class_}: {share:.0%} of the bandwidth and {layer:.3g} us a layer"
    text = f"{basis}, fitted on published speeds"
    bound = None if per_bit is None else (memory, per_bit)
    return Efficiency(share, tau, text, False, engine, computes, arch or "", bound)


def with_measured(default: Efficiency, bandwidth: float, by: str) -> Efficiency:
    """Return the efficiency over a measured bandwidth (bytes per second), which needs no share.

    An engine reads at most as fast as a loop that does nothing else: times are lower bounds.
    """
    speed = f"measured: {rate_text(bandwidth)} read by {by}"
    basis = f"{speed}, and {default.tau * 1e6:.3g} us a layer"
    return default._replace(share=1.0, basis=basis, measured=True)


def hop_software(engine: str) -> float:
    """Return the seconds that an engine adds to each hop of a pipeline."""
    hops = table()["hop"]
    return (hops[engine] if engine in hops else hops.get(ENGINES[engine].computes or "", 0)) * 1e-6
