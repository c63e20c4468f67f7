"""Parameters and cache of the attention of one layer, by its kind."""

from __future__ import annotations

from typing import NamedTuple

from probe_cluster.planning.config_json import ConfigTable, Family, family_of, model_type

# A state is kept in fp32, what the convolution remembers in bf16 (transformers, Qwen3-Next).
_STATE_BYTES, _CONV_BYTES = 4, 2

# Each adds a norm of the queries and one of the keys; the configuration names no switch for it.
_QK_NORM = ("qwen3", "gemma3", "gemma4", "olmo2", "olmo3")


class Attention(NamedTuple):
    """What a layer's attention weighs and keeps; None where the file does not give it."""

    params: int | None
    values: int
    window: int | None
    state: int


def attention(config: ConfigTable, kind: str, reuses: bool = False) -> Attention | None:
    """Return the attention of a layer of this kind; None where the file lacks a figure.

    A layer that `reuses` the keys and values of an earlier one has no projections of them.
    """
    hidden = config.whole("hidden_size", "n_embd", "d_model")
    heads = config.whole("num_attention_heads", "n_head")
    if kind in ("experts", "ffn", "none"):
        return Attention(0, 0, None, 0)
    if hidden is None or heads is None:
        return None
    if kind in _STATEFUL:
        return _STATEFUL[kind](config, hidden)
    if kind == "both":
        return _joined(_mamba(config, hidden), _grouped(config, "full", hidden, heads, False))
    if config.has("o_lora_rank"):
        return _compressed(config, kind, hidden, heads)
    if config.has("kv_lora_rank"):
        return _latent(config, hidden, heads, kind != "shared")
    return _grouped(config, kind, hidden, heads, reuses)


def _joined(first: Attention | None, second: Attention) -> Attention | None:
    """Return two that stand beside each other in a layer (Falcon-H1)."""
    if first is None or first.params is None or second.params is None:
        return None
    return Attention(first.params + second.params, second.values, second.window, first.state)


