"""`probe watch --hosts` through a real sshd of this computer, on a real terminal."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("termios", reason="no terminals of POSIX here")

from watch_terminal import LIMIT_S, Terminal, marked, remaining

sys.path.append(str(Path(__file__).resolve().parents[2] / "cluster/tests"))
from real_sshd import SSH, SSHD, Sshd

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(
        SSHD is None or SSH is None, reason="needs sshd and ssh: apt install openssh-server"
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="sshd of another user than root: not tried"),
]


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    folder = tmp_path_factory.mktemp("sshd")
    programs = Path(sys.executable).parent
    session = {"WATCH_SESSION": str(os.getpid()), "PROBE_ONLY": "cpu"}
    daemon = Sshd(folder, f"{programs}:/usr/bin:/bin", **session)
    yield daemon
    daemon.end()


@pytest.fixture
def terminal(sshd: Sshd) -> Iterator[Terminal]:
    terminal = Terminal(110)
    variables = {"PATH": f"{sshd.bin}:/usr/bin:/bin", "TERM": "xterm", "HOME": str(sshd.bin)}
    variables["WATCH_SESSION"] = str(os.getpid())
    terminal.start("--hosts", "desk,studio", "--interval", "0.5", env=variables)
    terminal.shows("cpu:0")
    yield terminal
    terminal.close()


def remotes() -> list[int]:
    """Return the processes that sample for the screen."""
    found = []
    for pid in map(int, marked()):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        found += [pid] if b"--all" in words else []
    return found


def test_both_hosts_are_shown_and_one_that_is_stopped_outlives_nothing(terminal: Terminal) -> None:
    terminal.type("5")
    terminal.until(lambda screen: "desk " in screen.text() and "studio " in screen.text())
    end = time.monotonic() + LIMIT_S
    while len(remotes()) < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    os.kill(remotes()[0], signal.SIGSTOP)
    assert "no answer: no sample for" in terminal.shows("no answer")
    terminal.type("q")
    assert terminal.ended() == 0, terminal.screen.raw.rpartition("\x1b[?1049l")[2]


def test_a_screen_that_is_killed_leaves_nothing_on_the_hosts(terminal: Terminal) -> None:
    terminal.signal(signal.SIGKILL)
    assert terminal.process is not None
    assert terminal.process.wait(LIMIT_S) == 128 + signal.SIGKILL
    assert remaining() == []
