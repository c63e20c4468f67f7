"""Caches of GGUF files whose layers differ: states, shared caches, blocks without attention."""

from __future__ import annotations

from typing import Any

import pytest

from probe_cluster.planning.gguf import shape_of_gguf
from probe_cluster.planning.model import cache_bytes

BASE: dict[str, Any] = {
    "block_count": 4, "embedding_length": 64, "attention.head_count": 4,
    "attention.head_count_kv": 2, "attention.key_length": 16, "attention.value_length": 16,
}  # fmt: skip
SSM = {"ssm.state_size": 8, "ssm.inner_size": 128, "ssm.group_count": 1, "ssm.conv_kernel": 4}
STATE = 4 * (128 * 8 + 3 * (128 + 16))

# By hand, at 1,000 tokens of 16 bits: a layer of 2 heads x (16 + 16) takes 128,000 bytes.
KINDS: list[tuple[str, dict[str, Any], int, str]] = [
    ("llama", {}, 4 * 128_000, "dense"),
    ("falcon-h1", SSM, 4 * (128_000 + STATE), "hybrid"),
    ("granitehybrid", SSM | {"attention.head_count_kv": [0, 0, 0, 2]}, 128_000 + 3 * STATE,
     "hybrid"),
    ("nemotron_h_moe", SSM | {"attention.head_count_kv": [0, 0, 2, 0],
                              "feed_forward_length": [0, 256, 0, 256]},
     128_000 + STATE, "blocks"),
    ("lfm2", {"attention.head_count_kv": [0, 0, 2, 0], "shortconv.l_cache": 3},
     128_000 + 3 * 4 * 2 * 64, "dense"),
    ("kimi-linear", {"attention.head_count_kv": [0, 0, 0, 1], "attention.kv_lora_rank": 48,
                     "rope.dimension_count": 16, "kda.head_dim": 16},
     64 * 2 * 1000 + 3 * 4 * (4 * 16 * 16 + 3 * 3 * 64), "hybrid"),
    ("gemma3n", {"attention.shared_kv_layers": 1}, 3 * 128_000, "dense"),
]  # fmt: skip


@pytest.mark.parametrize(("arch", "own", "size", "kind"), KINDS, ids=[entry[0] for entry in KINDS])
def test_the_cache_of_a_gguf(arch: str, own: dict[str, Any], size: int, kind: str) -> None:
    values = {f"{arch}.{key}": value for key, value in (BASE | own).items()}
    shape = shape_of_gguf({"general.architecture": arch} | values, "it.gguf")
    assert (cache_bytes(shape.cache, 1000, 16.0), shape.kind) == (size, kind)


@pytest.mark.parametrize(
    ("arch", "every"),
    [("gemma2", 2), ("gemma3", 6), ("gemma3n", 5), ("gpt-oss", 2), ("llama4", 4), ("olmo2", 4),
     ("olmo3", 4), ("cohere2", 4), ("exaone4", 4)],
)  # fmt: skip
def test_each_nth_layer_sees_all_tokens(arch: str, every: int) -> None:
    layers = 4 * every
    own = BASE | {"block_count": layers, "attention.sliding_window": 100}
    values = {f"{arch}.{key}": value for key, value in own.items()}
    shape = shape_of_gguf({"general.architecture": arch} | values, "it.gguf")
    assert cache_bytes(shape.cache, 1000, 16.0) == 4 * 128_000 + (layers - 4) * 12_800
