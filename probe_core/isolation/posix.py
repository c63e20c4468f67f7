"""Make a child: three pipes, and a process in a session of its own.

Runs in the thread of `worker`, where no signal handler can raise between a call and the
assignment of its result, and no descriptor or process is lost.
"""

from __future__ import annotations

import os
import select

from probe_core.background import TICK_S
from probe_core.fastpath import signal, start_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from probe_core.isolation.processes import Watch
    from probe_core.isolation.run import Run

    Clock = Callable[[], float]


NEVER = float("inf")

_DESCRIPTORS = ("request_fd", "request_end", "result_fd", "stderr_fd", "pidfd")


class Child:
    """A process and the parent's ends of its pipes; a descriptor is -1 while it is not open.

    `run` is what it does: one that was started ahead is given it later. `pid` is None until the
    process was started. `reaped` tells that it was waited for, and that its number may be another
    process's by now. `exit_code` is its status as `subprocess` has it, negative for a signal, None
    while it lives and when the host reaped it. `nothing_left` tells that its supervisor ended last
    of all that the prober had started.
    `must_end_by` is when a child that closed its result pipe, as a dying one does first, must
    have ended.
    """

    __slots__ = (
        *_DESCRIPTORS,
        "exit_code",
        "must_end_by",
        "nothing_left",
        "pid",
        "reaped",
        "run",
        "unsent",
    )

    run: Run

    def __init__(self) -> None:
        self.pid: int | None = None
        self.request_fd = self.request_end = self.result_fd = self.stderr_fd = self.pidfd = -1
        self.unsent = b""
        self.reaped = False
        self.exit_code: int | None = None
        self.must_end_by = NEVER
        self.nothing_left = False

    def release(self, name: str) -> None:
        """Close one descriptor by its name; a second call does nothing."""
        fd: int = getattr(self, name)
        setattr(self, name, -1)
        if fd >= 0:
            os.close(fd)

    def close(self) -> None:
        """Close every descriptor; a second call does nothing."""
        for name in _DESCRIPTORS:
            self.release(name)


def start(child: Child, argv: list[str], environ: dict[str, str]) -> None:
    """Start `child`, which waits for its request; raises `OSError` without room for it."""
    child.request_end, child.request_fd = new_pipe()
    child.result_fd, result_end = new_pipe()
    try:
        child.stderr_fd, stderr_end = new_pipe()
        try:
            child.pid = _spawn(argv, environ, (child.request_end, result_end, stderr_end))
        finally:
            os.close(stderr_end)
    finally:
        os.close(result_end)
    for fd in (child.request_fd, child.result_fd, child.stderr_fd):
        os.set_blocking(fd, False)
    try:
        child.pidfd = os.pidfd_open(child.pid)
    except (AttributeError, OSError):  # before Linux 5.3 and elsewhere: it is looked at every tick
        pass


def send(child: Child) -> None:
    """Send what the request pipe takes now. The pipe stays open: its end kills the child.

    Until all is sent the reading end is kept open here too. A child that died meanwhile would
    otherwise mean SIGPIPE, which ends a host that has given that signal its default action. A
    resident process is sent more, at any time.
    """
    try:
        sent = os.write(child.request_fd, child.unsent)
        child.unsent = child.unsent[sent:]
    except BlockingIOError:
        pass
    if not child.unsent and not child.run.resident:
        child.release("request_end")


def new_pipe() -> tuple[int, int]:
    """Make a pipe of which no end is a standard descriptor: a caller may have closed its own."""
    reading, writing = os.pipe()
    if min(reading, writing) > 2:
        return reading, writing
    import fcntl  # here: hardly any host has closed one

    try:
        moved: int = fcntl.fcntl(reading, fcntl.F_DUPFD_CLOEXEC, 3)
        try:
            return moved, fcntl.fcntl(writing, fcntl.F_DUPFD_CLOEXEC, 3)
        except OSError:
            os.close(moved)
            raise
    finally:
        os.close(reading)
        os.close(writing)


