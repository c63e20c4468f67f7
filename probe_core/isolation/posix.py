"""Watch children on Linux and macOS: one poll loop, no threads, no wait without a bound.

`subprocess` costs 12 ms to import, and its `run(timeout=…)` waits forever for a child that is
stuck in the kernel, the usual form of a hung GPU driver.
"""

from __future__ import annotations

import os
import select

from probe_core.isolation import sessions
from probe_core.isolation.ending import end_all
from probe_core.isolation.spawn import NEVER, Child, send, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Sequence

    from probe_core.isolation.run import Run

    Clock = Callable[[], float]
else:
    import _signal  # the same functions, without the enums that signal builds

__all__ = ["Driver"]

TICK_S = 0.1
DYING_S = 0.3
"""Seconds in which a process that closed its result pipe must have ended, if it was dying."""


class Driver:
    """Starts, watches and ends the children of one probe.

    `watch` returns early when `wake_fd` becomes readable.
    """

    def __init__(self, wake_fd: int = -1) -> None:
        self._wake_fd = wake_fd
        self._children: list[Child] = []

    def start(self, run: Run, argv: Sequence[str], environ: dict[str, str], request: bytes) -> None:
        """Start one child; raises `OSError` when the system has no room for it."""
        child = Child(run)
        self._children.append(child)
        try:
            start(child, argv, environ, request)
        except OSError:
            child.close()
            raise

    def watch(self, clock: Clock) -> None:
        """Feed the runs until each has an outcome; the children are still there afterwards."""
        _watch([child for child in self._children if child.pids], clock, self._wake_fd)

    def end_all(self, clock: Clock) -> None:
        """Kill every child with all that it started, reap within bounds, close every pipe.

        A second call finishes what an interruption left of the first.
        """
        end_all(self._children, clock)
        self._children = []


def _watch(children: Sequence[Child], clock: Clock, wake_fd: int) -> None:
    now = clock()
    next_tick = now + TICK_S
    while waiting := [child for child in children if not child.run.over]:
        until = min(min(_due(child) for child in waiting), next_tick)
        woken = _poll(waiting, max(0.0, until - now), wake_fd, clock)
        now = clock()
        if woken:
            return
        for child in waiting:
            _expire(child, now)
        if now >= next_tick:
            next_tick = now + TICK_S
            _check(waiting, now)


def _due(child: Child) -> float:
    return min(child.run.deadline, child.closed_by)


def _expire(child: Child, now: float) -> None:
    if child.run.over or now < _due(child):
        return
    _drain(child)
    if now >= child.closed_by:
        child.run.closed(now)
    else:
        child.run.expire(now)


def _poll(waiting: Sequence[Child], timeout: float, wake_fd: int, clock: Clock) -> bool:
    poller = select.poll()
    for child in waiting:
        for fd in (child.out_fd, child.err_fd, child.pidfd):
            if fd >= 0:
                poller.register(fd, select.POLLIN)
        if child.unsent:
            poller.register(child.request_fd, select.POLLOUT)
    if wake_fd >= 0:
        poller.register(wake_fd, select.POLLIN)
    # Rounded up: a poll that ends early would spin until the deadline.
    ready = {fd for fd, _ in poller.poll(int(timeout * 1000) + 1)}
    now = clock()
    for child in waiting:
        if ready & {child.out_fd, child.err_fd, child.request_fd, child.pidfd}:
            _serve(child, ready, now)
    return wake_fd in ready


def _serve(child: Child, ready: set[int], now: float) -> None:
    if child.unsent and child.request_fd in ready:
        send(child)
    if child.err_fd in ready and not _read_stderr(child):
        child.release("err_fd")
    if child.out_fd in ready and not _read_result(child, now):
        # A dying process closes its pipe a moment before it can be waited for.
        child.release("out_fd")
        child.closed_by = now + DYING_S
    if child.pidfd in ready or child.closed_by != NEVER:
        _look(child, now)


def _look(child: Child, now: float) -> None:
    """End the run if its process has ended, after all that it had sent."""
    if child.run.over or (how := _peek(child)) is None:
        return
    if child.out_fd >= 0:
        _read_result(child, now)
    _drain(child)
    child.run.exited(how, now)


def _read_result(child: Child, now: float) -> bool:
    """Read the result pipe; False at its end."""
    while not child.run.over:
        try:
            data = os.read(child.out_fd, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        child.run.feed(data, now)
    return True


def _read_stderr(child: Child) -> bool:
    """Read some of standard error; False at its end. Bounded, so a flood starves nobody."""
    for _ in range(16):
        try:
            data = os.read(child.err_fd, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        child.run.feed_stderr(data)
    return True


def _drain(child: Child) -> None:
    if child.err_fd >= 0:
        _read_stderr(child)


def _peek(child: Child) -> str | None:
    """Return how the child ended, leaving it to be reaped; None while it lives.

    Not reaped yet, its process id cannot be given to somebody else's group meanwhile.
    """
    try:
        if not hasattr(os, "waitid"):
            return _peek_and_reap(child)
        info = os.waitid(os.P_PID, child.pids[0], os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        child.gone = True
        return "it ended (the host reaped it, so its status is unknown)"
    if info is None:
        return None
    if info.si_code == os.CLD_EXITED:
        return f"it exited with status {info.si_status}"
    return f"it was killed by {signal_name(info.si_status)}"


def _peek_and_reap(child: Child) -> str | None:
    """Do the same on macOS before Python 3.13, which cannot look without reaping.

    The rest of the group is killed at once, before its number could be another group's.
    """
    pid, status = os.waitpid(child.pids[0], os.WNOHANG)
    if pid == 0:
        return None
    child.gone = True
    try:
        os.killpg(pid, _signal.SIGKILL)
    except OSError:
        pass
    code = os.waitstatus_to_exitcode(status)
    return f"it was killed by {signal_name(-code)}" if code < 0 else f"it exited with status {code}"


def signal_name(number: int) -> str:
    """Return ``SIGSEGV`` for 11, without the signal module's enums."""
    names = (n for n in dir(_signal) if n.startswith("SIG") and n[3] != "_")
    return next((n for n in names if getattr(_signal, n) == number), f"signal {number}")


def _check(waiting: Sequence[Child], now: float) -> None:
    """Watch memory, and exits where the kernel has no pidfd.

    Resident memory, not RLIMIT_AS: GPU runtimes reserve address space beyond any sane limit.
    """
    for child in waiting:
        if child.pidfd < 0:
            _look(child, now)
        prober = child.run.pid or child.pids[0]
        if not child.run.over and sessions.resident_bytes(prober) > sessions.MEMORY_LIMIT:
            gib = sessions.MEMORY_LIMIT / (1 << 30)
            child.run.finish("resource", f"it used more than {gib:.3g} GiB of memory", now)
