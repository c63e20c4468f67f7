"""The model to be shared: bytes and operations of one layer per token, and its KV cache."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from probe_cluster.planning.config_json import MOST_LAYERS
from probe_cluster.shared import ClusterError


class CacheGroup(NamedTuple):
    """Layers that keep equally much."""

    layers: int
    """How many layers."""
    values: int
    """Values that a layer keeps per token: keys and values, or MLA's latent vector."""
    window: int | None
    """Tokens that it keeps at most; None keeps all."""
    state: int
    """Bytes that it keeps whatever the context is: the state of linear attention."""


def grouped(layers: Iterable[tuple[int, int | None, int]]) -> tuple[CacheGroup, ...]:
    """Return the groups of layers given as (values, window, state)."""
    counts: dict[tuple[int, int | None, int], int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    return tuple(CacheGroup(count, *layer) for layer, count in counts.items())


def cache_bytes(groups: Iterable[CacheGroup], context: int, bits: float) -> int:
    """Return the bytes of one sequence's cache at `context` tokens, `bits` per value."""
    if not context:
        return 0
    total = 0.0
    for group in groups:
        tokens = context if group.window is None else min(context, group.window)
        total += group.layers * (group.values * tokens * bits / 8 + group.state)
    return ceil(total)


_UNITS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}

_MOST_BITS = 64
"""Bits of a number at most: the widest that tensors have."""


