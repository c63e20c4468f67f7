"""The child's side, in a copy of this process: all that it answers, and how it ends."""

from __future__ import annotations

import faulthandler
import json
import marshal
import os
import select
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from probe_core import fastpath
from probe_core.api import API_VERSION
from probe_core.isolation import MAX_DEVICES, NOTHING_LEFT, child, confine, start, supervisor
from probe_core.isolation.child import CANNOT_ANSWER
from probe_core.isolation.start import ORPHANED

linux = pytest.mark.skipif(sys.platform != "linux", reason="a supervisor is Linux's")
HEAD = "import os, sys\nfrom probe_core.api import *\n@hookimpl\n"
DEVICE = {"ids": ["x:1"], "kind": "npu"}


class Answer(NamedTuple):
    """What a child wrote: its frames without those that greet, its standard error, its status."""

    frames: list[dict[str, Any]]
    stderr: str
    status: int


def request_of(folder: Path, source: str, **changes: object) -> dict[str, Any]:
    (folder / "child_plugin.py").write_text(textwrap.dedent(source), encoding="utf-8")
    return {
        "token": "secret",
        "paths": [str(folder), *sys.path],
        "target": "child_plugin",
        "needs_site": False,
        "origin": None,
        "deadline_s": 20.0,
        "ends": time.monotonic() + 20.0,
        "active": False,
        "root": str(folder),
        "environ": {"A": "b"},
        "os": "linux",
        "arch": "riscv64",
        "bus": [{"ids": ["pci:1"]}],
        "avoid": ["pci:2"],
        "serial": True,
        "round": None,
        **changes,
    }


def frames_of(raw: bytes) -> list[dict[str, Any]]:
    lines = [line.split(b" ", 1) for line in raw.splitlines()]
    assert {token for token, _ in lines} <= {b"secret"}
    return [json.loads(text) for _, text in lines]


def sent(message: Mapping[str, Any]) -> bytes:
    raw = marshal.dumps(dict(message))
    return b"%08x" % len(raw) + raw


class Copy:
    """A child that runs from its first line on, in a copy of this process."""

    def __init__(self, prepare: Callable[[], object] = bool) -> None:
        pipes = [os.pipe() for _ in range(3)]
        self.pid = os.fork()
        if not self.pid:
            try:
                self._run(pipes, prepare)
            finally:
                os._exit(99)
        self.request: int | None = pipes[0][1]
        self._answers, self._stderr = pipes[1][0], pipes[2][0]
        self._read = b""
        for fd in (pipes[0][0], pipes[1][1], pipes[2][1]):
            os.close(fd)

    def _run(self, pipes: list[tuple[int, int]], prepare: Callable[[], object]) -> None:
        for fd, (reading, writing) in enumerate(pipes):
            os.dup2(writing if fd else reading, fd)
        # Those of an interpreter that has just started; a test's own write elsewhere.
        sys.stdout, sys.stderr = (os.fdopen(fd, "w", closefd=False) for fd in (1, 2))
        child._stdout = sys.stdout
        prepare()
        start.main()

    def send(self, *messages: Mapping[str, Any], size: int | None = None) -> None:
        assert self.request is not None
        os.write(self.request, b"".join(map(sent, messages))[:size])

    def end_request(self) -> None:
        if self.request is not None:
            os.close(self.request)
            self.request = None

    def read(self, until: bytes | None = None) -> None:
        """Read the child's answers until one has come, or until there are no more."""
        while until is None or until not in self._read:
            piece = self._piece(self._answers)
            if not piece:
                return
            self._read += piece

    def ended(self) -> Answer:
        """Return all that it answered, once it has ended by itself."""
        self.read()
        stderr = b""
        while piece := self._piece(self._stderr):
            stderr += piece
        ended = os.pidfd_open(self.pid)
        self._await(ended)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.end_request()
        for fd in (self._answers, self._stderr, ended):
            os.close(fd)
        return Answer(frames_of(self._read), stderr.decode(), status)

    def _piece(self, fd: int) -> bytes:
        self._await(fd)
        return os.read(fd, 1 << 16)

    def _await(self, fd: int) -> None:
        if not select.select([fd], [], [], 15.0)[0]:
            os.kill(self.pid, signal.SIGKILL)
            pytest.fail("it hangs")


