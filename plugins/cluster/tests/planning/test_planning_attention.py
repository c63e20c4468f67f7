"""Parameters and cache of one layer's attention, worked by hand from small figures."""

from __future__ import annotations

from typing import Any

import pytest

from probe_cluster.planning.attention import Attention, attention, kv_heads_of
from probe_cluster.planning.config_json import ConfigTable

SHAPE = {"hidden_size": 8, "num_attention_heads": 2}
MAMBA = {"mamba_num_heads": 2, "ssm_state_size": 3}
DELTA = {
    "linear_key_head_dim": 2, "linear_num_key_heads": 3,
    "linear_value_head_dim": 4, "linear_num_value_heads": 5,
}  # fmt: skip
KIMI = {"num_heads": 2, "head_dim": 3}
LATENT = {"kv_lora_rank": 4, "qk_rope_head_dim": 2, "qk_nope_head_dim": 3, "v_head_dim": 5}
INDEXED = {**LATENT, "q_lora_rank": 3, "index_head_dim": 4, "index_n_heads": 2}
V4 = {"head_dim": 4, "q_lora_rank": 3, "o_lora_rank": 2}
WINDOW = {
    "sliding_window": 7, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2,
    "swa_head_dim": 2, "swa_v_head_dim": 3,
}  # fmt: skip
GLOBAL = {"global_head_dim": 6, "num_key_value_heads": 1}


