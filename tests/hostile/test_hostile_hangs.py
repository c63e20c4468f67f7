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


@pytest.mark.parametrize("case", HANGS)
def test_hang(hostile: Hostile, tmp_path: Path, case: str) -> None:
    outcome = hostile(f"os.chdir({str(tmp_path)!r})\n{HANGS[case]}\nreturn []", timeout=0.6)
    assert outcome["status"] == "timeout"
    assert outcome["reason"].startswith("its call took longer than 0.6 s")


def test_a_fork_bomb(hostile: Hostile) -> None:
    """Bounded by a limit of its own, so that a failing test does not take the machine along."""
    outcome = hostile(
        """
        import resource
        yield ONE
        end = time.monotonic() + 5
        while time.monotonic() < end:
            try:
                os.fork()
            except OSError:
                pass
            if len([p for p in os.listdir('/proc') if p.isdecimal()]) > 600:
                time.sleep(60)
        """,
        timeout=0.8,
    )
    assert (outcome["status"], outcome["partial"]) == ("timeout", True)
