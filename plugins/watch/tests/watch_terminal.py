"""A terminal on which `probe watch` runs: what it shows, what is typed, and what is left behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from typing import Any

# A session with this terminal as its controlling one, whose leader is as a shell with one job: a
# process group without a parent in its session (an orphaned one) is never stopped by Ctrl-Z.
START = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
for number in (signal.SIGINT, signal.SIGQUIT):  # a suite in the background has them ignored
    signal.signal(number, signal.SIG_DFL)
ready, go = os.pipe()
job = os.fork()
if not job:
    os.read(ready, 1)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
os.setpgid(job, job)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.tcsetpgrp(2, job)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.write(go, b"x")
status = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
os._exit(status if status >= 0 else 128 - status)
"""

ALONE = """
import fcntl, os, sys, termios
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""The same without a shell, as by `ssh -t HOST probe watch`: nobody could go on with a stopped one.
"""

LIMIT_S = 60.0
"""Seconds that anything may take here: this computer may be busy with other tests."""

# Another sequence cancels half of one, as in xterm: Ctrl-Z may come in the middle of a frame.
_PARTS = re.compile(r"\x1b\[\??[0-9;]*(?:[A-Za-z]|(?=\x1b))|\x18|[^\x1b\x18]")


class Emulator:
    """As much of xterm as the screen uses; what it does not know is an error."""

    def __init__(self, columns: int, rows: int) -> None:
        self.resize(columns, rows)
        self.alternate = False
        self.cursor_shown = True
        self.wraps = True
        self.pastes = False
        self.colours: set[str] = set()
        self.raw = ""

    @property
    def written(self) -> int:
        return len(self.raw)

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0

    def feed(self, text: str) -> None:
        self.raw += text
        for part in _PARTS.findall(text):
            if part.startswith("\x1b["):
                if part[-1].isalpha():
                    self._control(part[2:-1], part[-1])
            elif part == "\n" and self.alternate:
                self.row, self.column = self.row + 1, 0  # the terminal's ONLCR
            elif part not in "\r\n\x18\x07" and self.row < self.rows:
                assert self.column < self.columns or not self.alternate, "a line is too long"
                if self.column < self.columns:
                    self.cells[self.row][self.column] = part
                self.column += 1

    def _control(self, parameters: str, kind: str) -> None:
        if kind == "H":
            row, _, column = parameters.partition(";")
            self.row, self.column = int(row or 1) - 1, int(column or 1) - 1
        elif kind == "K":
            self.cells[self.row][self.column :] = [" "] * (self.columns - self.column)
        elif kind == "J":
            first = 0 if parameters == "2" else self.row
            self.cells[first:] = [[" "] * self.columns for _ in range(self.rows - first)]
        elif kind == "m":
            self.colours |= {parameters} - {"", "0"}
        elif kind in "hl":
            on = kind == "h"
            names = {"?1049": "alternate", "?25": "cursor_shown", "?7": "wraps", "?2004": "pastes"}
            name = names[parameters]
            setattr(self, name, on)
        else:
            raise AssertionError(f"an unknown sequence: {parameters}{kind}")

    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.cells]

    def text(self) -> str:
        return "\n".join(self.lines()).strip()


class Terminal:
    """A pseudo-terminal with its emulator; `start` runs the command line on it."""

    def __init__(self, columns: int = 120, rows: int = 30) -> None:
        self.ours, self.theirs = os.openpty()
        self.screen = Emulator(columns, rows)
        self._bytes = b""
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.theirs)
        self.process: subprocess.Popen[bytes] | None = None
        self._job = 0

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(columns, rows)
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def start(self, *arguments: str, env: dict[str, str], **streams: Any) -> None:
        self.run("-m", "probe_core", "watch", *arguments, env=env, **streams)

    def run(self, *arguments: str, env: dict[str, str], start: str = START, **streams: Any) -> None:
        """Run Python with arguments on the terminal."""
        pipes = {"stdin": self.theirs, "stdout": self.theirs, "stderr": self.theirs} | streams
        self.process = subprocess.Popen(
            [sys.executable, "-c", start, *arguments],
            env=env,
            start_new_session=True,
            **pipes,
        )

    def read(self, seconds: float = 0.05) -> None:
        """Take what is there, and wait for something so long."""
        while select.select([self.ours], [], [], seconds)[0]:
            piece = b""
            with contextlib.suppress(OSError):  # Linux: EIO when the other side is closed
                piece = os.read(self.ours, 65536)
            if not piece:
                return
            self._bytes += piece
            whole = self._bytes.decode("utf-8", "ignore")
            # Half of a character or of a sequence waits for its other half.
            end = max(whole.rfind("\x1b"), 0) if not _complete(whole) else len(whole)
            self.screen.feed(whole[:end])
            self._bytes = self._bytes[len(whole[:end].encode()) :]
            seconds = 0

    def until(self, condition: Callable[[Emulator], bool]) -> str:
        """Return the screen's text once a condition holds."""
        limit = time.monotonic() + LIMIT_S
        while not condition(self.screen):
            assert time.monotonic() < limit, self.screen.text()
            self.read()
        return self.screen.text()

    def shows(self, text: str) -> str:
        return self.until(lambda screen: text in screen.text())

    def type(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    @property
    def job(self) -> int:
        """Return the process of the command: the terminal's foreground group has its number."""
        assert self.process is not None
        if self._job == 0:
            limit = time.monotonic() + LIMIT_S
            while (group := os.tcgetpgrp(self.ours)) in (0, self.process.pid):
                assert time.monotonic() < limit
                time.sleep(0.005)
            self._job = group
        return self._job

    def signal(self, number: int) -> None:
        os.kill(self.job, number)

    def stopped(self) -> None:
        """Wait until the process is stopped."""
        limit = time.monotonic() + LIMIT_S
        while _state(self.job) != "T":
            assert time.monotonic() < limit
            self.read()

    def ended(self) -> int:
        """Return the exit status, when the terminal is seen to be as it was."""
        assert self.process is not None
        limit = time.monotonic() + LIMIT_S
        while self.process.poll() is None:
            assert time.monotonic() < limit, self.screen.text()
            self.read()
        self.read()
        self.is_restored()
        assert remaining() == []
        return self.process.returncode

    def is_restored(self) -> None:
        assert not self.screen.alternate
        assert self.screen.cursor_shown
        assert self.screen.wraps
        assert not self.screen.pastes
        assert termios.tcgetattr(self.theirs) == self.before

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            for number in (self._job, self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    if number:
                        os.kill(number, signal.SIGKILL)
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


def _complete(text: str) -> bool:
    last = text.rfind("\x1b")
    return last < 0 or re.match(r"\x1b\[\??[0-9;]*[A-Za-z]", text[last:]) is not None


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def remaining() -> list[str]:
    """Return the processes that runs of this test have left, when they had a while to end."""
    limit = time.monotonic() + LIMIT_S
    while names := marked():
        if time.monotonic() > limit:
            return names
        time.sleep(0.05)
    return []


def marked() -> list[str]:
    """Return the processes of this test that run, by the variable that they all have."""
    names = []
    mark = f"WATCH_SESSION={os.getpid()}".encode()
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as file:
                is_ours = mark in file.read().split(b"\0")
            if is_ours and _state(int(pid)) != "Z":
                names.append(pid)
    return names
