"""Bounds of one run's state, moment by moment and byte by byte; no process is started."""

from __future__ import annotations

import queue
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.isolation import portable, run
from probe_core.isolation.run import Patience, Run, crash_headline, location, stuck_frame
from probe_core.isolation.wire import frame
from probe_core.model.ids import STATUSES
from probe_core.registry.prober import Prober

ACME = Prober("acme", "acme", "acme")
ACME.deadline_s = 10.0
NEVER = float("inf")


def begun() -> Run:
    return Run(ACME, "t", "m", 100.0)


def said(kind: str, **fields: Any) -> bytes:
    return b"t " + frame(kind, fields).encode() + b"\n"


# How long a device may be silent.


@pytest.mark.parametrize(
    ("asked", "end"),
    [(100.0, 102.5), (104.0, 105.5), (106.0, 107.0), (109.5, 110.5)],
)
def test_a_quarter_of_what_remains_and_a_tenth_of_all(asked: float, end: float) -> None:
    patience = Patience(10.0, 110.0)
    assert (patience.due, patience.device, patience.pass_time(1e9)) == (NEVER, None, False)
    patience.touch("a", asked)
    assert (patience.device, patience.due, patience.exhausted) == ("a", end, False)
    assert not patience.pass_time(end - 0.001)
    assert patience.pass_time(end)
    assert (patience.silent, patience.exhausted, patience.due) == (["a"], True, NEVER)
    patience.arrived()
    assert (patience.silent, patience.exhausted, patience.device) == ([], False, None)


def test_of_several_each_has_its_time_and_another_line_is_a_sign_of_life() -> None:
    patience = Patience(10.0, 110.0)
    patience.ask([("a", None), ("b", "x:1"), (5, None), ("", None)], 100.0)
    assert (sorted(patience.asked), patience.device, patience.due) == (["a", "b"], None, 102.5)
    patience.ask([("a", None), ("b", "x:2")], 102.0)  # what was not known is no other line
    assert patience.asked == {"a": (100.0, None), "b": (102.0, "x:2")}
    patience.arrived()  # the prober says itself what is answered
    assert len(patience.asked) == 2
    assert patience.pass_time(102.5)
    assert (patience.silent, patience.due) == (["a"], 104.0)
    assert patience.line() is None
    assert patience.pass_time(104.0)
    assert (patience.silent, patience.line()) == (["a", "b"], "x:2")
    # Whose silence was its own: a quarter of all time there was.
    assert patience.suspects(102.4) == []
    assert patience.suspects(102.5) == ["a"]
    assert patience.suspects(104.5) == ["a", "b"]
    patience.go_on(104.5)
    assert patience.several, "of several it is not known which goes on"


def test_who_says_something_asks_the_same_device_still() -> None:
    patience = Patience(10.0, 110.0)
    patience.go_on(101.0)
    assert patience.due == NEVER
    patience.touch("a", 100.0)
    patience.touch(7, 101.0)
    patience.touch("x" * 5000, 101.0)
    assert (patience.device, patience.due) == ("a", 102.5)
    patience.go_on(102.0)
    assert patience.due == 104.0
    patience.clean_up(103.0)
    assert (patience.device, patience.due) == (None, 103.2)


# What a run takes.


@pytest.mark.parametrize(
    ("limit", "value", "data", "status"),
    [
        ("TOTAL_LIMIT", 6, b"ab\ncd\n", None),
        ("TOTAL_LIMIT", 5, b"ab\ncd\n", "resource"),
        ("FRAME_LIMIT", 0, b"x" * 100, None),
        ("FRAME_LIMIT", 0, b"x" * 101, "protocol"),
        ("STRAY_LIMIT", 4, b"ab\ncd\n", None),
        ("STRAY_LIMIT", 3, b"ab\ncd\n", "protocol"),
        ("MAX_FRAMES", 2, said("loaded") * 2, None),
        ("MAX_FRAMES", 1, said("loaded") * 2, "protocol"),
        ("MAX_DEVICES", 1, said("device", device=1), None),
        ("MAX_DEVICES", 1, said("device", device=1) * 2, "resource"),
    ],
)
def test_what_a_run_may_send(
    limit: str, value: int, data: bytes, status: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, limit, value)
    found = begun()
    found.feed(data, 101.0)
    assert found.status == status
    pieces = begun()
    for byte in data:
        pieces.feed(bytes([byte]), 101.0)
    assert pieces.status == status


