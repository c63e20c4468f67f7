"""The tests start from the same surroundings, whatever started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ODD = {
    "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/nonexistent/cache", "LC_ALL": "C",
    "NO_COLOR": "1", "FORCE_COLOR": "1", "COLUMNS": "30", "PROBE_ONLY": "nothing",
    "PROBE_CONFIG": "/nonexistent/file", "CUDA_VISIBLE_DEVICES": "7",
}  # fmt: skip
BLOCKED = {signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1}
IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD)


def test_surroundings_are_the_default() -> None:
    assert ODD.keys() & os.environ.keys() == set()
    assert os.path.isabs(os.environ["HOME"])
    assert (sys.dont_write_bytecode, sys.pycache_prefix) == (False, None)
    handlers = [signal.getsignal(number) for number in IGNORED]
    assert handlers == [
        signal.SIG_DFL, signal.default_int_handler, signal.SIG_DFL, signal.SIG_DFL
    ]  # fmt: skip
    assert BLOCKED & signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
    umask = os.umask(0o022)
    assert umask == 0o022
    # What a child inherits.
    script = (
        "import signal; print(int(signal.getsignal(signal.SIGHUP)), signal.pthread_sigmask(0, ()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0 set()\n"


@pytest.mark.heavy
def test_odd_surroundings_are_left_outside(tmp_path: Path) -> None:
    start = f"""
import os, signal, sys
for number in {tuple(map(int, IGNORED))}:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {tuple(map(int, BLOCKED))})
os.umask(0o077)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
    own = f"{Path(__file__)}::test_surroundings_are_the_default"
    options = ("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path}", own)
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", start, *options],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, **ODD},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr
