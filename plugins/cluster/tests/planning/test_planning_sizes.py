"""Sizes of models: parameters and KV caches of known names, config.json, GGUF and safetensors."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from model_files import gguf, safetensors, write_sparse

from probe_cluster import ClusterError
from probe_cluster.planning.architecture import shape_of
from probe_cluster.planning.gguf import read_gguf
from probe_cluster.planning.known_models import close_names, entries, known_model
from probe_cluster.planning.model_spec import parse_model
from probe_cluster.planning.weights import _BITS

GIB, MIB = 1 << 30, 1 << 20


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry["name"])
def test_a_config_json_alone_gives_the_parameters(entry: dict[str, Any]) -> None:
    params = shape_of(entry["config"], entry["name"]).params
    assert params is not None
    assert params.total == pytest.approx(entry["billions"] * 1e9, rel=0.0015)
    if "active" in entry:
        assert params.active == pytest.approx(entry["active"] * 1e9, rel=0.006)


def test_at_least_forty_models_name_their_source() -> None:
    assert len(entries()) >= 40
    sources = {"aiconfigurator", "litgpt", "transformers", "recalled"}
    assert {entry["read"] for entry in entries()} == sources
    assert all("/" in entry["repository"] for entry in entries())


# Name → bytes of one token where all are kept, bytes of a token in a window, the window, constant.
# By hand: 2 (keys, values) x KV heads x head dimension x 2 bytes x layers; MLA: 576 x 2 x layers.
CACHES: dict[str, tuple[int, int, int, int]] = {
    "llama-3.2-1b": (2 * 8 * 64 * 2 * 16, 0, 0, 0),
    "llama-3.1-8b": (2 * 8 * 128 * 2 * 32, 0, 0, 0),
    "llama-3.1-405b": (2 * 8 * 128 * 2 * 126, 0, 0, 0),
    "llama-2-7b": (2 * 32 * 128 * 2 * 32, 0, 0, 0),
    "qwen2.5-7b": (2 * 4 * 128 * 2 * 28, 0, 0, 0),
    "qwen3-30b-a3b": (2 * 4 * 128 * 2 * 48, 0, 0, 0),
    "deepseek-v3": (576 * 2 * 61, 0, 0, 0),
    "deepseek-v3.2": (704 * 2 * 61, 0, 0, 0),
    "kimi-k2": (576 * 2 * 61, 0, 0, 0),
    "glm-4.7-flash": (576 * 2 * 47, 0, 0, 0),
    "gpt-oss-120b": (2 * 8 * 64 * 2 * 18, 2 * 8 * 64 * 2 * 18, 128, 0),
    "gpt-oss-20b": (2 * 8 * 64 * 2 * 12, 2 * 8 * 64 * 2 * 12, 128, 0),
    "gemma-3-27b": (2 * 16 * 128 * 2 * 10, 2 * 16 * 128 * 2 * 52, 1024, 0),
    "gemma-4-31b": (2 * 4 * 512 * 2 * 10, 2 * 16 * 256 * 2 * 50, 1024, 0),
    "llama-4-scout": (2 * 8 * 128 * 2 * 12, 2 * 8 * 128 * 2 * 36, 8192, 0),
    "olmo-3-32b": (2 * 8 * 128 * 2 * 16, 2 * 8 * 128 * 2 * 48, 4096, 0),
    # 147 MiB of state whatever the context is (facts-planner: measured).
    "qwen3.5-27b": (2 * 4 * 256 * 2 * 16, 0, 0, 147 * MIB),
    "qwen3-next-80b-a3b": (2 * 2 * 256 * 2 * 12, 0, 0, 74 * MIB),
    "minimax-m2": (2 * 8 * 128 * 2 * 62, 0, 0, 0),
    "nemotron-3-nano-30b-a3b": (2 * 2 * 128 * 2 * 6, 0, 0, 23 * 2134016),
    # 21 layers have an indexer of their own, whose 128 values are kept too.
    "glm-5.2": (2 * (576 * 78 + 128 * 21), 0, 0, 0),
    # Keys of 192 and values of 128: 9 full layers with 4 heads, 39 with 8 over the window.
    "mimo-v2-flash": (4 * 320 * 2 * 9, 8 * 320 * 2 * 39, 128, 0),
    # 21 layers keep one entry of 512 + 128 values per 4 tokens, 20 one of 512 per 128 tokens.
    "deepseek-v4-flash": (2 * (21 * 160 + 20 * 4), 0, 0, 43 * 128 * 512 * 2),
    # A state of heads x 64 x 128 in fp32, and three steps of the convolution in bf16.
    "granite-4.0-h-small": (2 * 8 * 128 * 2 * 4, 0, 0, 36 * (128 * 64 * 128 * 4 + 3 * 8448 * 2)),
    "falcon-h1-34b": (2 * 4 * 128 * 2 * 72, 0, 0, 72 * (4096 * 256 * 4 + 3 * 5120 * 2)),
    "jamba-mini": (2 * 8 * 128 * 2 * 4, 0, 0, 28 * (8192 * 16 * 4 + 3 * 8192 * 2)),
    "lfm2-1.2b": (2 * 8 * 64 * 2 * 6, 0, 0, 10 * 2 * 2048 * 2),
    "kimi-linear-48b-a3b": (576 * 2 * 7, 0, 0, 20 * (32 * 128 * 128 * 4 + 3 * 3 * 4096 * 2)),
    # The last 15 of 35 layers use the cache of earlier ones; of the first 20 four are full.
    "gemma-3n-e4b": (2 * 2 * 256 * 2 * 4, 2 * 2 * 256 * 2 * 16, 512, 0),
    "command-a-111b": (2 * 8 * 128 * 2 * 16, 2 * 8 * 128 * 2 * 48, 4096, 0),
    "step-3.5-flash": (2 * 8 * 128 * 2 * 12, 2 * 8 * 128 * 2 * 33, 512, 0),
    # 31 of 80 layers lost their attention.
    "llama-3.3-nemotron-super-49b": (2 * 8 * 128 * 2 * 49, 0, 0, 0),
    "mimo-7b": (2 * 8 * 128 * 2 * 36, 0, 0, 0),
}


@pytest.mark.parametrize("context", [4096, 131_072])
@pytest.mark.parametrize("name", CACHES)
def test_the_cache_of_a_known_model(name: str, context: int) -> None:
    full, near, window, constant = CACHES[name]
    expected = full * context + near * min(window, context) + constant
    # Longer than some were made for, which is refused elsewhere.
    model = replace(parse_model({"model": name}), longest=None, context=context)
    assert model.kv_bytes == pytest.approx(expected, rel=0.003)


def test_published_caches_at_128k() -> None:
    sizes = {"llama-3.1-8b": 16.0, "deepseek-v3": 8.58, "gpt-oss-120b": 4.50}
    for name, gib in sizes.items():
        model = parse_model({"model": name, "context": 131_072})
        assert model.kv_bytes / GIB == pytest.approx(gib, rel=0.002)


@pytest.mark.parametrize(("text", "tokens"), [("32k", 32768), ("128K", 131072), ("1m", 1 << 20)])
def test_a_context_may_be_written_short(text: str, tokens: int) -> None:
    assert parse_model({"model": "llama-4-scout", "context": text}).context == tokens


@pytest.mark.parametrize("text", ["k", "1.5.k", "-k", "nank", "1e99k"])
def test_a_context_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ClusterError, match=f"context is '{text}', which is no number of tokens"):
        parse_model({"model": "llama-3.1-8b", "context": text})


def test_a_quantised_cache_counts_its_scales() -> None:
    plain = parse_model({"model": "llama-3.1-8b", "context": 8192})
    small = parse_model({"model": "llama-3.1-8b", "context": 8192, "kv_bits": "q8_0"})
    assert (plain.kv_bytes, small.kv_bytes) == (GIB, GIB * 8.5 / 16)


@pytest.mark.parametrize(
    ("text", "name", "bits"),
    [
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b", 16.0),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3-coder-30b-a3b", 16.0),
        ("mlx-community/Llama-3.2-3B-Instruct-4bit", "llama-3.2-3b", 4.5),
        ("bartowski/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "llama-3.1-8b", 4.89),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-r1-0528", 8.02),
        ("moonshotai/Kimi-K2-Thinking", "kimi-k2-thinking", 4.63),
        ("openai/gpt-oss-120b", "gpt-oss-120b", 4.46),
        ("llama3.1:8b", "llama-3.1-8b", 4.89),
        ("deepseek-r1:32b", "deepseek-r1-32b", 4.89),
        ("nvidia/DeepSeek-R1-0528-FP4", "deepseek-r1-0528", 4.53),
        ("deepseek-ai/DeepSeek-V4-Flash", "deepseek-v4-flash", 4.38),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", "qwen3-vl-30b-a3b", 16.0),
        ("mistralai/Devstral-Small-2-24B-Instruct-2512", "devstral-small-2-24b", 16.0),
        ("ibm-granite/granite-4.0-h-small", "granite-4.0-h-small", 16.0),
        ("inclusionAI/Ring-1T", "ring-1t", 16.0),
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v1_5", "llama-3_3-nemotron-super-49b-v1_5", 16.0),
        ("mlx-community/GLM-4.7-8bit-gs32", "glm-4.7", 9.0),
        ("mlx-community/gpt-oss-120b-MXFP4-Q8", "gpt-oss-120b", 4.33),
        ("mlx-community/NVIDIA-Nemotron-Nano-9B-v2-4bits", "nvidia-nemotron-nano-9b-v2", 4.5),
    ],
)
def test_spellings_and_what_they_say_of_the_weights(text: str, name: str, bits: float) -> None:
    model = parse_model({"model": text})
    assert (model.name, round(model.bits, 2)) == (name, bits)


def test_a_part_of_a_name_suggests_whole_ones() -> None:
    assert close_names("8b") == close_names("x" * 9) == []
    assert close_names("8x7b") == ["mixtral-8x7b"]
    assert close_names("qwen3-8b-mine")[0] == "qwen3-8b"
    for name in close_names("phi"):
        assert name.startswith("phi-")
    assert all(name.endswith("-70b") for name in close_names("70b"))
    assert (len(close_names("phi")), len(close_names("70b")), len(close_names("phi", 1))) == (
        3,
        3,
        1,
    )


@pytest.mark.parametrize(
    ("text", "close"),
    [
        ("lama-3.1-8b", "llama-3.1-8b"),
        ("gpt-oss", "gpt-oss-20b"),
        ("Qwen/Qwen3-30B-A4B", "qwen3-30b-a3b"),
        ("deepsek-v3.2", "deepseek-v3.2"),
        ("mlx-community/GLM-5.1-DQ4plus-q8", "glm-5"),
        ("mistralai/Ministral-3-3B-Tuned", "ministral-3-3b"),
        ("granite-4.0-h-smal", "granite-4.0-h-small"),
    ],
)
def test_a_near_miss_is_suggested_and_never_taken(text: str, close: str) -> None:
    assert known_model(text) is None
    assert close_names(text)[0] == close
    with pytest.raises(ClusterError, match=f"'{text}' is no size .*; close: {close}"):
        parse_model({"model": text})


def test_one_token_reads_the_experts_it_uses_in_their_own_bits() -> None:
    """As llama.cpp stores gpt-oss-120b: 1.9 GB of experts and 1.65 GB of Q8_0 (facts-planner)."""
    model = parse_model({"model": "gpt-oss-120b", "bits": "mxfp4-moe"})
    assert model.read_bytes == pytest.approx(1.9e9 + 1.65e9, rel=0.01)
    model = parse_model({"model": "gpt-oss-120b"})
    assert model.weight_bytes == pytest.approx(65.25e9, rel=0.005)  # its safetensors: 65.25 GB
    tied = parse_model({"model": "llama-3.2-1b"})
    assert tied.read_bytes == tied.weight_bytes  # the embedding is the head, so it is read
    untied = parse_model({"model": "llama-3.1-8b"})
    assert untied.read_bytes == untied.weight_bytes - 128256 * 4096 * 2


CONFIG = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 1000,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"num_hidden_layers": -3}, r"num_hidden_layers is -3; it must be a whole number up to"),
        ({"num_hidden_layers": 10**9}, r"num_hidden_layers is 1000000000; it must be a whole"),
        ({"hidden_size": "wide"}, r"hidden_size is 'wide'; it must be a whole number"),
        ({"num_key_value_heads": 3}, r"num_attention_heads is 4 and num_key_value_heads 3; the f"),
        ({"num_attention_heads": 512, "num_key_value_heads": 1}, r"no more heads than values"),
        ({"num_experts": 8, "num_experts_per_tok": 9}, r"num_experts_per_tok is 9 of 8 experts"),
        ({"layer_types": ["full_attention"]}, r"layer_types has 1 layers and num_hidden_layers"),
        ({"quantization_config": {"quant_method": "magic"}}, r"quantised is not known; give --bi"),
    ],
)
def test_absurd_configurations_name_the_file_and_figure(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | change))
    with pytest.raises(ClusterError, match=sentence) as error:
        parse_model({"model": str(path)})
    assert str(path) in str(error.value)


def test_a_compressed_cache_is_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | {"compress_ratios": [4, 128], "head_dim": 64}))
    with pytest.raises(ClusterError, match="needs kv_heads and head_dim"):
        parse_model({"model": str(path), "params": "1b", "context": 4096})


GGUF_KEYS: dict[str, Any] = {
    "general.architecture": "gpt-oss",
    "tokenizer.ggml.tokens": ["a", "b", "c"],
    "gpt-oss.block_count": 4,
    "gpt-oss.embedding_length": 64,
    "gpt-oss.attention.head_count": 4,
    "gpt-oss.attention.head_count_kv": 2,
    "gpt-oss.attention.key_length": 32,
    "gpt-oss.attention.value_length": 32,
    "gpt-oss.attention.sliding_window": 128,
    "gpt-oss.expert_count": 8,
    "gpt-oss.expert_used_count": 2,
}
GGUF_TENSORS = [
    ("token_embd.weight", [64, 1024], 8),
    ("output.weight", [64, 1024], 8),
    *[(f"blk.{at}.ffn_up_exps.weight", [64, 64, 8], 39) for at in range(4)],
]


def test_a_gguf_head_gives_bytes_and_cache(tmp_path: Path) -> None:
    edge, experts = 1024 * 64 // 32 * 34, 64 * 64 * 8 // 32 * 17
    path = write_sparse(tmp_path / "m.gguf", gguf(GGUF_KEYS, GGUF_TENSORS), 2 * edge + 4 * experts)
    model = parse_model({"model": path, "context": 1000})
    assert (model.layers, model.params) == (4, 2 * 65536 + 4 * 32768)
    assert model.weight_bytes == 2 * edge + 4 * experts
    assert model.read_bytes == edge + 4 * experts // 4
    # two layers over 128 tokens, two over all: 2 heads x (32 + 32) x 2 bytes
    assert model.kv_bytes == 2 * 256 * 128 + 2 * 256 * 1000
    # As if its weights were of other bits: all, and those that a token reads.
    for bits, size in ((4.0, 4.0), ("q8_0", 8.5)):
        other = parse_model({"model": path, "bits": bits})
        assert (other.bits, other.weight_bytes) == (size, 262_144 * size / 8)
        assert other.read_bytes == (65536 * 2 + 32768) * size / 8
    whole = gguf({"split.count": 1}, GGUF_TENSORS), gguf({"split.count": "2"}, GGUF_TENSORS)
    for number, head in enumerate(whole):
        alone = write_sparse(tmp_path / f"{number}.gguf", head, 1 << 20)
        assert len(read_gguf(alone).tensors) == 6


@pytest.mark.parametrize(("count", "is_kept"), [(4096, True), (4097, False)])
def test_lists_are_kept_that_may_be_figures_of_layers(
    tmp_path: Path, count: int, is_kept: bool
) -> None:
    keys = {"long": [7] * count, "scores": [0.5] * 3, "flags": [True, False], "after": 5}
    values = read_gguf(write_sparse(tmp_path / "m.gguf", gguf(keys, []), 0)).values
    kept = {"long": [7] * count} if is_kept else {}
    assert values == {**kept, "flags": [1, 0], "after": 5}


def test_a_split_gguf_is_summed_and_its_missing_part_named(tmp_path: Path) -> None:
    first, second = GGUF_TENSORS[:3], GGUF_TENSORS[3:]
    path = tmp_path / "m-00001-of-00002.gguf"
    name = write_sparse(path, gguf(GGUF_KEYS | {"split.count": 2}, first), 1 << 20)
    with pytest.raises(ClusterError, match=r"m-00002-of-00002.gguf: No such file"):
        parse_model({"model": name})
    write_sparse(tmp_path / "m-00002-of-00002.gguf", gguf({}, second), 1 << 20)
    assert parse_model({"model": name}).params == 2 * 65536 + 4 * 32768


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (gguf(GGUF_KEYS, GGUF_TENSORS)[:200], "its head ends after 200 bytes; download"),
        (gguf(GGUF_KEYS, GGUF_TENSORS), "is cut: its tensors need 208896 bytes and the file has"),
        (gguf({}, [], version=1), "is GGUF version 1; 2 and 3 can be read"),
        (gguf({}, [], version=4), "is GGUF version 4; 2 and 3 can be read"),
        (b"GGUF\x03\0\0\0" + b"\xff" * 16, "the number of tensors is 18446744073709551615, over"),
        (gguf({}, [("t", [1 << 39, 1 << 39], 0)]), "tensor 't' has"),
        (gguf({}, [("t", [1 << 26, 1 << 25], 0)]), "tensor 't' has 2251799813685248 values"),
        (gguf({}, [("t", [1 << 25, 1 << 25], 0)]), "is cut: its tensors need 4503599627370496 b"),
        (gguf({}, [("t", [(1 << 40) + 1], 0)]), "a dimension of 't' is 1099511627777, over 10995"),
        (gguf({}, [("t", [1] * 9, 0)]), "the dimensions of 't' is 9, over 8"),
        (gguf({}, [("t", [1] * 8, 0)]), r"bad\.gguf: \.block_count is None"),
        (gguf({}, [("t", [4], 77)]), "tensor 't' has the unknown type 77"),
        (gguf({"general.architecture": "x"}, []), "x.block_count is None; it must be 1 to 4096"),
    ],
)
def test_a_cut_or_hostile_gguf_is_one_sentence(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    with pytest.raises(ClusterError, match=sentence) as error:
        parse_model({"model": str(path)})
    assert str(error.value).startswith(str(path))


@pytest.mark.heavy
def test_every_cut_of_a_gguf_head_is_told(tmp_path: Path) -> None:
    whole = gguf(GGUF_KEYS, GGUF_TENSORS)
    path = tmp_path / "bad.gguf"
    for length in range(4, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ClusterError):
            parse_model({"model": str(path)})


def test_a_folder_of_safetensors_gives_exact_bytes(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    head = safetensors(
        {
            "model.embed_tokens.weight": ("BF16", [1000, 256]),
            "lm_head.weight": ("BF16", [1000, 256]),
            "model.layers.0.mlp.up_proj.weight": ("F8_E4M3", [512, 256]),
            "model.layers.1.mlp.up_proj.weight": ("F8_E4M3", [512, 256]),
        }
    )
    (tmp_path / "model.safetensors").write_bytes(head)
    model = parse_model({"model": str(tmp_path), "context": 100})
    assert (model.layers, model.params) == (2, 2 * 256_000 + 2 * 131_072)
    assert model.weight_bytes == 2 * 512_000 + 2 * 131_072
    assert model.read_bytes == 512_000 + 2 * 131_072
    assert model.kv_bytes == 2 * 2 * 64 * 2 * 2 * 100


@pytest.mark.parametrize(
    ("more", "form"),
    [
        (None, "safetensors"),
        ({}, "safetensors"),
        ({"quantization": {"bits": 4, "group_size": 64}}, "mlx"),
        ({"quantization": {"bits": 4}, "quantization_config": {"bits": 4}}, "mlx"),
        ({"quantization": {}, "quantization_config": {"quant_method": "awq"}}, "safetensors"),
    ],
    ids=range(5),
)
def test_a_folder_of_safetensors_may_be_mlxs(
    more: dict[str, Any] | None, form: str, tmp_path: Path
) -> None:
    if more is not None:
        (tmp_path / "config.json").write_text(json.dumps(CONFIG | more))
    head = safetensors({"model.layers.0.mlp.up_proj.weight": ("BF16", [512, 256])})
    (tmp_path / "model.safetensors").write_bytes(head)
    assert parse_model({"model": str(tmp_path)}).form == form


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xff" * 8 + b"{}", "its head has 18446744073709551615 bytes, the file 10"),
        (b"\x02" + b"\0" * 7 + b"[]", "its head is no table"),
        (b"\x02" + b"\0" * 7 + b"{x", "its head is no JSON"),
        (safetensors({"w": ("F13", [2])}), "tensor 'w' has no shape and type that can be read"),
        (safetensors({"w": ("F16", [-2])}), "tensor 'w' has no shape and type that can be read"),
        (safetensors({"w": ("F16", [1] * 9)}), "tensor 'w' has no shape and type that can be read"),
        (safetensors({"w": ("F16", [1 << 40])}), "tensor 'w' has no shape and type that can be"),
        (safetensors({"w": ("F16", [1 << 26, 1 << 25])}), "tensor 'w' has 2251799813685248 valu"),
        (safetensors({"w.qweight": ("I32", [2, 2])}), "is quantised, so it needs the config.json"),
    ],
)
def test_a_cut_or_hostile_safetensors_is_one_sentence(
    tmp_path: Path, data: bytes, sentence: str
) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(ClusterError, match=sentence):
        parse_model({"model": str(path)})


def test_the_bits_of_a_type_are_those_of_its_name() -> None:
    """F16, U32, F8_E4M3: the first number; a truth takes a byte."""
    named = {name: int(found[1]) for name in _BITS if (found := re.match(r"B?[FIU](\d+)", name))}
    assert named | {"BOOL": 8} == _BITS


# Bits per weight of ggml's types, by their numbers (llama.cpp, gguf-py and the pull requests).
GGML_BITS = {
    0: 32, 1: 16, 2: 4.5, 3: 5, 6: 5.5, 7: 6, 8: 8.5, 9: 9, 10: 2.625, 11: 3.4375, 12: 4.5,
    13: 5.5, 14: 6.5625, 15: 9.125, 16: 2.0625, 17: 2.3125, 18: 3.0625, 19: 1.5625, 20: 4.5,
    21: 3.4375, 22: 2.5625, 23: 4.25, 24: 8, 25: 16, 26: 32, 27: 64, 28: 64, 29: 1.75, 30: 16,
    34: 1.6875, 35: 2.0625, 39: 4.25, 40: 4.5,
}  # fmt: skip


def test_a_value_of_each_type_has_its_bits_and_a_block_is_whole(tmp_path: Path) -> None:
    def sizes(values: int) -> list[int]:
        head = gguf({}, [("t", [values], kind) for kind in GGML_BITS])
        path = write_sparse(tmp_path / "kinds.gguf", head, 1 << 20)
        return [tensor.size for tensor in read_gguf(path).tensors]

    plain = sizes(1024)
    assert plain == [bits * 128 for bits in GGML_BITS.values()]
    blocks = [more - size for more, size in zip(sizes(1025), plain, strict=True)]
    numbers = dict.fromkeys(GGML_BITS, 256) | dict.fromkeys((2, 3, 6, 7, 8, 9, 20, 39), 32)
    numbers |= dict.fromkeys((0, 1, 24, 25, 26, 27, 28, 30), 1) | {40: 64}
    assert blocks == [bits * numbers[kind] / 8 for kind, bits in GGML_BITS.items()]


def test_a_gguf_is_as_long_as_the_blocks_of_its_types(tmp_path: Path) -> None:
    shape = [512, 8]
    tensors = [(f"t{kind}", shape, kind) for kind in GGML_BITS]
    path = write_sparse(tmp_path / "m.gguf", gguf(GGUF_KEYS, tensors), 1 << 20)
    found = {tensor.name: tensor.size * 8 / tensor.params for tensor in read_gguf(path).tensors}
    assert found == {f"t{kind}": bits for kind, bits in GGML_BITS.items()}
    for kind, whole in ((2, 18), (14, 210)):  # a block that is not full takes its whole length
        (tmp_path / "m.gguf").unlink()
        path = write_sparse(tmp_path / "m.gguf", gguf({}, [("t", [1], kind)]), 1 << 20)
        assert read_gguf(path).tensors[0].size == whole
    for kind in (4, 5, 31, 41):
        path = write_sparse(tmp_path / "x.gguf", gguf({}, [("t", shape, kind)]), 1 << 20)
        with pytest.raises(ClusterError, match=f"unknown type {kind}"):
            read_gguf(path)


@pytest.mark.parametrize("version", [2, 3])
def test_the_versions_of_gguf_that_are_read(version: int, tmp_path: Path) -> None:
    path = write_sparse(tmp_path / "m.gguf", gguf({"a.b": 7}, [], version=version), 0)
    assert read_gguf(path).values["a.b"] == 7
