"""Plugins that never end: killed at the deadline, whatever they do about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Hostile = Callable[..., dict[str, Any]]

HANGS: dict[str, str] = {
    "sleeps": "time.sleep(60)",
    "spins": "while True: pass",
    "holds-the-gil-in-c": "import ctypes; ctypes.PyDLL(None).sleep(60)",
    "ignores-signals": "import signal\n"
    "for s in signal.valid_signals() - {9, 19}: signal.signal(s, signal.SIG_IGN)\ntime.sleep(60)",
    "stops-itself": "os.kill(os.getpid(), 19)",
    "waits-for-a-tool": "import subprocess; subprocess.run(['sleep', '60'])",
    "waits-for-a-shell": "os.system('sleep 60; true')",
    "joins-a-thread": "import threading\n"
    "t = threading.Thread(target=time.sleep, args=(60,)); t.start(); t.join()",
    "deadlocks": "import threading\nlock = threading.Lock(); lock.acquire(); lock.acquire()",
    "reads-a-fifo": "os.mkfifo('fifo'); open('fifo')",
    "sleeps-in-finally": "try: sys.exit()\nfinally: time.sleep(60)",
    "awaits": "import asyncio; asyncio.run(asyncio.sleep(60))",
    "floods-stderr": "while True: os.write(2, b'x' * 65536)",
    "forks-and-waits": "pid = os.fork()\nif pid == 0: time.sleep(60)\nos.waitpid(pid, 0)",
}


@pytest.mark.heavy
@pytest.mark.parametrize("case", HANGS)
def test_hang(hostile: Hostile, tmp_path: Path, case: str) -> None:
    outcome = hostile(f"os.chdir({str(tmp_path)!r})\n{HANGS[case]}\nreturn []", timeout=1.5)
    assert outcome["status"] == "timeout"
    assert outcome["reason"].startswith("its call took longer than 1.5 s")


@pytest.mark.heavy
def test_a_fork_bomb(hostile: Hostile) -> None:
    """Of lowest priority and limited number, so that it leaves the tests beside it their time."""
    outcome = hostile(
        """
        def running():
            return len([p for p in os.listdir('/proc') if p.isdecimal()])
        yield ONE
        os.nice(19)
        limit = running() + 100
        while running() < limit:
            try:
                os.fork()
            except OSError:
                pass
        time.sleep(60)
        """,
        timeout=2.0,
    )
    assert (outcome["status"], outcome["partial"]) == ("timeout", True)