def answered(*messages: Mapping[str, Any], prepare: Callable[[], object] = bool) -> Answer:
    copy = Copy(prepare)
    copy.send(*messages)
    return copy.ended()


@linux
def test_a_prober_is_given_its_request_and_all_that_it_yields_is_sent(tmp_path: Path) -> None:
    source = f"""import gc, resource
def is_inherited(fd):
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False
{HEAD}def probe_devices(request):
    print("to standard error")
    request.touching("pci:1")
    yield {{"ids": ["x:1"], "kind": "npu", "attributes": {{
        "environ": dict(request.machine.environ), "root": str(request.machine.root),
        "arch": request.machine.arch, "active": request.active, "bus": len(request.bus),
        "avoid": sorted(request.avoid), "serial": request.serial,
        "inherited": [fd for fd in range(256) if is_inherited(fd)], "input": len(os.read(0, 9)),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "file": resource.getrlimit(resource.RLIMIT_FSIZE),
        "first": open("/proc/self/oom_score_adj").read(), "path": sys.path[0],
        "leads": os.getsid(0) == os.getppid() and os.getpgrp() == os.getpid(),
        "collects": gc.isenabled() and gc.get_freeze_count() > 1000}}}}
    yield {{"finding": {{"code": "x"}}}}
"""
    frames, stderr, status = answered(request_of(tmp_path, source))
    hello = frames.pop(0)
    assert hello.pop("pid") > 1
    python = sys.version.split()[0]
    assert hello == {"kind": "hello", "api": API_VERSION, "python": python, "inherited": True}
    seen = {
        "environ": {"A": "b"}, "root": str(tmp_path), "arch": "riscv64", "active": False, "bus": 1,
        "avoid": ["pci:2"], "serial": True, "inherited": [0, 1, 2], "input": 0, "core": [0, 0],
        "file": [256 << 20, 256 << 20], "first": "1000\n", "path": str(tmp_path),
        "leads": True, "collects": True,
    }  # fmt: skip
    assert frames == [
        LOADED,
        {"kind": "touching", "device": "pci:1"},
        {"kind": "device", "device": {**DEVICE, "attributes": seen}},
        {"kind": "finding", "finding": {"code": "x"}},
        ended("ok"),
    ]
    assert (stderr, status) == ("to standard error\n", 0)


LOADED = {"kind": "loaded"}
SEEN = {"kind": "device", "device": DEVICE}
FUNCTION = f"{HEAD}def probe_devices(request):\n    "
YIELD = f"yield {DEVICE}; "
CLOSES = "OSError: it closed its result pipe"


def ended(status: str, reason: str | None = None) -> dict[str, Any]:
    return {"kind": "end", "status": status, "reason": reason}


@linux
@pytest.mark.parametrize(
    ("source", "frames", "stderr", "status"),
    [
        (f"{FUNCTION}return [{DEVICE}]", [LOADED, SEEN, ended("ok")], "", 0),
        (f"{FUNCTION}return []", [LOADED, ended("not_applicable", "it found no devices")], "", 0),
        (
            f"{FUNCTION}{YIELD}raise ValueError('odd')",
            [LOADED, SEEN, {"kind": "raised"}, ended("call_error", "ValueError: odd")],
            "ValueError: odd",
            0,
        ),
        (
            f"{FUNCTION}raise MemoryError",
            [LOADED, ended("resource", "it ran out of memory")],
            "",
            0,
        ),
        (
            "raise ValueError('odd')",
            [ended("load_error", "importing child_plugin failed: ValueError: odd")],
            "ValueError: odd",
            0,
        ),
        (
            "probe_devices = 5",
            [ended("load_error", "probe_devices of child_plugin is a int, not a function")],
            "",
            0,
        ),
        (f"{FUNCTION}{YIELD}os._exit(7)", [LOADED, SEEN], "", 7),
        (f"{FUNCTION}{YIELD}os.kill(os.getpid(), 15)", [LOADED, SEEN], "", -15),
        (f"{FUNCTION}{YIELD}os.kill(os.getpid(), 9)", [LOADED, SEEN], "", -9),
        # Another file where the pipe was; a pipe that is gone.
        (
            f"{FUNCTION}os.dup2(2, {confine._RESULT_FD}); {YIELD}",
            [LOADED],
            f'secret {{"kind":"failed","reason":"{CLOSES}"}}',
            CANNOT_ANSWER,
        ),
        (
            f"{FUNCTION}os.close({confine._RESULT_FD}); {YIELD}",
            [LOADED],
            'secret {"kind":"failed","reason":"OSError: [Errno 9] Bad file descriptor"}',
            CANNOT_ANSWER,
        ),
        # A copy of the prober sends nothing of its own.
        (
            f"{FUNCTION}copy = os.fork(); copy and os.waitpid(copy, 0); {YIELD}",
            [LOADED, SEEN, ended("ok")],
            "",
            0,
        ),
    ],
)
def test_how_a_prober_ends(
    source: str, frames: list[dict[str, Any]], stderr: str, status: int, tmp_path: Path
) -> None:
    found = answered(request_of(tmp_path, source))
    assert found.frames[0]["kind"] == "hello"
    assert (found.frames[1:], found.status) == (frames, status)
    assert (found.stderr.splitlines() or [""])[-1] == stderr


