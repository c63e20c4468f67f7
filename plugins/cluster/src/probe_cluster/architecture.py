"""The shape of a model out of its config.json: parameters, cache and what one token touches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probe_cluster.attention import Attention, attention, kv_heads_of
from probe_cluster.cache import CacheGroup, grouped
from probe_cluster.config_table import ConfigTable
from probe_cluster.errors import ClusterError
from probe_cluster.families import family_of, model_type
from probe_cluster.feedforward import Experts, experts_of, feed_forward
from probe_cluster.layer_kinds import layer_count, layer_kinds

__all__ = ["Parameters", "Shape", "shape_of"]


@dataclass(frozen=True, slots=True)
class Parameters:
    """Where the parameters of a model are."""

    embedding: int
    """The input embedding, of which one token reads a row."""
    head: int
    """The output head; 0 where it is the embedding (tied)."""
    experts: int
    """All routed experts."""
    active_experts: int
    """The routed experts that one token uses."""
    common: int
    """Attention, norms, routers, dense and shared feed-forward parts."""
    rows: int = 0
    """Embeddings of each layer (Gemma 3n), of which one token reads a row."""

    @property
    def total(self) -> int:
        """All parameters."""
        return self.embedding + self.head + self.experts + self.common + self.rows

    @property
    def active(self) -> int:
        """Parameters of one token, both embeddings counted as model cards count them."""
        return self.total - self.experts + self.active_experts

    def bytes(self, edges: float, common: float, experts: float) -> tuple[int, int]:
        """Return (bytes stored, bytes read per token) at these bits per parameter."""
        ends = (self.embedding + self.head + self.rows) * edges
        stored = ends + self.experts * experts + self.common * common
        # The head multiplies every hidden state, so all of it is read, tied or not.
        read = (self.head or self.embedding) * edges + self.common * common
        return round(stored / 8), round((read + self.active_experts * experts) / 8)


@dataclass(frozen=True, slots=True)
class Shape:
    """A model as far as its file describes it; None is not known."""

    layers: int | None
    hidden: int | None
    kv_heads: int | None
    head_dim: int | None
    heads: int | None
    context: int | None
    """Tokens that it was made for."""
    experts: Experts | None
    kind: str
    """``dense``, ``experts``, ``hybrid`` (linear attention) or ``mla`` (with experts)."""
    cache: tuple[CacheGroup, ...]
    """Empty where the file does not describe it."""
    params: Parameters | None
    reason: str | None = None
    """Why the parameters are not known, where the layout is not."""


def shape_of(config: Mapping[str, Any], label: str) -> Shape:
    """Return the shape of a Hugging Face ``config.json``; `label` names the file in errors.

    Raises `ClusterError` for figures that are absurd or contradict each other.
    """
    table = ConfigTable(config, label)
    layers = layer_count(table)
    hidden = table.whole("hidden_size", "n_embd", "d_model")
    heads = table.whole("num_attention_heads", "n_head")
    kinds = layer_kinds(table, layers) if layers else None
    own = _own_caches(table, len(kinds or ()))
    parts = [attention(table, kind, at >= own) for at, kind in enumerate(kinds or ())]
    known = [part for part in parts if part is not None]
    _consistent(table, hidden, heads)
    return Shape(
        layers=layers,
        hidden=hidden,
        kv_heads=kv_heads_of(table),
        head_dim=table.whole("head_dim") or (hidden // heads if hidden and heads else None),
        heads=heads,
        context=table.whole("max_position_embeddings"),
        experts=experts_of(table),
        kind=_kind(table, kinds or ()),
        cache=_cache(table, known) if kinds and len(known) == len(parts) else (),
        params=_parameters(table, kinds or (), parts),
        reason=_unknown(table),
    )


def _unknown(table: ConfigTable) -> str | None:
    if family_of(table) is not None:
        return None
    return f"the layers of model_type {model_type(table)[:40]!r} are not known"


def _consistent(table: ConfigTable, hidden: int | None, heads: int | None) -> None:
    if table.has("kv_lora_rank"):
        return
    kv_heads = table.whole("num_key_value_heads")
    if heads and kv_heads and (kv_heads > heads or heads % kv_heads):
        raise ClusterError(
            f"{table.label}: num_attention_heads is {heads} and num_key_value_heads {kv_heads};"
            " the first must be a multiple of the second"
        )
    if hidden and heads and heads > hidden:
        raise ClusterError(
            f"{table.label}: num_attention_heads is {heads} and hidden_size {hidden};"
            " there must be no more heads than values"
        )


def _own_caches(table: ConfigTable, layers: int) -> int:
    """Return the layers with a cache of their own: Gemma 3n's and 4's last ones have none."""
    return max(0, layers - (table.whole("num_kv_shared_layers") or 0))


def _cache(table: ConfigTable, parts: Sequence[Attention]) -> tuple[CacheGroup, ...]:
    own = parts[: _own_caches(table, len(parts))]
    return grouped((part.values, part.window, part.state) for part in own)


# LFM2's short convolutions take no longer than attention: 440 tokens/s of its 8B-A1B on an RTX 3090
# (calebcoffie.com/benchmarks, 450 W), which as a hybrid would be predicted at 276.
_STATES = frozenset(["linear", "kda", "mamba", "mamba1", "both"])


def _kind(table: ConfigTable, kinds: Sequence[str]) -> str:
    if _STATES.intersection(kinds):
        return "hybrid"
    if experts_of(table) is None:
        return "dense"
    # One key for all heads, as with a latent one: splitting a layer does not split its cache.
    latent = table.has("kv_lora_rank") or "csa" in kinds or "hca" in kinds
    return "mla" if latent else "experts"


def _parameters(
    table: ConfigTable, kinds: Sequence[str], parts: Sequence[Attention | None]
) -> Parameters | None:
    hidden, vocabulary = table.whole("hidden_size", "n_embd", "d_model"), table.whole("vocab_size")
    if not (kinds and hidden and vocabulary):
        return None
    experts = active = 0
    own = _own_caches(table, len(kinds))
    common = hidden  # the norm after the last layer
    for place, (kind, part) in enumerate(zip(kinds, parts, strict=True)):
        wide = feed_forward(table, kind, place, place >= own)
        if wide is None or part is None or part.params is None:
            return None
        experts, active = experts + wide.experts, active + wide.active
        common += part.params + wide.always + _norms(table, hidden)
    embedding = vocabulary * hidden
    rows, always = _per_layer(table, hidden, len(kinds))
    head = 0 if _tied(table) else embedding
    return Parameters(embedding, head, experts, active, common + always, rows)


def _per_layer(table: ConfigTable, hidden: int, layers: int) -> tuple[int, int]:
    """Return the embeddings that each layer has of its own, and what all tokens use for them.

    Gemma 3n and the E models of Gemma 4; of Gemma 3n also LAuReL and AltUp.
    """
    wide = table.whole("hidden_size_per_layer_input")
    if not wide:
        return 0, 0
    rows = (table.whole("vocab_size_per_layer_input") or 0) * wide * layers
    always = layers * 3 * hidden * wide
    always += layers * 2 * hidden * (table.whole("laurel_rank") or 0)
    inputs = table.whole("altup_num_inputs") or 1
    return rows, always + 2 * (inputs - 1) * hidden * hidden


def _norms(table: ConfigTable, hidden: int) -> int:
    family = family_of(table)
    if family is not None and family.blocks:
        return hidden  # a block is attention or feed-forward, with one norm
    return (4 if model_type(table).startswith("gemma") else 2) * hidden


def _tied(table: ConfigTable) -> bool:
    family, own = family_of(table), table.choice("tie_word_embeddings")
    if own is None:
        own = table.choice("tie_embedding")
    return own if own is not None else family is not None and family.tied
