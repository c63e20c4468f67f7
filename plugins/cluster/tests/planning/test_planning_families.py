"""Layouts that a config.json does not spell out: families of models, known and not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probe_cluster import ClusterError
from probe_cluster.planning.architecture import Shape, shape_of
from probe_cluster.planning.config_json import MOST_LAYERS, ConfigTable, layer_kinds
from probe_cluster.planning.known_models import entries
from probe_cluster.planning.model_spec import parse_model

Config = dict[str, Any]

PLAIN: Config = {
    "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 32000,
}  # fmt: skip

# What of the defaults of transformers 5.23 is not in PLAIN, and the parameters of the model that it
# builds of them, counted on its meta device. Types that models.toml has are tested by that.
TOTALS: list[tuple[str, Config, float]] = [
    ("llama", {}, 6_738_415_616),
    ("granitemoehybrid", {
        "num_local_experts": 8, "num_experts_per_tok": 2, "shared_intermediate_size": 1024,
        "layer_types": ["linear_attention"] * 32, "mamba_n_heads": 128, "mamba_d_state": 256,
        "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_expand": 2,
    }, 38.6011e9),
    ("falcon_h1", {
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128000,
        "mamba_n_heads": 128, "mamba_d_head": 8, "mamba_d_state": 256, "mamba_n_groups": 1,
    }, 8.5150e9),
    ("exaone_moe", {
        "intermediate_size": 16384, "vocab_size": 102400, "moe_intermediate_size": 1024,
        "num_experts": 64, "num_experts_per_tok": 8, "num_shared_experts": 1,
        "mlp_layer_types": ["dense"] + ["sparse"] * 31,
    }, 28.5506e9),
    ("bamba", {
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128000,
        "attn_layer_indices": [9, 18, 27], "mamba_n_heads": 128, "mamba_d_head": "auto",
        "mamba_d_state": 256, "mamba_n_groups": 1, "mamba_expand": 2,
    }, 9_808_584_064),
    ("nanochat", {
        "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 6,
        "num_key_value_heads": 6, "intermediate_size": 8192, "vocab_size": 50304,
    }, 0.2566e9),
    ("lfm2", {
        "hidden_size": 2560, "num_key_value_heads": 8, "intermediate_size": 12288,
        "vocab_size": 65536, "block_auto_adjust_ff_dim": True, "block_multiple_of": 256,
        "layer_types": ["full_attention"] * 32,
    }, 2.7055e9),
    ("nemotron_h", {
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 21504,
        "vocab_size": 131072, "num_hidden_layers": None, "mamba_num_heads": 128,
        "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "n_routed_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 7688,
        "moe_shared_expert_intermediate_size": 7688,
        "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
    }, 1.9684e9),
]  # fmt: skip


def shape(config: Config) -> Shape:
    return shape_of({key: value for key, value in config.items() if value is not None}, "it")


@pytest.mark.parametrize(("kind", "own", "total"), TOTALS, ids=[entry[0] for entry in TOTALS])
def test_as_many_parameters_as_transformers_builds(kind: str, own: Config, total: float) -> None:
    params = shape(PLAIN | own | {"model_type": kind}).params
    assert params is not None
    assert params.total == pytest.approx(total, rel=0.002)


def test_a_type_whose_layers_are_not_known_is_not_guessed(tmp_path: Path) -> None:
    """Doge would be taken for 3,299 billion parameters: it has 0.4."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(PLAIN | {"model_type": "doge"}))
    with pytest.raises(ClusterError, match="layers of model_type 'doge' are not known; give them"):
        parse_model({"model": str(path)})
    assert parse_model({"model": str(path), "params": "320m", "context": 0}).layers == 32


def test_a_file_without_a_type_is_read_as_the_plain_layout() -> None:
    params = shape(PLAIN).params
    assert params is not None
    assert params.total == 6_738_415_616


@pytest.mark.parametrize(
    ("types", "known"), [([1] * 32, True), ([0] * 16 + [1] * 16, False), ([1] * 31 + [2], False)]
)
def test_lightning_attention_is_not_taken_for_full_attention(types: list[int], known: bool) -> None:
    found = shape(PLAIN | {"model_type": "minimax_m2", "attn_type_list": types})
    assert bool(found.cache) == (found.params is not None) == known


