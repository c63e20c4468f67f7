"""The shape of a model out of its config.json: parameters, cache and what one token touches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probe_cluster.attention import Attention, attention
from probe_cluster.cache import CacheGroup, grouped
from probe_cluster.config_table import ConfigTable
from probe_cluster.errors import ClusterError
from probe_cluster.feedforward import Experts, experts_of, feed_forward
from probe_cluster.layer_kinds import layer_kinds

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

    @property
    def total(self) -> int:
        """All parameters."""
        return self.embedding + self.head + self.experts + self.common

    @property
    def active(self) -> int:
        """Parameters of one token, both embeddings counted as model cards count them."""
        return self.total - self.experts + self.active_experts

    def bytes(self, edges: float, common: float, experts: float) -> tuple[int, int]:
        """Return (bytes stored, bytes read per token) at these bits per parameter."""
        ends = (self.embedding + self.head) * edges
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


def shape_of(config: Mapping[str, Any], label: str) -> Shape:
    """Return the shape of a Hugging Face ``config.json``; `label` names the file in errors.

    Raises `ClusterError` for figures that are absurd or contradict each other.
    """
    table = ConfigTable(config, label)
    layers = table.whole("num_hidden_layers", "n_layer", "n_layers")
    hidden = table.whole("hidden_size", "n_embd", "d_model")
    heads = table.whole("num_attention_heads", "n_head")
    kinds = layer_kinds(table, layers) if layers else None
    parts = [attention(table, kind) for kind in kinds or ()]
    known = [part for part in parts if part is not None]
    _consistent(table, hidden, heads)
    return Shape(
        layers=layers,
        hidden=hidden,
        kv_heads=table.whole("num_key_value_heads") or heads,
        head_dim=table.whole("head_dim") or (hidden // heads if hidden and heads else None),
        heads=heads,
        context=table.whole("max_position_embeddings"),
        experts=experts_of(table),
        kind=_kind(table, kinds or ()),
        cache=_cache(table, known) if kinds and len(known) == len(parts) else (),
        params=_parameters(table, kinds or (), parts),
    )


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


def _cache(table: ConfigTable, parts: Sequence[Attention]) -> tuple[CacheGroup, ...]:
    # The last layers of Gemma 3n and 4 may use the cache of an earlier one.
    own = len(parts) - (table.whole("num_kv_shared_layers") or 0)
    return grouped((part.values, part.window, part.state) for part in parts[: max(0, own)])


def _kind(table: ConfigTable, kinds: Sequence[str]) -> str:
    if "linear" in kinds or "mamba" in kinds:
        return "hybrid"
    if experts_of(table) is None:
        return "dense"
    return "mla" if table.has("kv_lora_rank") else "experts"


def _parameters(
    table: ConfigTable, kinds: Sequence[str], parts: Sequence[Attention | None]
) -> Parameters | None:
    hidden, vocabulary = table.whole("hidden_size", "n_embd", "d_model"), table.whole("vocab_size")
    if not (kinds and hidden and vocabulary):
        return None
    experts = active = 0
    common = hidden  # the norm after the last layer
    for place, (kind, part) in enumerate(zip(kinds, parts, strict=True)):
        wide = feed_forward(table, kind, place)
        if wide is None or part is None or part.params is None:
            return None
        experts, active = experts + wide.experts, active + wide.active
        common += part.params + wide.always + _norms(table, hidden)
    embedding = vocabulary * hidden
    return Parameters(embedding, 0 if _tied(table) else embedding, experts, active, common)


def _norms(table: ConfigTable, hidden: int) -> int:
    if table.text("hybrid_override_pattern"):
        return hidden  # a block is attention or feed-forward, with one norm
    return (4 if table.text("model_type").startswith("gemma") else 2) * hidden


# transformers ties these unless the file says otherwise, and their files leave the switch out.
_TIED = ("gemma",)


def _tied(table: ConfigTable) -> bool:
    return table.flag("tie_word_embeddings") or table.text("model_type").startswith(_TIED)
