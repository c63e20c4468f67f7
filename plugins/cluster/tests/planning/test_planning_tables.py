"""The tables that a plan rests on, whole: a figure that slips is in no range of a prediction."""

from __future__ import annotations

from typing import Any

import pytest

from probe_cluster.planning.config_json import FAMILIES, ConfigTable, Family, family_of
from probe_cluster.planning.engines import ENGINES
from probe_cluster.planning.links import KINDS, Links
from probe_cluster.planning.precision import PRECISIONS, Precision

# All but the layers, dense layers, experts. GGUF: llama.cpp's tools/quantize/README.md.
BITS = """
32 32 32: fp32 f32
16 16 16: bf16 fp16 f16
8.25 8.25 8.25: mxfp8
16 16 4.25: mxfp4
8.5 8.5 4.25: mxfp4_moe mxfp4_q8
16 8.002 4.25: fp8_fp4
16 8.002 8.002: fp8
16 8.004 8.004: int8
16 4.5 4.5: nvfp4 bnb_4bit
16 16 4.5: int4
16 4.25 4.25: awq
16 4.16 4.16: gptq
2 2 2: iq1_s
2.15 2.15 2.15: iq1_m
2.38 2.38 2.38: iq2_xxs
2.59 2.59 2.59: iq2_xs
2.74 2.74 2.74: iq2_s
2.93 2.93 2.93: iq2_m
3.25 3.25 3.25: iq3_xxs
3.5 3.5 3.5: iq3_xs 3bit
3.66 3.66 3.66: iq3_s
3.76 3.76 3.76: iq3_m
4.46 4.46 4.46: iq4_xs
4.68 4.68 4.68: iq4_nl
3.16 3.16 3.16: q2_k
2.97 2.97 2.97: q2_k_s
3.64 3.64 3.64: q3_k_s
4 4 4: q3_k_m 3bit_gs32
4.3 4.3 4.3: q3_k_l
4.66 4.66 4.66: q4_0
5 5 5: q4_1 4bit_gs32
4.67 4.67 4.67: q4_k_s
4.89 4.89 4.89: q4_k_m
5.5 5.5 5.5: q5_0 5bit
6 6 6: q5_1 5bit_gs32
5.57 5.57 5.57: q5_k_s
5.7 5.7 5.7: q5_k_m
6.56 6.56 6.56: q6_k
8.5 8.5 8.5: q8_0 8bit
3.3 3.3 3.3: q2_k_xl
4.2 4.2 4.2: q3_k_xl
4.9 4.9 4.9: q4_k_xl
5.8 5.8 5.8: q5_k_xl
7 7 7: q6_k_xl 6bit_gs32
9.5 9.5 9.5: q8_k_xl
2.5 2.5 2.5: 2bit
4.5 4.5 4.5: 4bit
6.5 6.5 6.5: 6bit
3 3 3: 2bit_gs32
9 9 9: 8bit_gs32
"""


def test_bits_of_a_weight() -> None:
    rows = (line.partition(": ") for line in BITS.strip().splitlines())
    assert {
        name: tuple(map(float, bits.split())) for bits, _, names in rows for name in names.split()
    } == PRECISIONS
    for edges, dense, experts in PRECISIONS.values():
        assert Precision(edges, dense, experts).for_dense() == (edges, experts, experts)


