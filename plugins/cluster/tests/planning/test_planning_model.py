"""Models: bytes and operations per layer, how people name them, and the built-in shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probe_cluster import ClusterError, Model
from probe_cluster.planning.architecture import shape_of
from probe_cluster.planning.known_models import known_model
from probe_cluster.planning.model import parse_count
from probe_cluster.planning.model_spec import parse_model

# vocabulary, intermediate size, heads, tied embeddings, biases of q/k/v: of each config.json
DETAILS = {
    "llama-3.2-1b": (128256, 8192, 32, True, False),
    "llama-3.2-3b": (128256, 8192, 24, True, False),
    "llama-3.1-8b": (128256, 14336, 32, False, False),
    "llama-3.1-70b": (128256, 28672, 64, False, False),
    "llama-3.1-405b": (128256, 53248, 128, False, False),
    "mistral-7b": (32768, 14336, 32, False, False),
    "qwen2.5-7b": (152064, 18944, 28, False, True),
    "qwen2.5-32b": (152064, 27648, 40, False, True),
    "qwen2.5-72b": (152064, 29568, 64, False, True),
}


def sizes(name: str) -> tuple[int, int | None, int, int, int, int]:
    """Return parameters, active parameters, layers, hidden size, KV heads, head dimension."""
    known = known_model(name)
    assert known is not None
    shape, params = known.shape, known.shape.params
    assert params is not None
    assert shape.layers is not None
    assert shape.hidden is not None
    assert shape.kv_heads is not None
    assert shape.head_dim is not None
    active = params.active if shape.experts else None
    return params.total, active, shape.layers, shape.hidden, shape.kv_heads, shape.head_dim


@pytest.mark.parametrize("name", DETAILS)
def test_known_parameter_counts_follow_from_the_shape(name: str) -> None:
    params, active, layers, hidden, kv_heads, head_dim = sizes(name)
    vocabulary, wide, heads, tied, biased = DETAILS[name]
    query, key = heads * head_dim, kv_heads * head_dim
    layer = 2 * hidden * query + 2 * hidden * key + 3 * hidden * wide + 2 * hidden
    layer += query + 2 * key if biased else 0
    embeddings = vocabulary * hidden * (1 if tied else 2)
    assert params == layer * layers + embeddings + hidden
    assert active is None


def test_a_mixture_of_experts_follows_from_its_shape() -> None:
    params, _, layers, hidden, kv_heads, head_dim = sizes("qwen3-30b-a3b")
    heads, experts, wide, vocabulary = 32, 128, 768, 151936
    layer = 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim + 2 * head_dim
    layer += experts * 3 * hidden * wide + hidden * experts + 2 * hidden
    assert params == layer * layers + 2 * vocabulary * hidden + hidden


def test_bytes_of_a_70b_at_four_and_a_half_bits() -> None:
    model = parse_model({"model": "llama-3.1-70b", "bits": 4.5, "context": 8192})
    assert model.weight_bytes == 39_686_459_904
    # 2 (keys, values) x 8 heads x 128 x 8192 tokens x 2 bytes
    assert model.kv_bytes_per_layer == 33_554_432
    assert model.layer_bytes == 39_686_459_904 / 80 + 33_554_432 // 1 + 0.2
    assert model.hop_bytes == 2 * 8192


def test_a_layer_reads_its_active_weights_and_the_whole_cache() -> None:
    model = Model(30_000_000_000, 48, 8.0, active_params=3_000_000_000)
    assert model.layer_read_bytes == 3e9 / 48
    assert model.layer_operations == 2 * 3e9 / 48
    assert model.layer_bytes == 625_000_000


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *[("70b", 70e9), ("1.5T", 1.5e12), ("7e9", 7e9), ("350M", 350e6), ("12", 12)],
        *[("1", 1), (" 999999t ", 999999e12), ("1.5", 2), ("2k", 2000)],
    ],
)
def test_sizes_as_people_write_them(text: str, count: float) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize(
    "text", ["", "b", "seven", "-7b", "nan", "inf", "1e30", "0", "0.9", "1e18"]
)
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(ClusterError, match="is no "):
        parse_count(text)


def test_a_config_json_gives_the_shape(tmp_path: Path) -> None:
    config = {
        "num_hidden_layers": 80,
        "hidden_size": 8192,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
    }
    shape = shape_of(config, "config.json")
    assert (shape.layers, shape.hidden, shape.kv_heads, shape.head_dim) == (80, 8192, 8, 128)
    assert shape_of({"text_config": config}, "config.json").layers == 80
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    model = parse_model({"model": str(path), "params": "70b"})
    assert (model.params, model.layers, model.head_dim) == (70_000_000_000, 80, 128)
    with pytest.raises(
        ClusterError, match=r"the params of .*json' are not known: .* no vocab_size; .*--params"
    ):
        parse_model({"model": str(path)})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"model": "3t"}, "the layers of '3t' are not known; give them: --layers 80"),
        ({"model": "gpt-99"}, "'gpt-99' is no size .* none of llama-3.2-1b"),
        ({"model": "7b", "layers": "32.5"}, "it must be a whole number"),
        ({"model": "7b", "layers": "many"}, "layers is 'many', which is no number"),
        ({"model": "7b", "layers": 0}, "the model's layers is 0; it must be at least 1"),
        (
            {"model": "7b", "layers": 1e9},
            "the model's layers is 1000000000; it must be at most 4096",
        ),
        ({"model": "7b", "layers": 32, "bits": 0}, "the model's bits is 0"),
        ({"model": "7b", "layers": 32, "bits": "nan"}, "bits is 'nan'"),
        ({"model": "7b", "layers": 32, "context": 8}, "needs kv_heads and head_dim"),
        ({"model": "7b", "layers": 32, "active_params": "8b"}, "active_params is 8000000000, of"),
    ],
)
def test_what_is_missing_or_senseless_is_told(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ClusterError, match=said):
        parse_model(asked)


@pytest.mark.parametrize("text", ["[1]", "{", "[" * 100_000])
def test_a_broken_config_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ClusterError, match=r"is no config.json"):
        parse_model({"model": str(path), "params": "1b"})
