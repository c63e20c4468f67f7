"""`--require-working` opens the devices as the command would, and no command runs without them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fake_cuda
import pytest
from lease_node import Node, gpu

from probe_core.cli import trial
from probe_core.leasing import lease
from probe_core.pipeline.refresh import refresh

TORCH = """
import types
__version__ = "2.9.0+fake"
version = types.SimpleNamespace(cuda={built!r}, hip=None)
class _Cuda:
    def is_available(self): return {count} > 0
    def device_count(self): return {count}
cuda = _Cuda()
backends = types.SimpleNamespace()
class _Tensor:
    def sum(self): return {total}
def ones(size, device): return _Tensor()
"""

CUDA = """
#include <stdlib.h>
#include <unistd.h>
int cuInit(unsigned flags) { if (getenv("FAKE_HANGS")) sleep(60); return FAKE_INIT; }
int cuDeviceGetCount(int *count) { *count = FAKE_COUNT; return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = 0; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
"""


def package(folder: Path, name: str, text: str) -> str:
    """Install a fake package; return the folder for PYTHONPATH."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(text)
    return str(folder)


def torch(folder: Path, count: int = 1, built: str | None = "12.8", total: float = 1.0) -> str:
    return package(folder / "site", "torch", TORCH.format(count=count, built=built, total=total))


def run(node: Node, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    paths = {"PYTHONPATH": f"{environ.pop('site', '')}:{node.environ['PYTHONPATH']}"}
    return node.run("exec", "--require-working", "--", *command, **paths, **environ)


SCRIPT = "import torch\nprint('trained')\n"


def script(folder: Path, text: str = SCRIPT) -> str:
    path = folder / "train.py"
    path.write_text(text)
    return str(path)


def test_a_working_torch_lets_the_command_run(node: Node, tmp_path: Path) -> None:
    done = run(node, sys.executable, script(tmp_path), site=torch(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "trained\n", "")


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ({"count": 0, "built": None}, "torch 2.9.0+fake: it is built for the CPU alone"),
        ({"count": 0}, "torch 2.9.0+fake: no device is available to it"),
        ({"total": 7.0}, "torch 2.9.0+fake: cuda computes wrong results"),
    ],
)
def test_a_torch_that_would_run_on_the_cpu_is_refused(
    more: dict[str, Any], cause: str, node: Node, tmp_path: Path
) -> None:
    done = run(node, sys.executable, script(tmp_path), site=torch(tmp_path, **more))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        f"probe exec: torch of {sys.executable} cannot use pci:0000:01:00.0: {cause}\n"
    )
    assert node.held() == []


def test_too_few_devices_are_refused(node: Node, tmp_path: Path) -> None:
    site = {"PYTHONPATH": f"{torch(tmp_path)}:{node.environ['PYTHONPATH']}"}
    words = ("exec", "-n", "2", "--require-working", "--", sys.executable, script(tmp_path))
    done = node.run(*words, **site)
    assert (done.returncode, "torch: it sees 1 of 2 devices" in done.stderr) == (3, True)


def test_what_the_script_imports_is_tried(node: Node, tmp_path: Path) -> None:
    site = torch(tmp_path, count=0)
    jax = "raise ImportError('this jaxlib was built for another Python')"
    package(tmp_path / "site", "jax", jax)
    done = run(node, sys.executable, script(tmp_path, "import jax\n"), site=site)
    assert done.returncode == 3
    assert "jax of" in done.stderr
    assert "ImportError: this jaxlib was built for another Python" in done.stderr
    done = run(node, sys.executable, "-c", "from torch import cuda", site=site)
    assert "torch of" in done.stderr


def test_a_framework_that_crashes_is_named(node: Node, tmp_path: Path) -> None:
    package(tmp_path / "site", "torch", "import os; os.kill(os.getpid(), 11)")
    done = run(node, sys.executable, script(tmp_path), site=str(tmp_path / "site"))
    assert (done.returncode, "it was ended by signal 11" in done.stderr) == (3, True)


def library(folder: Path, count: int = 1, init: int = 0) -> dict[str, str]:
    """Compile a fake libcuda.so.1; return what makes the loader find it."""
    folder.mkdir()
    (folder / "cuda.c").write_text(CUDA)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build the fake library with")
    flags = [f"-DFAKE_COUNT={count}", f"-DFAKE_INIT={init}", "-shared", "-fPIC"]
    target = str(folder / "libcuda.so.1")
    subprocess.run([compiler, *flags, "-o", target, str(folder / "cuda.c")], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}


@pytest.mark.heavy
def test_any_other_command_is_tried_by_the_runtimes_library(node: Node, tmp_path: Path) -> None:
    done = run(node, "echo", "ran", **library(tmp_path / "well"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
    done = run(node, "echo", "ran", **library(tmp_path / "broken", init=999))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "probe exec: the runtime's library cannot use pci:0000:01:00.0: "
        "RuntimeError: cuInit gave 999\n"
    )
    done = run(node, "echo", "ran", **library(tmp_path / "none", count=0))
    assert "CUDA: it sees 0 of 1 devices" in done.stderr


def test_a_missing_library_and_the_broken_step_are_named(tmp_path: Path) -> None:
    fake_cuda.skip_beside_a_real_one()
    fact = "x4 of x16 lanes"
    steps = [{"step": "hardware", "status": "broken", "evidence": fact, "code": "link-narrow"}]
    readiness = {"state": "limited", "broken": "hardware", "steps": steps}
    node = Node(tmp_path, 1, [gpu(1, readiness=readiness)])
    (tmp_path / "empty").mkdir()
    done = run(node, "true", LD_LIBRARY_PATH=str(tmp_path / "empty"))
    assert done.returncode == 3
    assert "libcuda.so.1" in done.stderr
    assert done.stderr.endswith(f"; pci:0000:01:00.0: hardware: {fact}\n")


@pytest.mark.heavy
def test_one_that_hangs_is_given_up(node: Node, tmp_path: Path) -> None:
    document: Any = dict(node.document)
    refresh(document, {})
    own = {**node.environ, **library(tmp_path / "well"), "FAKE_HANGS": "1"}
    with lease(1, report=document, environ=own) as held:
        begin = time.monotonic()
        problem = trial.try_devices(held, "/bin/true", ["true"], deadline=0.5)
    assert problem == (
        "the runtime's library cannot use pci:0000:01:00.0: it did not answer within 0.5 s"
    )
    assert time.monotonic() - begin < 20
