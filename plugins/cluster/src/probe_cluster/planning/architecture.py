"""The shape of a model out of its config.json: parameters, cache and what one token touches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from probe_cluster.planning.attention import Attention, attention, kv_heads_of
from probe_cluster.planning.config_json import (
    ConfigTable,
    family_of,
    layer_count,
    layer_kinds,
    model_type,
)
from probe_cluster.planning.model import CacheGroup, grouped
from probe_cluster.shared import ClusterError


class Experts(NamedTuple):
    """How many experts a layer has, and how many of them one token uses."""

    total: int
    active: int


class FeedForward(NamedTuple):
    """Parameters: all routed experts, those that one token uses, and what every token uses."""

    experts: int
    active: int
    always: int


_ACTIVE = (
    "num_experts_per_tok", "top_k_experts", "experts_per_token", "num_experts_per_token",
    "moe_k", "moe_topk", "moe_top_k",
)  # fmt: skip


def experts_of(config: ConfigTable) -> Experts | None:
    """Return the experts of a model; None for a dense one. Raises `ClusterError`."""
    count = config.whole("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
    active = config.whole(*_ACTIVE)
    if count is None or count == 1:
        return None
    if active is None or active > count:
        raise ClusterError(
            f"{config.label}: num_experts_per_tok is {active} of {count} experts;"
            f" it must be 1 to {count}"
        )
    return Experts(count, active)


def feed_forward(
    config: ConfigTable, kind: str, place: int, reuses: bool = False
) -> FeedForward | None:
    """Return the feed-forward part of a layer; None where the file lacks its width.

    Layers that `reuses` says so of take the keys of earlier ones, and are wider in Gemma 4 E2B.
    """
    hidden, family = config.whole("hidden_size", "n_embd", "d_model"), family_of(config)
    if hidden is None or family is None:
        return None
    matrices = 3 if family.gated else 2
    if family.blocks and kind not in ("experts", "ffn"):
        return FeedForward(0, 0, 0)
    experts = experts_of(config)
    if experts is None or kind == "ffn" or not _routed(config, kind, place):
        width = _dense_width(config, hidden, place)
        if width and reuses and config.flag("use_double_wide_mlp"):
            width *= 2
        return None if width is None else FeedForward(0, 0, matrices * hidden * width)
    width = config.whole("moe_intermediate_size", "intermediate_size")
    if width is None:
        return None
    # Nemotron 3 Super and Kimi K3: experts work on a narrower copy, which two matrices make.
    narrow = config.whole("moe_latent_size", "routed_expert_hidden_size")
    expert = matrices * (narrow or hidden) * width + _bias(config, hidden, width)
    always = hidden * experts.total + matrices * hidden * _shared_width(config, width)
    always += 2 * hidden * (narrow or 0)
    return FeedForward(expert * experts.total, expert * experts.active, always)


def _routed(config: ConfigTable, kind: str, place: int) -> bool:
    """Return whether a layer has experts: the first ones, or each second one, may be dense."""
    kinds = config.texts("mlp_layer_types")
    if place < len(kinds):
        return kinds[place] != "dense"
    each = config.wholes("moe_layer_freq")
    if place < len(each):
        return each[place] == 1
    if kind == "experts":
        return True
    listed = config.text("moe_layers_enum")  # Step 3.5: "3,4,5"
    if listed:
        return str(place) in listed.split(",")
    first = config.whole("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers")
    if place < (first or 0) or place in config.wholes("mlp_only_layers"):
        return False
    if config.has("expert_layer_period"):
        period, offset = config.whole("expert_layer_period"), config.whole("expert_layer_offset")
        return place % (period or 1) == (offset or 0)
    step = config.whole("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval")
    return (place + 1) % (step or 1) == 0


def _dense_width(config: ConfigTable, hidden: int, place: int) -> int | None:
    blocks = config.tables("block_configs")
    if blocks:
        return _pruned_width(blocks[place].table("ffn"), hidden) if place < len(blocks) else None
    width = config.whole(
        "intermediate_size_mlp", "dense_intermediate_size", "intermediate_size", "n_inner"
    )
    if model_type(config) == "granitemoehybrid":
        return config.whole("shared_intermediate_size")  # its one dense part
    own = config.whole("block_ff_dim") or width
    if own and config.flag("block_auto_adjust_ff_dim"):
        return _adjusted(own, config.whole("block_multiple_of") or 256)
    return width


def _pruned_width(own: ConfigTable, hidden: int) -> int | None:
    """Return the width of a layer of Nemotron-NAS: a multiple of Llama's two thirds, or none."""
    if own.flag("no_op"):
        return 0
    times = own.number("ffn_mult")
    if times is None or own.flag("replace_with_linear"):
        return None
    return -(-int(2 * times * hidden / 3) // 256) * 256


def _adjusted(width: int, step: int) -> int:
    """LFM2 takes two thirds of the width that its file names, rounded up."""
    return -(-(2 * width // 3) // step) * step


def _shared_width(config: ConfigTable, width: int) -> int:
    """Return the width of what every token uses beside its experts."""
    if config.flag("enable_moe_block"):  # Gemma 4: a dense part beside the experts
        return config.whole("intermediate_size") or 0
    if model_type(config).startswith("llama4"):
        return width  # one shared expert, which the file does not count
    own = config.whole(
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
        "share_expert_dim",
    )
    return own or (config.whole(*_SHARED) or 0) * width


_SHARED = (
    "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert",
)  # fmt: skip


def _bias(config: ConfigTable, hidden: int, width: int) -> int:
    """gpt-oss alone has biases in its experts."""
    return 2 * width + hidden if model_type(config) == "gpt_oss" else 0


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
    """One of `Model.kind`."""
    cache: tuple[CacheGroup, ...]
    """Empty where the file does not describe it."""
    params: Parameters | None
    reason: str | None = None
    """Why the parameters are not known, where the layout is not."""
    norms: bool = False
    """As `Model.norms`."""


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
        context=_longest(table),
        experts=experts_of(table),
        kind=_kind(table, kinds or ()),
        cache=_cache(table, known) if kinds and len(known) == len(parts) else (),
        params=_parameters(table, kinds or (), parts),
        reason=_unknown(table),
        norms=has_norms(model_type(table)),
    )


def has_norms(family: str) -> bool:
    """Return whether layers of a family have norms on both sides of each part: since Gemma 2."""
    return family.startswith("gemma") and family != "gemma"


def _longest(table: ConfigTable) -> int | None:
    """Return the longest context, which YaRN's factor stretches where the file has it on."""
    own = table.whole("max_position_embeddings", "n_positions", "seq_length")
    scaling = next((t for t in map(table.table, _SCALINGS) if t.number("factor")), None)
    if (
        own is None
        or scaling is None
        or "yarn" not in (scaling.text("rope_type"), scaling.text("type"))
    ):
        return own
    first = scaling.whole("original_max_position_embeddings") or own
    return max(own, int(first * (scaling.number("factor") or 1)))


_SCALINGS = ("rope_scaling", "rope_parameters")


def _unknown(table: ConfigTable) -> str | None:
    if family_of(table) is not None:
        wanted = ("hidden_size", "num_attention_heads", "vocab_size")
        others = {"hidden_size": ("n_embd", "d_model"), "num_attention_heads": ("n_head",)}
        lacking = [name for name in wanted if not table.whole(name, *others.get(name, ()))]
        return f"its config.json has no {' and no '.join(lacking)}" if lacking else None
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
    family = family_of(table)
    if family is not None and family.blocks:
        return "blocks"  # attention and feed-forward parts apart: half of a layer each
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