@linux
@pytest.mark.parametrize(("size", "status"), [(5, ORPHANED), (50, NOTHING_LEFT)])
def test_a_host_that_dies_before_it_has_asked(size: int, status: int, tmp_path: Path) -> None:
    """In the head of the request, and in its body, when there is a supervisor already."""
    copy = Copy()
    copy.send(request_of(tmp_path, ""), size=size)
    copy.end_request()
    assert copy.ended() == ([], "", status)


LEAVES_ONE = f"""{FUNCTION}child = os.fork()
    if not child:
        os.setsid()
        if os.fork():
            os._exit(0)
        __import__("time").sleep(60)
    os.waitpid(child, 0)
    {YIELD}__import__("time").sleep(60)
"""


def without_pidfd() -> None:
    del os.pidfd_open


@linux
@pytest.mark.parametrize("prepare", [bool, without_pidfd])
@pytest.mark.parametrize("signalled", [False, True])
def test_a_host_that_wants_no_more_leaves_nothing_that_the_prober_started(
    signalled: bool, prepare: Callable[[], object], tmp_path: Path
) -> None:
    copy = Copy(prepare)
    copy.send(request_of(tmp_path, LEAVES_ONE))
    copy.read(until=b'"device"')
    if signalled:
        os.kill(copy.pid, signal.SIGTERM)  # what a prober could send, too
    else:
        copy.end_request()
    # The descendant holds standard error: it has ended as well when nothing more comes.
    found = copy.ended()
    assert (found.frames[1:], found.stderr) == ([LOADED, SEEN], "")
    assert found.status == (-signal.SIGKILL if signalled else NOTHING_LEFT)


@linux
def test_a_killed_supervisor_takes_its_prober_along(tmp_path: Path) -> None:
    copy = Copy()
    # The supervisor arranges it after it has let the prober run.
    source = f"""{FUNCTION}import fcntl, time
    while not fcntl.fcntl({confine._SUPERVISOR_FD}, fcntl.F_GETFL) & fcntl.FASYNC:
        time.sleep(0.001)
    {YIELD}time.sleep(60)
"""
    copy.send(request_of(tmp_path, source))
    copy.read(until=b'"device"')
    os.kill(copy.pid, signal.SIGKILL)
    assert copy.ended().frames[1:] == [LOADED, SEEN]


@linux
def test_a_prober_that_closes_its_pipes_is_seen_to_do_so_while_it_runs(tmp_path: Path) -> None:
    closes = f"for fd in (1, 2, {confine._RESULT_FD}): os.close(fd)"
    source = f"{FUNCTION}{closes}\n    __import__('time').sleep(60)"
    copy = Copy()
    copy.send(request_of(tmp_path, source, deadline_s=3.0))
    copy.read()
    assert copy._piece(copy._stderr) == b""
    copy.end_request()
    assert copy.ended().status == NOTHING_LEFT


def without_fork() -> None:
    def fork() -> int:
        raise BlockingIOError(11, "no room")

    os.fork = fork


