"""Confine a prober: its pipes, its time, and its end when the host ends."""

from __future__ import annotations

import os

from probe_core.isolation.start import ORPHANED, read_exactly

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import Any
else:
    import _signal  # the same functions, without the enums that signal builds

__all__ = [
    "die_with_parent",
    "limit",
    "read_request",
    "take_pipes",
    "wait_for_keeper",
]

_exit = os._exit
_RESULT_FD, _REQUEST_FD, _KEEPER_FD = 200, 201, 202
GRACE_S = 1.0
"""Seconds after the deadline at which the kernel itself ends a child nobody killed."""


def take_pipes() -> tuple[int, int]:
    """Move the request and result pipes off the standard descriptors, which plugins write to."""
    result = _move(1, _RESULT_FD)
    request = _move(0, _REQUEST_FD)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return request, result


def _move(fd: int, to: int) -> int:
    """Duplicate `fd` out of the way of code that closes or writes to small descriptors."""
    try:
        return os.dup2(fd, to, inheritable=False)
    except OSError:  # a limit below that
        return os.dup(fd)


def read_request(fd: int, size: int) -> dict[str, Any]:
    """Read the `size` bytes of the request: marshal data from the trusted parent.

    The pipe stays open: its end tells that the parent died.
    """
    import marshal

    request: dict[str, Any] = marshal.loads(read_exactly(fd, size))
    return request


def wait_for_keeper(ready: int) -> None:
    """Wait until the keeper is ready, and hold on to the pipe, whose end kills this whole group.

    The kernel does it, also while C code holds the GIL; the keeper has arranged that.
    """
    fd = _move(ready, _KEEPER_FD)
    os.close(ready)
    read_exactly(fd, 1)


def die_with_parent(fd: int) -> None:
    """Where there is no keeper: end when the host's end of the request pipe closes.

    A thread waits for it; the alarm set by `limit` is the net below, when C code holds the GIL.
    """
    import _thread

    _thread.start_new_thread(_wait_for_end, (fd,))


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

    faulthandler.enable(2)
    # Just before the deadline: the parent finds in the tail of stderr where it hung. As late as
    # can be, since reading the stack of a thread that runs can crash a process that is only slow.
    left = min(deadline_s, max(0.0, ends - monotonic()))
    faulthandler.dump_traceback_later(max(0.02, left * 0.9, left - 0.1), exit=False, file=2)
    if hasattr(_signal, "setitimer"):
        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
        _signal.setitimer(_signal.ITIMER_REAL, left + GRACE_S)
