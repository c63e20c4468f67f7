"""What the host opened inheritable is not the prober's: files, locks, ports."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from probe_core.isolation import start
from probe_core.isolation.run import Run

USE_ALL = """
    import fcntl, stat
    opened = []
    for number in sorted(map(int, os.listdir("/proc/self/fd"))):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue  # the folder's own
        if number > 2:
            opened.append(number)
            if not stat.S_ISFIFO(mode):
                fcntl.flock(number, fcntl.LOCK_UN)
                os.write(number, b"overwritten")
    yield {"ids": ["x:1"], "kind": "npu", "name": " ".join(map(str, opened))}
"""

OWN = {"200", "201", "202"}
"""The result, request and supervisor pipes."""


class Host:
    """What a program may hold open while it probes."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.file = stack.enter_context((folder / "log").open("wb"))
        self.lock = stack.enter_context((folder / "lock").open("wb"))
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for held in (self.file, self.lock, self.listener):
            os.set_inheritable(held.fileno(), True)
        # Numbers far above, as a server with many connections has them.
        self.far = os.dup2(self.file.fileno(), 700, inheritable=True)
        stack.callback(os.close, self.far)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with ExitStack() as stack:
        yield Host(tmp_path, stack)


@pytest.mark.parametrize("portable", [False, True])
def test_a_prober_gets_no_descriptor_of_the_host(
    host: Host, run_hook: Callable[..., Run], tmp_path: Path, portable: bool
) -> None:
    run = run_hook(USE_ALL, portable=portable)
    assert run.status == "ok", (run.reason, run.stderr_tail())
    assert set(run.sightings[0]["name"].split()) <= OWN
    assert (tmp_path / "log").read_bytes() == b""
    with (tmp_path / "lock").open("rb") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_daemon_of_a_prober_keeps_no_port_in_use(
    host: Host, run_hook: Callable[..., Run]
) -> None:
    run = run_hook(
        """
    for number in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                yield {"ids": [f"x:{number}"], "kind": "npu"}
        except OSError:
            continue  # the folder's own
    """
    )
    assert (run.status, run.sightings) == ("not_applicable", [])


def test_also_where_nothing_lists_the_descriptors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[tuple[int, int]] = []

    def no_folder(path: str) -> Any:
        raise FileNotFoundError(path)

    monkeypatch.setattr(start.os, "listdir", no_folder)
    monkeypatch.setattr(start.os, "closerange", lambda low, high: closed.append((low, high)))
    start._close_inherited()
    assert closed == [(3, min(os.sysconf("SC_OPEN_MAX"), 1 << 16))]
    assert sys.platform != "win32"


def test_each_that_is_listed_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []

    def listed(path: str) -> list[str]:
        if path == "/proc/self/fd":
            raise PermissionError(path)
        return ["0", "1", "2", "3", "200"]

    monkeypatch.setattr(start.os, "listdir", listed)
    monkeypatch.setattr(start.os, "closerange", lambda low, high: closed.extend(range(low, high)))
    start._close_inherited()
    assert closed == [3, 200]


def test_what_the_parent_sends_is_read_whole_or_it_has_died(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"abcdefgh")
    assert start.read_exactly(reading, 0) == b""
    pieces = os.read
    monkeypatch.setattr(start.os, "read", lambda fd, size: pieces(fd, min(size, 3)))
    assert start.read_exactly(reading, 7) == b"abcdefg"
    os.close(writing)

    def ended(status: int) -> None:
        raise RuntimeError(status)

    monkeypatch.setattr(start.os, "_exit", ended)
    with pytest.raises(RuntimeError, match=f"^{start.ORPHANED}$"):
        start.read_exactly(reading, 2)
    os.close(reading)


@pytest.mark.parametrize("null", [os.devnull, "/nowhere/null"])
def test_descriptors_that_bring_nothing_and_take_all(
    null: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start.os, "devnull", null)
    before = set(os.listdir("/proc/self/fd"))
    numbers = 600, 601
    start.discard(numbers, os.O_RDONLY)
    assert [os.read(number, 10) for number in numbers] == [b"", b""]
    start.discard(numbers, os.O_WRONLY)
    is_pipe = stat.S_ISFIFO(os.fstat(numbers[0]).st_mode)
    assert is_pipe is (null == "/nowhere/null")
    for number in numbers:
        if not is_pipe:
            assert os.write(number, b"x") == 1
        else:
            with pytest.raises(BrokenPipeError):  # its reader has gone
                os.write(number, b"x")
        os.close(number)
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(sys.platform != "linux", reason="no such file elsewhere")
def test_the_prober_goes_first_when_memory_runs_out() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        start.go_first(process.pid)
        score = Path(f"/proc/{process.pid}/oom_score_adj").read_text()
    finally:
        process.kill()
        process.wait()
    assert score == "1000\n"
    start.go_first(process.pid)  # which has ended