ALONE = f"""{FUNCTION}import signal
    yield {{"ids": ["x:1"], "kind": "npu", "attributes": {{
        "leads": os.getsid(0) == os.getpid(), "first": open("/proc/self/oom_score_adj").read(),
        "term": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
        "wakes": signal.set_wakeup_fd(-1),
        "open": sorted(map(int, os.listdir("/proc/self/fd"))),
    }}}}
    __import__("time").sleep(60)
"""


@linux
def test_without_room_for_a_supervisor_the_prober_ends_with_its_host(tmp_path: Path) -> None:
    copy = Copy(without_fork)
    copy.send(request_of(tmp_path, ALONE))
    copy.read(until=b'"device"')
    copy.end_request()
    hello, loaded, seen, *more = copy.ended().frames
    assert (hello["inherited"], loaded, more) == (False, LOADED, [])
    assert seen["device"]["attributes"] == {
        "leads": True, "first": "1000\n", "term": True, "wakes": -1,
        "open": [0, 1, 2, 3, 200, 201],  # 3 is that of the folder
    }  # fmt: skip


class Timers:
    """What bounds a process: each timer that is set, and each dump of its stack."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.set: list[object] = []
        note = self.set.append
        # Not those of the module, by which a test's own time may be limited.
        fake = SimpleNamespace(**vars(fastpath.signal))
        fake.setitimer, fake.signal = lambda *timer: note(timer), lambda *of: note(of)
        for module in (confine, supervisor):
            monkeypatch.setattr(module, "signal", fake)
        monkeypatch.setattr(faulthandler, "enable", lambda *of, **options: note(of))
        monkeypatch.setattr(
            faulthandler, "dump_traceback_later", lambda after, **options: note((after, options))
        )
        monkeypatch.setattr(
            faulthandler, "cancel_dump_traceback_later", lambda: note("no dump any more")
        )

    def taken(self) -> list[object]:
        found, self.set[:] = list(self.set), []
        return found


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    return Timers(monkeypatch)


ITIMER_REAL = 0


@linux
def test_what_bounds_a_childs_life(timers: Timers) -> None:
    """The dump comes at nine tenths, or a tenth of a second before the end if that is later."""
    for seconds, dump_at in ((0.01, 0.02), (0.5, 0.45), (1.0, 0.9), (10.0, 9.9)):
        confine.limit(seconds, time.monotonic() + 60)
        assert timers.taken() == [
            (2,),
            (pytest.approx(dump_at), {"exit": False, "file": 2}),
            (signal.SIGALRM, signal.SIG_DFL),
            (ITIMER_REAL, seconds + 1.0),
        ]
    confine.limit(10.0, time.monotonic() - 1)  # it has begun too late
    assert timers.taken()[1::2] == [(0.02, {"exit": False, "file": 2}), (ITIMER_REAL, 1.0)]
    confine.limit_round(7.0)
    assert timers.taken() == [(ITIMER_REAL, 8.0)]
    confine.unlimited()
    assert timers.taken() == ["no dump any more", (ITIMER_REAL, 0)]


@linux
def test_without_room_for_the_thread_that_dumps_the_alarm_is_set(
    timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **options: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(faulthandler, "dump_traceback_later", full)
    confine.limit(5.0, time.monotonic() + 60)
    assert timers.taken()[-1] == (ITIMER_REAL, 6.0)


@linux
@pytest.mark.parametrize(
    ("status", "does"),
    [
        (0, [("exit", 0)]),
        (7 << 8, [("exit", 7)]),
        # As it was ended by the signal; what is not ended by it exits as a shell does.
        (signal.SIGKILL, ["no core", ("kill", signal.SIGKILL), ("exit", 137)]),
        (
            signal.SIGABRT,
            ["no core", (signal.SIGABRT, signal.SIG_DFL), ("kill", signal.SIGABRT), ("exit", 134)],
        ),
    ],
)
def test_a_supervisor_ends_as_its_prober_did(
    status: int, does: list[object], timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    class Exited(Exception):
        pass

    def exit_(code: int) -> None:
        timers.set.append(("exit", code))
        raise Exited

    def limited(kind: int, limits: object) -> None:
        assert (kind, limits) == (resource.RLIMIT_CORE, (0, 0))
        timers.set.append("no core")

    def kill(pid: int, number: int) -> None:
        assert pid == os.getpid()
        timers.set.append(("kill", number))

    monkeypatch.setattr(os, "_exit", exit_)
    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(resource, "setrlimit", limited)
    with pytest.raises(Exited):
        supervisor._exit_as(status)
    assert timers.taken() == does


@linux
def test_a_plugin_of_one_folder_alone_with_the_hosts_site(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    source = f"{FUNCTION}return [dict({DEVICE}, model=__file__)]"
    request = request_of(own, source, paths=[str(tmp_path), *sys.path], needs_site=True)
    request_of(tmp_path, "raise ValueError('of another folder')")
    found = answered({**request, "origin": str(own)})
    assert found.frames[2]["device"]["model"] == str(own / "child_plugin.py")
    # Without it, that of the earlier folder.
    assert answered(request).frames[1]["status"] == "load_error"


def round_of(number: int, *, close: bool = False, **changes: object) -> dict[str, Any]:
    plain = {"number": number, "seconds": 9.0, "avoid": [], "asleep": [], "close": close}
    return {**plain, **changes}


SAMPLER = f"""{HEAD}def open_sampler(request):
    return Sampler()

