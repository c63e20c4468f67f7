"""End children with all that they started, a bounded wait, and an honest word on the rest.

A child that the kernel does not let die is abandoned and reported, never waited for.
"""

from __future__ import annotations

import os
import select
import sys

from probe_core.isolation import sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Sequence

    from probe_core.isolation.spawn import Child

    Clock = Callable[[], float]
else:
    import _signal  # the same functions, without the enums that signal builds

__all__ = ["REAP_S", "end_all"]

REAP_S = 0.5
"""Seconds that killed processes may take to be gone, all together, before they are abandoned."""

_ENDS = ((os.killpg, _signal.SIGKILL), (os.kill, _signal.SIGKILL))
# A keeper ends the prober, all that it started, and then itself; the prober may have stopped it.
_KEEPER_ENDS = ((os.kill, _signal.SIGTERM), (os.kill, _signal.SIGCONT))

_abandoned: set[int] = set()
"""Children that could not be killed when it was tried; reaped here once they are gone."""


def end_all(children: Sequence[Child], clock: Clock) -> None:
    """Kill every child with all that it started, reap within bounds, close every pipe.

    May be interrupted anywhere, and called again to finish.
    """
    limit = clock() + REAP_S
    started = {child.pids[0]: child.run.mark for child in children if child.pids}
    for child in children:
        _kill(child)
    while (left := [child for child in children if not _reap(child)]) and clock() < limit:
        _wait_a_moment(left)
    for child in left:
        child.run.abandoned = True
        _abandoned.add(child.pids[0])
        started.pop(child.pids[0])
    for child in children:
        child.close()
    if sys.platform == "linux":
        sessions.end_leftovers(started, limit, clock)
    _reap_late()


def _wait_a_moment(left: Sequence[Child]) -> None:
    poller = select.poll()
    for child in left:
        if child.pidfd >= 0:
            poller.register(child.pidfd, select.POLLIN)
    poller.poll(5)


def _kill(child: Child) -> None:
    for pid in () if child.gone else child.pids:
        for kill, number in _ENDS if child.run.pid in (None, pid) else _KEEPER_ENDS:
            try:
                kill(pid, number)
            except OSError:
                pass


def _reap(child: Child) -> bool:
    """Return whether the child is gone, or never was there."""
    child.gone = child.gone or not child.pids or _reaped(child.pids[0])
    return child.gone


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:  # the host reaps what it did not start
        return True


def _reap_late() -> None:
    """Reap formerly abandoned children that have ended since, so that they stay no zombies."""
    for pid in list(_abandoned):
        if _reaped(pid):
            _abandoned.discard(pid)
