"""How a command starts and how its end is passed on, in this process and copies of it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from shutil import which

import pytest

from probe_core.leasing.ending import _can_end
from probe_core.leasing.execute import end_as, spawn
from probe_core.leasing.holders import Proof


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("copies", [False, True])
def test_what_cannot_run_is_said_by_the_copy(
    copies: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A spawned process cannot say why; so a copy of this one does, whichever was tried."""
    (tmp_path / "plain").write_text("x")
    for name, status, reason in (
        ("none", 127, "No such file or directory"),
        ("plain", 126, "Permission denied"),
    ):
        assert exit_code(spawn(str(tmp_path / name), [name], {}, set(), copies)) == status
        assert capfd.readouterr().err == f"probe exec: {name}: {reason}\n"


def test_variables_of_systemd_have_the_number_of_the_command(
    capfd: pytest.CaptureFixture[str],
) -> None:
    environ = {"LISTEN_PID": str(os.getpid()), "LISTEN_PIDFDID": "7", "WATCHDOG_PID": "1", "A": "b"}
    words = ["sh", "-c", "echo $LISTEN_PID $$ $LISTEN_PIDFDID,$WATCHDOG_PID,$A"]
    pid = spawn("/bin/sh", words, environ, set(), False)
    assert exit_code(pid) == 0
    assert capfd.readouterr().out == f"{pid} {pid} ,1,b\n"


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
@pytest.mark.parametrize("copies", [False, True])
def test_signals_are_ignored_and_blocked_as_the_caller_has_them(
    copies: bool, handler: signal.Handlers, capfd: pytest.CaptureFixture[str]
) -> None:
    old = signal.signal(signal.SIGINT, handler)
    try:
        words = ["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"]
        pid = spawn(which("grep") or "", words, {}, {signal.SIGUSR1}, copies)
    finally:
        signal.signal(signal.SIGINT, old)
    assert exit_code(pid) == 0
    masks = [int(line.split()[1], 16) for line in capfd.readouterr().out.splitlines()]
    blocked, ignored = ({n for n in range(1, 32) if mask >> n - 1 & 1} for mask in masks)
    assert blocked == {signal.SIGUSR1}
    assert (signal.SIGINT in ignored) is (handler is signal.SIG_IGN)
    assert (signal.SIGCHLD in ignored) is copies
    assert not {signal.SIGPIPE, signal.SIGXFSZ} & ignored


@pytest.mark.parametrize("end", [0, 3, 255, -signal.SIGTERM, -signal.SIGKILL, -signal.SIGCHLD])
def test_a_process_ends_as_another_did(end: int) -> None:
    pid = os.fork()
    if pid == 0:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        end_as(end << 8 if end >= 0 else -end)
    # What a signal does not end has a shell's status.
    assert exit_code(pid) == (128 + signal.SIGCHLD if end == -signal.SIGCHLD else end)


def test_a_lease_can_be_ended_whose_processes_are_this_users_or_that_is_over() -> None:
    own, me = os.getpid(), os.geteuid()
    assert _can_end(Proof([own], [], {}), {me})
    assert not _can_end(Proof([own], [], {}), {me + 1})
    assert _can_end(Proof([own], [own], {}), {me + 1})  # its keeper alone is left
    assert not _can_end(Proof([], [], {own: me}), {me})
