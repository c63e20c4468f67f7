"""How a command starts and how its end is passed on, in this process and copies of it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from shutil import which

import pytest

from probe_core.leasing.ending import _can_end
from probe_core.leasing.execute import CannotRun, _without_coercion, end_as, replace, resolve, spawn
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
    environ = {"LISTEN_PID": str(os.getpid()), "LISTEN_PIDFDID": "7", "WATCHDOG_PID": "x", "A": "b"}
    words = ["sh", "-c", "echo $LISTEN_PID $$ $LISTEN_PIDFDID,$WATCHDOG_PID,$A"]
    pid = spawn("/bin/sh", words, environ, set(), False)
    assert exit_code(pid) == 0
    assert capfd.readouterr().out == f"{pid} {pid} ,x,b\n"


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
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_as(end << 8 if end >= 0 else -end)
    # What a signal does not end has a shell's status.
    assert exit_code(pid) == (128 + signal.SIGCHLD if end == -signal.SIGCHLD else end)


def test_a_lease_can_be_ended_whose_processes_are_this_users_or_that_is_over() -> None:
    own, me = os.getpid(), os.geteuid()
    assert _can_end(Proof([own], [], {}), {me})
    assert not _can_end(Proof([own], [], {}), {me + 1})
    assert _can_end(Proof([own], [own], {}), {me + 1})  # its keeper alone is left
    assert not _can_end(Proof([], [], {own: me}), {me})


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders of a path: each name has what it says."""
    for name, mode in (("a/plain", 0o644), ("a/both", 0o644), ("b/both", 0o755), ("b/runs", 0o755)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\nexit 5\n")
        path.chmod(mode)
    (tmp_path / "a/folder").mkdir()
    (tmp_path / "a/dead").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path / "b")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "path", "found"),
    [
        ("runs", "{0}/a:{0}/b", "{0}/b/runs"),
        ("both", "{0}/a:{0}/b", "{0}/b/both"),  # the first that can be run
        ("runs", "{0}/a:", "./runs"),
        ("./runs", "", "./runs"),
        ("sh", None, "/bin/sh"),
        ("none", "{0}/a:{0}/b", (127, "none: command not found")),
        ("folder", "{0}/a", (127, "folder: command not found")),
        ("./none", "{0}/b", (127, "./none: no such file")),
        ("plain", "{0}/a:{0}/b", (126, "plain: permission denied")),
        ("../a/plain", "", (126, "../a/plain: permission denied")),
        ("../a/folder", "", (126, "../a/folder: is a directory")),
        ("../a/dead", "", (126, "../a/dead: permission denied")),
    ],
)
def test_the_file_that_a_shell_would_run(
    command: str, path: str | None, found: str | tuple[int, str], folders: Path
) -> None:
    environ = {} if path is None else {"PATH": path.format(folders)}
    if isinstance(found, str):
        assert resolve(command, environ) == found.format(folders)
        return
    with pytest.raises(CannotRun) as raised:
        resolve(command, environ)
    assert (raised.value.status, str(raised.value)) == found


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("#!/bin/sh\nexit $1\n", 7),
        ("exit $1\n", 7),  # without `#!` the shell runs it
        ("#!/nowhere/sh\n", "script: No such file or directory (127)"),
        ("", 0),
    ],
)
def test_a_script_in_the_place_of_a_process(
    text: str, status: int | str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "script"
    path.write_text(text)
    path.chmod(0o755)
    pid = os.fork()
    if pid == 0:
        sys.stdout = os.fdopen(1, "w", closefd=False)
        try:
            sys.stdout.write("printed before\n")
            replace(str(path), ["script", "7"], {})
        except CannotRun as error:
            os.write(1, f"{error} ({error.status})".encode())
            os._exit(signal.getsignal(signal.SIGPIPE) is not signal.SIG_IGN)
        finally:
            os._exit(99)
    code = exit_code(pid)
    before, _, after = capfd.readouterr().out.partition("\n")
    assert (before, after or code) == ("printed before", status)
    assert code != 1  # where it goes on, it ignores what Python does


@pytest.mark.parametrize(
    ("environ", "kept"),
    [
        ({"LC_CTYPE": "C.UTF-8"}, False), ({"LC_CTYPE": "C.utf8"}, False),
        ({"LC_CTYPE": "UTF-8"}, False), ({"LC_CTYPE": "de_DE.UTF-8"}, True),
        ({"LC_CTYPE": "C.UTF-8", "LC_ALL": "C"}, True),
        ({"LC_CTYPE": "C.UTF-8", "LC_ALL": ""}, False),
    ],
)  # fmt: skip
def test_a_locale_that_python_added_is_no_part_of_a_commands_environment(
    environ: dict[str, str], kept: bool
) -> None:
    own = Path("/proc/self/environ").read_bytes().split(b"\0")
    was_given = any(entry.startswith(b"LC_CTYPE=") for entry in own)
    given = {**environ, "A": "b"}
    found = _without_coercion(given)
    if not (kept or was_given):
        del given["LC_CTYPE"]
    assert found == given
