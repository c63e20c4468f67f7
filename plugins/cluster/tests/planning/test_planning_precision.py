"""Bits per weight that a config.json's table of quantisation means."""

from __future__ import annotations

import re
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
        ({"bits": 1, "group_size": 1}, (33.0, 33.0, 33.0)),
        ({"bits": 16, "group_size": 64}, (16.5, 16.5, 16.5)),
        (compressed(num_bits=1, group_size=1), (16.0, 17.0, 17.0)),
        (compressed(num_bits=16, group_size=16), (16.0, 17.0, 17.0)),
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
        {"bits": 0, "group_size": 64},
        {"bits": 4, "group_size": 0},
        {"bits": 4},
        {"group_size": 64},
        {"quant_method": "magic"},
    ],
)
def test_what_is_not_known_has_none(quantization: dict[str, Any]) -> None:
    assert precision_of(quantization) is None


def test_without_experts_all_is_stored_as_they_would_be() -> None:
    assert PRECISIONS["mxfp4"].for_dense() == (16.0, 4.25, 4.25)


def test_a_name_tells_the_whole_bits_and_scales_add_less_than_two() -> None:
    """Of whole files, whose embeddings and heads have more bits than what the name says."""
    named = {name: int(found[0]) for name in PRECISIONS if (found := re.findall(r"\d+", name))}
    del named["fp8_fp4"]
    assert len(named) == len(PRECISIONS) - 3
    for name, whole in named.items():
        precision = PRECISIONS[name]
        assert whole <= precision.experts < whole + 2, name
        assert precision.common in (precision.experts, 16.0, 8.5), name
        assert precision.edges in (precision.experts, 16.0, 8.5), name
    assert PRECISIONS["awq"].experts == 4.25  # groups of 128 with scale and zero of 16 bits
    assert PRECISIONS["awq"][:2] == (16.0, 4.25)
    assert 4 < PRECISIONS["gptq"].experts < 4.25
    assert PRECISIONS["gptq"][:2] == (16.0, PRECISIONS["gptq"].experts)
    assert PRECISIONS["fp8_fp4"] == PRECISIONS["fp8"]._replace(experts=PRECISIONS["mxfp4"].experts)
    for table in (("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq2_m", "iq3_xxs", "iq3_xs"),
                  ("q2_k_s", "q2_k", "q3_k_s", "q3_k_m", "q3_k_l", "q4_k_s", "q4_k_m", "q5_k_s",
                   "q5_k_m", "q6_k", "q8_0")):  # fmt: skip
        bits = [PRECISIONS[name].experts for name in table]
        assert bits == sorted(set(bits)), table
