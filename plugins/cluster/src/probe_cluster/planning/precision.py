"""Bits per weight of a quantisation, scales included, by the name that people give it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple


class Precision(NamedTuple):
    """Bits per weight, scales included."""

    edges: float
    """Of the input embedding and the output head."""
    common: float
    """Of attention, dense and shared parts."""
    experts: float
    """Of the routed experts."""

    def for_dense(self) -> Precision:
        """Return the same for a model without experts, whose layers then are what is quantised."""
        return Precision(self.edges, self.experts, self.experts)


def _even(bits: float) -> Precision:
    return Precision(bits, bits, bits)


# Whole GGUF files of Llama-3.1-8B by llama.cpp (tools/quantize/README.md): a file mixes block
# types, so these differ from the size of one block. Those with _1, and q3_k_m and q5_0, are not in
# that table: their block's own bits. Unsloth's XL files vary by model: a judgement.
_GGUF = {
    "iq1_s": 2.0, "iq1_m": 2.15, "iq2_xxs": 2.38, "iq2_xs": 2.59, "iq2_s": 2.74, "iq2_m": 2.93,
    "iq3_xxs": 3.25, "iq3_xs": 3.50, "iq3_s": 3.66, "iq3_m": 3.76, "iq4_xs": 4.46, "iq4_nl": 4.68,
    "q2_k": 3.16, "q2_k_s": 2.97, "q3_k_s": 3.64, "q3_k_m": 4.0, "q3_k_l": 4.30, "q4_0": 4.66,
    "q4_1": 5.0, "q4_k_s": 4.67, "q4_k_m": 4.89, "q5_0": 5.5, "q5_1": 6.0, "q5_k_s": 5.57,
    "q5_k_m": 5.70, "q6_k": 6.56, "q8_0": 8.50, "q2_k_xl": 3.3, "q3_k_xl": 4.2, "q4_k_xl": 4.9,
    "q5_k_xl": 5.8, "q6_k_xl": 7.0, "q8_k_xl": 9.5,
}  # fmt: skip

# MLX: b bits and, per group of 64, a scale and a bias of 16 bits each. A number of bits alone says
# no format: people write it of all of them.
_BITS = {f"{bits}bit": bits + 32 / 64 for bits in (2, 3, 4, 5, 6, 8)}
_GROUPS_OF_32 = {f"{bits}bit_gs32": bits + 32 / 32 for bits in (2, 3, 4, 5, 6, 8)}

# What loads with transformers' config.json: vLLM and its like.
_SAFETENSORS: dict[str, Precision] = {
    # DeepSeek V4: only the routed experts are in 4 bits, as MXFP4 has them.
    "fp8_fp4": Precision(16.0, 8.002, 4.25),
    # A scale of 32 bits per block of 128 x 128.
    "fp8": Precision(16.0, 8.002, 8.002),
    # A scale of 16 bits per row of some thousand weights.
    "int8": Precision(16.0, 8.004, 8.004),
    "nvfp4": Precision(16.0, 4.5, 4.5),
    # Kimi K2.5: groups of 32 with a bf16 scale; all but the experts stays bf16 (its config.json).
    "int4": Precision(16.0, 16.0, 4.5),
    "awq": Precision(16.0, 4.25, 4.25),
    "gptq": Precision(16.0, 4.16, 4.16),
    # NF4: a scale of 32 bits per block of 64 (bitsandbytes, without double quantisation).
    "bnb_4bit": Precision(16.0, 4.5, 4.5),
}

PRECISIONS: dict[str, Precision] = {
    "fp32": _even(32.0),
    "f32": _even(32.0),
    "bf16": _even(16.0),
    "fp16": _even(16.0),
    "f16": _even(16.0),
    "mxfp8": _even(8.25),
    # gpt-oss: only the experts are quantised, in blocks of 32 with a scale of 8 bits.
    "mxfp4": Precision(16.0, 16.0, 4.25),
    # llama.cpp's file type of the same name: all but the experts is Q8_0.
    "mxfp4_moe": Precision(8.5, 8.5, 4.25),
    # MLX's of gpt-oss and others: the same, with scales of its own.
    "mxfp4_q8": Precision(8.5, 8.5, 4.25),
    **_SAFETENSORS,
    **{name: _even(bits) for name, bits in (_GGUF | _BITS | _GROUPS_OF_32).items()},
}
"""Name → bits per weight."""

# NVIDIA's own files of Nemotron 3: only experts have 4 bits, and what Mamba multiplies 8
# (docs.nvidia.com/nemotron, super3/quantization.html).
NEMOTRON_NVFP4 = PRECISIONS["nvfp4"]._replace(common=PRECISIONS["fp8"].common)

FORMATS: dict[str, str] = {
    **dict.fromkeys((*_GGUF, "mxfp4_moe"), "gguf"),
    **dict.fromkeys((*_GROUPS_OF_32, "mxfp4_q8", "mxfp8"), "mlx"),
    **dict.fromkeys(_SAFETENSORS, "safetensors"),
}
"""Name → the kind of file that has it; names that are not here say no kind."""

# What people write → its name. A bare q4 is what ollama fetches by it: the K-quant of middle size.
_ALIASES = {
    "q2": "q2_k", "q3": "q3_k_m", "q4": "q4_k_m", "q5": "q5_k_m", "q6": "q6_k", "q8": "q8_0",
    "q3_k": "q3_k_m", "q4_k": "q4_k_m", "q5_k": "q5_k_m", "fp4": "nvfp4", "w8a8": "int8",
    "w8a16": "int8", "w8a8_int8": "int8", "w8a8_fp8": "fp8", "float8": "fp8", "w4a16": "gptq",
    "autoawq": "awq", "bnb": "bnb_4bit", "nf4": "bnb_4bit", "bnb4": "bnb_4bit",
    "bnb_8bit": "int8", "half": "fp16", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32",
    "fp8_e4m3": "fp8", "mxfp4_gguf": "mxfp4_moe", "gptq_int4": "gptq", "gptq_4bit": "gptq",
    "awq_int4": "awq", "awq_4bit": "awq", "int4_awq": "awq",
}  # fmt: skip
_BARE = re.compile(r"q[234568]")
# exl2 and exl3 are named by their mean bits per weight.
_BPW = re.compile(r"(\d{1,2}(?:\.\d{1,3})?)_?bpw")


def precision_name(text: str, form: str | None = None) -> str | None:
    """Return the name in `PRECISIONS` of what a person wrote, such as ``Q4``; None for others.

    ``form`` is an engine's kind of file: a bare q4 is 4bit in MLX's.
    """
    name = re.sub(r"[\s-]+", "_", text.strip().lower())
    if form == "mlx" and _BARE.fullmatch(name):
        name = f"{name[1:]}bit"
    for prefix in ("mlx_", "ud_", "gguf_"):
        name = name.removeprefix(prefix)
    name = _ALIASES.get(name, name)
    if name in PRECISIONS:
        return name
    shorter = name.replace("_bits", "bit").replace("_bit", "bit").replace("bits", "bit")
    return shorter if shorter in PRECISIONS else None


def bits_per_weight(text: str) -> float | None:
    """Return the bits of ``4.0bpw``; None for anything else."""
    match = _BPW.fullmatch(text.strip().lower().replace(" ", ""))
    return float(match[1]) if match else None


def nearest_precisions(text: str) -> list[str]:
    """Return the names that are most alike, the best first."""
    from difflib import get_close_matches

    name = re.sub(r"[\s-]+", "_", text.strip().lower())
    names = list(dict.fromkeys((*PRECISIONS, *_ALIASES)))
    return get_close_matches(name, names, n=3, cutoff=0.4)


def as_run_by(name: str, form: str | None) -> str:
    """Return the precision of gpt-oss's weights in an engine's kind of file.

    Published ones keep attention in 16 bits, GGUF files and those for MLX in 8.
    """
    if name != "mxfp4" or form is None:
        return name
    return {"gguf": "mxfp4_moe", "mlx": "mxfp4_q8"}.get(form, name)


def beside_mxfp4(precision: Precision) -> Precision:
    """Return what a GGUF file of a model has whose experts were published in MXFP4.

    Their rows of 2880 values are no multiple of a K-quant's block, so they stay as they are, and
    nothing beside them has fewer than the 4.5 bits of blocks of 32 (llama.cpp src/llama-quant.cpp;
    unsloth/gpt-oss-20b-GGUF: Q2_K 11.5 GB, Q8_0 12.1 GB, F16 13.8 GB).
    """
    least = 4.5
    return Precision(
        max(precision.edges, least), max(precision.common, least), PRECISIONS["mxfp4"].experts
    )


def beside_fp8(precision: Precision, share: float) -> Precision:
    """Return what a GGUF file of a model has whose routed experts were published in MXFP4.

    All else was published in 8 bits, and files keep it so, of whatever name; the experts, `share`
    of all weights, have the rest of the file (DeepSeek-V4-Flash: Q8 is 7 GB larger than Q4, by
    unsloth.ai/docs deepseek-v4; ggml-org/llama.cpp issue 22319).
    """
    others = max(precision.common, PRECISIONS["q8_0"].common)
    return Precision(others, others, (precision.experts - (1 - share) * others) / share)


def precision_of(quantization: Mapping[str, Any]) -> Precision | None:
    """Return how a config.json says that its weights are stored; None for a way not known.

    ``expert_dtype`` of DeepSeek V4 stands beside the table, and is passed in it.
    """
    if not quantization:
        return PRECISIONS["bf16"]
    method = quantization.get("quant_method")
    if method == "fp8" and quantization.get("expert_dtype") == "fp4":
        return PRECISIONS["fp8_fp4"]
    if method in ("fp8", "mxfp4"):
        return PRECISIONS[str(method)]
    bits, group = quantization.get("bits"), quantization.get("group_size")
    weights = _weights(quantization)
    if method == "compressed-tensors" and weights is not None:
        return _compressed(weights, quantization.get("ignore"))
    if type(bits) is not int or type(group) is not int or not (1 <= bits <= 16 and group > 0):
        return None
    # MLX names no method, and quantises the embeddings too; AWQ and GPTQ leave them.
    return _even(bits + 32 / group) if method is None else _linear(bits + 20 / group)


def _linear(bits: float) -> Precision:
    return Precision(16.0, bits, bits)


def _weights(quantization: Mapping[str, Any]) -> Mapping[str, Any] | None:
    groups = quantization.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = first.get("weights") if isinstance(first, Mapping) else None
    return weights if isinstance(weights, Mapping) else None


def _compressed(weights: Mapping[str, Any], ignore: Any) -> Precision | None:
    bits, group = weights.get("num_bits"), weights.get("group_size") or 1 << 14
    if type(bits) is not int or type(group) is not int or not (1 <= bits <= 16 and group > 0):
        return None
    # Scales of 16 bits; those of MXFP4 have 8.
    mean = bits + (8 if "uint8" in str(weights.get("scale_dtype")) else 16) / group
    # Kimi's list leaves all attention in 16 bits.
    left_out = isinstance(ignore, list) and any("self_attn" in str(entry) for entry in ignore)
    return Precision(16.0, 16.0 if left_out else mean, mean)
