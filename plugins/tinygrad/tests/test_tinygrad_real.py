"""The real tinygrad, executing on this machine's CPU, and its own choice against ours."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probe_core.api import Machine, Request
from probe_tinygrad.choice import choose
from probe_tinygrad.prober import probe_devices

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tinygrad") is None, reason="tinygrad is not installed"
)


def answer(**environ: str) -> list[Any]:
    machine = Machine("/", environ={"PATH": os.environ.get("PATH", os.defpath), **environ})
    return list(probe_devices(Request(machine, active=True, deadline_s=60.0)))  # type: ignore[arg-type]


@pytest.mark.skipif(shutil.which("clang") is None, reason="tinygrad compiles with clang")
def test_it_executes_on_the_cpu_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    lines = answer(HOME=str(folder), TMPDIR=str(folder), DEBUG="true", CPU="1")
    (cpu,) = [line for line in lines if line.get("ids") == ["cpu:0"]]
    assert cpu["kind"] == "cpu"
    assert "tinygrad:cpu" in cpu["backends"]
    assert {"CPU", "CLANG"} & set(cpu["extra"]["tinygrad"]["executed"])
    assert cpu["extra"]["tinygrad"]["version"]
    assert list(folder.iterdir()) == []
    (broken,) = [line["finding"] for line in lines if "finding" in line]
    assert broken["code"] == "tinygrad-variable-breaks"


@pytest.mark.heavy
@pytest.mark.parametrize(
    "environ",
    [{"DEV": "BOGUS"}, {"CPU": "1"}, {"DEV": "CPU:LLVM"}, {"DEBUG": "true"}, {"DEV": "a+b+c"}],
    ids=str,
)
def test_the_choice_is_its_own(environ: dict[str, str]) -> None:
    # None of these opens a device.
    code = "from tinygrad import Device; print(Device.DEFAULT)"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**environ, "PYTHONPATH": path, "CACHELEVEL": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    from probe_tinygrad import child

    tinygrad = child.load_tinygrad()
    ours = choose(child.describe_tinygrad(tinygrad), {}, environ)
    theirs = run.stdout.strip() if run.returncode == 0 else None
    assert (None if ours.broken else ours.backend) == theirs, run.stderr
