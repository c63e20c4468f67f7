"""Start, watch and end children on Linux and macOS.

`subprocess` costs 12 ms to import, and its `run(timeout=…)` waits forever for a child that is
stuck in the kernel, the usual form of a hung GPU driver. Here: `posix_spawn` into a session of its
own, one poll loop without threads, SIGKILL for the whole session, a bounded wait, then the child
is abandoned and reported.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import sys

from probe_core.isolation import sessions
from probe_core.isolation.run import FAILURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Sequence

    from probe_core.isolation.run import Run

    Clock = Callable[[], float]
else:
    import _signal  # the same functions, without the enums that signal builds

__all__ = ["Driver"]

REAP_S = 0.5
"""Seconds that killed children may take to be gone, all together, before they are abandoned."""

TICK_S = 0.1
RSS_LIMIT = 4 << 30


class Child:
    """A started process and the parent's ends of its pipes."""

    __slots__ = ("alive", "err_fd", "out_fd", "pid", "pidfd", "request_fd", "run", "unsent")

    def __init__(self, run: Run, pid: int, request_fd: int, out_fd: int, err_fd: int) -> None:
        self.run = run
        self.pid = pid
        self.request_fd = request_fd
        self.out_fd = out_fd
        self.err_fd = err_fd
        self.pidfd = _pidfd(pid)
        self.unsent = b""
        self.alive = True

    def close(self) -> None:
        """Close every descriptor; a second call does nothing."""
        for name in ("request_fd", "out_fd", "err_fd", "pidfd"):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
                setattr(self, name, -1)


def _pidfd(pid: int) -> int:
    if not hasattr(os, "pidfd_open"):
        return -1
    try:
        return os.pidfd_open(pid)
    except OSError:
        return -1


class Driver:
    """Starts, watches and ends the children of one probe.

    `watch` returns early when `wake_fd` becomes readable.
    """

    def __init__(self, wake_fd: int = -1) -> None:
        self._wake_fd = wake_fd

    def start(
        self, run: Run, argv: Sequence[str], environ: dict[str, str], request: bytes
    ) -> Child:
        """Start one child; raises `OSError` when the system has no room for it."""
        return _start(run, argv, environ, request)

    def watch(self, children: Sequence[Child], clock: Clock) -> None:
        """Feed the runs until each has an outcome; the children are still there afterwards."""
        _watch(children, clock, self._wake_fd)

    def end_all(self, children: Sequence[Child], clock: Clock) -> None:
        """Kill every child with all that it started, reap within bounds, close every pipe."""
        _end_all(children, clock)


def _start(run: Run, argv: Sequence[str], environ: dict[str, str], request: bytes) -> Child:
    pipes: list[int] = []
    try:
        for _ in range(3):
            pipes += _pipe()
        request_r, request_w, out_r, out_w, err_r, err_w = pipes
        pid = _spawn(argv, environ, request_r, out_w, err_w)
    except BaseException:
        for fd in pipes:
            os.close(fd)
        raise
    for fd in (request_r, out_w, err_w):
        os.close(fd)
    for fd in (request_w, out_r, err_r):
        os.set_blocking(fd, False)
    child = Child(run, pid, request_w, out_r, err_r)
    child.unsent = b"%08x" % len(request) + request
    _send(child)
    return child


def _pipe() -> list[int]:
    """Return a pipe whose ends are no standard descriptors: a host may have closed its own."""
    return [_above_stdio(fd) for fd in os.pipe()]


def _above_stdio(fd: int) -> int:
    if fd > 2:
        return fd
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved


def _spawn(argv: Sequence[str], environ: dict[str, str], stdin: int, out: int, err: int) -> int:
    actions = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, out, 1),
        (os.POSIX_SPAWN_DUP2, err, 2),
    ]
    # The host's ignored and blocked signals are its own affair; SIGPIPE stays as Python wants it.
    defaults = [s for s in _signal.valid_signals() if s not in (_signal.SIGKILL, _signal.SIGSTOP)]
    options = {"file_actions": actions, "setsigmask": [], "setsigdef": defaults}
    try:
        return os.posix_spawn(argv[0], argv, environ, setsid=True, **options)  # type: ignore[arg-type]
    except NotImplementedError:  # an old C library: the child makes the session itself
        return os.posix_spawn(argv[0], argv, environ, **options)  # type: ignore[arg-type]


def _send(child: Child) -> None:
    """Send what the request pipe takes now. The pipe stays open: its end kills the child."""
    try:
        sent = os.write(child.request_fd, child.unsent)
        child.unsent = child.unsent[sent:]
    except BlockingIOError:
        pass
    except OSError:  # the child is gone, which is noticed elsewhere
        child.unsent = b""


