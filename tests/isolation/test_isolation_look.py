"""A process asks a server whether it answers, and is ended when it does not."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from probe_core.isolation import look

pytestmark = pytest.mark.skipif(not hasattr(os, "posix_spawn"), reason="POSIX alone")


@pytest.fixture(autouse=True)
def no_process_stays() -> object:
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def asking(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a script stand for stat(1)."""
    program = folder / "stat"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setattr(look, "_STAT", str(program))


def test_a_local_path_answers_be_it_that_nothing_is_there() -> None:
    assert look.answers("/")
    assert look.answers("/nothing/of/this/name")


def test_without_stat_python_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "_STAT", "/nothing/stat")
    assert look.answers("/", 30.0)


@pytest.mark.parametrize("is_frozen", [True, False])
def test_without_stat_an_application_does_not_start_itself(
    is_frozen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, application = tmp_path / "started", tmp_path / ("app" if is_frozen else "uwsgi")
    application.write_text(f"#!/bin/sh\n: >{started}\n")
    application.chmod(0o755)
    monkeypatch.setattr(look, "_STAT", "/nothing/stat")
    monkeypatch.setattr(sys, "executable", str(application))
    monkeypatch.setattr(sys, "frozen", is_frozen, raising=False)
    assert not look.answers("/")
    assert not started.exists()


def test_what_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asking(tmp_path, "trap '' TERM; exec sleep 60", monkeypatch)
    begin = time.monotonic()
    assert not look.answers("/", 0.2)
    assert time.monotonic() - begin < 10.0


def test_it_writes_nothing_for_the_host_and_inherits_no_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    asking(tmp_path, f"echo words; echo words >&2; ls /proc/self/fd > {tmp_path}/fds", monkeypatch)
    assert look.answers("/", 30.0)
    assert capfd.readouterr() == ("", "")


def test_a_host_that_reaps_its_children_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking(tmp_path, "exit 0", monkeypatch)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert look.answers("/", 30.0)
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_where_no_process_can_be_started_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise RuntimeError("an audit hook forbids it")

    monkeypatch.setattr(os, "posix_spawn", refuse)
    assert not look.answers("/")


def test_an_interrupted_look_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    asking(tmp_path, "exec sleep 60", monkeypatch)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        begin = time.monotonic()
        with pytest.raises(Interrupted):
            look.answers("/", 60.0)
        assert time.monotonic() - begin < 20.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