@dataclass(frozen=True, slots=True)
class Model:
    """A decoder of equal layers. Embeddings are spread over the layers, as exo spreads them."""

    params: int
    """Parameters in all."""
    layers: int
    """Layers that can be placed one by one."""
    bits: float = 16.0
    """Bits per parameter as stored, with scales (4.5 for 4-bit groups of 32 with fp16 scales)."""
    active_params: int | None = None
    """Parameters that one token touches; fewer than `params` for a mixture of experts."""
    hidden: int | None = None
    """Width of what one layer hands to the next, in values of two bytes."""
    kv_heads: int | None = None
    """Key/value heads of a layer."""
    head_dim: int | None = None
    """Values per head."""
    context: int = 0
    """Tokens that the KV cache holds; 0 leaves the cache out."""
    kv_bits: float = 16.0
    """Bits per value of the KV cache."""
    name: str | None = None
    """What people call it."""
    cache: tuple[CacheGroup, ...] = ()
    """What each layer keeps; empty where `kv_heads` and `head_dim` describe all layers."""
    read_bytes: int | None = None
    """Bytes of weights that one token reads; None where all of `active_params` is read."""
    kind: str = "dense"
    """``dense``, ``experts``, ``hybrid`` (linear attention), ``blocks`` (the same, in halves of
    layers) or ``mla`` (with experts)."""
    heads: int | None = None
    """Query heads of a layer."""
    source: str | None = None
    """Where the figures were read, or whose shape was taken."""
    experts: tuple[int, int] | None = None
    """Experts of a layer, and how many of them one token uses; None without any."""
    longest: int | None = None
    """Tokens of the longest context that it was made for."""
    quant: str | None = None
    """Name of its weights' precision, of `PRECISIONS`; None for a number of bits."""
    form: str | None = None
    """Kind of file: ``gguf``, ``mlx`` or ``safetensors``; None where any engine has its own."""
    published: bool = False
    """Whether nobody chose `quant`: it is how the model was published."""
    unknown_cache: str | None = None
    """Why the KV cache is not known; None where it is, or nobody looked."""
    norms: bool = False
    """Whether norms stand before and after each part of a layer, as in Gemma."""

    def __post_init__(self) -> None:
        for name, value, least in (
            ("params", self.params, 1),
            ("layers", self.layers, 1),
            ("bits", self.bits, 0.1),
            ("context", self.context, 0),
            ("kv_bits", self.kv_bits, 0.1),
        ):
            if not least <= value < 1e18:
                raise ClusterError(f"the model's {name} is {value}; it must be at least {least:g}")
            if name.endswith("bits") and value > _MOST_BITS:
                raise ClusterError(
                    f"the model's {name} is {value:g}; it must be at most {_MOST_BITS}"
                )
        if self.layers > MOST_LAYERS:
            raise ClusterError(
                f"the model's layers is {self.layers}; it must be at most {MOST_LAYERS}"
            )
        if self.active_params is not None and not 0 < self.active_params <= self.params:
            raise ClusterError(
                f"the model's active_params is {self.active_params}, of {self.params} in all"
            )
        if self.longest is not None and self.context > self.longest:
            raise ClusterError(
                f"the context is {self.context} tokens; {self.name or 'the model'} was made for"
                f" {self.longest} at most: give --context {self.longest}"
            )
        if self.context and not (self.cache or (self.kv_heads and self.head_dim)):
            if self.unknown_cache is not None:
                raise ClusterError(
                    f"the KV cache of {self.context} tokens is not known: {self.unknown_cache}"
                )
            raise ClusterError(
                f"the KV cache of {self.context} tokens needs kv_heads and head_dim"
                " (num_key_value_heads and head_dim in the model's config.json)"
            )

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights."""
        return ceil(self.params * self.bits / 8)

    @property
    def kv_bytes(self) -> int:
        """Bytes of the KV cache of all layers at `context` tokens."""
        return self.kv_bytes_at(self.context)

    def kv_bytes_at(self, context: int) -> int:
        """Return the bytes of the KV cache of all layers at so many tokens."""
        groups = self.cache
        if not groups:
            values = 2 * (self.kv_heads or 0) * (self.head_dim or 0)
            groups = (CacheGroup(self.layers, values, None, 0),)
        return cache_bytes(groups, context, self.kv_bits)

    @property
    def kv_bytes_per_layer(self) -> int:
        """Bytes of a layer's KV cache at `context` tokens, the mean where layers differ."""
        return ceil(self.kv_bytes / self.layers)

    @property
    def total_bytes(self) -> int:
        """Bytes of weights and KV cache."""
        return self.weight_bytes + self.kv_bytes

    @property
    def layer_bytes(self) -> int:
        """Bytes that one layer takes, its KV cache included."""
        return ceil(self.weight_bytes / self.layers) + self.kv_bytes_per_layer

    @property
    def layer_read_bytes(self) -> float:
        """Bytes that one token reads of one layer: active weights, and the whole KV cache."""
        return self.read_at_once(1) / self.layers + self.kv_bytes_per_layer

    def read_at_once(self, tokens: float) -> float:
        """Return the bytes of weights that so many tokens of different requests read together.

        Each token uses its own experts, so more of them are read the more tokens there are.
        """
        weights: float | None = self.read_bytes
        if weights is None:
            weights = (self.active_params or self.params) * self.bits / 8
        if self.experts is None or tokens <= 1:
            return weights
        share = self.experts[1] / self.experts[0]
        # What is stored and not read are experts (and the input embedding, which is small).
        experts = (self.weight_bytes - weights) / (1 - share) if share < 1 else 0.0
        hit = 1 - float((1 - share) ** tokens)
        return weights + experts * (hit - share)

    @property
    def layer_operations(self) -> float:
        """Operations of one token in one layer: a multiplication and an addition per weight."""
        return 2.0 * (self.active_params or self.params) / self.layers

    @property
    def hop_bytes(self) -> int:
        """Bytes that one node hands to the next per token; 0 when `hidden` is not known."""
        # Activations travel in two bytes each, fp16 or bf16, whatever the weights are stored in.
        return 2 * (self.hidden or 0)


def parse_count(text: str) -> int:
    """Return a number of parameters written as ``70b``, ``1.5T`` or ``7e9``.

    Raises `ClusterError` for anything else.
    """
    digits = text.strip().lower()
    scale = _UNITS.get(digits[-1:], 1.0)
    try:
        value = float(digits[:-1] if scale != 1.0 else digits) * scale
    except ValueError:
        raise ClusterError(f"{text!r} is no number of parameters, such as 70b") from None
    if not 1 <= value < 1e18:
        raise ClusterError(f"{text!r} is no possible number of parameters")
    return round(value)