def test_what_is_counted_is_forgiven_with_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, data in (("TOTAL_LIMIT", b"ab\n"), ("STRAY_LIMIT", b"ab\n"),
                        ("MAX_FRAMES", said("loaded"))):  # fmt: skip
        monkeypatch.setattr(
            run, limit, {"TOTAL_LIMIT": 3, "STRAY_LIMIT": 2, "MAX_FRAMES": 1}[limit]
        )
        found = begun()
        for _ in range(3):
            found.feed(data, 101.0)
            found.forgive()
        assert found.status is None
        found.feed(data * 2, 101.0)
        assert found.over
        monkeypatch.undo()


def test_of_standard_error_the_last_lines_are_shown() -> None:
    found = begun()
    found.feed_stderr(b"".join(b"%d\n" % number for number in range(25)) + b"x" * 500 + b"\n")
    lines = found.stderr_tail()
    assert (len(lines), lines[0]) == (20, "6")
    assert len(lines[-1]) <= 400
    found.feed_stderr(b"t secret\n" + b"y" * 9000)
    assert found.tail == b"y" * 8192


@pytest.mark.parametrize(
    ("phase", "brought", "status", "kept"),
    [
        ("start", False, "timeout", ("timeout", None)),
        ("cleanup", True, "timeout", ("ok", "shutdown-hangs")),
        ("cleanup", True, "crashed", ("ok", "shutdown-fails")),
        ("cleanup", False, "crashed", ("not_applicable", "shutdown-fails")),
        ("cleanup", False, "ok", ("ok", None)),
    ],
)
def test_what_fails_after_all_devices_costs_none(
    phase: Any, brought: bool, status: str, kept: tuple[str, str | None]
) -> None:
    found = begun()
    found.phase = phase
    found.sightings = [1] * brought
    found.finish(status, "why", 105.0)
    found.finish("ok", "later", 106.0)
    assert (found.status, found.details.get("code")) == kept
    assert (found.reason, found.ended) == ("why", 105.0)
    assert found.details.get("phase") == (None if status == "ok" else phase)
    assert found.partial is (brought and found.status != "ok")


def test_the_deadline_and_the_time_of_a_cleanup() -> None:
    found = begun()
    found.feed(said("hello", pid=5) + said("loaded") + said("device", device=1), 101.0)
    found.feed(said("done"), 102.0)
    assert (found.due, found.phase) == (102.2, "cleanup")
    found.pass_time(102.1)
    assert not found.over
    found.pass_time(102.2)
    assert (found.status, found.reason) == ("ok", "its cleanup took longer than 0.2 s")
    supervised = begun()
    supervised.feed(said("hello", pid=6, inherited=True) + said("hello", pid=7), 101.0)
    assert (supervised.pid, supervised.inherited, supervised.phase) == (6, True, "import")
    late = begun()
    late.feed(said("hello", pid=5, inherited=1), 101.0)
    assert (late.pid, late.inherited, late.due) == (5, False, 110.0)
    late.pass_time(109.999)
    assert not late.over
    late.pass_time(110.0)
    assert late.reason == "importing its module took longer than 10 s"


@pytest.mark.parametrize(
    ("now", "dump", "status"),
    [(108.1, True, "timeout"), (108.0, True, "crashed"), (109.0, False, "crashed")],
)
def test_a_crash_while_the_watchdog_read_the_stack_is_a_timeout(
    now: float, dump: bool, status: str
) -> None:
    found = begun()
    found.feed_stderr(b"Timeout (0:00:09)!\nThread 0x1:\n" if dump else b"noise\n")
    found.exited(-11, now)
    assert found.status == status
    assert found.details.get("signal") == (None if status == "timeout" else "SIGSEGV")


