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
"""Seconds that ended processes may take to be gone, all together, before they are abandoned."""

_ASKING_S = 0.3
"""Seconds of those that keepers have for ending everything themselves."""

_unreaped: set[int] = set()
"""Children that were not gone in time; reaped here once they are."""


def end_all(children: Sequence[Child], clock: Clock) -> None:
    """End every child with all that it started, reap within bounds, close every pipe.

    May be interrupted anywhere, and called again to finish.
    """
    now = clock()
    limit = now + REAP_S
    started = {child.pids[0]: child.run.mark for child in children if child.pids}
    for child in children:
        _ask(child)
    left = _reap_until(now + _ASKING_S, children, clock)
    for child in left:
        _kill(child)
    left = _reap_until(limit, left, clock)
    for child in left:
        _unreaped.add(child.pids[0])
        started.pop(child.pids[0])
    for child in children:
        child.close()
    if sys.platform == "linux":
        sessions.end_leftovers(started, limit, clock)
    for child in children:
        child.run.abandoned = child in left or _outlived(child)
    _reap_late()


def _reap_until(limit: float, children: Sequence[Child], clock: Clock) -> list[Child]:
    """Return the children that are not gone at the time `limit`."""
    while (left := [child for child in children if not _reap(child)]) and clock() < limit:
        _wait_a_moment(left)
    return left


def _wait_a_moment(left: Sequence[Child]) -> None:
    poller = select.poll()
    for child in left:
        if child.pidfd >= 0:
            poller.register(child.pidfd, select.POLLIN)
    poller.poll(5)


def _ask(child: Child) -> None:
    """Have a keeper end the prober, all that it started, and then itself; kill what has none."""
    if child.run.pid in (None, *child.pids):
        _kill(child)
    else:  # a prober may have stopped its keeper
        _send(child, os.kill, _signal.SIGTERM)
        _send(child, os.kill, _signal.SIGCONT)


def _kill(child: Child) -> None:
    """Kill a child and its group; the kernel kills the group of a keeper's prober by that."""
    _send(child, os.killpg, _signal.SIGKILL)
    _send(child, os.kill, _signal.SIGKILL)


def _send(child: Child, how: Callable[[int, int], None], number: int) -> None:
    for pid in () if child.gone else child.pids:
        try:
            how(pid, number)
        except OSError:
            pass


def _outlived(child: Child) -> bool:
    """Return whether the prober lives on without its keeper: it is where no signal reaches it."""
    prober = child.run.pid
    return prober is not None and sessions.lives(prober, child.pids[0])


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
    for pid in list(_unreaped):
        if _reaped(pid):
            _unreaped.discard(pid)