def test_pruned_layers_that_differ_in_other_ways_are_not_known() -> None:
    full = {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 1.0}}
    for other in (
        {"attention": {"replace_with_linear": True}, "ffn": {"ffn_mult": 1.0}},
        {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 1.0}},
        {"attention": {"no_op": True}, "ffn": {"replace_with_linear": True}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": -1}},
    ):
        own = {"model_type": "nemotron-nas", "block_configs": [full] * 31 + [other]}
        assert shape(PLAIN | own).params is None


def test_a_list_of_equal_figures_is_that_figure() -> None:
    """Hunyuan and Gemma 3n list widths by layer."""
    listed = shape(PLAIN | {"model_type": "gemma3n_text", "intermediate_size": [11008] * 32})
    assert listed.params == shape(PLAIN | {"model_type": "gemma3n_text"}).params
    with pytest.raises(ClusterError, match="intermediate_size is "):
        shape(PLAIN | {"model_type": "llama", "intermediate_size": [11008] * 31 + [8]})


def test_layers_with_experts_that_a_text_lists() -> None:
    """Step 3.5 Flash: 196 billion, 11 of them for each token, by its maker."""
    params = shape(
        {
            "model_type": "step3p5", "hidden_size": 4096, "num_hidden_layers": 45,
            "num_attention_heads": 64, "num_attention_groups": 8, "head_dim": 128,
            "intermediate_size": 11264, "vocab_size": 128896, "sliding_window": 512,
            "layer_types": ["full_attention", *["sliding_attention"] * 3] * 11 + ["full_attention"],
            "moe_layers_enum": ",".join(map(str, range(3, 45))), "moe_num_experts": 288,
            "moe_top_k": 8, "moe_intermediate_size": 1280, "share_expert_dim": 1280,
            "attention_other_setting": {"num_attention_heads": 96},
        }
    ).params  # fmt: skip
    assert params is not None
    assert params.total == pytest.approx(196e9, rel=0.01)
    assert params.active == pytest.approx(11.5e9, rel=0.05)


def test_experts_on_a_narrower_copy() -> None:
    """Nemotron 3 Super: 120.7 billion, where experts of the full width would be 458."""
    model = parse_model({"model": "nemotron-3-super-120b-a12b"})
    assert (round(model.params / 1e9, 1), round((model.active_params or 0) / 1e9, 1)) == (
        120.7,
        12.8,
    )


def test_rows_of_each_layer_are_stored_and_not_read() -> None:
    model = parse_model({"model": "gemma-3n-e4b"})
    assert model.weight_bytes - (model.read_bytes or 0) == 262144 * 256 * 35 * 2


def test_the_embedding_is_tied_unless_the_file_says_otherwise() -> None:
    sizes = [
        shape(PLAIN | {"model_type": "cohere", "tie_word_embeddings": tied}).params
        for tied in (None, True, False)
    ]
    assert [params and params.head for params in sizes] == [0, 0, 32000 * 4096]


def test_experts_of_deepseek_v4_are_in_four_bits() -> None:
    model = parse_model({"model": "deepseek-v4-flash"})
    # 256 experts of three matrices of 4096 x 2048 in 43 layers, at 4.25 bits each.
    experts = 43 * 256 * 3 * 4096 * 2048
    edges = 2 * 129280 * 4096
    others = (model.params - experts - edges) * 8.002 / 8
    assert model.weight_bytes == pytest.approx(experts * 4.25 / 8 + others + edges * 2, rel=1e-6)


def test_gguf_files_of_deepseek_v4_keep_all_but_the_experts_in_eight_bits() -> None:
    model = parse_model({"model": "deepseek-v4-flash", "bits": "iq3_xxs"})
    experts = 43 * 256 * 3 * 4096 * 2048
    others = model.params - experts
    # The file has its 3.25 bits on average, so the experts have fewer.
    assert model.weight_bytes == pytest.approx(model.params * 3.25 / 8, rel=1e-6)
    of_experts = model.params * 3.25 - others * 8.5
    # A token uses 6 of 256 experts, and a row of the embedding.
    read = of_experts * 6 / 256 + (others - 129280 * 4096) * 8.5
    assert model.read_bytes == pytest.approx(read / 8, rel=1e-6)


