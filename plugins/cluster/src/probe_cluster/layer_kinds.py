"""What attends in each layer of a model: to all tokens, to a window, by a state, or not at all."""

from __future__ import annotations

from probe_cluster.config_table import ConfigTable
from probe_cluster.errors import ClusterError

__all__ = ["NO_ATTENTION", "layer_kinds"]

NO_ATTENTION = "none"
"""A block of experts or a plain FFN that stands alone (Nemotron-H)."""

_BLOCKS = {"M": "mamba", "E": "experts", "*": "full", "-": "ffn"}
_TYPES = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "window",
    "chunked_attention": "window",
    "linear_attention": "linear",
    "mamba": "mamba",
    "moe": "experts",
}

# Their caches are compressed in ways that no key of the other models describes.
_UNSUPPORTED = ("compress_ratios", "linear_attn_config", "attn_type_list", "rwkv_version")


def layer_kinds(config: ConfigTable, layers: int) -> list[str] | None:
    """Return the kind of each layer; None for a structure that is not known.

    Kinds: ``full``, ``window``, ``linear``, ``mamba``, ``experts`` and ``ffn`` (the last two are
    blocks without attention). Raises `ClusterError` where two keys contradict each other.
    """
    if config.has(*_UNSUPPORTED):
        return None
    blocks = config.text("hybrid_override_pattern")
    types = config.texts("layer_types") or config.texts("layers_block_type")
    if blocks or types:
        kinds = [_BLOCKS.get(block, "") for block in blocks] or [_TYPES.get(t, "") for t in types]
        if len(kinds) != layers:
            key = "hybrid_override_pattern" if blocks else "layer_types"
            raise ClusterError(
                f"{config.label}: {key} has {len(kinds)} layers and num_hidden_layers is"
                f" {layers}; both must be the same"
            )
        return kinds if all(kinds) else None
    return _regular(config, layers)


def _regular(config: ConfigTable, layers: int) -> list[str] | None:
    """Return kinds of models whose each Nth layer attends to all tokens."""
    if config.has("linear_num_value_heads"):
        return _each(config.whole("full_attention_interval") or 4, "linear", layers)
    if config.has("mamba_d_state", "ssm_state_size", "state_size"):
        return None
    if config.has("attention_chunk_size"):
        # Llama 4: chunks wherever rotary positions are used, which is three layers of four.
        return _each(config.whole("no_rope_layer_interval") or 4, "window", layers)
    if not config.has("sliding_window") or _unused_window(config):
        return ["full"] * layers
    interval = config.whole("sliding_window_pattern", "_sliding_window_pattern")
    if interval is None:
        interval = _PATTERNS.get(config.text("model_type"))
    return _each(interval, "window", layers)


# Their published files state a window and leave it off, or as long as the whole context.
_ALL_FULL = ("phi3", "phimoe", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe")


def _unused_window(config: ConfigTable) -> bool:
    return config.text("model_type") in _ALL_FULL and not config.flag("use_sliding_window")


# The defaults of transformers' configuration classes, for files that leave the pattern out.
_PATTERNS = {
    "gemma2": 2,
    "gemma3": 6,
    "gemma3_text": 6,
    "gpt_oss": 2,
    "olmo3": 4,
    "cohere2": 4,
    "exaone4": 4,
}


def _each(interval: int | None, kind: str, layers: int) -> list[str]:
    """Return `kind` for all but each Nth layer; for all of them without an interval (Mistral)."""
    if interval is None:
        return [kind] * layers
    return ["full" if (place + 1) % interval == 0 else kind for place in range(layers)]
