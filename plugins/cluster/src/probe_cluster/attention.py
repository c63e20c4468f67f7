"""Parameters and cache of the attention of one layer, by its kind."""

from __future__ import annotations

from typing import NamedTuple

from probe_cluster.config_table import ConfigTable

__all__ = ["Attention", "attention"]

# A state is kept in fp32, what the convolution remembers in bf16 (transformers, Qwen3-Next).
_STATE_BYTES, _CONV_BYTES = 4, 2

# Each adds a norm of the queries and one of the keys; the configuration names no switch for it.
_QK_NORM = ("qwen3", "gemma3", "gemma4", "olmo2", "olmo3")
_QKV_BIAS = ("qwen2", "glm4_moe")


class Attention(NamedTuple):
    """What a layer's attention weighs and keeps; None where the file does not give it."""

    params: int | None
    values: int
    window: int | None
    state: int


def attention(config: ConfigTable, kind: str) -> Attention | None:
    """Return the attention of a layer of this kind; None where the file lacks a figure."""
    hidden = config.whole("hidden_size", "n_embd", "d_model")
    heads = config.whole("num_attention_heads", "n_head")
    if kind in ("experts", "ffn"):
        return Attention(0, 0, None, 0)
    if hidden is None or heads is None:
        return None
    if kind == "linear":
        return _delta_net(config, hidden)
    if kind == "mamba":
        return _mamba(config, hidden)
    if config.has("kv_lora_rank"):
        return _latent(config, hidden, heads)
    return _grouped(config, kind, hidden, heads)


def _grouped(config: ConfigTable, kind: str, hidden: int, heads: int) -> Attention:
    """Multi-head and grouped-query attention; Gemma 4's full layers have heads of their own."""
    wide = config.whole("head_dim") or max(1, hidden // heads)
    kv_heads = config.whole("num_key_value_heads") or heads
    shared = False
    if kind == "full" and config.has("global_head_dim"):
        wide = config.whole("global_head_dim") or wide
        if config.flag("attention_k_eq_v"):
            shared = True
            kv_heads = config.whole("num_global_key_value_heads") or kv_heads
    window = None
    if kind == "window":
        window = config.whole("attention_chunk_size", "sliding_window")
    query, key = heads * wide, kv_heads * wide
    # A gated output doubles the query projection (Qwen3-Next, Qwen3.5).
    gated = config.flag("attn_output_gate") or config.text("model_type") == "qwen3_next"
    params = hidden * query * (3 if gated else 2) + hidden * key * (1 if shared else 2)
    family = config.text("model_type")
    if family.startswith(_QKV_BIAS) or config.flag("attention_bias"):
        params += query + 2 * key
    if family.startswith(_QK_NORM):
        params += 2 * wide
    return Attention(params, 2 * key, window, 0)


def _latent(config: ConfigTable, hidden: int, heads: int) -> Attention | None:
    """Multi-head latent attention: one vector per token for all heads (DeepSeek-V2, 2024)."""
    rank, rope = config.whole("kv_lora_rank") or 0, config.whole("qk_rope_head_dim") or 0
    nope, wide = config.whole("qk_nope_head_dim"), config.whole("v_head_dim")
    indexer = config.whole("index_head_dim") or 0
    values = rank + rope + indexer
    if nope is None or wide is None:
        return Attention(None, values, None, 0)
    query_rank = config.whole("q_lora_rank")
    query = heads * (nope + rope)
    params = hidden * (rank + rope) + rank * heads * (nope + wide) + rank + heads * wide * hidden
    params += hidden * query if query_rank is None else query_rank * (hidden + query + 1)
    if indexer:
        index_heads = config.whole("index_n_heads") or 0
        params += (query_rank or hidden) * index_heads * indexer
        params += hidden * (index_heads + indexer) + 2 * indexer
    return Attention(params, values, None, 0)


def _delta_net(config: ConfigTable, hidden: int) -> Attention | None:
    names = ("key_head_dim", "num_key_heads", "value_head_dim", "num_value_heads")
    sizes = [config.whole(f"linear_{name}") for name in names]
    key_dim, key_heads, value_dim, value_heads = (size or 0 for size in sizes)
    if not all(sizes):
        return None
    kernel = config.whole("linear_conv_kernel_dim") or 4
    keys, values = key_dim * key_heads, value_dim * value_heads
    mixed = 2 * keys + values
    params = hidden * (mixed + values + 2 * value_heads) + mixed * kernel
    params += values * hidden + value_dim + 2 * value_heads
    state = value_heads * key_dim * value_dim * _STATE_BYTES + (kernel - 1) * mixed * _CONV_BYTES
    return Attention(params, 0, None, state)


def _mamba(config: ConfigTable, hidden: int) -> Attention | None:
    heads = config.whole("mamba_num_heads", "mamba_n_heads")
    wide = config.whole("mamba_head_dim", "mamba_d_head")
    size = config.whole("ssm_state_size", "mamba_d_state")
    if heads is None or wide is None or size is None:
        return None
    groups = config.whole("n_groups", "mamba_n_groups") or 1
    kernel = config.whole("conv_kernel", "mamba_d_conv") or 4
    inner = heads * wide
    mixed = inner + 2 * groups * size
    params = hidden * (mixed + inner + heads) + mixed * (kernel + 1)
    params += inner * hidden + inner + 3 * heads
    state = inner * size * _STATE_BYTES + (kernel - 1) * mixed * _CONV_BYTES
    return Attention(params, 0, None, state)
