"""Bits per weight that a config.json's table of quantisation means."""

from __future__ import annotations

from typing import Any

import pytest

from probe_cluster.planning.precision import PRECISIONS, precision_of


def compressed(ignore: Any = (), **weights: Any) -> dict[str, Any]:
    group = {"weights": {"num_bits": 4, "group_size": 32, **weights}}
    groups = {"config_groups": {"group_0": group}, "ignore": list(ignore)}
    return {"quant_method": "compressed-tensors", **groups}


@pytest.mark.parametrize(
    ("quantization", "bits"),
    [
        ({}, (16.0, 16.0, 16.0)),
        ({"quant_method": "fp8"}, (16.0, 8.002, 8.002)),
        ({"quant_method": "fp8", "expert_dtype": "fp4"}, (16.0, 8.002, 4.25)),
        ({"quant_method": "mxfp4"}, (16.0, 16.0, 4.25)),
        ({"bits": 4, "group_size": 64}, (4.5, 4.5, 4.5)),  # MLX
        ({"bits": 4, "group_size": 32}, (5.0, 5.0, 5.0)),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, (16.0, 4.15625, 4.15625)),
        (compressed(), (16.0, 4.5, 4.5)),
        (compressed(scale_dtype="torch.uint8"), (16.0, 4.25, 4.25)),  # MXFP4
        (compressed(scale_dtype="torch.bfloat16"), (16.0, 4.5, 4.5)),
        (compressed(num_bits=8, group_size=128), (16.0, 8.125, 8.125)),
        (compressed(group_size=None), (16.0, 4 + 16 / (1 << 14), 4 + 16 / (1 << 14))),
        (compressed(["re:.*self_attn.*"]), (16.0, 16.0, 4.5)),  # Kimi
        (compressed(["lm_head"]), (16.0, 4.5, 4.5)),
    ],
)
def test_the_bits_of_a_weight(quantization: dict[str, Any], bits: tuple[float, ...]) -> None:
    assert precision_of(quantization) == pytest.approx(bits, abs=1e-9)


@pytest.mark.parametrize(
    "quantization",
    [
        compressed(num_bits=0),
        compressed(num_bits=17),
        compressed(num_bits="4"),
        compressed(group_size=-1),
        {"quant_method": "compressed-tensors"},
        {"bits": 17, "group_size": 64},
        {"bits": 4, "group_size": 0},
        {"quant_method": "magic"},
    ],
)
def test_what_is_not_known_has_none(quantization: dict[str, Any]) -> None:
    assert precision_of(quantization) is None


def test_without_experts_all_is_stored_as_they_would_be() -> None:
    assert PRECISIONS["mxfp4"].for_dense() == (16.0, 4.25, 4.25)