class Sampler:
    def sample(self, request):
        number = request.round
        if number == 2:
            raise ValueError("odd")
        if number == 3:
            return not_applicable("it is away")
        if number == 4:
            return {{"ids": ["x:1"]}}
        if number == 5:
            return 5
        if number == 6:
            return ({{"ids": ["x:1"]}} for _ in range({MAX_DEVICES} + 1))
        return self.samples(request)
    def samples(self, request):
        yield {{"ids": ["x:1"], "load": [*request.avoid, *request.asleep, request.deadline_s]}}
        yield {{"finding": {{"code": "x"}}}}
        return not_applicable("too late")
    def close(self):
        print("closed")
"""
ITEMS = "; yield samples, or return not_applicable(reason)"
SAMPLED = [
    {"kind": "sample", "sample": {"ids": ["x:1"], "load": ["a", "b", 9.0]}},
    {"kind": "finding", "finding": {"code": "x"}},
]


def round_end(number: int, status: str, reason: str | None = None) -> dict[str, Any]:
    return {"kind": "round", "number": number, "status": status, "reason": reason}


ROUNDS = [
    *SAMPLED,
    round_end(1, "ok"),
    round_end(2, "call_error", "ValueError: odd"),
    round_end(3, "not_applicable", "it is away"),
    round_end(4, "invalid", f"it returned dict{ITEMS}"),
    round_end(5, "invalid", f"it returned int{ITEMS}"),
    *[{"kind": "sample", "sample": {"ids": ["x:1"]}}] * MAX_DEVICES,
    round_end(6, "resource", f"more than {MAX_DEVICES} samples"),
]
MESSAGES = [round_of(number, avoid=["a"], asleep=["b"]) for number in range(1, 7)]


@linux
def test_a_resident_process_answers_each_round(tmp_path: Path) -> None:
    request = request_of(tmp_path, SAMPLER, round=MESSAGES[0])
    frames, stderr, status = answered(request, *MESSAGES[1:], round_of(7, close=True))
    assert frames[0]["kind"] == "hello"
    assert frames[1:] == [LOADED, *ROUNDS, ended("ok")]
    *traceback, last = stderr.splitlines()
    assert (traceback[-1], last, status) == ("ValueError: odd", "closed", 0)


@linux
@pytest.mark.parametrize(
    ("source", "frames"),
    [
        ("", [ended("not_applicable", "child_plugin has no sample_devices")]),
        (
            "raise ValueError('odd')",
            [ended("load_error", "importing child_plugin failed: ValueError: odd")],
        ),
        (
            "def open_sampler(request): pass",
            [
                ended(
                    "load_error",
                    "open_sampler of child_plugin lacks the @hookimpl mark of probe_core.api",
                )
            ],
        ),
        (
            f"{HEAD}def open_sampler(request): return not_applicable('it is away')",
            [LOADED, round_end(1, "not_applicable", "it is away"), ended("ok")],
        ),
    ],
)
def test_what_has_no_sampler_says_so(
    source: str, frames: list[dict[str, Any]], tmp_path: Path
) -> None:
    request = request_of(tmp_path, source, round=round_of(1))
    found = answered(request, round_of(2, close=True))
    assert (found.frames[1:], found.status) == (frames, 0)
