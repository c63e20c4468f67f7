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
import ctypes, json, os, sys, time
sys.path[:0] = [sys.argv[1], {str(ROOT)!r}, {str(ROOT / "chipdb/src")!r}]
from probe_core.api import hookimpl
from probe_core.config import load_config
from probe_core.registry.host import Host
from probe_core.machine import Machine
from probe_core.pipeline.run import run_pipeline

# Process 1 of a PID namespace cannot end while a zombie in it is not reaped by its parent.
NEWUSER, NEWPID = 0x10000000, 0x20000000
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(NEWPID) and libc.unshare(NEWUSER | NEWPID):
    sys.exit("cannot: " + os.strerror(ctypes.get_errno()))


class Zombie:
    @hookimpl
    def probe_observe(self, event, details):
        if event == "started" and details["prober"] == "good":  # the stuck one was started before
            while not os.path.exists(sys.argv[1] + "/ready"):
                time.sleep(0.005)
            os.posix_spawn("/bin/true", ["true"], os.environ)


settings = {{"only": ["stuck", "good"], "priority": {{"stuck": 900}}}}
for timeout, hooks in (0.7, [Zombie()]), (20.0, []):
    config, _ = load_config({{**settings, "timeout": timeout}}, {{}})
    start = time.monotonic()
    found = run_pipeline(Machine(), config, host=Host(hooks) if hooks else None)
    took = time.monotonic() - start
    outcomes = {{o["prober"]: o for o in found["outcomes"]}}
    codes = [f["code"] for f in found["findings"] if f["severity"] == "error"]
    print(json.dumps([outcomes["stuck"], outcomes["good"]["status"], codes, took]))
"""


def install(site: Path, name: str, body: str) -> None:
    metadata = site / f"probe_{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text(f"[probe_core.probers.v1]\n{name} = x_{name}\n")
    head = "import time\nfrom probe_core.api import *\nONE = {'ids': ['x:1'], 'kind': 'npu'}\n"
    (site / f"x_{name}.py").write_text(f"{head}@hookimpl\ndef probe_devices(request):\n{body}")


@pytest.mark.skipif(sys.platform != "linux", reason="needs PID namespaces")
def test_stuck_in_the_kernel(tmp_path: Path, untouched: Callable[[], Any]) -> None:
    ready = str(tmp_path / "ready")
    body = f"    yield ONE\n    open({ready!r}, 'w').close()\n    time.sleep(60)\n"
    install(tmp_path, "stuck", body)
    install(tmp_path, "good", "    return []\n")
    command = [sys.executable, "-c", HOST, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.stderr.startswith("cannot: "):
        pytest.skip(f"no PID namespace can be made here: {done.stderr[8:].strip()}")
    assert done.returncode == 0, done.stderr
    first, second = map(json.loads, done.stdout.splitlines())
    stuck, good, codes, took = first
    assert (stuck["status"], stuck["partial"], good) == ("timeout", True, "not_applicable")
    assert codes == ["prober-unkillable"]
    assert took < 1.7
    stuck, _, _, took = second  # no process can be made in a namespace whose first one dies
    assert (stuck["status"], stuck["code"]) == ("skipped", "unkillable")
    assert stuck["reason"] == "an earlier run in this process is stuck in the kernel"
    assert took < 10.0, "it was not waited for again: its deadline was 20 s"
