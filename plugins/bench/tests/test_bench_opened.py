"""The GPU that a library opened is the one that was leased, or nothing is measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import fake_cuda
import pytest

UUID = "0" * 32
ASK = """
import ctypes, sys
from probe_bench import library_runs
backend, name, call = sys.argv[1:4]
getattr(ctypes.CDLL(name), call)(0)
print(library_runs.opened_address(backend))
try:
    library_runs.check_opened(backend, sys.argv[4])
except library_runs.OtherDevice as error:
    print(error)
"""


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    """A folder with a libcuda and a libamdhip64 that show what FAKE_GPUS lists."""
    return fake_cuda.build(tmp_path, "libcuda.so.1", "libamdhip64.so")


def ask(libraries: Path, gpus: str, *words: str) -> list[str]:
    env = os.environ | {"LD_LIBRARY_PATH": str(libraries), "FAKE_GPUS": gpus}
    done = subprocess.run(
        [sys.executable, "-c", ASK, *words], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("backend", "name", "call"),
    [("CUDA", "libcuda.so.1", "cuInit"), ("HIP", "libamdhip64.so", "hipInit")],
)
def test_another_gpu_is_named_and_the_right_one_passes(
    libraries: Path, backend: str, name: str, call: str
) -> None:
    gpus = f"{UUID}/0000:1B:00.0;{UUID}/0000:43:00.0"
    words = (backend, name, call)
    assert ask(libraries, gpus, *words, "pci:0000:1b:00.0") == ["pci:0000:1b:00.0"]
    assert ask(libraries, gpus, *words, "pci:0000:43:00.0") == [
        "pci:0000:1b:00.0",
        f"{backend} opens pci:0000:1b:00.0, which is not the device that was leased",
    ]


@pytest.mark.heavy
def test_what_a_library_does_not_tell_keeps_nothing_from_being_measured(libraries: Path) -> None:
    words = ("libcuda.so.1", "cuInit", "pci:0000:1b:00.0")
    assert ask(libraries, "", "CUDA", *words) == ["None"]
    assert ask(libraries, f"{UUID}/nonsense", "CUDA", *words) == ["None"]
    assert ask(libraries, f"{UUID}/0000:1B:00.0", "METAL", *words) == ["None"]
