"""The driver for systems without posix_spawn gives the same outcomes; here it runs on POSIX."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from probe_core.isolation import launch, portable
from probe_core.isolation.run import Run

Hook = Callable[..., Run]
DEVICE = '{"ids": ["x:1"], "kind": "npu"}'

CASES = [
    (f"yield {DEVICE}", "ok", None),
    ('return not_applicable("none here")', "not_applicable", "none here"),
    ("1 / 0", "call_error", "ZeroDivisionError: division by zero"),
    (f"yield {DEVICE}\nos._exit(3)", "crashed", "it exited with status 3 before it had answered"),
    ("os.kill(os.getpid(), 9)", "crashed", "it was killed by SIGKILL before it had answered"),
    ("os.closerange(3, 4096)\ntime.sleep(60)", "protocol", "it closed its result pipe"),
    (f"yield {DEVICE}\ntime.sleep(60)", "timeout", "its call took longer than 1 s"),
    (
        'os.fork() or (os.setsid(), time.sleep(2))\nreturn [{"ids": ["x:1"], "kind": "npu"}]',
        "ok",
        "",
    ),
]


@pytest.mark.heavy
@pytest.mark.parametrize(("body", "status", "reason"), CASES)
def test_same_outcomes(run_hook: Hook, body: str, status: str, reason: str | None) -> None:
    threads = threading.active_count()
    start = time.monotonic()
    run = run_hook(body, portable=True, deadline_s=1.0)
    assert time.monotonic() - start < 10.0
    assert run.status == status
    assert str(run.reason).startswith(str(reason)) if reason is not None else run.reason is None
    assert len(run.sightings) == body.count("ids")
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert threading.active_count() == threads


def test_it_serves_a_large_request_and_a_loud_child(run_hook: Hook) -> None:
    bus = [{"extra": "x" * 100_000} for _ in range(10)]
    body = f'sys.stderr.write("x" * 2_000_000)\nassert len(request.bus) == 10\nyield {DEVICE}'
    assert run_hook(body, portable=True, bus=bus).status == "ok"


def test_it_is_used_where_there_is_no_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    import select

    monkeypatch.delattr(select, "poll")  # as eventlet.monkey_patch() does
    assert isinstance(launch.new_driver(False, -1), portable.Driver)


def test_it_is_used_where_there_is_no_posix_spawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_spawn")
    assert isinstance(launch.new_driver(False, -1), portable.Driver)


def test_on_windows_the_whole_tree_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """taskkill may be missing or hang: the child itself is killed in any case."""
    commands: list[list[str]] = []

    class Process:
        killed = False

        def kill(self) -> None:
            self.killed = True

    def refuse(command: list[str], **options: object) -> None:
        commands.append(command)
        assert options["timeout"] == portable.REAP_S
        raise FileNotFoundError("taskkill")

    child = portable.Child.__new__(portable.Child)
    child.pid, child.process = 4242, Process()  # type: ignore[assignment]
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(subprocess, "run", refuse)
    portable._kill_tree(child)
    assert commands == [["taskkill", "/F", "/T", "/PID", "4242"]]
    assert child.process.killed  # type: ignore[attr-defined]
