"""Builds the fake libcuda and libamdhip64, and says whether this computer has a real one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "fakes" / "cuda" / "fake_cuda.c"
FLAGS = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]


def build(folder: Path, *names: str) -> Path:
    """Put the fake into a folder, under each of these names; return the folder."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("no C compiler to build the faked runtimes with")
    first, *others = (folder / name for name in names)
    subprocess.run([compiler, *FLAGS, "-o", str(first), str(SOURCE)], check=True)
    for other in others:
        other.symlink_to(first)
    return folder


def skip_beside_a_real_one() -> None:
    """Skip a test that needs a computer without libcuda.

    A process of its own asks the loader: it is left with what it loads.
    """
    load = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    command = [sys.executable, "-c", load]
    if subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0:
        pytest.skip("this machine has a real libcuda")