# Bytes per second in one direction, seconds of a hop, and of a reduction where a team can work.
LINKS: dict[str, tuple[float, float, float | None]] = {
    "same-host": (10e9, 6.4e-06, None),
    "nvlink": (25e9, 1e-05, 1e-05),
    "nvlink2": (150e9, 1e-05, 1e-05),
    "nvlink3": (300e9, 1e-05, 1e-05),
    "nvlink4": (450e9, 1e-05, 1e-05),
    "nvlink5": (900e9, 1e-05, 1e-05),
    "xgmi": (448e9, 1e-05, 1.5e-05),
    "pcie4": (32e9, 1e-05, 3e-05),
    "pcie5": (64e9, 1e-05, 3e-05),
    "rdma": (10e9, 5e-05, 1.5e-05),
    "infiniband": (12.5e9, 1e-05, 3e-05),
    "hdr": (25e9, 1e-05, 3e-05),
    "ndr": (50e9, 1e-05, 3e-05),
    "roce": (25e9, 1e-05, 3e-05),
    "thunderbolt5": (10e9, 0.0003, None),
    "thunderbolt4": (5e9, 0.0003, None),
    "thunderbolt3": (5e9, 0.0003, None),
    "usb4": (1.25e9, 0.0003, None),
    "400gbe": (50e9, 0.0001, None),
    "200gbe": (25e9, 0.0001, None),
    "100gbe": (12.5e9, 0.0001, None),
    "40gbe": (5e9, 0.0001, None),
    "25gbe": (3.125e9, 0.0001, None),
    "10gbe": (1.25e9, 0.0001, None),
    "5gbe": (0.625e9, 0.0003, None),
    "2.5gbe": (0.3125e9, 0.0003, None),
    "1gbe": (0.125e9, 0.0003, None),
    "100mbe": (0.0125e9, 0.000423, None),
    "wifi": (0.05e9, 0.00375, None),
    "wifi6": (0.1e9, 0.00375, None),
    "wifi7": (0.1875e9, 0.00375, None),
}


def test_links_of_a_kind() -> None:
    assert list(KINDS) == list(LINKS)
    for kind, (bandwidth, latency, reduce) in LINKS.items():
        link = Links(default=KINDS[kind]).between("a", "b")
        assert (link.kind, link.reduce) == (kind, reduce)
        assert (round(link.bandwidth), link.latency) == (bandwidth, latency)


VLLM = ((70, 8192), (0, 2048))
SGLANG = ((156, 16384), (58, 8192), (34, 4096), (0, 2048))
# What differs from an engine of any form and vendor, which takes 2048 tokens of a prompt at once.
ENGINE: dict[str, dict[str, Any]] = {
    "auto": {},
    "llama.cpp": {"computes": "llama-cpp", "forms": ("gguf",)},
    "ollama": {"computes": "llama-cpp", "forms": ("gguf",), "alone": True},
    "lm-studio": {"computes": "llama-cpp", "forms": ("gguf", "mlx"), "alone": True},
    "mlx": {
        "computes": "mlx",
        "forms": ("mlx",),
        "across": True,
        "single": True,
        "vendors": ("apple", "nvidia"),
    },
    "exo": {
        "computes": "mlx",
        "forms": ("mlx",),
        "across": True,
        "single": True,
        "vendors": ("apple", "nvidia"),
    },
    "exo-ring": {
        "computes": "mlx",
        "forms": ("mlx",),
        "single": True,
        "vendors": ("apple", "nvidia"),
    },
    "vllm": {
        "computes": "vllm",
        "forms": ("safetensors", "gguf"),
        "across": True,
        "cards": True,
        "vendors": ("nvidia", "amd", "intel"),
        "windows": False,
        "chunks": VLLM,
    },
    "sglang": {
        "computes": "vllm",
        "forms": ("safetensors",),
        "across": True,
        "cards": True,
        "vendors": ("nvidia", "amd"),
        "windows": False,
        "mixed": False,
        "chunks": SGLANG,
    },
    "tensorrt-llm": {
        "computes": "vllm",
        "forms": ("safetensors",),
        "across": True,
        "cards": True,
        "vendors": ("nvidia",),
        "windows": False,
        "chunks": ((0, 8192),),
    },
    "none": {},
}
USUAL = {
    "computes": None,
    "forms": (),
    "alone": False,
    "across": False,
    "cards": False,
    "single": False,
    "vendors": (),
    "windows": True,
    "mixed": True,
    "chunks": ((0, 2048),),
}


def test_engines() -> None:
    assert list(ENGINES) == list(ENGINE)
    for name, differs in ENGINE.items():
        expected = {**USUAL, **differs}
        assert {field: getattr(ENGINES[name], field) for field in USUAL} == expected, name


