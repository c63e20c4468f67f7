"""Parameters of the feed-forward part of one layer: dense, or a choice of experts."""

from __future__ import annotations

from typing import NamedTuple

from probe_cluster.config_table import ConfigTable
from probe_cluster.errors import ClusterError
from probe_cluster.families import family_of, model_type

__all__ = ["Experts", "FeedForward", "experts_of", "feed_forward"]


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