def kv_heads_of(config: ConfigTable) -> int | None:
    """Return the KV heads of a layer; a file without the key has as many as heads."""
    heads = config.whole("num_attention_heads", "n_head")
    groups = [block.table("attention") for block in config.tables("block_configs")]
    width = max((group.whole("n_heads_in_group") or 0 for group in groups), default=0)
    if heads and width:
        return max(1, heads // width)
    return config.whole("num_key_value_heads", "num_attention_groups") or heads


class _Heads(NamedTuple):
    """Heads of grouped attention; `wide` values per head for queries and keys, `value` else."""

    query: int
    key: int
    wide: int
    value: int
    equal: bool
    """Whether the values are the keys (Gemma 4)."""


def _heads(config: ConfigTable, kind: str, hidden: int, heads: int) -> _Heads:
    """Return the heads; full layers of Gemma 4 and sliding ones of MiMo V2 have their own."""
    wide = config.whole("head_dim") or max(1, hidden // heads)
    kv_heads = kv_heads_of(config) or heads
    value = config.whole("v_head_dim") or wide
    if kind == "window":
        # MiMo V2, and Step 3.5, whose sliding layers have more heads.
        other = config.table("attention_other_setting").whole("num_attention_heads")
        heads = config.whole("swa_num_attention_heads") or other or heads
        kv_heads = config.whole("swa_num_key_value_heads") or kv_heads
        wide, value = config.whole("swa_head_dim") or wide, config.whole("swa_v_head_dim") or value
    elif config.has("global_head_dim") or model_type(config).startswith("gemma4"):
        # transformers' default, for files that list it by layer.
        wide = value = config.whole("global_head_dim") or 512
        if config.flag("attention_k_eq_v"):
            kv_heads = config.whole("num_global_key_value_heads") or kv_heads
            return _Heads(heads, kv_heads, wide, value, True)
    return _Heads(heads, kv_heads, wide, value, False)


def _grouped(config: ConfigTable, kind: str, hidden: int, count: int, reuses: bool) -> Attention:
    """Multi-head and grouped-query attention."""
    heads = _heads(config, kind, hidden, count)
    family = family_of(config) or Family()
    window = None
    if kind == "window":
        window = config.whole("attention_chunk_size", "sliding_window")
    query, key, value = heads.query * heads.wide, heads.key * heads.wide, heads.key * heads.value
    gated = family.gated_attention or config.flag("attn_output_gate")
    params = hidden * (query * (2 if gated else 1) + heads.query * heads.value)
    if not reuses:
        params += hidden * (key if heads.equal else key + value)
    if family.bias or config.flag("attention_bias"):
        params += query + key + value
    if model_type(config).startswith(_QK_NORM):
        params += 2 * heads.wide
    return Attention(params, key + value, window, 0)


def _latent(config: ConfigTable, hidden: int, heads: int, indexed: bool) -> Attention | None:
    """Multi-head latent attention: one vector per token for all heads (DeepSeek-V2, 2024).

    Where layers share an indexer (GLM-5.2), one that is not `indexed` keeps none of its own.
    """
    rank, rope = config.whole("kv_lora_rank") or 0, config.whole("qk_rope_head_dim") or 0
    nope, wide = config.whole("qk_nope_head_dim"), config.whole("v_head_dim")
    indexer = (config.whole("index_head_dim") or 0) if indexed else 0
    values = rank + rope + indexer
    if nope is None or wide is None:
        return Attention(None, values, None, 0)
    query_rank = config.whole("q_lora_rank")
    query = heads * (nope + rope)
    params = hidden * (rank + rope) + rank * heads * (nope + wide) + rank + heads * wide * hidden
    params += hidden * query if query_rank is None else query_rank * (hidden + query + 1)
    if config.flag("mla_use_output_gate"):
        params += hidden * heads * wide
    if indexer:
        index_heads = config.whole("index_n_heads") or 0
        params += (query_rank or hidden) * index_heads * indexer
        params += hidden * (index_heads + indexer) + 2 * indexer
    return Attention(params, values, None, 0)


def _compressed(config: ConfigTable, kind: str, hidden: int, heads: int) -> Attention | None:
    """Attention of DeepSeek V4 (2026): a window, and one entry for each 4 or 128 tokens."""
    wide, rank = config.whole("head_dim"), config.whole("q_lora_rank")
    out, groups = config.whole("o_lora_rank"), config.whole("o_groups") or 1
    if not (wide and rank and out):
        return None
    params = hidden * (rank + wide) + (rank + out) * heads * wide + groups * out * hidden
    streams = config.whole("hc_mult") or 0  # hyper-connections, before both parts of a layer
    params += 2 * (2 + streams) * streams * streams * hidden
    values = 0
    if kind == "hca":
        params, values = params + 2 * hidden * wide, wide // 128
    if kind == "csa":
        index, index_heads = config.whole("index_head_dim") or 0, config.whole("index_n_heads") or 0
        params += 4 * hidden * (wide + index) + (rank * index + hidden) * index_heads
        values = (wide + index) // 4
    near = (config.whole("sliding_window") or 0) * wide * _CONV_BYTES
    return Attention(params, values, None, near)


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
    """Mamba 2 (Dao and Gu, 2024)."""
    heads = config.whole("mamba_num_heads", "mamba_n_heads")
    size = config.whole("ssm_state_size", "mamba_d_state")
    if heads is None or size is None:
        return None
    wide = None if config.text("mamba_d_head") else config.whole("mamba_head_dim", "mamba_d_head")
    # "auto" shares what the layer expands to among the heads.
    wide = wide or (config.whole("mamba_expand") or 2) * hidden // heads
    groups = config.whole("n_groups", "mamba_n_groups") or 1
    kernel = config.whole("conv_kernel", "mamba_d_conv") or 4
    inner = heads * wide
    mixed = inner + 2 * groups * size
    params = hidden * (mixed + inner + heads) + mixed * (kernel + 1)
    params += inner * hidden + inner + 3 * heads
    state = inner * size * _STATE_BYTES + (kernel - 1) * mixed * _CONV_BYTES
    return Attention(params, 0, None, state)


def _mamba_1(config: ConfigTable, hidden: int) -> Attention | None:
    """Mamba as in Jamba (Gu and Dao, 2023; Lieber et al., 2024)."""
    size = config.whole("mamba_d_state")
    if size is None:
        return None
    inner = (config.whole("mamba_expand") or 2) * hidden
    rank = config.whole("mamba_dt_rank") or -(-hidden // 16)
    kernel = config.whole("mamba_d_conv") or 4
    params = hidden * 2 * inner + inner * (kernel + 1) + inner * (rank + 2 * size)
    params += (rank + 1) * inner + inner * (size + 1) + inner * hidden + rank + 2 * size
    state = inner * size * _STATE_BYTES + (kernel - 1) * inner * _CONV_BYTES
    return Attention(params, 0, None, state)


def _conv(config: ConfigTable, hidden: int) -> Attention | None:
    """A gated short convolution (LFM2)."""
    kernel = config.whole("conv_L_cache") or 3
    params = hidden * 4 * hidden + hidden * kernel
    return Attention(params, 0, None, (kernel - 1) * hidden * _CONV_BYTES)


def _kimi_delta(config: ConfigTable, hidden: int) -> Attention | None:
    """Kimi Delta Attention (Kimi Linear, 2025)."""
    own = config.table("linear_attn_config")
    heads = own.whole("num_heads") or config.whole("linear_num_heads")
    wide = own.whole("head_dim") or config.whole("linear_head_dim")
    if heads is None or wide is None:
        return None
    kernel = own.whole("short_conv_kernel_size") or config.whole("linear_conv_kernel_dim") or 4
    inner = heads * wide
    params = 4 * hidden * inner + 3 * inner * kernel + hidden * heads
    # Two gates of low rank; Kimi K3's second one is of full rank.
    full = own.flag("use_full_rank_gate")
    params += (1 if full else 2) * (hidden + inner) * wide + inner + heads + wide
    params += hidden * inner if full else 0
    state = inner * wide * _STATE_BYTES + (kernel - 1) * 3 * inner * _CONV_BYTES
    return Attention(params, 0, None, state)


_STATEFUL = {
    "linear": _delta_net,
    "mamba": _mamba,
    "mamba1": _mamba_1,
    "conv": _conv,
    "kda": _kimi_delta,
}
