"""A host in a process of its own, of which a test can break, forbid or take away what it likes."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

HEAD = f"""
import collections, json, os, signal, sys, threading, time
sys.path[:0] = [sys.argv[1], {str(ROOT)!r}, {str(ROOT / "chipdb/src")!r}]
import probe_core

def once():
    report = probe_core.probe(timeout=8, only=["good"], refresh=True)
    return [o.status for o in report.outcomes if o.prober == "good"]

def state():
    return sorted(os.listdir("/proc/self/fd")), sorted(os.listdir("/proc/self/task"))

def left(before, looks=500):
    for _ in range(looks):  # the kernel takes a moment for a thread's end
        try:
            child = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            child = None
        if state() == before and child is None:
            return None
        time.sleep(0.002)
    return [state(), child]
"""


def host(site: Path, script: str, *before: str) -> Any:
    """Run a host of its own and return what it printed; `before` is what starts it."""
    script = HEAD + textwrap.dedent(script)
    done = subprocess.run(
        [*before, sys.executable, "-c", script, str(site)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