@pytest.mark.parametrize(
    ("kind", "more", "expected"),
    [
        ("none", {}, (0, 0, None, 0)),
        # Queries and outputs of 2 heads of 4, then keys and values.
        ("full", {}, (128 + 128, 16, None, 0)),
        ("full", {"num_attention_heads": 8}, (128 + 128, 16, None, 0)),
        ("full", {"num_attention_heads": 16}, (256 + 256, 32, None, 0)),  # no head has no value
        ("full", {"num_key_value_heads": 1}, (128 + 64, 8, None, 0)),
        ("full", {"num_key_value_heads": 1, "attention_bias": True}, (192 + 16, 8, None, 0)),
        ("full", {"num_key_value_heads": 1, "attn_output_gate": True}, (192 + 64, 8, None, 0)),
        ("full", {"num_key_value_heads": 1, "model_type": "qwen3"}, (192 + 8, 8, None, 0)),
        ("full", {"num_key_value_heads": 1, "head_dim": 3}, (96 + 48, 6, None, 0)),
        ("full", {"num_key_value_heads": 1, "v_head_dim": 6}, (64 + 96 + 80, 10, None, 0)),
        ("window", {"num_key_value_heads": 1, "sliding_window": 7}, (192, 8, 7, 0)),
        ("window", {"attention_chunk_size": 6, "sliding_window": 7}, (256, 16, 6, 0)),
        ("full", {"num_key_value_heads": 1, "sliding_window": 7}, (192, 8, None, 0)),
        ("window", WINDOW, (8 * (8 + 12) + 8 * 10, 10, 7, 0)),
        ("full", WINDOW, (256, 16, None, 0)),
        (
            "window",
            {"sliding_window": 7, "attention_other_setting": {"num_attention_heads": 4}},
            (8 * 32 + 128, 16, 7, 0),
        ),
        ("full", GLOBAL, (8 * 24 + 8 * 12, 12, None, 0)),
        ("window", {**GLOBAL, "sliding_window": 7}, (192, 8, 7, 0)),
        ("full", {**GLOBAL, "attention_k_eq_v": True}, (8 * 24 + 8 * 6, 12, None, 0)),
        (
            "full",
            {**GLOBAL, "attention_k_eq_v": True, "num_global_key_value_heads": 2},
            (8 * 24 + 8 * 12, 24, None, 0),
        ),
        (
            "full",
            {"model_type": "gemma4_text", "num_key_value_heads": 1},
            (8 * 2048 + 8 * 1024 + 1024, 1024, None, 0),
        ),
        # Down and up projections of keys and values, a norm, the output, then the queries.
        ("full", LATENT, (48 + 64 + 4 + 80 + 80, 6, None, 0)),
        ("full", {**LATENT, "q_lora_rank": 3}, (196 + 3 * 19, 6, None, 0)),
        ("full", {**LATENT, "mla_use_output_gate": True}, (276 + 80, 6, None, 0)),
        ("full", {"kv_lora_rank": 4, "v_head_dim": 5}, (None, 4, None, 0)),
        ("full", {"kv_lora_rank": 4, "qk_nope_head_dim": 3}, (None, 4, None, 0)),
        ("full", INDEXED, (253 + 24 + 48 + 8, 10, None, 0)),
        ("shared", INDEXED, (253, 6, None, 0)),
        (
            "full",
            {**LATENT, "index_head_dim": 4, "index_n_heads": 2},
            (276 + 64 + 48 + 8, 10, None, 0),
        ),
        ("full", {**LATENT, "index_head_dim": 4}, (276 + 32 + 8, 10, None, 0)),
        # DeepSeek V4: projections of low rank, then what hyper-connections and compression add.
        ("window", V4, (56 + 40 + 16, 0, None, 0)),
        ("window", {**V4, "sliding_window": 10}, (112, 0, None, 10 * 4 * 2)),
        ("window", {**V4, "o_groups": 3}, (56 + 40 + 48, 0, None, 0)),
        ("window", {**V4, "hc_mult": 2}, (112 + 256, 0, None, 0)),
        ("hca", {**V4, "head_dim": 256}, (8 * 259 + 5 * 512 + 16 + 4096, 2, None, 0)),
        ("csa", {**V4, "index_head_dim": 4, "index_n_heads": 2}, (112 + 256 + 40, 2, None, 0)),
        ("csa", V4, (112 + 128, 1, None, 0)),
        ("window", {"o_lora_rank": 2, "head_dim": 4}, None),
        # Mamba 2: input, convolution with its bias, output, a norm, and three of each head.
        ("mamba", MAMBA, (320 + 110 + 128 + 16 + 6, 0, None, 192 + 132)),
        (
            "mamba",
            {**MAMBA, "mamba_head_dim": 4, "n_groups": 2, "conv_kernel": 3},
            (240 + 80 + 64 + 8 + 6, 0, None, 96 + 80),
        ),
        (
            "mamba",
            {
                "mamba_n_heads": 2,
                "mamba_d_state": 3,
                "mamba_d_head": 4,
                "mamba_n_groups": 2,
                "mamba_d_conv": 3,
            },
            (240 + 80 + 64 + 8 + 6, 0, None, 96 + 80),
        ),
        (
            "mamba",
            {**MAMBA, "mamba_d_head": "auto", "mamba_head_dim": 4, "mamba_expand": 3},
            (448 + 150 + 192 + 24 + 6, 0, None, 288 + 180),
        ),
        ("mamba", {"mamba_num_heads": 2}, None),
        ("mamba", {"ssm_state_size": 3}, None),
        ("both", {**MAMBA, "num_key_value_heads": 1}, (580 + 192, 8, None, 324)),
        ("both", {"mamba_num_heads": 2}, None),
        # Mamba as in Jamba: input, convolution, x, dt, A and D, output, three norms.
        ("mamba1", {"mamba_d_state": 3}, (256 + 80 + 112 + 32 + 64 + 128 + 7, 0, None, 192 + 96)),
        (
            "mamba1",
            {"mamba_d_state": 3, "mamba_expand": 1, "mamba_dt_rank": 5, "mamba_d_conv": 2},
            (128 + 24 + 88 + 48 + 32 + 64 + 11, 0, None, 96 + 16),
        ),
        (
            "mamba1",
            {"mamba_d_state": 3, "hidden_size": 17},
            (1156 + 170 + 272 + 102 + 136 + 578 + 8, 0, None, 408 + 204),
        ),
        ("mamba1", {}, None),
        ("linear", DELTA, (496 + 128 + 160 + 4 + 10, 0, None, 160 + 192)),
        ("linear", {**DELTA, "linear_conv_kernel_dim": 3}, (798 - 32, 0, None, 160 + 128)),
        ("linear", {**DELTA, "linear_num_value_heads": 0}, None),
        ("conv", {}, (256 + 24, 0, None, 32)),
        ("conv", {"conv_L_cache": 5}, (256 + 40, 0, None, 64)),
        ("kda", {"linear_attn_config": KIMI}, (192 + 72 + 16 + 84 + 11, 0, None, 72 + 108)),
        (
            "kda",
            {"linear_attn_config": {**KIMI, "use_full_rank_gate": True}},
            (280 + 42 + 11 + 48, 0, None, 180),
        ),
        (
            "kda",
            {"linear_attn_config": {**KIMI, "short_conv_kernel_size": 2}},
            (375 - 36, 0, None, 72 + 36),
        ),
        (
            "kda",
            {"linear_num_heads": 2, "linear_head_dim": 3, "linear_conv_kernel_dim": 2},
            (375 - 36, 0, None, 72 + 36),
        ),
        ("kda", {"linear_attn_config": {"num_heads": 2}}, None),
        ("kda", {"linear_attn_config": {"head_dim": 3}}, None),
    ],
)
def test_a_layer_weighs_and_keeps(
    kind: str, more: dict[str, Any], expected: tuple[int | None, int, int | None, int] | None
) -> None:
    found = attention(ConfigTable({**SHAPE, **more}, "config.json"), kind)
    assert found == (None if expected is None else Attention(*expected))


def test_a_layer_that_reuses_keys_has_no_projections_of_them() -> None:
    config = ConfigTable({**SHAPE, "num_key_value_heads": 1}, "config.json")
    assert attention(config, "full", reuses=True) == Attention(128, 8, None, 0)


@pytest.mark.parametrize("missing", SHAPE)
def test_a_file_without_its_shape_gives_no_attention(missing: str) -> None:
    rest = {key: value for key, value in SHAPE.items() if key != missing}
    assert attention(ConfigTable(rest, "config.json"), "full") is None
    assert attention(ConfigTable(rest, "config.json"), "ffn") == Attention(0, 0, None, 0)


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ({}, 8),
        ({"num_key_value_heads": 2}, 2),
        ({"num_attention_groups": 4}, 4),
        ({"block_configs": [{"attention": {"n_heads_in_group": 4}}]}, 2),
        ({"block_configs": [{"attention": {}}, {"attention": {"n_heads_in_group": 16}}]}, 1),
        ({"block_configs": [{"attention": {}}], "num_key_value_heads": 2}, 2),
    ],
)
def test_heads_of_keys_and_values(more: dict[str, Any], count: int) -> None:
    assert kv_heads_of(ConfigTable({"num_attention_heads": 8, **more}, "config.json")) == count
