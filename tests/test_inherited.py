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


@pytest.mark.heavy
def test_a_test_that_hangs_is_ended_and_named(tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(
        "import pytest, threading\n\n"
        "def test_before(): print('this one ended')\n\n"
        "@pytest.mark.timeout(1)\n"
        "def test_hanging(): threading.Event().wait()\n"
    )
    options = ("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}")
    options += (f"--rootdir={ROOT}", f"--confcutdir={ROOT}", "-c", f"{ROOT / 'pyproject.toml'}")
    options += ("-p", "conftest", f"{tmp_path / 'test_hanging.py'}")
    done = subprocess.run(
        [sys.executable, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Stack of MainThread" in done.stdout
    assert "in test_hanging" in done.stdout
    assert "this one ended" not in done.stdout


def test_the_mark_of_a_heavy_test_is_seen_in_its_file() -> None:
    """Where the heavy tests alone are asked for, a file without the word is not imported."""
    hidden = [
        path
        for folder in (ROOT / "tests", ROOT / "chipdb/tests", *ROOT.glob("plugins/*/tests"))
        for path in folder.rglob("*.py")
        if not path.name.startswith("test_") and "mark.heavy" in path.read_text("utf-8")
    ]
    assert [path.name for path in hidden] == ["weights.py"]