@pytest.mark.parametrize(
    ("name", "chip", "tokens"),
    [
        ("llama.cpp", None, {0: 2048, 500: 2048}),
        ("vllm", None, {0: 2048, 69: 2048, 70: 8192, 500: 8192}),
        ("vllm", "NVIDIA A100 80GB PCIe", {80: 2048}),  # which vLLM leaves out (EngineArgs)
        ("sglang", "NVIDIA A100 80GB PCIe", {80: 8192}),
        ("sglang", None, {0: 2048, 33: 2048, 34: 4096, 57: 4096, 58: 8192, 155: 8192, 156: 16384}),
        ("tensorrt-llm", None, {0: 8192, 500: 8192}),
    ],
)
def test_tokens_that_an_engine_takes_at_once(
    name: str, chip: str | None, tokens: dict[int, int]
) -> None:
    found = {gib: ENGINES[name].chunk(gib << 30, chip) for gib in tokens}
    assert found == tokens


FAMILY = {
    Family(): """
        axk1 baichuan bailing_moe bailing_moe_v2 bamba bitnet cwm deepseek deepseek_ref
        deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 diffllama dots1 exaone exaone_moe
        falcon_h1 flex_olmo glm glm4 glm4_moe_lite glm_moe_dsa granite granitemoe granitemoe_swa
        granitemoehybrid granitemoeshared helium hunyuan hunyuan_v1_dense hunyuan_v1_moe hy_v3
        hyperclovax internlm2 internlm3 iquestcoder jamba kimi_k2 kimi_k25 kimi_linear kolibri1
        llama llama4 llama4_text mellum mimo_v2_flash minicpm minimax_m2 minimax_m3
        minimax_m3_vl minimax_m3_vl_text ministral ministral3 mistral mistral3 mistral4 mixtral
        nemotron-nas olmo olmo2 olmo_hybrid olmoe qwen3_vl_moe qwen3_vl_moe_text seed_oss
        solar_open stablelm step3p5 step3p7 youtu
    """,
    Family(gated=False): """
        apertus arcee gpt_neox jais2 nanochat nemotron
    """,
    Family(gated=False, bias=True): """
        persimmon phi
    """,
    Family(gated=False, tied=True, bias=True): """
        starcoder2
    """,
    Family(full=True): """
        phi3 phimoe qwen3 qwen3_vl qwen3_vl_text qwen3_moe
    """,
    Family(bias=True, full=True): """
        mimo qwen2 qwen2_moe qwen2_vl qwen2_5_vl qwen2_vl_text qwen2_5_vl_text
    """,
    Family(bias=True): """
        glm4_moe glm4v_moe glm4v_moe_text
    """,
    Family(gated_attention=True): """
        afmoe qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text qwen3_next
    """,
    Family(tied=True): """
        cohere ernie4_5 ernie4_5_moe gemma gemma4 gemma4_text gemma4_unified gemma4_unified_text
        granite_swa lfm2 lfm2_moe minicpm3 smollm3 vaultgemma
    """,
    Family(tied=True, windows=5): """
        gemma3n gemma3n_text
    """,
    Family(tied=True, windows=2): """
        gemma2
    """,
    Family(tied=True, windows=6): """
        gemma3 gemma3_text
    """,
    Family(windows=2): """
        gpt_oss
    """,
    Family(tied=True, windows=4): """
        cohere2 cohere2_moe
    """,
    Family(windows=4): """
        exaone4 olmo3
    """,
    Family(gated=False, blocks=True): """
        nemotron_h
    """,
}


def test_families_of_models() -> None:
    expected = {name: family for family, names in FAMILY.items() for name in names.split()}
    assert expected.keys() == FAMILIES.keys()
    for name, family in expected.items():
        assert family_of(ConfigTable({"model_type": name}, "config.json")) == family, name
    assert family_of(ConfigTable({}, "config.json")) == Family()
    assert family_of(ConfigTable({"model_type": "of tomorrow"}, "config.json")) is None
