"""Caches of GGUF files whose layers differ: states, shared caches, blocks without attention."""

from __future__ import annotations

from typing import Any

import pytest

from probe_cluster.planning.gguf import shape_of_gguf
from probe_cluster.planning.model import cache_bytes
from probe_cluster.shared import ClusterError

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
    ("qwen3next", SSM, 128_000 + 3 * STATE, "hybrid"),
    ("qwen35", SSM | {"full_attention_interval": 2}, 2 * (128_000 + STATE), "hybrid"),
    ("qwen35moe", SSM | {"full_attention_interval": 3}, 128_000 + 3 * STATE, "hybrid"),
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


def shape(**own: Any) -> Any:
    values = {f"llama.{key.replace('__', '.')}": value for key, value in own.items()}
    return shape_of_gguf({"general.architecture": "llama"} | values, "it.gguf")


HEADS = {"block_count": 4, "embedding_length": 64, "attention__head_count": 4}


def kept(**own: Any) -> list[Any]:
    """What each kind of layer keeps: (layers, values, window, state)."""
    return [tuple(entry) for entry in shape(**HEADS, **own).cache]


def test_figures_that_a_file_leaves_out() -> None:
    bare = shape(block_count=1)
    assert (bare.layers, bare.hidden, bare.heads, bare.kv_heads) == (1, None, None, None)
    assert (bare.head_dim, bare.context, bare.experts, bare.cache) == (None, None, None, ())
    known = shape(**HEADS, context_length=4096)
    assert (known.kv_heads, known.head_dim, known.context) == (4, 16, 4096)
    assert shape(**HEADS, attention__key_length=32).head_dim == 32
    assert shape(**HEADS, attention__head_count_kv=2).kv_heads == 2
    assert shape(**HEADS, attention__head_count_kv=[1, 3, 2, 1]).kv_heads == 3


@pytest.mark.parametrize(
    ("count", "used", "expected"),
    [(8, 2, (8, 2)), (8, 8, (8, 8)), (8, 9, (8, 8)), (0, 2, None), (8, 0, None)],
)
def test_the_experts_of_a_gguf(count: int, used: int, expected: Any) -> None:
    found = shape(**HEADS, expert_count=count, expert_used_count=used)
    assert (found.experts and tuple(found.experts)) == expected
    assert found.kind == ("experts" if count else "dense")


def test_layers_that_only_predict_do_not_count() -> None:
    assert shape(block_count=5, nextn_predict_layers=1).layers == 4
    with pytest.raises(ClusterError, match="block_count is 1; it must be 1 to 4096"):
        shape(block_count=1, nextn_predict_layers=1)


@pytest.mark.parametrize(
    ("count", "is_taken"), [(1, True), (4096, True), (4097, False), (0, False)]
)
def test_the_layers_of_a_gguf(count: int, is_taken: bool) -> None:
    if is_taken:
        assert shape(block_count=count).layers == count
    else:
        with pytest.raises(ClusterError, match=f"block_count is {count}; it must be 1 to 4096"):
            shape(block_count=count)


@pytest.mark.parametrize("value", [-1, 1 << 27, 1.5, True, "8"])
def test_figures_that_no_model_has(value: Any) -> None:
    with pytest.raises(ClusterError, match=r"llama\.embedding_length is .*; no model has that"):
        shape(block_count=1, embedding_length=value)
    assert shape(block_count=1, embedding_length=(1 << 27) - 1).hidden == (1 << 27) - 1
    assert shape(block_count=1, embedding_length=0).hidden is None


def test_a_list_has_a_figure_for_each_layer() -> None:
    assert kept(attention__head_count_kv=[1, 1, 1, 2, 9]) == kept(
        attention__head_count_kv=[1, 1, 1, 2]
    )
    with pytest.raises(ClusterError, match="head_count_kv has 3 values for 4 layers"):
        kept(attention__head_count_kv=[1, 1, 1])


