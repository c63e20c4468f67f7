"""Leftovers are looked for in /proc, unless a supervisor proves that there are none."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest

from probe_core.isolation import processes
from probe_core.isolation.run import Run

Hook = Callable[..., Run]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervisors are Linux's")

ANSWERS = 'return [{"ids": ["x:1"], "kind": "npu"}]'
DAEMON = """
if os.fork() == 0:
    os.setsid()
    os.fork() and os._exit(0)
    time.sleep(60)
"""
LIKE_THE_PROOF = "os._exit(79)"


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the process ids of the children for whose leftovers /proc was searched."""
    pids: list[int] = []
    search = processes.end_leftovers

    def note(started: Mapping[int, str], limit: float, clock: Callable[[], float]) -> set[int]:
        pids.extend(started)
        return search(started, limit, clock)

    monkeypatch.setattr(processes, "end_leftovers", note)
    return pids


def is_believed(attempt: Callable[[], Run], status: str, searched: list[int]) -> bool:
    """Return whether a run ended without a search.

    A supervisor has 0.3 s to end all; on a machine too busy for that it is killed, and proves
    nothing. Hence several attempts.
    """
    for _ in range(10):
        searched.clear()
        run = attempt()
        assert (run.status, run.still_there) == (status, [])
        if not searched:
            return True
    return False


@pytest.mark.parametrize("starts", ["", DAEMON], ids=["nothing", "a daemon"])
def test_supervisor_that_ended_all_is_believed(
    starts: str, run_hook: Hook, searched: list[int]
) -> None:
    assert is_believed(lambda: run_hook(f"{starts}\n{ANSWERS}"), "ok", searched)


def test_supervisor_that_has_ended_before_it_was_asked_is_believed(
    run_hook: Hook, searched: list[int]
) -> None:
    def wait_for_its_end(now: float, runs: object) -> None:
        with suppress(ChildProcessError):  # it has been reaped
            if not runs:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)

    run = run_hook(f"{DAEMON}\n{ANSWERS}", waiting=wait_for_its_end)
    assert (run.status, run.inherited, searched) == ("ok", True, [])


@pytest.mark.heavy
def test_after_a_deadline_too(run_hook: Hook, searched: list[int]) -> None:
    assert is_believed(lambda: run_hook("time.sleep(60)", deadline_s=0.5), "timeout", searched)


def test_killed_supervisor_proves_nothing(run_hook: Hook, searched: list[int]) -> None:
    run = run_hook(f"{DAEMON}\nos.kill(os.getppid(), 9)\ntime.sleep(60)")
    assert run.status == "crashed"
    assert len(searched) == 1


@pytest.mark.parametrize("end", [LIKE_THE_PROOF, f"os.kill(os.getppid(), 15); {LIKE_THE_PROOF}"])
def test_prober_that_exits_with_the_same_status_has_crashed(
    end: str, run_hook: Hook, searched: list[int]
) -> None:
    assert run_hook(f"{DAEMON}\n{end}").status == "crashed"
