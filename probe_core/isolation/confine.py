"""Confine a prober: its pipes, its time, and its end when the host ends."""

from __future__ import annotations

import os
import sys

from probe_core.fastpath import signal, start_thread
from probe_core.isolation.start import ORPHANED, discard, read_exactly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.isolation.messages import RequestMessage

__all__ = [
    "die_with_parent",
    "die_with_supervisor",
    "limit",
    "limit_round",
    "read_request",
    "take_pipes",
    "unlimited",
]

_exit = os._exit

_RESULT_FD, _REQUEST_FD, _SUPERVISOR_FD = 200, 201, 202
"""Above what libraries get when they open files, which some of them close without owning it."""

GRACE_S = 1.0
"""Seconds after the deadline at which the kernel itself ends a child that nobody killed."""

_DUMP_AT = 0.9
_DUMP_BEFORE_S = 0.1
_DUMP_LEAST_S = 0.02
"""When the watchdog writes where the prober hangs: at nine tenths of the time that remains, or a
tenth of a second before its end if that is later, but not at once.

As late as can be, since reading the stack of a thread that runs can crash a process that is only
slow. 0.1 s is time enough to write the stack, and for the parent to read it.
"""


def take_pipes() -> tuple[int, int]:
    """Move the request and result pipes off the standard descriptors, which plugins write to."""
    result = _move(1, _RESULT_FD)
    request = _move(0, _REQUEST_FD)
    discard((0,), os.O_RDONLY)
    os.dup2(2, 1)
    return request, result


def _move(fd: int, to: int) -> int:
    """Duplicate `fd` out of the way of code that closes or writes to small descriptors."""
    try:
        return os.dup2(fd, to, inheritable=False)
    except OSError:  # RLIMIT_NOFILE is below that
        return os.dup(fd)


def read_request(fd: int, size: int) -> RequestMessage:
    """Read the `size` bytes of the request: marshal data from the trusted parent.

    The pipe stays open: its end tells that the parent died.
    """
    import marshal

    request: RequestMessage = marshal.loads(read_exactly(fd, size))
    return request


def die_with_supervisor(alive: int) -> None:
    """Have the kernel kill this process and its group when its supervisor is killed.

    It does so also while C code holds the GIL. `alive` is a pipe whose only writer is the
    supervisor: its end raises a signal of choice, see F_SETSIG in fcntl(2).
    """
    import fcntl

    os.setpgid(0, 0)
    fd = _move(alive, _SUPERVISOR_FD)
    os.close(alive)
    try:
        fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpid())
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | fcntl.FASYNC)
    except OSError:  # a kernel that lacks F_SETSIG: the host finds the prober by its session
        pass
    os.set_blocking(fd, False)
    try:
        os.read(fd, 1)
    except BlockingIOError:
        return
    _exit(ORPHANED)  # it was killed before


def die_with_parent(fd: int) -> None:
    """Where there is no supervisor: end when the host's end of the request pipe closes.

    A thread waits for it. When C code holds the GIL, or the limit on processes leaves no room for
    a thread, the alarm that `limit` sets ends the process.
    """
    try:
        start_thread(_wait_for_end, fd)
    except RuntimeError:
        return


def _wait_for_end(fd: int) -> None:
    try:
        while os.read(fd, 1):
            pass
    except OSError:
        pass
    _exit(ORPHANED)


def limit(deadline_s: float, ends: float) -> None:
    """Set what bounds a lost child's life, and tells where it hung: an alarm, a stack dump.

    `ends` is the deadline on the monotonic clock, which all processes of a system share.
    """
    import faulthandler
    from time import monotonic

    if sys.version_info >= (3, 14):  # which adds the stack in C: it would fill what a report keeps
        faulthandler.enable(2, c_stack=False)
    else:
        faulthandler.enable(2)
    remaining = min(deadline_s, max(0.0, ends - monotonic()))
    dump_at = max(_DUMP_LEAST_S, remaining * _DUMP_AT, remaining - _DUMP_BEFORE_S)
    try:
        faulthandler.dump_traceback_later(dump_at, exit=False, file=2)
    except RuntimeError:  # no room for its thread: a timeout then names no line
        pass
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, remaining + GRACE_S)


def limit_round(seconds: float) -> None:
    """Have the kernel end this process when a round lasts longer, and nobody has killed it."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds + GRACE_S)


def unlimited() -> None:
    """Take back what `limit` and `limit_round` set, while a resident process waits to be asked."""
    import faulthandler

    faulthandler.cancel_dump_traceback_later()
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
