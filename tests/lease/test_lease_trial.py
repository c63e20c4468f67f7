"""`--require-working` opens the devices as the command would, and no command runs without them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
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


# Each step in this process.


@pytest.mark.parametrize(
    ("output", "status", "cause"),
    [
        ("", 3, "it ended with status 3"),
        ("", -9, "it was ended by signal 9"),
        ("a traceback\n  last line \n\n", 1, "last line"),
        ("words\nprobe-trial: first\nprobe-trial:  second \nmore\n", 1, "second"),
        ("probe-trial: why\n", -11, "why"),
        ("last words\n", -11, "it was ended by signal 11"),
    ],
    ids=range(6),
)
def test_the_cause_of_a_failed_trial(output: str, status: int, cause: str) -> None:
    assert trial._cause(output, status) == cause


def steps(*steps: tuple[str, str, str | None, str | None]) -> Any:
    names = ("step", "status", "evidence", "code")
    return {
        "id": "pci:1",
        "readiness": {"steps": [dict(zip(names, s, strict=True)) for s in steps]},
    }


@pytest.mark.parametrize(
    ("devices", "advice"),
    [
        ([], ""),
        ([{"id": "pci:1", "readiness": None}, {"id": "pci:2"}], ""),
        ([steps(("driver", "ok", "e", None))], ""),
        ([steps(("driver", "ok", "e", None), ("node", "broken", "EACCES", "c"))],
         "; pci:1: node: EACCES"),
        ([steps(("node", "broken", None, "closed"))], "; pci:1: node: closed"),
        ([steps(("node", "broken", None, None))], "; pci:1: node: "),
    ],
    ids=range(6),
)  # fmt: skip
def test_the_first_broken_step_is_advice(devices: list[Any], advice: str) -> None:
    assert trial._advice(devices) == advice


def test_the_script_of_a_command(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_bytes(b"import torch\xff")
    for command, text in (
        (["python", "-c", "import jax"], "import jax"),
        (["python", "-c"], ""),
        (["python", str(script), "-c", "no"], "import torch\ufffd"),
        (["python", str(tmp_path / "absent.py"), str(script)], ""),
        (["train.py"], ""),
        ([str(script)], ""),
        (["python", "-m", "train"], ""),
    ):
        assert trial._script(command) == text, command


@pytest.mark.parametrize(
    ("folders", "found"),
    [("", False), ("{0}/a", True), ("{0}/b", False), (":{0}/b:{0}/a", True)],
)
def test_a_package_on_the_path_is_seen(folders: str, found: bool, tmp_path: Path) -> None:
    package = tmp_path / "a" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (tmp_path / "b" / "torch").mkdir(parents=True)
    assert trial._is_folder("torch", {"PYTHONPATH": folders.format(tmp_path)}) == found
    assert not trial._is_folder("jax", {"PYTHONPATH": folders.format(tmp_path)})


def test_a_child_is_waited_for_and_what_it_wrote_last_is_read() -> None:
    environ = {"PATH": os.environ["PATH"]}
    assert trial._run(["sh", "-c", "echo out; echo err >&2; exit 3"], environ, 20) == (
        3,
        "out\nerr\n",
    )
    status, text = trial._run(["sh", "-c", "yes | head -c 5000; echo end"], environ, 20)
    assert (status, len(text), text[-4:]) == (0, 2000, "end\n")
    status, text = trial._run(["sh", "-c", "echo begun; sleep 60"], environ, 0.2)
    assert (status, text) in ((None, "begun\n"), (None, ""))
    missing = trial._run(["/nonexistent/python"], environ, 1)
    assert missing == (1, "probe-trial: /nonexistent/python: No such file or directory")


def leased(**environ: str) -> Any:
    devices = [{"id": "pci:1", "vendor": "acme"}, {"id": "pci:2", "vendor": None}]
    own = {"PATH": os.environ["PATH"], **environ}
    return SimpleNamespace(devices=devices, ids=["pci:1", "pci:2"], environ=own)


def test_a_command_is_tried_with_its_own_framework(tmp_path: Path) -> None:
    folder = torch(tmp_path)
    package(tmp_path / "site", "jax", "raise ImportError('no jaxlib')")
    lease = leased(PYTHONPATH=folder)
    command = [sys.executable, "-c", "import torch"]
    failure = f"torch of {sys.executable} cannot use pci:1, pci:2: "
    told = trial.try_devices(lease, sys.executable, command)
    assert told == f"{failure}torch: it sees 1 of 2 devices"
    command = [sys.executable, "-c", "from jax import numpy"]
    told = trial.try_devices(lease, sys.executable, command)
    assert told == f"jax of {sys.executable} cannot use pci:1, pci:2: ImportError: no jaxlib"
    # Of several that are there the first of ours, where the script names none.
    told = trial.try_devices(lease, sys.executable, [sys.executable, "-m", "train"])
    assert told == f"{failure}torch: it sees 1 of 2 devices"
    # A program that is no Python: the runtime's library, of which this vendor has none.
    assert trial.try_devices(lease, "/bin/true", ["true"]) is None
    late = trial.try_devices(lease, sys.executable, command, deadline=0.0)
    assert late == f"jax of {sys.executable} cannot use pci:1, pci:2: it did not answer within 0 s"
