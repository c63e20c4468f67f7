"""Where a child begins: its descriptors, its session, its supervisor, then what a prober needs.

On Linux the child forks before it has imported anything. The first process becomes the supervisor,
the copy becomes the prober; what each needs it imports for itself, at the same time as the other.
It forks once the request has begun to come: until then it has time for what both of them inherit.
"""

from __future__ import annotations

import gc
import os
import sys

from probe_core.fastpath import call_c, signal

__all__ = ["ORPHANED", "become_subreaper", "discard", "go_first", "main", "read_exactly"]

ORPHANED = 71
"""Exit status of a child whose parent died: EX_OSERR of sysexits.h."""

_NUMBERS = 1 << 16
"""Descriptors that are closed one by one where nothing lists them: 3 ms."""

FILE_SIZE_LIMIT = 256 << 20
"""Bytes of a file that a prober writes: caches and logs of vendors' libraries fit, a flood not."""

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h, since Linux 3.4

_OOM_SCORE_MAX = b"1000"
"""The largest value of oom_score_adj, see proc_pid_oom_score_adj(5)."""


def main() -> None:
    """Become the prober that the request on standard input names, or its supervisor.

    Never returns.
    """
    # Imports make thousands of objects and no garbage: looking for some takes a fifth of the time,
    # and touches memory that both processes share. The prober itself gets a collector that works.
    gc.disable()
    _close_inherited()
    _own_session()
    _stay_small()
    size = int(read_exactly(0, 8), 16)  # the head of the request: how many bytes follow it
    supervisor, inherits = _fork() if sys.platform == "linux" else (-1, False)

    from probe_core.isolation import child

    child.main(size, supervisor, inherits)


def _close_inherited() -> None:
    """Close all but the three pipes: what the host opened inheritable is not the prober's.

    A plugin could write into the host's file, and release its `flock`, which is of the open file
    and not of the process; a listening socket would keep its port in use.
    """
    if os.name != "posix":  # on Windows `subprocess` hands over these three alone
        return
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            numbers = [int(name) for name in os.listdir(folder)]
        except (OSError, ValueError):
            continue
        for number in numbers:
            if number > 2:
                os.closerange(number, number + 1)  # the folder's own is closed already
        return
    # Neither folder. Bounded, because without close_range(2) each number is a system call.
    os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), _NUMBERS))


def _own_session() -> None:
    """Lead a session of one's own, so that what the prober starts can be known by it."""
    # posix_spawn made the session where it can; a process that leads a group cannot do it again.
    if hasattr(os, "setsid"):
        try:
            os.setsid()
        except OSError:
            pass


def _stay_small() -> None:
    """Write no core file and no large one; what the system does not know or allow is left out."""
    try:
        import resource

        limits = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, FILE_SIZE_LIMIT))
        for name, limit in limits:
            resource.setrlimit(name, (limit, limit))
    except (ImportError, AttributeError, OSError, ValueError):
        pass


def read_exactly(fd: int, size: int) -> bytes:
    """Read `size` bytes of what the parent sends; end when it died before it sent them."""
    data = b""
    while len(data) < size:
        piece = os.read(fd, size - len(data))
        if not piece:
            os._exit(ORPHANED)
        data += piece
    return data


def discard(numbers: tuple[int, ...], flags: int) -> None:
    """Make descriptors that bring nothing, and take all; `flags` are those of open(2).

    A container without /dev has no /dev/null: then the end of a pipe whose other end is closed.
    """
    try:
        null = os.open(os.devnull, flags)
    except OSError:
        reading, writing = os.pipe()
        null, other = (reading, writing) if flags == os.O_RDONLY else (writing, reading)
        os.close(other)
    for number in numbers:
        os.dup2(null, number)
    if null not in numbers:
        os.close(null)


def go_first(pid: int) -> None:
    """When memory runs out, have the kernel kill `pid` and not the host; Linux only."""
    try:
        fd = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY)
    except OSError:  # no /proc
        return
    try:
        os.write(fd, _OOM_SCORE_MAX)
    except OSError:
        pass
    finally:
        os.close(fd)


def _fork() -> tuple[int, bool]:
    """Return in the prober, with a pipe that ends when its supervisor does, and whether that
    inherits, and so ends, all that the prober starts.

    -1 where there is no room for one more process: the prober then does without a supervisor.
    What must be so before a plugin is imported comes first, and the prober waits for it at once: on
    a busy machine it would wait longer later, for a process that the others keep from running.
    """
    stop_r, stop_w = os.pipe()
    alive_r, alive_w = os.pipe()
    # Before there is a prober that a supervisor killed by SIGTERM would leave behind.
    os.set_blocking(stop_w, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(stop_w)
    try:
        prober = os.fork()
    except OSError:
        prober = -1
    if prober > 0:
        inherits = become_subreaper()
        try:
            os.write(alive_w, b"1" if inherits else b"0")
            os.sched_yield()  # on a machine whose processors are busy, let the prober go first
        except OSError:  # it has ended already, or a seccomp filter does not know the second
            pass
        from probe_core.isolation import supervisor

        supervisor.supervise(prober, stop_r, inherits)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for fd in (stop_r, stop_w, alive_w):
        os.close(fd)
    if prober < 0:
        os.close(alive_r)
        return -1, False
    return alive_r, read_exactly(alive_r, 1) == b"1"


def become_subreaper() -> bool:
    """Be the parent of all descendants whose own parent has ended; return whether this is so.

    Not in a prober, nor before it is forked: libffi 3.4 opens its own file when ctypes is loaded.
    """
    # Not so without it: the host ends leftovers.
    return call_c("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
