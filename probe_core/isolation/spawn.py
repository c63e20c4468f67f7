"""Make a child: three pipes, and a process in a session of its own.

Runs in the thread of `worker`, where no signal handler can raise between a call and the
assignment of its result, and no descriptor or process is lost.
"""

from __future__ import annotations

import fcntl
import os
import sys

from probe_core.fastpath import signal
from probe_core.isolation.limits import stay_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.isolation.run import Run

__all__ = ["NEVER", "Child", "send", "start"]

NEVER = float("inf")

_DESCRIPTORS = ("request_fd", "request_end", "result_fd", "stderr_fd", "pidfd")


class Child:
    """A process and the parent's ends of its pipes; a descriptor is -1 while it is not open.

    `pid` is None until the process was started. `reaped` tells that it was waited for, and that
    its number may be another process's by now. `exit_code` is its status as `subprocess` has it,
    negative for a signal, None while it lives and when the host reaped it. `nothing_left` tells
    that its supervisor ended last of all that the prober had started.
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

    def __init__(self, run: Run) -> None:
        self.run = run
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


def start(
    child: Child, argv: list[str], environ: dict[str, str], request: Callable[[], bytes]
) -> None:
    """Start `child`; raises `OSError` when the system has no room for it.

    `request` makes what it is sent, while its interpreter starts.
    """
    child.request_end, child.request_fd = _pipe()
    child.result_fd, result_end = _pipe()
    try:
        child.stderr_fd, stderr_end = _pipe()
        try:
            child.pid = _spawn(argv, environ, (child.request_end, result_end, stderr_end))
        finally:
            os.close(stderr_end)
    finally:
        os.close(result_end)
    if sys.platform == "linux":
        # Set from outside, where there is time: the child waits for its request meanwhile.
        stay_small(child.pid)
    for fd in (child.request_fd, child.result_fd, child.stderr_fd):
        os.set_blocking(fd, False)
    child.pidfd = _watch_exit(child.pid)
    data = request()
    child.unsent = b"%08x" % len(data) + data
    send(child)


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


def _pipe() -> tuple[int, int]:
    """Make a pipe of which no end is a standard descriptor: a host may have closed its own."""
    reading, writing = os.pipe()
    if min(reading, writing) > 2:
        return reading, writing
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

    def spawn(setsid: bool) -> int:
        return os.posix_spawn(
            argv[0],
            argv,
            environ,
            file_actions=actions,
            setsigmask=[],
            setsigdef=defaults,
            setsid=setsid,
        )

    try:
        return spawn(setsid=True)
    except NotImplementedError:  # a C library without POSIX_SPAWN_SETSID: the child calls setsid
        return spawn(setsid=False)


def _watch_exit(pid: int) -> int:
    """Return a descriptor that tells when the process ends; -1 before Linux 5.3 and elsewhere.

    Without one the process is looked at every tick.
    """
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
