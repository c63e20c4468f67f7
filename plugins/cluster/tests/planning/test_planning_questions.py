"""Questions as people ask them, each is answered, or refused for the right reason."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from model_files import gguf
from weights import mostly_heavy

from probe_core.cli import main

Home = dict[str, dict[str, Any]]

QUESTIONS = tomllib.loads(Path(__file__).with_name("questions.toml").read_text())["question"]


@pytest.fixture
def folder(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("desk", "studio"):
        (tmp_path / f"{name}.json").write_text(json.dumps(home[name]))
    keys = {
        "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 64,
        "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
    }  # fmt: skip
    head = gguf(keys, [("blk.0.ffn_up.weight", (64, 64), 0)])
    (tmp_path / "model.gguf").write_bytes(head + bytes(16384))
    (tmp_path / "cut.gguf").write_bytes(head)
    (tmp_path / "page.gguf").write_bytes(b"<!DOCTYPE html><title>404</title>")
    (tmp_path / "empty.gguf").touch()
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4368438944\n"
    (tmp_path / "pointer.gguf").write_bytes(pointer)
    keys["llama.block_count"] = 0
    flat = gguf(keys, [("blk.0.ffn_up.weight", (64, 64), 0)])
    (tmp_path / "flat.gguf").write_bytes(flat + bytes(16384))
    for name, heads in (("zeta", {"head_count": 4, "head_count_kv": 2}), ("mystery", {})):
        own = {"general.architecture": name, f"{name}.block_count": 2}
        own |= {f"{name}.embedding_length": 64, f"{name}.context_length": 8192}
        own |= {f"{name}.attention.{key}": value for key, value in heads.items()}
        head = gguf(own, [("blk.0.ffn_up.weight", (64, 64), 0)])
        (tmp_path / f"{name}.gguf").write_bytes(head + bytes(16384))
    (tmp_path / "image").mkdir()
    figures = {"_class_name": "FluxTransformer2DModel", "num_layers": 19}
    (tmp_path / "image" / "config.json").write_text(json.dumps(figures))
    return tmp_path


def test_there_are_many() -> None:
    assert len({question["command"] for question in QUESTIONS}) >= 180


@pytest.mark.parametrize(
    "question", mostly_heavy(QUESTIONS, 6), ids=[each["ask"] for each in QUESTIONS]
)
def test_a_question(
    question: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(shlex.split(question["command"]))
    printed = capsys.readouterr()
    text = " ".join((printed.err if status == 2 else printed.out).split())
    assert status == question["status"], text
    assert question["says"] in text
    if status == 2:
        # One sentence, and nothing of a plan.
        assert (len(printed.err.strip().splitlines()), printed.out) == (1, "")
