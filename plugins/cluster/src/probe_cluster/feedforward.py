"""Parameters of the feed-forward part of one layer: dense, or a choice of experts."""

from __future__ import annotations

from typing import NamedTuple

from probe_cluster.config_table import ConfigTable
from probe_cluster.errors import ClusterError

__all__ = ["Experts", "FeedForward", "experts_of", "feed_forward"]

# All others multiply by a gate, which is a third matrix.
_TWO_MATRICES = ("nemotron", "gpt2", "gpt_neox", "falcon", "opt", "bloom", "phi", "starcoder2")


class Experts(NamedTuple):
    """How many experts a layer has, and how many of them one token uses."""

    total: int
    active: int


class FeedForward(NamedTuple):
    """Parameters: all routed experts, those that one token uses, and what every token uses."""

    experts: int
    active: int
    always: int


def experts_of(config: ConfigTable) -> Experts | None:
    """Return the experts of a model; None for a dense one. Raises `ClusterError`."""
    count = config.whole("num_experts", "n_routed_experts", "num_local_experts")
    active = config.whole(
        "num_experts_per_tok", "top_k_experts", "experts_per_token", "num_experts_per_token"
    )
    if count is None or count == 1:
        return None
    if active is None or active > count:
        raise ClusterError(
            f"{config.label}: num_experts_per_tok is {active} of {count} experts;"
            f" it must be 1 to {count}"
        )
    return Experts(count, active)


def feed_forward(config: ConfigTable, kind: str, place: int) -> FeedForward | None:
    """Return the feed-forward part of a layer; None where the file lacks its width."""
    hidden = config.whole("hidden_size", "n_embd", "d_model")
    if hidden is None:
        return None
    if config.text("hybrid_override_pattern") and kind not in ("experts", "ffn"):
        return FeedForward(0, 0, 0)
    experts = experts_of(config)
    if experts is None or kind == "ffn" or not _routed(config, place):
        width = _dense_width(config)
        return None if width is None else FeedForward(0, 0, _matrices(config) * hidden * width)
    width = config.whole("moe_intermediate_size", "intermediate_size")
    if width is None:
        return None
    expert = _matrices(config) * hidden * width + _bias(config, hidden, width)
    always = hidden * experts.total + _matrices(config) * hidden * _shared_width(config, width)
    return FeedForward(expert * experts.total, expert * experts.active, always)


def _routed(config: ConfigTable, place: int) -> bool:
    """Return whether a layer has experts: the first ones, or each second one, may be dense."""
    if place < (config.whole("first_k_dense_replace") or 0):
        return False
    step = config.whole("interleave_moe_layer_step", "decoder_sparse_step") or 1
    return (place + 1) % step == 0


def _dense_width(config: ConfigTable) -> int | None:
    return config.whole(
        "intermediate_size_mlp", "dense_intermediate_size", "intermediate_size", "n_inner"
    )


def _shared_width(config: ConfigTable, width: int) -> int:
    """Return the width of what every token uses beside its experts."""
    if config.flag("enable_moe_block"):  # Gemma 4: a dense part beside the experts
        return config.whole("intermediate_size") or 0
    if config.text("model_type").startswith("llama4"):
        return width  # one shared expert, which the file does not count
    own = config.whole("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size")
    return own or (config.whole("n_shared_experts") or 0) * width


def _matrices(config: ConfigTable) -> int:
    family = config.text("model_type")
    # phi3 is gated, phi is not, so a prefix does not decide.
    gated = family not in _TWO_MATRICES and not family.startswith("nemotron")
    return 3 if gated else 2


def _bias(config: ConfigTable, hidden: int, width: int) -> int:
    """gpt-oss alone has biases in its experts."""
    return 2 * width + hidden if config.text("model_type") == "gpt_oss" else 0