def test_where_it_hung_and_why_it_crashed() -> None:
    frames = ['  File "/a/b.py", line 5 in one', '  File "/a/c.py", line 6 in two']
    lines = ["Thread 0x1:", 'File "/x.py", line 1 in old', "Current thread 0x2:", *frames]
    assert stuck_frame(lines) == 'File "/a/b.py", line 5 in one'
    assert stuck_frame(frames) is None
    assert stuck_frame([*lines, "Thread 0x3:"]) is None
    assert location('File "/a/b.py", line 5 in one') == "/a/b.py:5 in one"
    assert location("elsewhere") == "elsewhere"
    fatal = ["Fatal Python error: first", "x", "Fatal Python error: last", "y"]
    assert crash_headline(fatal) == "Fatal Python error: last"
    assert crash_headline(["x"]) is None


def test_the_words_of_an_end_are_bounded() -> None:
    found = begun()
    found.feed(said("end", status="unavailable", reason="r" * 2000, code="c" * 500, fix=""), 101.0)
    assert found.status == "unavailable"
    assert found.reason is not None
    assert (len(found.reason), len(found.details["code"])) == (1024, 400)
    assert "fix" not in found.details
    found = begun()
    found.feed(said("end", status="unavailable", code="", fix="f" * 500), 101.0)
    assert (found.reason, found.details.get("code")) == (STATUSES["unavailable"], None)
    assert len(found.details["fix"]) == 400
    for code in (5, None):
        found = begun()
        found.feed(said("end", status="ok", code=code, fix=code), 101.0)
        assert (found.status, found.reason, found.details) == ("ok", None, {})


# The driver for systems without poll.


class Waits:
    """A child whose result pipe is closed: it ends by itself, or does not."""

    def __init__(self, status: int | None) -> None:
        self.status = status

    def wait(self, seconds: float) -> int:
        if self.status is None:
            raise subprocess.TimeoutExpired("x", seconds)
        return self.status


@pytest.mark.parametrize(
    ("exit_code", "status", "reason"),
    [
        (3, "crashed", "it exited with status 3 before it could start"),
        (None, "protocol", "it closed its result pipe before it had answered"),
    ],
)
def test_a_child_that_closes_its_pipe(exit_code: int | None, status: str, reason: str) -> None:
    child: Any = SimpleNamespace(run=begun(), process=Waits(exit_code))
    portable._handle(child, "stderr", b"a", 101.0)
    portable._handle(child, "result", said("loaded"), 101.0)
    child.run.phase = "start"
    portable._handle(child, "end of stderr", b"", 101.0)
    assert (child.run.tail, child.run.over) == (b"a", False)
    portable._handle(child, "end of result", b"", 101.0)
    assert (child.run.status, child.run.reason) == (status, reason)
    child.process = None  # is not asked of a run that is over
    portable._handle(child, "end of result", b"", 101.0)


def test_runs_are_fed_until_each_has_an_outcome() -> None:
    now = [100.0]
    events: Any = queue.Queue()
    first, second = (SimpleNamespace(run=begun(), process=None, pid=None) for _ in range(2))
    attended: list[float] = []

    def attend(time: float) -> None:
        attended.append(time)
        now[0] += 4.0

    events.put((first, "result", said("end", status="ok")))
    portable._watch([first, second], lambda: now[0], events, lambda: False, attend)  # type: ignore[list-item]
    assert (first.run.status, second.run.status) == ("ok", "timeout")
    assert (first.run.ended, second.run.ended) == (104.0, 112.0)
    assert attended == [100.0, 104.0, 108.0, 112.0]
    # Who cancels has no outcome.
    third: Any = SimpleNamespace(run=begun(), process=None, pid=None)
    portable._watch([third], lambda: now[0], events, lambda: True, attend)
    assert not third.run.over
