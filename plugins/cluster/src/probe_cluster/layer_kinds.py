"""What attends in each layer of a model: to all tokens, to a window, by a state, or not at all."""

from __future__ import annotations

from probe_cluster.config_table import ConfigTable
from probe_cluster.errors import ClusterError
from probe_cluster.families import family_of, model_type

__all__ = ["layer_count", "layer_kinds"]

_BLOCKS = {"M": "mamba", "E": "experts", "*": "full", "-": "ffn"}
_TYPES = {
    "full_attention": "full",
    "attention": "full",
    "deepseek_sparse_attention": "full",
    "indexed_attention": "full",
    "compressed_sparse_attention": "csa",
    "heavily_compressed_attention": "hca",
    "sliding_attention": "window",
    "chunked_attention": "window",
    "linear_attention": "linear",
    "mamba": "mamba",
    "conv": "conv",
    "moe": "experts",
    "mlp": "ffn",
}

# DeepSeek V4: tokens of which one entry is kept. 0 keeps a window alone.
_COMPRESSED = {0: "window", 4: "csa", 128: "hca"}


def layer_count(config: ConfigTable) -> int | None:
    """Return the layers of a model; Nemotron 3 Ultra's file gives their list alone."""
    return (
        config.whole("num_hidden_layers", "n_layer", "n_layers")
        or len(config.texts("layers_block_type"))
        or None
    )


def layer_kinds(config: ConfigTable, layers: int) -> list[str] | None:
    """Return the kind of each layer; None for a structure that is not known.

    Kinds: ``full``, ``window``, ``linear``, ``kda``, ``mamba``, ``mamba1``, ``conv``; ``both``
    (attention beside mamba), ``shared`` (latent attention with the indexer of an earlier layer),
    ``csa`` and ``hca`` (over a compressed cache: one entry for 4 and for 128 tokens); ``experts``
    and ``ffn``, which are blocks without attention, and ``none``, a layer without. Raises
    `ClusterError` where two keys contradict each other.
    """
    if config.has("rwkv_version"):
        return None
    if config.has("compress_ratios"):
        return _compressed(config, layers)
    kinds = _listed(config, layers) or _regular(config, layers)
    if kinds is None or not all(kinds):
        return None
    indexers = config.texts("indexer_types")
    if len(indexers) == layers:
        return [
            "shared" if kind == "full" and indexer == "shared" else kind
            for kind, indexer in zip(kinds, indexers, strict=True)
        ]
    return kinds


def _compressed(config: ConfigTable, layers: int) -> list[str] | None:
    """Return the kinds of DeepSeek V4, whose list goes on for the layers that draft tokens."""
    ratios = config.wholes("compress_ratios")
    if not config.has("o_lora_rank") or len(ratios) < layers:
        return None
    kinds = [_COMPRESSED.get(ratio, "") for ratio in ratios[:layers]]
    return kinds if all(kinds) else None


def _listed(config: ConfigTable, layers: int) -> list[str] | None:
    """Return the kinds that a list of the file names, an empty text for an unknown one."""
    blocks = config.text("hybrid_override_pattern")
    types = config.texts("layer_types") or config.texts("layers_block_type")
    if not blocks and not types:
        return _numbered(config, layers)
    kinds = [_BLOCKS.get(block, "") for block in blocks] or [_TYPES.get(t, "") for t in types]
    if len(kinds) != layers:
        key = "hybrid_override_pattern" if blocks else "layer_types"
        raise ClusterError(
            f"{config.label}: {key} has {len(kinds)} layers and num_hidden_layers is"
            f" {layers}; both must be the same"
        )
    # transformers 5 calls all that keeps a state linear.
    state = next((kind for key, kind in _STATES.items() if config.has(key)), "linear")
    return [state if kind == "linear" else kind for kind in kinds]


_STATES = {
    "linear_num_value_heads": "linear",
    "linear_num_heads": "kda",
    "mamba_d_state": "mamba",
    "ssm_state_size": "mamba",
}


def _numbered(config: ConfigTable, layers: int) -> list[str] | None:
    """Return the kinds of files that number their layers; None where there is no such list."""
    blocks = config.tables("block_configs")
    if len(blocks) == layers:
        layers_of = [block.table("attention") for block in blocks]
        groups = {block.whole("n_heads_in_group") for block in layers_of} - {None}
        return [_pruned(block) if len(groups) < 2 else "" for block in layers_of]
    linear = config.table("linear_attn_config")
    if linear.has("kda_layers"):
        # Kimi Linear counts from 1.
        kda = linear.wholes("kda_layers")
        return ["kda" if place + 1 in kda else "full" for place in range(layers)]
    if config.has("attn_layer_indices") and config.has("mamba_n_heads"):
        full = config.wholes("attn_layer_indices")
        return ["full" if place in full else "mamba" for place in range(layers)]
    if config.has("full_attn_idxs") and config.has("conv_L_cache"):
        full = config.wholes("full_attn_idxs")
        return ["full" if place in full else "conv" for place in range(layers)]
    sliding = config.wholes("hybrid_layer_pattern")
    if len(sliding) == layers:
        return ["window" if slides else "full" for slides in sliding]
    types = config.wholes("attn_type_list")
    if types:
        # MiniMax: 1 attends to all tokens, 0 is lightning attention, whose state no key describes.
        return ["full" if kind == 1 else "" for kind in types]
    return None


def _pruned(attention: ConfigTable) -> str:
    """Return the kind of a layer of which NVIDIA's search may have taken the attention away."""
    if attention.flag("replace_with_linear"):
        return ""
    return "none" if attention.flag("no_op") else "full"


def _regular(config: ConfigTable, layers: int) -> list[str] | None:
    """Return kinds of models whose each Nth layer attends to all tokens."""
    if config.has("linear_num_value_heads"):
        return _each(config.whole("full_attention_interval") or 4, "linear", layers)
    if model_type(config) == "falcon_h1":
        return ["both"] * layers
    if config.has("mamba_d_state") and config.has("attn_layer_period"):
        period, offset = config.whole("attn_layer_period") or 1, config.whole("attn_layer_offset")
        return ["full" if at % period == (offset or 0) else "mamba1" for at in range(layers)]
    if config.has("mamba_d_state", "ssm_state_size", "state_size"):
        return None
    if config.has("linear_attn_config"):
        return None
    if config.has("attention_chunk_size"):
        # Llama 4: chunks wherever rotary positions are used, which is three layers of four.
        return _each(config.whole("no_rope_layer_interval") or 4, "window", layers)
    family = family_of(config)
    if not config.has("sliding_window") or _unused_window(config):
        return ["full"] * layers
    interval = config.whole("sliding_window_pattern", "_sliding_window_pattern")
    if interval is None and family is not None:
        interval = family.windows
    return _each(interval, "window", layers)


def _unused_window(config: ConfigTable) -> bool:
    family = family_of(config)
    return family is not None and family.full and not config.flag("use_sliding_window")


def _each(interval: int | None, kind: str, layers: int) -> list[str]:
    """Return `kind` for all but each Nth layer; for all of them without an interval (Mistral)."""
    if interval is None:
        return [kind] * layers
    return ["full" if (place + 1) % interval == 0 else kind for place in range(layers)]
