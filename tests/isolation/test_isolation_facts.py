"""How a run ended is known as facts, on either driver, and code never reads its reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from probe_core.isolation import confine
from probe_core.isolation.run import Run, location, signal_name
from probe_core.isolation.start import ORPHANED
from probe_core.model.ids import FAILURES
from probe_core.pipeline.validate import Collected
from probe_core.registry.prober import Prober

Source = Callable[..., Run]
HOOK = "@hookimpl\ndef probe_devices(request):\n    "

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "killed while importing": (
        "os.kill(os.getpid(), 11)",
        {"phase": "import", "signal": "SIGSEGV"},
    ),
    "exits while importing": ("os._exit(7)", {"phase": "import", "exit_status": 7}),
    "killed in its call": (f"{HOOK}os.abort()", {"phase": "call", "signal": "SIGABRT"}),
    "exits in its call": (f"{HOOK}os._exit(0)", {"phase": "call", "exit_status": 0}),
    "raises": (f"{HOOK}1 / 0", {"phase": "call"}),
    "answers nonsense": (f"{HOOK}return 5", {"phase": "call"}),
    "lacks a hook": ("x = 5", {"phase": "import"}),
    "closes its pipe": (f"{HOOK}os.closerange(3, 4096); time.sleep(9)", {"phase": "call"}),
    "answers": (f"{HOOK}return [{{'ids': ['x:1'], 'kind': 'npu'}}]", {}),
    "is not applicable": (f"{HOOK}return []", {}),
    "is unavailable": (
        f"{HOOK}raise Unavailable('r', code='no-permission')",
        {"code": "no-permission"},
    ),
}


@pytest.mark.heavy
@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_facts_of_an_end(run_source: Source, case: str, portable: bool) -> None:
    source, facts = CASES[case]
    assert run_source(source, portable=portable).details == facts


@pytest.mark.heavy
@pytest.mark.parametrize("portable", [False, True])
def test_a_timeout_tells_where_it_was_stuck(run_source: Source, portable: bool) -> None:
    run = run_source("def wait(): time.sleep(60)\nwait()", deadline_s=2.0, portable=portable)
    assert (run.status, run.details["phase"]) == ("timeout", "import")
    path, _, place = run.details["stuck_at"].rpartition("x_x.py:")
    assert (path[:1], place) == ("/", "3 in wait")


@pytest.mark.heavy
def test_a_slow_prober_is_not_looked_into_before_its_time_is_nearly_over(
    run_source: Source,
) -> None:
    """Reading the stack of a thread that runs can crash it."""
    sleep = f"{HOOK}time.sleep({{}}); yield {{{{'ids': ['x:1'], 'kind': 'npu'}}}}"
    slow = run_source(sleep.format(2.4), deadline_s=4.0)
    assert (slow.status, slow.stderr_tail()) == ("ok", [])
    hung = run_source(sleep.format(60), deadline_s=1.0)
    assert (hung.status, "stuck_at" in hung.details) == ("timeout", True)


def test_the_stack_is_written_as_late_as_can_be() -> None:
    script = """
import faulthandler, time
times = []
faulthandler.dump_traceback_later = lambda after, **options: times.append(after)
from probe_core.isolation.confine import limit
for seconds in (0.01, 0.5, 1.0, 10.0):
    limit(seconds, time.monotonic() + 60)
print(*(f"{after:.3f}" for after in times))
"""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    # At nine tenths, or a tenth of a second before the end where that is later.
    assert done.stdout.split() == ["0.020", "0.450", "0.900", "9.900"]


def test_without_a_supervisor_the_end_of_the_request_pipe_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    statuses: list[int] = []
    monkeypatch.setattr(confine, "_exit", statuses.append)
    monkeypatch.setattr(confine, "start_thread", lambda call, *arguments: call(*arguments))
    reading, writing = os.pipe()
    os.write(writing, b"more of the request")
    os.close(writing)
    confine.die_with_parent(reading)
    os.close(reading)
    confine.die_with_parent(reading)  # which cannot be read
    assert statuses == [ORPHANED, ORPHANED]

    def full(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(confine, "start_thread", full)
    confine.die_with_parent(reading)
    assert len(statuses) == 2


def test_a_process_that_cannot_be_started(
    run_source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python3")
    run = run_source("")
    assert (run.status, run.details) == ("resource", {"phase": "start"})


def test_a_child_without_a_pipe_reports_why_on_standard_error(run_source: Source) -> None:
    """The frame is behind the run's secret, which stays out of the report."""
    run = run_source(f"{HOOK}os.close(200)\n    yield {{'ids': ['x:1'], 'kind': 'npu'}}")
    assert (run.status, run.details) == ("crashed", {"phase": "call", "exit_status": 70})
    assert run.reason == (
        "it exited with status 70 before it had answered (OSError: [Errno 9] Bad file descriptor)"
    )
    assert run.token.decode() not in " ".join(run.stderr_tail())


FORGED = ["{}", "[]", "nonsense", "[" * 5000, '{"reason": {"a": 1}}', '{"reason": "\\u001b[2J"}']


@pytest.mark.parametrize("text", FORGED)
def test_what_stands_behind_the_secret_on_standard_error_is_not_trusted(text: str) -> None:
    run = Run(Prober("x", "x"), "secret", "mark", 0.0)
    run.feed_stderr(f"secret {text}\n".encode())
    run.exited(70, 0.1)
    assert str(run.reason).startswith("it exited with status 70 before it could start")
    assert str(run.reason).isprintable()


def test_a_word_of_the_plugin_is_no_word_of_the_core() -> None:
    run = Run(Prober("x", "x"), "secret", "mark", 0.0)
    run.feed_stderr(b'probe-core: mine\nother {"reason": "mine"}\n')
    run.exited(70, 0.1)
    assert run.reason == "it exited with status 70 before it could start"
    assert len(run.stderr_tail()) == 2


def test_a_status_that_the_host_took() -> None:
    run = Run(Prober("x", "x"), "secret", "mark", 0.0)
    run.exited(None, 0.1)
    assert (run.status, run.details) == ("crashed", {"phase": "start"})


def test_only_the_first_end_leaves_facts() -> None:
    run = Run(Prober("x", "x"), "secret", "mark", 0.0)
    run.finish("ok", None, 0.1)
    run.exited(-9, 0.2)
    run.expire(9.0)
    assert (run.status, run.details) == ("ok", {})


def test_facts_are_in_the_outcome() -> None:
    run = Run(Prober("x", "x"), "secret", "mark", 0.0)
    run.exited(-11, 0.1)
    collected = Collected()
    collected.add_run(run)
    (outcome,) = collected.outcomes
    assert outcome["status"] in FAILURES
    assert (outcome["phase"], outcome["signal"]) == ("start", "SIGSEGV")
    assert not {"exit_status", "stuck_at"} & outcome.keys()


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ('File "/a b/x.py", line 10 in probe', "/a b/x.py:10 in probe"),
        ('File "/odd", line 3.py", line 10 in f', '/odd", line 3.py:10 in f'),
        ("File ???, line ??? in f", "File ???, line ??? in f"),
    ],
)
def test_a_frame_of_a_dump_is_a_place(frame: str, expected: str) -> None:
    assert location(frame) == expected


def test_signals_have_their_names() -> None:
    """Also 1 and 2, which are ITIMER_VIRTUAL and ITIMER_PROF as well."""
    numbers = [*signal.Signals, 40]
    names = [*(number.name for number in signal.Signals), "signal 40"]
    assert [signal_name(number) for number in numbers] == names
