"""The processes that keep a lease, as copies of this one: what they pass on, and how they end."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from lease_node import Node
from test_lease_keeper import lives, soon

from probe_core.leasing import SelectionError, lease
from probe_core.leasing.execute import CannotRun
from probe_core.leasing.keeper import can_keep, run
from probe_core.pipeline.refresh import refresh
from probe_core.proc import parents, status

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a keeper is Linux's")
LIMIT_S = 15.0


def children(pid: int) -> list[int]:
    return [child for child, parent in parents().items() if parent == pid]


class Front:
    """`probe exec` as a copy of this process, with shells as its commands."""

    def __init__(
        self, node: Node, scripts: Sequence[str], prepare: Callable[[], object] = bool
    ) -> None:
        self.node = node
        self.document: Any = json.loads((node.folder / "report.json").read_text())
        refresh(self.document, {})
        self.environ = {**node.environ}
        self._output, writing = os.pipe()
        self.text = ""
        self.pid = os.fork()
        if not self.pid:
            try:
                self._become(scripts, writing, prepare)
            finally:
                os._exit(99)
        os.close(writing)

    def _become(self, scripts: Sequence[str], writing: int, prepare: Callable[[], object]) -> None:
        os.setpgid(0, 0)
        for number in (1, 2):  # `writing` stays: its own processes must not keep it open
            os.dup2(writing, number)
        sys.stdout = sys.stderr = None
        os.chdir(self.node.folder)
        held = lease(1, report=self.document, environ=self.environ)
        assert can_keep()
        prepare()
        programs = [("/bin/sh", ["sh", "-c", script], held.environ) for script in scripts]
        try:
            run(held.kept, programs)
        except CannotRun as error:
            os.write(1, f"{error}\n".encode())
            os._exit(error.status)

    def read(self, until: str) -> str:
        """Read what the commands print until something was, or to its end; return it all."""
        while until not in self.text:
            assert select.select([self._output], [], [], LIMIT_S)[0], self.text
            piece = os.read(self._output, 4096).decode()
            if not piece:
                break
            self.text += piece
        return self.text

    def rest(self) -> str:
        return self.read(until="\0")

    def end(self) -> tuple[int, str]:
        """Return how it ended, and what was printed."""
        ended = os.pidfd_open(self.pid)
        assert select.select([ended], [], [], LIMIT_S)[0], self.text
        os.close(ended)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = 0
        return code, self.rest()

    def stops(self) -> bool:
        """Return whether it is stopped, as the command stopped itself."""
        look = os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        assert soon(lambda: os.waitid(os.P_PID, self.pid, look) is not None)
        found = os.waitid(os.P_PID, self.pid, os.WSTOPPED)
        return found is not None and found.si_status == signal.SIGSTOP

    def children(self, *, leading: bool) -> list[int]:
        """Return the keeper, which leads a session of its own, or the witness."""
        found = [(pid, status(pid)) for pid in children(self.pid)]  # one may end meanwhile
        return [pid for pid, own in found if own and (own.session == pid) is leading]

    def is_free(self) -> bool:
        try:
            lease(2, report=self.document, environ=self.environ).release()
        except SelectionError as error:
            return error.code != "busy"
        return True

    def close(self) -> None:
        if self.pid:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._output)


Start = Callable[..., Front]


@pytest.fixture
def start(node: Node) -> Iterator[Start]:
    fronts: list[Front] = []

    def started(*scripts: str, prepare: Callable[[], object] = bool) -> Front:
        fronts.append(Front(node, scripts, prepare))
        return fronts[-1]

    yield started
    for front in fronts:
        front.close()


@pytest.mark.parametrize(
    ("scripts", "status"),
    [
        (["true"], 0),
        (["exit 3"], 3),
        (["true", "exit 4", "true"], 4),
        (["kill -9 $$"], -signal.SIGKILL),
        (["kill -TERM $$", "true"], -signal.SIGTERM),
    ],
)
def test_it_ends_as_the_first_command_that_failed(
    scripts: list[str], status: int, start: Start
) -> None:
    front = start(*scripts)
    assert front.end() == (status, "")
    assert front.is_free()


def test_a_command_is_in_the_callers_group_folder_and_under_its_signals(start: Start) -> None:
    fields = "grep -E 'SigBlk|SigIgn' /proc/self/status"
    own = "pwd; cut -d ' ' -f 5 /proc/$$/stat"
    front = start(f"{own}; {fields}; echo $CUDA_VISIBLE_DEVICES; exit 6")
    group = front.pid
    status, text = front.end()
    folder, own_group, blocked, ignored, visible = text.splitlines()
    assert (status, folder, int(own_group)) == (6, str(front.node.folder), group)
    assert int(blocked.split()[1], 16) == 0
    assert not int(ignored.split()[1], 16) >> signal.SIGPIPE - 1 & 1
    assert visible.startswith("GPU-00000001")


def test_a_signal_reaches_the_command_once_sent_to_the_front_or_to_its_group(start: Start) -> None:
    script = "n=0; trap 'n=$((n+1)); echo got $n' TERM; trap 'exit 7' USR1; echo ready;"
    front = start(f"{script} while :; do sleep 0.01; done")
    front.read("ready\n")
    assert not front.is_free()
    os.kill(front.pid, signal.SIGTERM)
    front.read("got 1\n")
    (witness,) = front.children(leading=False)
    os.killpg(front.pid, signal.SIGTERM)
    front.read("got 2\n")
    # One that has got a signal has served. The kernel keeps one of each signal that comes before.
    assert soon(lambda: len(front.children(leading=False)) == 1 and not lives(witness))
    os.kill(front.pid, signal.SIGTERM)
    front.read("got 3\n")
    os.kill(front.pid, signal.SIGUSR1)
    status, text = front.end()
    # A shell says of what it waits for that the group's signal ended it.
    lines = [line for line in text.splitlines() if line != "Terminated"]
    assert (status, lines) == (7, ["ready", "got 1", "got 2", "got 3"])
    assert front.is_free()


def test_a_pipe_that_the_command_closes_is_open_nowhere_else(start: Start) -> None:
    front = start("trap 'exit 7' TERM; echo ready; exec >&- 2>&-; while :; do sleep 0.01; done")
    assert front.rest() == "ready\n"
    assert not front.is_free()
    assert soon(lambda: os.readlink(f"/proc/{front.pid}/cwd") == "/")
    os.kill(front.pid, signal.SIGTERM)
    assert front.end() == (7, "ready\n")


def test_the_front_is_stopped_with_its_command_and_goes_on_with_it(start: Start) -> None:
    front = start("echo ready; kill -STOP $$; echo on; exit 5")
    front.read("ready\n")
    assert front.stops()
    os.kill(front.pid, signal.SIGCONT)
    assert front.end() == (5, "ready\non\n")


def test_a_killed_front_takes_its_command_along_and_the_devices_are_free_then(start: Start) -> None:
    front = start("echo ready; exec sleep 60")
    front.read("ready\n")
    os.kill(front.pid, signal.SIGKILL)
    assert front.end() == (-signal.SIGKILL, "ready\n")  # the output is closed: the command ended
    assert soon(front.is_free)


@pytest.mark.parametrize("status", [0, 7])
def test_the_front_stands_in_for_a_killed_keeper(status: int, start: Start) -> None:
    front = start(f"trap 'exit {status}' TERM; echo ready; while :; do sleep 0.01; done")
    front.read("ready\n")
    assert soon(lambda: bool(front.children(leading=True)))
    (keeper,) = front.children(leading=True)
    os.kill(keeper, signal.SIGKILL)
    select.select([], [], [], 0.05)
    assert not front.is_free()
    os.kill(front.pid, signal.SIGTERM)
    assert front.end() == (status, "ready\n")
    assert front.is_free()


def test_a_signal_that_comes_with_the_end_of_the_keeper_is_not_lost(start: Start) -> None:
    """The front takes the one of the lower number first: SIGTERM, before it knows of the end."""
    front = start("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done")
    front.read("ready\n")
    assert soon(lambda: bool(front.children(leading=True)))
    (keeper,) = front.children(leading=True)
    os.kill(front.pid, signal.SIGSTOP)
    assert front.stops()
    os.kill(keeper, signal.SIGKILL)
    assert soon(lambda: not lives(keeper))
    os.kill(front.pid, signal.SIGTERM)
    os.kill(front.pid, signal.SIGCONT)
    assert front.end() == (7, "ready\n")


def test_a_front_without_a_keeper_is_stopped_with_its_command_too(start: Start) -> None:
    wait = "while [ ! -e go ]; do sleep 0.01; done"
    front = start(f"echo ready; {wait}; kill -STOP $$; exit 5")
    front.read("ready\n")
    assert soon(lambda: bool(front.children(leading=True)))
    os.kill(front.children(leading=True)[0], signal.SIGKILL)
    assert soon(lambda: not front.children(leading=True))
    (front.node.folder / "go").touch()
    assert front.stops()
    os.kill(front.pid, signal.SIGCONT)
    assert front.end() == (5, "ready\n")
    assert front.is_free()


def test_what_a_command_leaves_behind_keeps_the_devices(start: Start) -> None:
    # It holds no file of the command, and is in another session.
    front = start("setsid sleep 60 >/dev/null 2>&1 </dev/null & echo $!; exit 3")
    status, text = front.end()
    left = int(text)
    try:
        keeper = parents()[left]
        assert (status, children(keeper)) == (3, [left])
        assert os.readlink(f"/proc/{keeper}/cwd") == "/"
        streams = {os.readlink(f"/proc/{keeper}/fd/{number}") for number in range(3)}
        assert streams == {os.devnull}
        assert not front.is_free()
        with open(f"/proc/{keeper}/comm", encoding="ascii") as file:
            assert file.read() == "probe-lease\n"
    finally:
        os.kill(left, signal.SIGKILL)
    assert soon(front.is_free)


def without_fork() -> None:
    def fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    os.fork = fork


def test_without_room_for_a_process_one_sentence_says_so(start: Start) -> None:
    reason = "no command can be started: Resource temporarily unavailable\n"
    front = start("true", prepare=without_fork)
    assert front.end() == (126, reason)
    assert front.is_free()


def with_front_and_keeper_alone() -> None:
    fork, front = os.fork, os.getpid()

    def full(*_: object, **options: object) -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    os.fork = lambda: fork() if os.getpid() == front else full()
    os.posix_spawn = full


def test_without_room_for_its_commands_the_keeper_says_so(start: Start) -> None:
    front = start("true", "true", prepare=with_front_and_keeper_alone)
    reason = "probe exec: no command can be started: Resource temporarily unavailable\n"
    assert front.end() == (126, reason)
    assert front.is_free()


def with_one_fork() -> None:
    fork, counted = os.fork, [0]

    def forked() -> int:
        counted[0] += 1
        if counted[0] > 1:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()

    os.fork = forked


def test_without_room_for_a_witness_signals_are_passed_on(start: Start) -> None:
    front = start(
        "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done", prepare=with_one_fork
    )
    front.read("ready\n")
    os.kill(front.pid, signal.SIGTERM)
    assert front.end() == (7, "ready\n")
