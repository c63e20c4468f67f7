"""Confine a child: its pipes, its session, its limits, and its end when the parent ends."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import Any
else:
    import _signal  # the same functions, without the enums that signal builds

__all__ = ["die_with_parent", "limit", "own_session", "read_request", "take_pipes"]

_exit = os._exit
GRACE_S = 1.0
"""Seconds after the deadline at which the kernel itself ends a child nobody killed."""

FILE_SIZE_LIMIT = 256 << 20
ORPHANED = 71
"""Exit status of a child whose parent died."""


def take_pipes() -> tuple[int, int]:
    """Move the request and result pipes off the standard descriptors, which plugins write to."""
    result = _move(1)
    request = _move(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return request, result


def _move(fd: int) -> int:
    """Duplicate `fd` out of the way of code that closes or writes to small descriptors."""
    try:
        import fcntl

        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
    except (ImportError, OSError):
        return os.dup(fd)


def own_session() -> None:
    """Lead a session of one's own, so that all that the prober starts can be killed with it."""
    # posix_spawn made the session where it can; a process that leads a group cannot do it again.
    if hasattr(os, "setsid") and os.getsid(0) != os.getpid():
        try:
            os.setsid()
        except OSError:
            pass


def read_request(fd: int) -> dict[str, Any]:
    """Read the request: a length in 8 hex digits, then marshal data from the trusted parent.

    The pipe stays open: its end tells that the parent died.
    """
    import marshal

    size = int(_read_exactly(fd, 8), 16)
    request: dict[str, Any] = marshal.loads(_read_exactly(fd, size))
    return request


def _read_exactly(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(fd, size - len(data))
        if not piece:
            _exit(ORPHANED)  # the parent died before it asked
        data += piece
    return data


def die_with_parent(fd: int) -> None:
    """Have this whole group killed when the parent's end of the request pipe closes.

    On Linux the kernel does it (a signal-driven pipe), also while C code holds the GIL. Elsewhere
    a thread waits for the end of the pipe; the alarm set by `limit` is the second net.
    """
    if sys.platform == "linux" and os.getpgid(0) == os.getpid():
        import fcntl

        fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpgid(0))
        fcntl.fcntl(fd, fcntl.F_SETSIG, _signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | fcntl.FASYNC)
        _exit_if_orphaned(fd)
        return
    import _thread

    _thread.start_new_thread(_wait_for_end, (fd,))


def _exit_if_orphaned(fd: int) -> None:
    """The parent may have died before the signal was armed: then the pipe is already at its end."""
    import select

    poller = select.poll()
    poller.register(fd, select.POLLIN)
    if any(event & select.POLLHUP for _, event in poller.poll(0)):
        _exit(ORPHANED)


def _wait_for_end(fd: int) -> None:
    try:
        while os.read(fd, 1):
            pass
    except OSError:
        pass
    _exit(ORPHANED)


def limit(deadline_s: float, ends: float) -> None:
    """Set what keeps a lost child small: no core files, bounded files, an alarm, a stack dump.

    `ends` is the deadline on the monotonic clock, which all processes of a system share.
    """
    import faulthandler
    from time import monotonic

    _die_first()
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE_LIMIT, FILE_SIZE_LIMIT))
    except (ImportError, OSError, ValueError):
        pass
    faulthandler.enable(2)
    # Just before the deadline: the parent finds in the tail of stderr where it hung. As late as
    # can be, since reading the stack of a thread that runs can crash a process that is only slow.
    left = min(deadline_s, max(0.0, ends - monotonic()))
    faulthandler.dump_traceback_later(max(0.02, left * 0.9, left - 0.1), exit=False, file=2)
    if hasattr(_signal, "setitimer"):
        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
        _signal.setitimer(_signal.ITIMER_REAL, left + GRACE_S)


def _die_first() -> None:
    """When the machine runs out of memory, let the kernel take this process and not the host."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    except OSError:  # not Linux, or no /proc
        return
    try:
        os.write(fd, b"1000")
    except OSError:
        pass
    finally:
        os.close(fd)
