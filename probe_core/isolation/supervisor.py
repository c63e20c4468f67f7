"""The process between the host and a prober: it leaves nothing that the prober started.

It is a subreaper, see prctl(2), so whatever descends from the prober becomes its child: also what
left the group and the session, cleared its environment and forked twice. It ends all of that when
the prober ends, when the host asks with SIGTERM, and when the host's end of the request pipe closes
because the host was killed. Should it be killed itself, the kernel kills the prober's group.
"""

from __future__ import annotations

import os
from time import sleep

from probe_core.fastpath import signal
from probe_core.isolation import NOTHING_LEFT
from probe_core.isolation.start import discard

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select

__all__ = ["supervise"]

_REQUEST = 0

_GROUPS = "/sys/fs/cgroup/cgroup.controllers"
"""A file that is there where control groups are of version 2."""

_TICK_MS = 20
"""Time between two looks where the kernel has no descriptor that tells the end of a process.

That is before Linux 5.3. The prober's answer does not wait for it, only its end does.
"""

_DYING_MS = 50
"""Time that a killed prober has before its descendants are looked for: usually it has none."""

_PAUSES_S = (0.001, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
"""Times between two looks at /proc for descendants; the last one repeats.

The first are short because the host waits 0.3 s, the last is long because a process that is stuck
in the kernel may take for ever.
"""


def supervise(prober: int, stop: int, inherits: bool) -> None:
    """Wait for the end of the prober, end what it leaves, and exit as the prober did.

    `stop` becomes readable at SIGTERM. `inherits` is whether what the prober's processes leave
    becomes this one's.
    """
    own_group = None
    try:
        os.setpgid(prober, prober)  # as itself does: whichever comes first
        # The prober's alone: their end tells the host that it closed them.
        discard((1, 2), os.O_WRONLY)
        own_group = _group_of(prober)
        _watch(prober, stop)
    except OSError:  # the prober has ended already
        pass
    finally:
        status = _end_all(prober, own_group)
        if own_group:
            from probe_core.isolation import group

            group.remove(own_group)
        if inherits and _is_asked():
            os._exit(NOTHING_LEFT)
        _exit_as(status)


def _group_of(prober: int) -> str | None:
    """Return the control group made for the prober; None where it stays in the host's."""
    if not os.path.exists(_GROUPS):
        return None
    try:
        from probe_core.isolation import group  # now, while the prober works

        return group.make(prober)
    except Exception:  # what is only a second bound must not end the prober
        return None


def _is_asked() -> bool:
    """Return whether the host closed the request pipe: it has the run's outcome, and no other use
    for the exit status. A prober can send SIGTERM as the host does, but not close that end."""
    import select

    poller = select.poll()
    poller.register(_REQUEST, 0)
    return bool(poller.poll(0))


def _watch(prober: int, stop: int) -> None:
    """Wait until the prober has ended, or must end."""
    import select

    poller = _poll_end_of(prober)
    timeout = None if poller else _TICK_MS
    poller = poller or select.poll()
    poller.register(stop, select.POLLIN)
    poller.register(_REQUEST, 0)  # its end is always reported, and what it brings is the prober's
    # Not reaped yet: its number must stay the number of its group until that was killed.
    while not poller.poll(timeout):
        if os.waitid(os.P_PID, prober, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return


def _poll_end_of(pid: int) -> select.poll | None:
    """Return what wakes at the end of a process; None before Linux 5.3."""
    try:
        import select

        poller = select.poll()
        poller.register(os.pidfd_open(pid), select.POLLIN)
    except (ImportError, AttributeError, OSError):
        return None
    return poller


def _end_all(prober: int, own_group: str | None) -> int:
    """Kill and reap all descendants, however long the kernel takes; return the prober's status."""
    status = 0
    if own_group:
        from probe_core.isolation import group

        group.end(own_group)
    for kill in (os.killpg, os.kill):
        try:
            kill(prober, signal.SIGKILL)
        except OSError:
            pass
    if poller := _poll_end_of(prober):
        poller.poll(_DYING_MS)
    pauses = iter(_PAUSES_S)
    while True:
        try:
            pid, ended_with = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == prober:
            status = ended_with
        elif pid == 0:
            _kill_children()
            sleep(next(pauses, _PAUSES_S[-1]))


def _kill_children() -> None:
    """Kill every process whose parent this is: also those that it has just inherited."""
    from probe_core import proc  # hardly any prober leaves one

    for pid in proc.processes():
        process = proc.status(pid)
        if process is not None and process.parent == os.getpid():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:  # it has just ended
                continue


def _exit_as(status: int) -> None:
    """End as the prober did, so that the host sees what it would have seen."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    finally:
        os._exit(128 - code)  # as a shell does, for a signal that did not end this process
