"""Make a child: three pipes, and a process in a session of its own; nothing is lost on Ctrl-C.

A signal handler of the host may raise after any call, and Ctrl-C comes while a process is being
made more often than at any other time. So what a call makes, descriptors and a process id, is put
into the child's lists by C code, before the interpreter looks at signals again.
"""

from __future__ import annotations

import fcntl
import os
import sys
from itertools import chain, starmap

from probe_core.isolation.limits import stay_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Sequence
    from functools import partial

    from probe_core.isolation.run import Run
else:
    import _signal  # the same functions, without the enums that signal builds
    from _functools import partial  # without what functools imports

__all__ = ["Child", "send", "start"]

NEVER = float("inf")


class Child:
    """A process and the parent's ends of its pipes.

    `pids` holds its process id once it has one; `gone` tells that it was reaped, and that the
    number may be somebody else's. `closed_by` is when a child that closed its result pipe, as a
    dying one does first, must have ended.
    """

    __slots__ = (
        "closed_by",
        "err_fd",
        "fds",
        "gone",
        "out_fd",
        "pidfd",
        "pids",
        "read_end",
        "request_fd",
        "run",
        "unsent",
    )

    def __init__(self, run: Run) -> None:
        self.run = run
        self.pids: list[int] = []
        self.fds: list[int] = []
        self.request_fd = self.read_end = self.out_fd = self.err_fd = self.pidfd = -1
        self.unsent = b""
        self.gone = False
        self.closed_by = NEVER

    def release(self, name: str) -> None:
        """Close one descriptor by its name; a second call does nothing."""
        fd: int = getattr(self, name)
        setattr(self, name, -1)
        if fd in self.fds:
            self.shut(fd)

    def close(self) -> None:
        """Close every descriptor; a second call does nothing."""
        self.request_fd = self.read_end = self.out_fd = self.err_fd = self.pidfd = -1
        while self.fds:
            self.shut(self.fds[-1])

    def shut(self, fd: int) -> None:
        """Close one descriptor and forget it, in C code too: neither without the other."""
        any(map(os.close, map(self.fds.pop, [self.fds.index(fd)])))


def start(child: Child, argv: Sequence[str], environ: dict[str, str], request: bytes) -> None:
    """Start `child`; raises `OSError` when the system has no room for it."""
    child.fds.extend(chain.from_iterable(starmap(os.pipe, ((), (), ()))))
    _move_above_stdio(child.fds)
    child.read_end, child.request_fd, child.out_fd, out_w, child.err_fd, err_w = child.fds
    _spawn(child, argv, environ, out_w, err_w)
    if sys.platform == "linux":
        stay_small(*child.pids)  # here, where there is time: the child waits for the request
    for fd in (out_w, err_w):
        child.shut(fd)
    for fd in (child.request_fd, child.out_fd, child.err_fd):
        os.set_blocking(fd, False)
    _watch_exit(child)
    child.unsent = b"%08x" % len(request) + request
    send(child)


def send(child: Child) -> None:
    """Send what the request pipe takes now. The pipe stays open: its end kills the child.

    Until all is sent the reading end is kept open here too. A child that died meanwhile would
    otherwise mean SIGPIPE, which ends a host that has given that signal its default action.
    """
    try:
        sent = os.write(child.request_fd, child.unsent)
        child.unsent = child.unsent[sent:]
    except BlockingIOError:
        pass
    if not child.unsent:
        child.release("read_end")


def _move_above_stdio(fds: list[int]) -> None:
    """Let none be a standard descriptor: a host may have closed its own."""
    for index, fd in enumerate(fds):
        if fd <= 2:
            fds[index] = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
            os.close(fd)


def _spawn(child: Child, argv: Sequence[str], environ: dict[str, str], out: int, err: int) -> None:
    actions = [
        (os.POSIX_SPAWN_DUP2, child.read_end, 0),
        (os.POSIX_SPAWN_DUP2, out, 1),
        (os.POSIX_SPAWN_DUP2, err, 2),
    ]
    # The host's ignored and blocked signals are its own affair; SIGPIPE stays as Python wants it.
    defaults = [s for s in _signal.valid_signals() if s not in (_signal.SIGKILL, _signal.SIGSTOP)]
    plain: Callable[..., int] = partial(
        os.posix_spawn, file_actions=actions, setsigmask=[], setsigdef=defaults
    )
    try:
        child.pids.extend(map(partial(plain, setsid=True), [argv[0]], [argv], [environ]))
    except NotImplementedError:  # an old C library: the child makes the session itself
        child.pids.extend(map(plain, [argv[0]], [argv], [environ]))


def _watch_exit(child: Child) -> None:
    """Get a descriptor that tells when the process ends; without one it is asked at every tick."""
    if hasattr(os, "pidfd_open"):
        try:
            child.fds.extend(map(os.pidfd_open, child.pids))
        except OSError:
            return
        child.pidfd = child.fds[-1]