def sizes(**own: Any) -> tuple[int, int]:
    """Bytes at 10 and 1,000 tokens of 16 bits."""
    cache = shape(**HEADS, **own).cache
    return cache_bytes(cache, 10, 16.0), cache_bytes(cache, 1000, 16.0)


def test_the_cache_of_latent_attention() -> None:
    rank = {"attention__kv_lora_rank": 48}
    assert sizes(**rank) == (4 * 48 * 2 * 10, 4 * 48 * 2 * 1000)
    assert sizes(**rank, rope__dimension_count=16) == (4 * 64 * 2 * 10, 4 * 64 * 2 * 1000)
    both = {"rope__dimension_count": 16, "attention__indexer__key_length": 8}
    assert sizes(**rank, **both) == (4 * 72 * 2 * 10, 4 * 72 * 2 * 1000)
    experts = {"expert_count": 8, "expert_used_count": 2}
    assert shape(**HEADS, **rank, **experts).kind == "mla"


@pytest.mark.parametrize(
    ("own", "windows"),
    [
        ({}, 0),
        ({"attention__sliding_window": 100}, 0),  # without a pattern nobody knows which layers
        ({"attention__sliding_window": 100, "attention__sliding_window_pattern": 2}, 2),
        ({"attention__sliding_window": 100, "attention__sliding_window_pattern": 4}, 3),
        ({"attention__sliding_window": 100, "attention__sliding_window_pattern": 1}, 0),
        ({"attention__sliding_window": 100, "attention__sliding_window_pattern": 0}, 0),
        ({"attention__chunk_size": 100, "attention__sliding_window_pattern": 4}, 3),
        (
            {"attention__sliding_window": 100,
             "attention__sliding_window_pattern": [True, False, True, True]},
            3,
        ),
        ({"attention__sliding_window": 100, "attention__sliding_window_pattern": [True] * 3}, 0),
    ],
)  # fmt: skip
def test_layers_with_a_window(own: dict[str, Any], windows: int) -> None:
    each = 4 * 32 * 2  # bytes of a token: 4 heads of 16 + 16 values
    assert sizes(**own) == (4 * each * 10, (4 - windows) * each * 1000 + windows * each * 100)


def test_layers_with_a_window_may_have_heads_of_their_own() -> None:
    own = {"attention__sliding_window": 100, "attention__sliding_window_pattern": 2}
    swa = {"attention__key_length_swa": 8, "attention__value_length_swa": 4}
    assert sizes(**own, **swa)[0] == (2 * 4 * 32 + 2 * 4 * 12) * 2 * 10
    assert sizes(attention__value_length=8)[0] == 4 * 4 * 24 * 2 * 10


def test_layers_that_share_a_cache_have_none() -> None:
    each = 4 * 32 * 2 * 10
    assert [sizes(attention__shared_kv_layers=count)[0] for count in (1, 4, 5)] == [
        3 * each, 0, 0
    ]  # fmt: skip


def test_a_state_has_the_size_of_its_parts() -> None:
    one = {"block_count": 1, "embedding_length": 64, "attention__head_count": 4}
    base = {**one, "attention__head_count_kv": [0]}

    def state(**own: Any) -> int:
        return cache_bytes(shape(**base, **own).cache, 1000, 16.0)

    size = {"ssm__state_size": 8, "ssm__inner_size": 128}
    assert state(**size) == 4 * (128 * 8 + 3 * (128 + 2 * 8))
    assert state(**size, ssm__group_count=2) == 4 * (128 * 8 + 3 * (128 + 2 * 2 * 8))
    assert state(**size, ssm__conv_kernel=2) == 4 * (128 * 8 + 1 * (128 + 2 * 8))
    assert state(shortconv__l_cache=3) == 4 * 2 * 64
    assert state(kda__head_dim=5) == 4 * (4 * 5 * 5 + 3 * 3 * 4 * 5)
    without = shape(
        block_count=1, embedding_length=64, attention__head_count_kv=[0], kda__head_dim=5
    )
    assert cache_bytes(without.cache, 1000, 16.0) == 0
    assert state() == 0
    assert state(ssm__state_size=8) == 0
