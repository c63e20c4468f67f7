"""A prober stuck in the kernel: the host returns in time, says so, and does not try it again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

HOST = f"""
import json, os, sys, time
sys.path[:0] = [sys.argv[1], {str(ROOT)!r}, {str(ROOT / "chipdb/src")!r}]
from probe_core.setting_values import load_config
from probe_core.machine import Machine
from probe_core.pipeline.run import run_pipeline

sys.path.insert(0, {str(Path(__file__).parent)!r})
import fuse_server

# What waits for a server that has read its request takes no signal, SIGKILL included (D state).
server = fuse_server.mount(sys.argv[1] + "/served", {{"x": b""}}, fuse_server.LOOKUP)
if server is None:
    sys.exit("cannot")


settings = {{"only": ["stuck", "good"], "priority": {{"stuck": 900}}}}


def run(timeout):
    config, _ = load_config({{**settings, "timeout": timeout}}, {{}})
    start = time.monotonic()
    found = run_pipeline(Machine(), config)
    took = time.monotonic() - start
    outcomes = {{o["prober"]: o for o in found["outcomes"]}}
    codes = [f["code"] for f in found["findings"] if f["severity"] == "error"]
    return [outcomes["stuck"], outcomes["good"]["status"], codes, took]


print(json.dumps(run(1.5)))
print(json.dumps(run(20.0)))
os.kill(server, 9)  # the kernel answers in its place, and the killed process ends
os.waitpid(server, 0)
while (last := run(20.0))[0]["status"] == "skipped":
    time.sleep(0.05)
print(json.dumps(last))
"""


def install(site: Path, name: str, body: str) -> None:
    metadata = site / f"probe_{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text(f"[probe_core.probers.v1]\n{name} = x_{name}\n")
    head = "import os\nfrom probe_core.api import *\nONE = {'ids': ['x:1'], 'kind': 'npu'}\n"
    (site / f"x_{name}.py").write_text(f"{head}@hookimpl\ndef probe_devices(request):\n{body}")


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform != "linux", reason="needs FUSE")
def test_stuck_in_the_kernel(tmp_path: Path, untouched: Callable[[], Any]) -> None:
    install(tmp_path, "stuck", f"    yield ONE\n    os.stat({str(tmp_path / 'served/x')!r})\n")
    install(tmp_path, "good", "    return []\n")
    command = [sys.executable, "-c", HOST, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.stderr.startswith("cannot"):
        pytest.skip("no file system may be mounted here")
    assert done.returncode == 0, done.stderr
    first, second, third = map(json.loads, done.stdout.splitlines())
    stuck, good, codes, took = first
    assert (stuck["status"], stuck["partial"], good) == ("timeout", True, "not_applicable")
    assert codes == ["prober-unkillable"]
    assert took < 10.0
    stuck, _, _, took = second
    assert (stuck["status"], stuck["code"]) == ("skipped", "unkillable")
    assert stuck["reason"] == "an earlier run in this process is stuck in the kernel"
    assert took < 10.0, "it was not waited for again: its deadline was 20 s"
    assert third[0]["status"] == "call_error"  # what has ended late is started again
    assert "ENOTCONN" in third[0]["reason"] or "not connected" in third[0]["reason"]