def _watch(children: Sequence[Child], clock: Clock, wake_fd: int) -> None:
    now = clock()
    next_tick = now + TICK_S
    while True:
        waiting = [child for child in children if not child.run.over]
        if not waiting:
            return
        until = min(min(child.run.deadline for child in waiting), next_tick)
        woken = _poll(waiting, max(0.0, until - now), wake_fd, clock)
        now = clock()
        if woken:
            return
        for child in waiting:
            if now >= child.run.deadline:
                _drain(child, now)
                child.run.expire(now)
        if now >= next_tick:
            next_tick = now + TICK_S
            _check(waiting, now)


def _poll(waiting: Sequence[Child], timeout: float, wake_fd: int, clock: Clock) -> bool:
    poller = select.poll()
    for child in waiting:
        poller.register(child.out_fd, select.POLLIN)
        if child.err_fd >= 0:
            poller.register(child.err_fd, select.POLLIN)
        if child.pidfd >= 0 and child.alive:
            poller.register(child.pidfd, select.POLLIN)
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
        _send(child)
    if child.err_fd in ready and not _read_stderr(child):
        os.close(child.err_fd)
        child.err_fd = -1
    closed = child.out_fd in ready and not _read_result(child, now)
    if child.run.over:
        return
    exit_status = _peek(child) if closed or child.pidfd in ready or child.pidfd < 0 else None
    if exit_status is not None:
        _read_result(child, now)
        _drain(child, now)
        child.run.exited(exit_status, now)
    elif closed:
        _closed_or_gone(child, now)


def _closed_or_gone(child: Child, now: float) -> None:
    """A dying process closes its pipe a moment before it can be waited for."""
    for _ in range(50):
        exit_status = _peek(child)
        if exit_status is not None:
            _drain(child, now)
            child.run.exited(exit_status, now)
            return
        select.poll().poll(2)
    child.run.closed(now)


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


def _drain(child: Child, now: float) -> None:
    if child.err_fd >= 0:
        _read_stderr(child)


def _peek(child: Child) -> str | None:
    """Return how the child ended, leaving it to be reaped; None while it lives.

    Not reaped yet, its process id cannot be given to somebody else's group meanwhile.
    """
    try:
        info = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return "it ended (the host reaped it, so its status is unknown)"
    if info is None:
        return None
    if info.si_code == os.CLD_EXITED:
        return f"it exited with status {info.si_status}"
    return f"it was killed by {signal_name(info.si_status)}"


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
            _serve(child, {child.pidfd}, now)
        if sessions.resident_bytes(child.pid) > RSS_LIMIT:
            child.run.finish("resource", f"it used more than {RSS_LIMIT >> 30} GiB of memory", now)


def _end_all(children: Sequence[Child], clock: Clock) -> None:
    for child in children:
        _kill(child)
    limit = clock() + REAP_S
    left = [child for child in children if not _reap(child)]
    while left and clock() < limit:
        _wait_a_moment(left)
        left = [child for child in left if not _reap(child)]
    for child in left:
        child.run.abandoned = True
    for child in children:
        _sweep(child)
        child.close()


def _wait_a_moment(left: Sequence[Child]) -> None:
    poller = select.poll()
    for child in left:
        if child.pidfd >= 0:
            poller.register(child.pidfd, select.POLLIN)
    poller.poll(5)


def _kill(child: Child) -> None:
    if not child.alive:
        return
    for kill, target in ((os.killpg, child.pid), (os.kill, child.pid)):
        try:
            kill(target, _signal.SIGKILL)
        except OSError:
            pass


def _reap(child: Child) -> bool:
    if not child.alive:
        return True
    try:
        child.alive = os.waitpid(child.pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        child.alive = False
    except OSError as error:
        child.alive = error.errno != errno.ECHILD
    return not child.alive


def _sweep(child: Child) -> None:
    """Kill what left the child's process group, when something still holds one of its pipes.

    A pipe that is not at its end after the child is gone is held by a process it started.
    """
    if child.alive or sys.platform != "linux":
        return
    held = _still_held(child.out_fd) or _still_held(child.err_fd)
    if held or child.run.status in FAILURES:
        sessions.kill_marked(child.pid, child.run.mark)


def _still_held(fd: int) -> bool:
    if fd < 0:
        return False
    for _ in range(64):
        try:
            if not os.read(fd, 65536):
                return False
        except BlockingIOError:
            return True
        except OSError:
            return False
    return True
