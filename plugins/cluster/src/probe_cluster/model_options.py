"""Options that say which model is meant, for all commands that need one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

__all__ = ["MODEL_HELP", "add_model_options"]

MODEL_HELP = (
    "parameters (70b), a known name (llama-3.1-70b, org/Name-Instruct), or the path of a"
    " config.json, a GGUF, a .safetensors file or their folder"
)
"""What a model can be."""


def add_model_options(group: argparse._ArgumentGroup) -> None:
    """Add what completes or overrides the figures of a model."""
    for flag, metavar, meaning in (
        ("params", "N", "parameters, such as 70b, where M lacks them"),
        ("active-params", "N", "parameters that one token touches (mixture of experts)"),
        ("layers", "N", "layers, where M lacks them"),
        ("bits", "N", "bits per parameter as stored, or q4_k_m, 4bit, fp8 (as published, else 16)"),
        ("context", "TOKENS", "count the KV cache of so many tokens, such as 32k (0)"),
        ("kv-bits", "N", "bits per value of the KV cache, or q8_0, q4_0, fp8 (16)"),
    ):
        group.add_argument(f"--{flag}", metavar=metavar, help=meaning)
