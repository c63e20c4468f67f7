"""Sums over tensors, by their names; and heads of files that are cut, hostile or strange."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from probe_cluster import ClusterError
from probe_cluster.planning.architecture import Experts
from probe_cluster.planning.precision import PRECISIONS
from probe_cluster.planning.weights import Tensor, packed, read_safetensors, weights_of

LAYERS = [
    Tensor("model.embed_tokens.weight", 100, 200),
    Tensor("model.layers.0.self_attn.q_proj.weight", 10, 20),
    Tensor("model.layers.1.mlp.experts.3.up_proj.weight", 40, 80),
    Tensor("model.layers.2.self_attn.q_proj.weight", 7, 14),
]
HEAD = Tensor("lm_head.weight", 100, 200)


@pytest.mark.parametrize(
    ("tensors", "experts", "layers", "expected"),
    [
        ([], None, None, (0, 0, 0, 0, 0)),
        # Without a head the embedding is it, and is read whole.
        (LAYERS, None, None, (157, 157, 314, 114 + 200, 3)),
        ([*LAYERS, HEAD], None, None, (257, 257, 514, 114 + 200, 3)),
        # Of four experts one is active.
        (LAYERS, Experts(4, 1), None, (157, 127, 314, 20 + 20 + 14 + 200, 3)),
        # The third layer predicts further tokens: stored, and not read.
        (LAYERS, None, 2, (157, 150, 314, 100 + 200, 3)),
        ([Tensor("blk.9.embeddings.weight", 3, 6)], None, None, (3, 3, 6, 6, 10)),
    ],
)
def test_sums_of_tensors(
    tensors: list[Tensor], experts: Experts | None, layers: int | None, expected: tuple[int, ...]
) -> None:
    assert tuple(weights_of(tensors, experts, layers)) == expected


def head(path: Path, table: Any, length: int | None = None) -> str:
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    size = len(text) if length is None else length
    path.write_bytes(size.to_bytes(8, "little") + text)
    return str(path)


@pytest.mark.parametrize(
    ("entry", "params", "size", "is_packed"),
    [
        ({"dtype": "BF16", "shape": [3, 5]}, 15, 30, False),
        ({"dtype": "F32", "shape": []}, 1, 4, False),
        ({"dtype": "F4", "shape": [3]}, 3, 2, False),  # bits are rounded up to bytes
        ({"dtype": "F6_E2M3", "shape": [3]}, 3, 3, False),
        ({"dtype": "U8", "shape": [3]}, 3, 3, False),
        ({"dtype": "U8", "shape": [3, 1]}, 3, 3, True),
        ({"dtype": "U32", "shape": [2, 2]}, 4, 16, True),
        ({"dtype": "I64", "shape": [2, 0]}, 0, 0, True),
        ({"dtype": "BOOL", "shape": [1] * 8}, 1, 1, False),
        ({"dtype": "F64", "shape": [(1 << 40) - 1]}, (1 << 40) - 1, 8 * ((1 << 40) - 1), False),
        ({"dtype": "I8", "shape": [1 << 25, 1 << 25]}, 1 << 50, 1 << 50, False),
    ],
)
def test_a_tensor_of_a_file(
    entry: dict[str, Any], params: int, size: int, is_packed: bool, tmp_path: Path
) -> None:
    path = head(tmp_path / "a", {"__metadata__": {"format": "pt"}, "w": entry})
    assert read_safetensors([path]) == ([Tensor("w", params, size)], is_packed)
    assert packed(entry) == is_packed


@pytest.mark.parametrize(
    "dtype",
    ["F64", "I64", "U64", "F32", "I32", "U32", "F16", "BF16", "I16", "U16", "I8", "U8", "BOOL8",
     "F8_E4M3", "F8_E5M2", "F8_E8M0", "F6_E2M3", "F6_E3M2", "F4"],
)  # fmt: skip
def test_eight_values_have_as_many_bytes_as_one_has_bits(dtype: str, tmp_path: Path) -> None:
    entry = {"dtype": dtype.replace("BOOL8", "BOOL"), "shape": [8]}
    (tensors, _) = read_safetensors([head(tmp_path / "a", {"w": entry})])
    assert tensors[0].size == int(re.findall(r"\d+", dtype)[0])


def test_files_beyond_the_most_are_refused(tmp_path: Path) -> None:
    path = head(tmp_path / "a", {})
    assert read_safetensors([path] * 1024) == ([], False)
    with pytest.raises(ClusterError, match="there are more than 1024 files of one model"):
        read_safetensors([path] * 1025)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {"dtype": "BF16"},
        {"dtype": "X9", "shape": [1]},
        {"dtype": "BF16", "shape": 3},
        {"dtype": "BF16", "shape": [1] * 9},
        {"dtype": "BF16", "shape": [-1]},
        {"dtype": "BF16", "shape": [True]},
        {"dtype": "BF16", "shape": [1 << 40]},
    ],
)
def test_a_tensor_without_a_sound_shape_is_refused(entry: Any, tmp_path: Path) -> None:
    path = head(tmp_path / "a", {"w" * 70: entry})
    with pytest.raises(ClusterError) as error:
        read_safetensors([path])
    name = "w" * 60
    assert str(error.value) == f"{path}: tensor {name!r} has no shape and type that can be read"


def test_a_tensor_of_too_many_values_is_refused(tmp_path: Path) -> None:
    path = head(tmp_path / "a", {"w": {"dtype": "F4", "shape": [(1 << 25) + 1, 1 << 25]}})
    with pytest.raises(ClusterError, match=f"tensor 'w' has {(1 << 50) + (1 << 25)} values"):
        read_safetensors([path])


@pytest.mark.parametrize(
    ("table", "length", "problem"),
    [
        (b"{}", 1, "its head has 1 bytes, the file 10; download it again"),
        (b"{}", 3, "its head has 3 bytes, the file 10; download it again"),
        (b"{}", 1 << 40, f"its head has {1 << 40} bytes, the file 10; download it again"),
        (b"{x}", None, "its head is no JSON"),
        (b"[1]", None, "its head is no table"),
    ],
)
def test_a_head_that_is_none_is_refused(
    table: bytes, length: int | None, problem: str, tmp_path: Path
) -> None:
    path = head(tmp_path / "a", table, length)
    with pytest.raises(ClusterError) as error:
        read_safetensors([path])
    assert str(error.value) == f"{path} is no usable safetensors file: {problem}"
    assert read_safetensors([head(tmp_path / "b", b"{}")]) == ([], False)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_mlx_has_a_scale_and_a_bias_of_16_bits_for_each_group(bits: int) -> None:
    assert PRECISIONS[f"{bits}bit"] == (bits + 0.5,) * 3
    assert PRECISIONS[f"{bits}bit_gs32"] == (bits + 1.0,) * 3
