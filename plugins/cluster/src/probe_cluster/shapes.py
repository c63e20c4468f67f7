"""Shapes of a few open models, so that a plan needs no file: from each model's own config.json.

Parameter counts are those of the model cards (safetensors metadata).
"""

from __future__ import annotations

__all__ = ["SHAPES"]

# name: (params, active params or None, layers, hidden, kv heads, head dim)
SHAPES: dict[str, tuple[int, int | None, int, int, int, int]] = {
    "llama-3.2-1b": (1_235_814_400, None, 16, 2048, 8, 64),
    "llama-3.2-3b": (3_212_749_824, None, 28, 3072, 8, 128),
    "llama-3.1-8b": (8_030_261_248, None, 32, 4096, 8, 128),
    "llama-3.1-70b": (70_553_706_496, None, 80, 8192, 8, 128),
    "llama-3.1-405b": (405_853_388_800, None, 126, 16384, 8, 128),
    "mistral-7b": (7_248_023_552, None, 32, 4096, 8, 128),
    "qwen2.5-7b": (7_615_616_512, None, 28, 3584, 4, 128),
    "qwen2.5-32b": (32_763_876_352, None, 64, 5120, 8, 128),
    "qwen2.5-72b": (72_706_203_648, None, 80, 8192, 8, 128),
    "qwen3-30b-a3b": (30_532_122_624, 3_300_000_000, 48, 2048, 4, 128),
}
"""Name → (parameters, active parameters, layers, hidden size, KV heads, head dimension)."""
