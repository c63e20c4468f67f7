"""The code of GPUs through the real tinygrad: on its emulator in Python, and on its CPU backend."""

from __future__ import annotations

import json
import os
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from bench_runs import document

from probe_bench.session import child_environ, measure
from probe_bench.tasks import Job, Line, Task

FP32: Task = {"figure": "compute", "kind": "matmul", "dtype": "fp32", "library": "tinygrad"}


def memory(figure: str) -> Task:
    return {"figure": figure, "kind": "memory", "dtype": None, "library": "tinygrad"}


def lines_of(place: Path, backends: list[str], *tasks: Task) -> list[Line]:
    job: Job = {
        "tasks": list(tasks),
        "seconds": 0.1,
        "folder": str(place),
        "cpus": [],
        "flags": [],
        "arch": "x86_64",
        "backends": backends,
        "address": None,
        "buffer_bytes": 256,
    }
    environ = child_environ(os.environ, str(place), backends[-1:], version("tinygrad"))
    lines, reason = measure(job, environ, lambda place: None, 120.0)
    assert reason is None
    return [line for line in lines if line["event"] != "begin"]


@pytest.mark.heavy
def test_gpus_code_multiplies_and_moves_on_an_emulated_device(tmp_path: Path) -> None:
    tasks = (FP32, memory("read"), memory("write"), memory("copy"))
    compute, *moved = lines_of(tmp_path, ["NOSUCH", "PYTHON"], *tasks)
    assert [line["task"] for line in moved] == [1, 2, 3]
    for line in (compute, *moved):
        assert line["event"] == "result", line
        assert line["by"].startswith("tinygrad ")
        assert line["by"].endswith(" (PYTHON)")
        assert min(line["rates"]) > 0
        assert line["cpu_share"] is None  # it is no CPU
    assert (compute["size"], compute["accumulate"]) == (4, "fp32")
    assert [line["size"] for line in moved] == [256, 256, 256]


@pytest.mark.heavy
def test_backend_that_does_not_open_is_told(tmp_path: Path) -> None:
    (line,) = lines_of(tmp_path, ["NOSUCH"], FP32)
    assert line["event"] == "problem"
    assert "opens no backend: NOSUCH: " in line["reason"]


@pytest.mark.heavy
def test_c_compiler_of_the_environment_is_not_tinygrads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "/usr/bin/gcc")
    monkeypatch.setenv("PATH", str(tmp_path))
    (line,) = lines_of(tmp_path, ["CPU"], FP32)
    assert line["event"] == "problem"
    assert "CPU: it compiles with clang, which is not installed" in line["reason"]


@pytest.mark.skipif(shutil.which("clang") is None, reason="tinygrad compiles with clang")
def test_cpu_through_its_own_compiler(tmp_path: Path) -> None:
    words = ("--kind", "matmul", "--dtype", "fp32,int8", "--no-save", "--seconds", "0.2")
    answer: dict[str, Any] = document(tmp_path, *words)
    figures = [f for f in answer["devices"][0]["measured"] if f["by"].startswith("tinygrad")]
    assert [figure["dtype"] for figure in figures] == ["fp32", "int8"], json.dumps(answer)
    assert all(figure["best"] > 0 for figure in figures)
