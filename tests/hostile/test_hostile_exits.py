"""Plugins whose process ends in some odd way: how it ended is told exactly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probe_core.model import Report

Hostile = Callable[..., dict[str, Any]]
Check = Callable[[dict[str, Any], str, str], None]

EXITS: dict[str, tuple[str, str, str]] = {
    "sys.exit": ("sys.exit()", "call_error", "it called sys.exit(None)"),
    "sys.exit-text": ("sys.exit('bye')", "call_error", "it called sys.exit('bye')"),
    "os._exit": ("os._exit(0)", "crashed", "exited with status 0 before it had answered"),
    "os._exit-3": ("os._exit(3)", "crashed", "exited with status 3"),
    "abort": ("os.abort()", "crashed", "killed by SIGABRT"),
    "segfault": (
        "import ctypes; ctypes.string_at(0)",
        "crashed",
        "killed by SIGSEGV before it had answered (Fatal Python error: Segmentation fault)",
    ),
    "bus-error": ("os.kill(os.getpid(), 7)", "crashed", "killed by SIGBUS"),
    "illegal": ("os.kill(os.getpid(), 4)", "crashed", "killed by SIGILL"),
    "kills-itself": ("os.kill(os.getpid(), 9)", "crashed", "killed by SIGKILL"),
    "terminates-itself": ("os.kill(os.getpid(), 15); time.sleep(9)", "crashed", "SIGTERM"),
    "interrupts-itself": ("os.kill(os.getpid(), 2); time.sleep(9)", "call_error", "Keyboard"),
    "kills-its-group": ("os.killpg(0, 9)", "crashed", "killed by SIGKILL"),
    "alarm": ("import signal; signal.setitimer(0, 0.05); time.sleep(9)", "crashed", "SIGALRM"),
    "real-time-signal": ("os.kill(os.getpid(), 40); time.sleep(9)", "crashed", "signal 40"),
    "c-exit": ("import ctypes; ctypes.CDLL(None).exit(4)", "crashed", "exited with status 4"),
    "exec": (
        "os.execv('/bin/sh', ['sh', '-c', 'exit 5'])",
        "crashed",
        "exited with status 5 before it had answered",
    ),
    "c-stack-overflow": (
        (
            "import ctypes\nsys.setrecursionlimit(10**8)\n"
            "F = ctypes.CFUNCTYPE(None)\ng = F(lambda: g())\ng()"
        ),
        "crashed|call_error|resource|invalid",  # from 3.12 ctypes swallows the RecursionError
        "SIGSEGV|RecursionError|memory|returned None",
    ),
    "stack-overflow": (
        (
            "sys.setrecursionlimit(10**8)\nclass R:\n    def __repr__(self): return repr([self])\n"
            "return repr(R())"
        ),
        "crashed|call_error|resource",
        "SIGSEGV|RecursionError|memory",
    ),
    "fork-parent-exits": (
        "if os.fork(): os._exit(0)\ntime.sleep(0.1)\nreturn [ONE]",
        "crashed",
        "exited with status 0 before it had answered",
    ),
    "memory-limit": (
        (
            "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))\n"
            "x = bytearray(1 << 40)"
        ),
        "resource",
        "ran out of memory",
    ),
    "full-disk": (
        "f = open('/dev/full', 'w'); f.write('x' * 99999); f.flush()",
        "call_error",
        "No space left",
    ),
    "huge-file": (
        "f = open('big', 'wb'); f.seek(1 << 40); f.write(b'x'); f.flush()",
        "call_error",
        "OSError: [Errno 27] File too large",
    ),
    "closes-everything": (
        "os.closerange(3, 4096)\nyield ONE",
        "crashed|protocol",
        "Bad file descriptor|closed its result pipe",
    ),
    "closes-and-lives": ("os.closerange(3, 4096)\ntime.sleep(9)", "protocol", "closed its result"),
}


@pytest.mark.heavy
@pytest.mark.parametrize("case", EXITS)
def test_exit(hostile: Hostile, check: Check, tmp_path: Path, case: str) -> None:
    body, status, reason = EXITS[case]
    outcome = hostile(f"os.chdir({str(tmp_path)!r})\n{body}")
    check(outcome, status, reason)
    assert not outcome["partial"]


def test_files_opened_where_the_pipe_was_are_not_written_to(
    hostile: Hostile, check: Check, tmp_path: Path
) -> None:
    path = tmp_path / "precious"
    path.write_bytes(b"data")
    outcome = hostile(
        f"os.closerange(3, 4096)\nfor _ in range(400): os.open({str(path)!r}, os.O_RDWR)\nyield ONE"
    )
    check(outcome, "crashed|protocol", "closed its result pipe")
    assert path.read_bytes() == b"data"


def test_a_crash_keeps_what_was_seen(hostile: Hostile) -> None:
    outcome = hostile("yield ONE\nyield {**ONE, 'ids': ['x:2']}\nos.abort()")
    assert (outcome["status"], outcome["partial"], outcome["devices"]) == ("crashed", True, 2)
    assert any("File" in line for line in outcome["stderr"])
    assert (outcome["phase"], outcome["signal"]) == ("call", "SIGABRT")
    view = next(o for o in Report.from_json(outcome["document"]).outcomes if o.prober == "bad")
    assert (view.phase, view.signal, view.exit_status) == ("call", "SIGABRT", None)
    finding = next(f for f in outcome["document"]["findings"] if f["code"] == "prober-failed")
    assert finding["what"] == "probe-bad 1.0: prober 'bad' failed (crashed)"