def _spawn(argv: list[str], environ: dict[str, str], ends: tuple[int, int, int]) -> int:
    """Start the process with `ends` as its standard descriptors, and return its id."""
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(ends)]
    # Signals that the host ignores or blocks concern the host alone. Python itself ignores
    # SIGPIPE again in the child.
    defaults = [s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)]
    options: Any = {"file_actions": actions, "setsigmask": (), "setsigdef": defaults}
    try:
        return os.posix_spawn(argv[0], argv, environ, setsid=True, **options)
    except NotImplementedError:  # a C library without POSIX_SPAWN_SETSID: the child calls setsid
        return os.posix_spawn(argv[0], argv, environ, **options)


# Watch children on Linux and macOS: one poll loop, no wait without a bound.
#
# `subprocess` costs 12 ms to import, and its `run(timeout=…)` waits forever for a child that is
# stuck in the kernel, the usual form of a hung GPU driver.

DYING_S = 1.0
"""Seconds in which a process that closed its result pipe must have ended, if it was dying.

The kernel closes a dying process's descriptors before it can be waited for; with much memory to
give back that takes a while, and its supervisor has to run. A judgement: with 0.3 s the signal of a
crash was missing once in 13,000 tests on two busy processors, most likely for this.
"""

_READ_BYTES = 64 << 10
"""The capacity of a pipe on Linux, see pipe(7)."""

_STDERR_READS = 16
"""Reads of one child's standard error in a row: a child that floods it starves no other."""


class Driver:
    """Starts, watches and ends the children of one probe.

    `watch` returns early when `wake_fd` becomes readable.
    """

    has_threads = False
    """Whether the thread that calls it must be one that `threading` knows."""
    start_thread = staticmethod(start_thread)
    """Starts the thread in which everything else here is called; may raise `RuntimeError`."""

    def __init__(self, wake_fd: int = -1) -> None:
        self._wake_fd = wake_fd
        self._children: list[Child] = []
        self._waiting: Child | None = None

    def start_ahead(self, argv: list[str], environ: dict[str, str]) -> None:
        """Start a process that waits for the next call of `start`; raises `OSError`."""
        self._waiting = child = Child()
        try:
            start(child, argv, environ)
        except BaseException:
            child.close()
            raise

    def start(
        self, run: Run, argv: list[str], environ: dict[str, str], request: Callable[[], bytes]
    ) -> None:
        """Start one child, then send it the request; raises `OSError` without room for it.

        `request` makes what it is sent, while its interpreter starts.
        """
        child, self._waiting = self._waiting or Child(), None
        child.run = run
        self._children.append(child)
        try:
            if child.pid is None:
                start(child, argv, environ)
            data = request()
            child.unsent = b"%08x" % len(data) + data
            send(child)
        except BaseException:
            child.close()
            raise

    def send(self, run: Run, data: bytes) -> None:
        """Send more to a resident process; what its pipe does not take now goes with the watch."""
        for child in self._children:
            if child.run is run:
                child.unsent += data
                send(child)

    def end(self, runs: Sequence[Run], clock: Clock) -> None:
        """End some children as `end_all` does all."""
        from probe_core.isolation.ending import end_all

        ending = [child for child in self._children if child.run in runs]
        self._children = [child for child in self._children if child not in ending]
        end_all(ending, clock)

    def check(self, clock: Clock) -> None:
        """Look at how much memory the children take that are asked something."""
        watched = [child for child in self._children if child.pid is not None]
        _watch_of_trees().check(watched, clock)

    def wake_on(self, fd: int) -> None:
        """Have the next watches return early when `fd` becomes readable; -1: never."""
        self._wake_fd = fd

    def watch(
        self, clock: Clock, cancelled: Callable[[], bool], attend: Callable[[float], None]
    ) -> bool:
        """Feed the runs until each has an outcome, or `cancelled` is true at a tick.

        Return whether each has one. `attend` is called with the time before each wait, and may
        start more children. The children are still there afterwards.
        """
        now = clock()
        next_tick = now + TICK_S
        watch = None
        while not cancelled():
            attend(now)
            waiting = [
                child for child in self._children if child.pid is not None and not child.run.over
            ]
            if not waiting:
                return True
            until = min(next_tick, *(_due(child) for child in waiting))
            woken = _poll(waiting, max(0.0, until - now), self._wake_fd, clock)
            now = clock()
            if woken:
                break
            if now >= until:  # what came meanwhile is due later than now
                for child in waiting:
                    _look_after(child, now)
            if now >= next_tick:
                next_tick = now + TICK_S
                watch = watch or _watch_of_trees()
                watch.check(waiting, clock)
        return False

    def end_all(self, clock: Clock) -> None:
        """End every child with all that it started, reap within bounds, close every pipe."""
        # Not at the top: a first child is started before.
        from probe_core.isolation.ending import end_all, end_process

        waiting, self._waiting = self._waiting, None
        if waiting is not None and waiting.pid is not None:
            waiting.close()
            end_process(waiting.pid, clock)
        end_all(self._children, clock)
        self._children = []


