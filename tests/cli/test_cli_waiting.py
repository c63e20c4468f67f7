"""The line on a terminal while a plugin is slow: seen, and gone; nowhere but on a terminal."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any
from weakref import finalize

import pytest
from command import environment, install, probe

pytest.importorskip("pty", reason="no pseudo-terminals here")

HANG = """
    import time
    from probe_core.api import hookimpl
    @hookimpl
    def probe_devices(request):
        time.sleep(600)
"""

# A terminal of its own: Ctrl-C and the foreground group are those of a session's terminal.
START = """
import fcntl, os, sys, termios
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "probe_core", *sys.argv[1:]])
"""
LINE = re.compile(r"waiting for (\S+) … \d+\.\d s of at most (\S+) s")
SGR = re.compile(r"\x1b\[[0-9;]*m")


class Screen:
    """What a terminal shows that wraps nothing: lines, a cursor, and the two ways to erase."""

    def __init__(self) -> None:
        self.lines = [""]
        self.column = 0

    def feed(self, characters: str) -> None:
        for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|[^\x1b]", characters):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.lines.append("")
            elif part in ("\x1b[K", "\x1b[J"):
                self.lines[-1] = self.lines[-1][: self.column]
            elif not part.startswith("\x1b"):
                line = self.lines[-1].ljust(self.column)
                self.lines[-1] = line[: self.column] + part + line[self.column + 1 :]
                self.column += 1

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines).strip()


class Terminal:
    """A pseudo-terminal on which `probe` runs."""

    def __init__(self, columns: int) -> None:
        self.ours, self.theirs = os.openpty()
        finalize(self, os.close, self.ours)
        self.resize(columns)
        self.received = ""
        self._bytes = b""

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def start(
        self, *arguments: str, env: dict[str, str], stdout: int | None = None
    ) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            stdin=self.theirs,
            stdout=self.theirs if stdout is None else stdout,
            stderr=self.theirs,
            env=env,
            start_new_session=True,
        )
        os.close(self.theirs)
        return child

    def read(self, until: str | None = None, *, times: int = 1) -> str:
        """Return all that came, up to the end, or until a text came so often."""
        limit = time.monotonic() + 60
        while until is None or self.received.count(until) < times:
            assert time.monotonic() < limit, self.received
            if not select.select([self.ours], [], [], 1)[0]:
                continue
            piece = b""
            with contextlib.suppress(OSError):  # Linux: EIO when the other side is closed
                piece = os.read(self.ours, 4096)
            if not piece:
                break
            self._bytes += piece
            self.received = self._bytes.decode("utf-8", "ignore")
        return self.received


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    install(tmp_path, "hang", HANG)
    return environment(tmp_path, TERM="xterm")


SLOW = ("--only", "hang", "--timeout", "1.2")


def screen(received: str) -> str:
    shown = Screen()
    shown.feed(received)
    return shown.text()


@pytest.mark.heavy
def test_it_is_seen_and_leaves_no_trace(env: dict[str, str]) -> None:
    terminal = Terminal(80)
    child = terminal.start(*SLOW, env=env)
    received = terminal.read()
    assert child.wait(60) == 0
    assert {match.groups() for match in LINE.finditer(SGR.sub("", received))} == {("hang", "1.2")}
    shown = screen(received)
    assert "waiting" not in shown
    assert " · " in shown.splitlines()[0]
    before_the_table = received[: received.index("DEVICE")]
    assert before_the_table.count("\n") <= 4  # it never went to another line


@pytest.mark.heavy
def test_standard_output_is_the_same_with_and_without_it(env: dict[str, str]) -> None:
    terminal = Terminal(80)
    read_end, write_end = os.pipe()
    child = terminal.start("--json", *SLOW, env=env, stdout=write_end)
    os.close(write_end)
    received = terminal.read()
    with os.fdopen(read_end) as pipe:
        report = json.loads(pipe.read())
    assert child.wait(60) == 0
    assert [o["status"] for o in report["outcomes"] if o["prober"] == "hang"] == ["timeout"]
    assert LINE.search(SGR.sub("", received))
    assert screen(received) == ""


@pytest.mark.heavy
@pytest.mark.parametrize("option", ["", "--json"])
def test_a_pipe_gets_nothing(option: str, env: dict[str, str]) -> None:
    done = probe(*filter(None, [option, *SLOW]), env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "waiting for" not in done.stdout


@pytest.mark.heavy
@pytest.mark.parametrize("variables", [{"CI": "true"}, {"TERM": "dumb"}])
def test_no_line_where_nobody_looks(variables: dict[str, str], env: dict[str, str]) -> None:
    terminal = Terminal(80)
    child = terminal.start("--json", *SLOW, env=env | variables)
    received = terminal.read()
    assert child.wait(60) == 0
    assert "waiting for" not in received
    assert "\x1b" not in received


@pytest.mark.heavy
@pytest.mark.parametrize("choice", ["NO_COLOR", "--color"])
def test_without_colours(choice: str, env: dict[str, str]) -> None:
    terminal = Terminal(80)
    options = ["--color", "never"] if choice == "--color" else []
    variables = {"NO_COLOR": "1"} if choice == "NO_COLOR" else {}
    child = terminal.start(*SLOW, *options, env=env | variables)
    received = terminal.read()
    assert child.wait(60) == 0
    assert LINE.search(received)
    assert SGR.search(received) is None


@pytest.mark.heavy
def test_ctrl_c_erases_it(env: dict[str, str]) -> None:
    terminal = Terminal(80)
    child = terminal.start("--only", "hang", "--timeout", "60", env=env)
    terminal.read(until="hang")
    os.write(terminal.ours, b"\x03")
    received = terminal.read()
    assert child.wait(60) == 130
    assert "waiting" not in screen(received)


@pytest.mark.heavy
@pytest.mark.parametrize("columns", [20, 33])
def test_it_never_wraps(columns: int, env: dict[str, str]) -> None:
    terminal = Terminal(80)
    child = terminal.start("--json", "--only", "hang", "--timeout", "60", env=env)
    terminal.read(until="hang")
    terminal.resize(columns)
    # What was under way when the size changed may still be as wide as before.
    start, seen = len(terminal.received), terminal.received.count("waiting")
    terminal.read(until="waiting", times=seen + 4)
    drawn = SGR.sub("", terminal.received[start:]).replace("\x1b[J", "\x1b[K").split("\x1b[K")
    child.send_signal(signal.SIGINT)
    terminal.read()
    assert child.wait(60) == 130
    assert [line for line in drawn[2:] if len(line.strip("\r")) >= columns] == []
    assert drawn[3].strip("\r")[1:].startswith(" waiting for ha")


def test_nothing_is_imported_where_all_answer_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    from probe_core.commands.context import Context

    class Notebook(io.StringIO):
        def isatty(self) -> bool:
            return True

    class Stream(Notebook):
        def fileno(self) -> int:
            return -1

    monkeypatch.setattr(sys, "stderr", Notebook())
    assert Context(environ={"TERM": "xterm"}).waiting() is None
    monkeypatch.setattr(sys, "stderr", Stream())
    monkeypatch.delitem(sys.modules, "probe_core.commands.waiting", raising=False)
    show = Context(environ={"TERM": "xterm"}).waiting()
    assert show is not None
    show(10.0, [run(started=9.4)])
    show(10.0, [])
    assert "probe_core.commands.waiting" not in sys.modules


def run(name: str = "nvidia", *, started: float, deadline: float = 15.0) -> Any:
    from probe_core.isolation.run import Run
    from probe_core.registry.prober import Prober

    return Run(Prober(name, name, name), "00", "00", started, deadline=started + deadline)


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["nvidia"], "⠴ waiting for nvidia … 1.5 s of at most 15 s"),
        (["nvidia", "amd"], "⠴ waiting for nvidia and amd … 1.5 s of at most 15 s"),
        (["a", "b", "c", "d"], "⠴ waiting for 4 plugins, first of all a … 1.5 s of at most 15 s"),
    ],
)
def test_what_it_says(names: list[str], line: str) -> None:
    from probe_core.commands.waiting import _segments

    runs = [run(name, started=100.0, deadline=15.04) for name in names]
    shown = "".join(piece for piece, _ in _segments(101.5, runs, "utf-8"))
    assert shown == line
    plain = "".join(piece for piece, _ in _segments(101.5, runs, "ascii"))
    assert plain[1:] == line[1:].replace("…", "...")
    assert plain[0] in "|/-\\"


@pytest.mark.heavy
def test_a_recording_waits_as_a_probe_does(env: dict[str, str], tmp_path: Path) -> None:
    terminal = Terminal(80)
    # A plugin's own deadline counts here: `record` has no --timeout.
    (tmp_path / "installed_hang.prober.json").write_text(
        '{"schema": 1, "probers": {"hang": {"deadline_s": 1.2}}}'
    )
    child = terminal.start("record", str(tmp_path / "out.json"), env=env | {"PROBE_ONLY": "hang"})
    received = terminal.read()
    assert child.wait(60) == 0
    assert LINE.search(SGR.sub("", received))
    assert "waiting" not in screen(received)


@pytest.mark.parametrize(
    ("choice", "variables", "dim"),
    [
        (None, {}, True),
        ("always", {}, True),
        ("never", {}, False),
        (None, {"NO_COLOR": "1"}, False),
    ],
)
def test_each_drawing_erases_the_one_before_it(
    choice: str | None, variables: dict[str, str], dim: bool
) -> None:
    from probe_core.commands.waiting import WaitingLine

    def line(frame: str, seconds: str) -> str:
        parts = [
            (f"{frame} waiting for ", True),
            ("nvidia", False),
            (f" … {seconds} s of at most 15 s", True),
        ]
        return "".join(
            f"\x1b[2m{part}\x1b[0m" if dim and is_dim else part for part, is_dim in parts
        )

    terminal = Terminal(200)
    with open(terminal.theirs, "w", encoding="utf-8") as stream:
        waiting = WaitingLine(stream, variables, choice)
        runs = [run(started=100.0)]

        def shown(now: float, runs: list[Any]) -> str:
            waiting.show(now, runs)
            ready = select.select([terminal.ours], [], [], 0)[0]
            return os.read(terminal.ours, 4096).decode() if ready else ""

        assert shown(100.0, []) == ""
        assert shown(101.0, runs) == f"\r\x1b[K{line('⠋', '1.0')}\r"
        assert shown(101.05, runs) == ""  # a frame is shown for a tenth of a second
        assert shown(101.125, runs) == f"\r\x1b[K{line('⠙', '1.1')}\r"
        terminal.resize(20)  # what was drawn takes several lines now
        plain = SGR.sub("", shown(101.3125, runs))
        assert plain == "\r\x1b[J⠸ waiting for nvid…\r"
        assert shown(101.4, []) == "\r\x1b[K"
        assert shown(101.5, []) == ""


def test_a_terminal_that_is_gone_ends_nothing() -> None:
    from probe_core.commands.waiting import WaitingLine

    terminal = Terminal(0)
    with open(terminal.theirs, "w", encoding="ascii") as stream:
        waiting = WaitingLine(stream, {}, "never")
        waiting.show(101.0, [run(f"a{'b' * 90}", started=100.0)])
        written = os.read(terminal.ours, 4096).decode().strip("\r")
        assert len(written.removeprefix("\x1b[K")) == 79  # of 80 where the terminal does not say
    waiting.show(102.0, [run(started=100.0)])
    waiting.show(102.0, [])