def test_nvfp4_files_of_nemotron_keep_all_but_the_experts_in_eight_bits() -> None:
    model, all_in_eight = (
        parse_model({"model": "nemotron-3-super-120b", "bits": bits}) for bits in ("nvfp4", "fp8")
    )
    # Embeddings stay in 16 bits in both.
    fewer = all_in_eight.weight_bytes - model.weight_bytes
    assert fewer == pytest.approx(40 * 512 * 2 * 1024 * 2688 * (8.002 - 4.5) / 8, rel=1e-6)


KNOWN = {entry["name"]: entry["config"] for entry in entries()}
KNOWN |= {kind: PLAIN | {"model_type": kind} | own for kind, own, _ in TOTALS}
ASSUMED = [
    ("bamba", "mamba_expand", 2), ("granite-4.0-h-small", "mamba_n_groups", 1),
    ("granite-4.0-h-small", "mamba_d_conv", 4), ("jamba-mini", "mamba_expand", 2),
    ("jamba-mini", "mamba_d_conv", 4), ("nemotron-nano-9b-v2", "conv_kernel", 4),
    ("nemotron-nano-9b-v2", "n_groups", 1), ("lfm2-1.2b", "conv_L_cache", 3),
    ("lfm2-1.2b", "block_multiple_of", 256), ("qwen3-next-80b-a3b", "linear_conv_kernel_dim", 4),
    ("qwen3-next-80b-a3b", "full_attention_interval", 4), ("gemma-4-31b", "global_head_dim", 512),
    ("llama-4-scout", "no_rope_layer_interval", 4), ("gemma-3n-e4b", "altup_num_inputs", 1),
    ("deepseek-v4-flash", "o_groups", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "key", "value"), ASSUMED)
def test_a_figure_that_is_left_out_is_the_usual_one(name: str, key: str, value: int) -> None:
    config = KNOWN[name]
    inner = config.get("text_config", config)

    def shape(**figure: int) -> Shape:
        own = {other: inner[other] for other in inner if other != key} | figure
        return shape_of(own if inner is config else config | {"text_config": own}, "x")

    assert shape() == shape(**{key: value}) != shape(**{key: value + 1})


def test_each_figure_of_a_config_json_has_its_type_and_bounds() -> None:
    text = {
        "less": -1, "zero": 0, "most": 1000, "more": 1000.5, "on": True, "off": False, "text": "2",
        "alike": [3, 3], "unlike": [3, 4], "odd": [3, "4"], "none": [], "null": None,
        "large": 1 << 27, "larger": (1 << 27) + 1, "num_hidden_layers": MOST_LAYERS,
        "long": [1] * (MOST_LAYERS + 1), "table": {"zero": 1}, "tables": [{}] * (MOST_LAYERS + 1),
    }  # fmt: skip
    table = ConfigTable({"text_config": text, "outer": True, "zero": 5}, "a.json")
    numbers = {"less": None, "zero": 0.0, "most": 1000.0, "more": None, "on": None, "text": None}
    assert {name: table.number(name) for name in numbers} == numbers
    wholes = {"zero": None, "alike": 3, "large": 1 << 27, "num_hidden_layers": 4096, "null": None}
    assert {name: table.whole(name) for name in wholes} == wholes
    assert table.whole("null", "gone", "alike", "most") == 3
    for name in ("less", "larger", "on", "text", "unlike", "none"):
        shown = repr(text[name])
        with pytest.raises(ClusterError) as refused:
            table.whole(name)
        assert str(refused.value) == (
            f"a.json: {name} is {shown}; it must be a whole number up to 134217728"
        )
    with pytest.raises(ClusterError, match=r"is 4097; it must be a whole number up to 4096"):
        ConfigTable({"num_hidden_layers": 4097}, "x").whole("num_hidden_layers")
    flags = {"on": True, "off": False, "outer": True, "most": False, "gone": False}
    assert {name: table.flag(name) for name in flags} == flags
    choices = {"on": True, "off": False, "outer": True, "most": None, "gone": None}
    assert {name: table.choice(name) for name in choices} == choices
    assert (table.wholes("unlike"), table.wholes("odd"), table.wholes("most")) == ([3, 4], [], [])
    assert (len(table.wholes("long")), len(table.texts("long"))) == (4096, 4096)
    assert (table.texts("odd"), table.texts("text"), table.texts("gone")) == (["3", "4"], [], [])
    assert (table.text("text"), table.text("most"), table.text("gone")) == ("2", "", "")
    assert (len(table.tables("tables")), table.tables("odd"), table.tables("table")) == (
        4096,
        [],
        [],
    )
    assert (table.table("table").whole("zero"), table.table("odd").whole("zero")) == (1, None)
    known = {"less", "most", "on", "text", "alike", "table"}
    assert {name for name in text if table.has(name)} >= known
    assert not table.has("zero", "off", "none", "null", "gone")
    assert table.has("zero", "gone", "text")