def _due(child: Child) -> float:
    return min(child.run.due, child.must_end_by)


def _look_after(child: Child, now: float) -> None:
    """Do what is due, and see whether it has ended where the kernel has no descriptor for that."""
    if not child.run.over and now >= _due(child):
        _read_stderr(child)
        if now >= child.must_end_by:
            child.run.closed(now)
        else:
            child.run.pass_time(now)
    if child.pidfd < 0:
        _check_exit(child, now)


def _poll(waiting: Sequence[Child], timeout: float, wake_fd: int, clock: Clock) -> bool:
    """Wait for any child, and handle what it brings; return whether `wake_fd` is readable."""
    poller = select.poll()
    owners: dict[int, Child] = {}
    for child in waiting:
        for fd in (child.result_fd, child.stderr_fd, child.pidfd):
            if fd >= 0:
                poller.register(fd, select.POLLIN)
                owners[fd] = child
        if child.unsent:
            poller.register(child.request_fd, select.POLLOUT)
            owners[child.request_fd] = child
    if wake_fd >= 0:
        poller.register(wake_fd, select.POLLIN)
    # Rounded up to whole milliseconds: a poll that ends early would spin until the deadline.
    ready = {fd for fd, _ in poller.poll(int(timeout * 1000) + 1)}
    now = clock()
    for child in dict.fromkeys(owners[fd] for fd in ready if fd in owners):
        _handle(child, ready, now)
    return wake_fd in ready


def _handle(child: Child, ready: set[int], now: float) -> None:
    if child.unsent and child.request_fd in ready:
        send(child)
    if child.stderr_fd in ready and not _read_stderr(child):
        child.release("stderr_fd")
    if child.result_fd in ready and not _read_result(child, now):
        # A dying process closes its pipe a moment before it can be waited for.
        child.release("result_fd")
        child.must_end_by = now + DYING_S
    if child.pidfd in ready or child.must_end_by != NEVER:
        _check_exit(child, now)


def _check_exit(child: Child, now: float) -> None:
    """End the run if its process has ended, after all that it had sent."""
    if child.run.over or not _has_ended(child):
        return
    if child.result_fd >= 0:
        _read_result(child, now)
    _read_stderr(child)
    child.run.exited(child.exit_code, now)


def _read_result(child: Child, now: float) -> bool:
    """Read the result pipe; False at its end."""
    while not child.run.over:
        try:
            data = os.read(child.result_fd, _READ_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        child.run.feed(data, now)
    _read_stderr(child)  # what it printed before its last frame is in the other pipe already
    return True


def _read_stderr(child: Child) -> bool:
    """Read some of standard error; False at its end."""
    if child.stderr_fd < 0:
        return False
    for _ in range(_STDERR_READS):
        try:
            data = os.read(child.stderr_fd, _READ_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        child.run.feed_stderr(data)
    return True


def _has_ended(child: Child) -> bool:
    """Return whether the child has ended, and note its exit code; it is left to be reaped.

    Not reaped yet, its process id cannot be given to another process's group meanwhile.
    """
    assert child.pid is not None
    try:
        if not hasattr(os, "waitid"):
            return _has_ended_reaping(child, child.pid)
        info = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # the host reaped it, so its status is unknown
        child.reaped = True
        return True
    if info is None:
        return False
    exited = info.si_code == os.CLD_EXITED
    child.exit_code = info.si_status if exited else -info.si_status
    return True


def _has_ended_reaping(child: Child, pid: int) -> bool:
    """Do the same on macOS before Python 3.13, which cannot look without reaping.

    The rest of the group is killed at once, before its number could be another group's.
    """
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        return False
    child.reaped = True
    child.exit_code = os.waitstatus_to_exitcode(status)
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass
    return True


def _watch_of_trees() -> Watch:
    from probe_core.isolation.processes import Watch  # a prober that answers at once needs none

    return Watch()
