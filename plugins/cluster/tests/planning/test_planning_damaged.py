"""Damaged heads of models: one sentence, exit status 2, and no traceback."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import pytest
from model_files import gguf
from weights import mostly_heavy

from probe_core.cli import main

KEYS = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 64,
    "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
    "llama.context_length": 8192, "llama.expert_count": 8, "llama.expert_used_count": 2,
}  # fmt: skip
HEAD = gguf(KEYS, [("blk.0.ffn_up.weight", [64, 64], 0), ("blk.1.ffn_up.weight", [64, 64], 8)])
TENSORS = {
    f"model.layers.{at}.mlp.up_proj.weight": {
        "dtype": "BF16", "shape": [64, 64], "data_offsets": [8192 * at, 8192 * (at + 1)],
    }
    for at in range(2)
}  # fmt: skip
CONFIG = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 128256, "max_position_embeddings": 8192,
}  # fmt: skip
MORE = [
    "num_local_experts", "num_experts_per_tok", "sliding_window", "layer_types", "head_dim",
    "kv_lora_rank", "quantization_config", "text_config", "rope_scaling", "hybrid_override_pattern",
]  # fmt: skip
VALUES = [None, True, -1, 0, 1e308, float("nan"), 10**30, "x", "", [], [1, 2], {}, {"a": 1}, 3.5]


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return bytes that are cut, changed, or moved."""
    changed = bytearray(data)
    at = chance.randrange(len(data))
    match chance.randrange(4):
        case 0:
            return data[:at]
        case 1:
            for _ in range(chance.randint(1, 8)):
                changed[chance.randrange(len(data))] = chance.randrange(256)
        case 2:
            figure = chance.choice([0, 1, 1 << 31, 1 << 40, 1 << 63, (1 << 64) - 1])
            changed[at : at + 8] = struct.pack("<Q", figure)
        case 3:
            changed[at:at] = bytes(chance.randrange(1, 9))
    return bytes(changed)


def answered(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["fit", str(model), "--have", "RTX 4090", "--context", "1k"])
    printed = capsys.readouterr()
    assert status in (0, 1, 2)
    if status == 2:
        (sentence,) = printed.err.strip().splitlines()
        assert sentence.startswith("probe fit: ")
        assert len(sentence) < 600 + len(str(model))
        assert printed.out == ""


@pytest.mark.parametrize("seed", mostly_heavy(range(4), 4))
def test_damaged_gguf(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance, file = random.Random(seed), tmp_path / "model.gguf"
    for _ in range(20):
        file.write_bytes(damaged(HEAD, chance) + bytes(40000))
        answered(file, capsys)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_safetensors(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance, file = random.Random(seed), tmp_path / "model.safetensors"
    for _ in range(20):
        tensors = json.loads(json.dumps(TENSORS))
        if chance.random() < 0.4:
            tensor = tensors[chance.choice(list(tensors))]
            tensor[chance.choice(list(tensor))] = chance.choice(VALUES)
        head = json.dumps(tensors).encode()
        data = struct.pack("<Q", len(head)) + head
        file.write_bytes((damaged(data, chance) if chance.random() < 0.7 else data) + bytes(16384))
        answered(file, capsys)


@pytest.mark.parametrize("seed", mostly_heavy(range(4), 4))
def test_absurd_configs(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance, file = random.Random(seed), tmp_path / "config.json"
    for _ in range(20):
        config = dict(CONFIG)
        for _ in range(chance.randint(1, 3)):
            key = chance.choice([*CONFIG, *MORE])
            config.pop(key, None)
            if chance.random() < 0.8:
                config[key] = chance.choice(VALUES)
        text = json.dumps(config)
        file.write_text(text[: chance.randrange(len(text))] if chance.random() < 0.1 else text)
        answered(tmp_path, capsys)


def test_an_architecture_that_is_no_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(gguf({"general.architecture": "a\0" * 200}, []) + bytes(99))
    assert main(["fit", str(file), "--have", "RTX 4090"]) == 2
    assert "general.architecture is 'a\\x00a\\x00" in capsys.readouterr().err