def test_a_config_json_larger_than_any_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(ClusterError, match=r"is no config.json: it has more than 16777216 bytes"):
        parse_model({"model": str(path)})


def test_short_convolutions_are_no_hybrid() -> None:
    """LFM2-8B-A1B ran at 440 tokens/s on an RTX 3090 (calebcoffie.com/benchmarks)."""
    kinds = [
        parse_model({"model": name}).kind for name in ("lfm2-1.2b", "lfm2-8b-a1b", "jamba-mini")
    ]
    assert kinds == ["dense", "experts", "hybrid"]


WINDOW: Config = {"sliding_window": 7}


@pytest.mark.parametrize(
    ("config", "kinds"),
    [
        ({}, "full full full full full full"),
        (WINDOW, "window window window window window window"),
        (WINDOW | {"sliding_window_pattern": 3}, "window window full window window full"),
        (WINDOW | {"model_type": "gpt_oss"}, "window full window full window full"),
        (WINDOW | {"model_type": "gemma2"}, "window full window full window full"),
        (WINDOW | {"model_type": "gemma3"}, "window window window window window full"),
        (WINDOW | {"model_type": "gemma3n"}, "window window window window full window"),
        (WINDOW | {"model_type": "cohere2"}, "window window window full window window"),
        (WINDOW | {"model_type": "olmo3"}, "window window window full window window"),
        *((WINDOW | {"model_type": name}, "full full full full full full")
          for name in ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "phi3", "mimo")),
        (WINDOW | {"model_type": "qwen2", "use_sliding_window": True}, "window " * 6),
        ({"attention_chunk_size": 5}, "window window window full window window"),
        ({"attention_chunk_size": 5, "no_rope_layer_interval": 2}, "window full " * 3),
        ({"model_type": "falcon_h1"}, "both both both both both both"),
        ({"linear_num_value_heads": 2}, "linear linear linear full linear linear"),
        ({"linear_num_value_heads": 2, "full_attention_interval": 2}, "linear full " * 3),
        ({"linear_attn_config": {"kda_layers": [1, 2, 4, 5]}}, "kda kda full kda kda full"),
        ({"linear_attn_config": {}}, None),
        ({"attn_layer_indices": [0, 5], "mamba_n_heads": 2}, "full mamba mamba mamba mamba full"),
        ({"attn_layer_indices": [0, 5]}, "full full full full full full"),
        ({"full_attn_idxs": [2], "conv_L_cache": 3}, "conv conv full conv conv conv"),
        ({"full_attn_idxs": [2]}, "full full full full full full"),
        ({"conv_L_cache": 3}, "full full full full full full"),
        (
            {"mamba_d_state": 2, "attn_layer_period": 3, "attn_layer_offset": 1},
            "mamba1 full mamba1 " * 2,
        ),
        ({"mamba_d_state": 2, "attn_layer_period": 3}, "full mamba1 mamba1 " * 2),
        ({"ssm_state_size": 2}, None),
        ({"hybrid_layer_pattern": [1, 0, 0, 1, 1, 0]}, "window full full window window full"),
        ({"hybrid_layer_pattern": [1, 0]}, "full full full full full full"),
        (
            {"hybrid_override_pattern": "M*E-*M", "mamba_d_state": 1},
            "mamba full experts ffn full mamba",
        ),
        ({"rwkv_version": 7}, None),
    ],
)  # fmt: skip
def test_the_kind_of_each_layer(config: Config, kinds: str | None) -> None:
    found = layer_kinds(ConfigTable(config, "it"), 6)
    assert found == (None if kinds is None else kinds.split())
