"""The process between the host and a prober: it leaves nothing that the prober started.

It inherits orphans, so that whatever descends from the prober is found here: also what left the
group and the session, cleared its environment and forked twice. It ends all of that when the prober
ends, when the host asks with SIGTERM, and when the host's end of the request pipe closes because
the host was killed. Should it be killed itself, the kernel kills the prober's group.
"""

from __future__ import annotations

import os
from time import sleep

from probe_core.isolation.limits import go_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select
    import signal as _signal
else:
    import _signal  # the same functions, without the enums that signal builds

__all__ = ["keep"]

_REQUEST = 0
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_TICK_MS = 20
"""Time between two looks where the kernel has no descriptor that tells the end of a process."""

_DYING_MS = 50
_PAUSES_S = (0.001, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)


def keep(prober: int, asked: int, ready_r: int, ready_w: int) -> None:
    """Wait for the end of the prober, end the rest, and leave as the prober did.

    `asked` becomes readable at SIGTERM; `ready` is the pipe on which the prober waits, so what it
    need not wait for comes behind it, also the import of what is needed then.
    """
    try:
        os.setpgid(prober, prober)
        _inherit_orphans()
        go_first(prober)
        _let_it_run(prober, ready_r, ready_w)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)  # the prober's alone: their end tells that it closed them
        os.dup2(null, 2)
        _watch(prober, asked)
    except OSError:  # the prober is gone already
        pass
    finally:
        _leave(_end_all(prober))


def _inherit_orphans() -> None:
    """Be the parent of all descendants whose own parent has ended."""
    try:
        import _ctypes  # a quarter of the time that ctypes takes

        here = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # what this process has loaded
        prctl = _ctypes.dlsym(here, "prctl")
        _ctypes.call_cdeclfunction(prctl, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    except (ImportError, OSError, AttributeError):  # a Python without it: the host finds the rest
        pass


def _let_it_run(prober: int, ready_r: int, ready_w: int) -> None:
    """Have the kernel kill the prober's group when this process is killed: its pipe then ends.

    The settings are the pipe's, whose end the prober holds too, so it need not make them. They come
    behind the byte, which would kill as well.
    """
    import fcntl

    os.write(ready_w, b"1")
    try:
        fcntl.fcntl(ready_r, fcntl.F_SETOWN, -prober)
        fcntl.fcntl(ready_r, fcntl.F_SETSIG, _signal.SIGKILL)
        fcntl.fcntl(ready_r, fcntl.F_SETFL, fcntl.fcntl(ready_r, fcntl.F_GETFL) | fcntl.FASYNC)
    except OSError:  # a kernel in name only: the host finds the prober by its session
        pass


def _watch(prober: int, asked: int) -> None:
    """Wait until the prober has ended, or must end."""
    import select

    poller = _end_of(prober)
    timeout = None if poller else _TICK_MS
    poller = poller or select.poll()
    poller.register(asked, select.POLLIN)
    poller.register(_REQUEST, 0)  # its end is always told, and what it brings is the prober's
    # Not reaped yet: its number must stay the number of its group until that was killed.
    while not poller.poll(timeout):
        if os.waitid(os.P_PID, prober, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return


def _end_of(prober: int) -> select.poll | None:
    """Return what wakes at the prober's end; None before Linux 5.3."""
    try:
        import select

        poller = select.poll()
        poller.register(os.pidfd_open(prober), select.POLLIN)
    except (ImportError, AttributeError, OSError):
        return None
    return poller


def _end_all(prober: int) -> int:
    """Kill and reap all descendants, however long the kernel takes; return the prober's status."""
    status = 0
    for kill in (os.killpg, os.kill):
        try:
            kill(prober, _signal.SIGKILL)
        except OSError:
            pass
    if end := _end_of(prober):
        end.poll(_DYING_MS)  # usually there is nothing else to wait for
    pauses = iter(_PAUSES_S)
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == prober:
            status = how
        elif pid == 0:
            _kill_children()
            sleep(next(pauses, _PAUSES_S[-1]))


def _kill_children() -> None:
    """Kill every process whose parent this is: also those that it has just inherited."""
    own = str(os.getpid()).encode()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The name in parentheses may hold anything; fields count from behind it.
                if file.read().rpartition(b")")[2].split()[1] == own:
                    os.kill(int(name), _signal.SIGKILL)
        except (OSError, IndexError):
            continue


def _leave(status: int) -> None:
    """End as the prober did, so that the host sees what it would have seen."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != _signal.SIGKILL:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    finally:
        os._exit(128 - code)
