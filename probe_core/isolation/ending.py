"""End children with all that they started, in bounded time.

1. Ask: a child with a supervisor gets SIGTERM, and SIGCONT should the prober have stopped it. The
   supervisor kills the prober's group, then every process that it inherits, and ends last. A child
   without one is killed at once, with its group.
2. Wait until 0.3 s have passed, or all have ended.
3. Kill: what is left gets SIGKILL, with its group. The kernel kills the prober's group when the
   supervisor dies, so nobody has to find it.
4. Wait until 0.5 s have passed in all.
5. Abandon: a process that has not ended is stuck in the kernel (D state), and no signal ends it.
   The report says so, and a later call reaps it. Waiting on would hang the host, as
   `subprocess.run(timeout=…)` does after its kill.
6. Kill leftovers, found by session and mark (see `processes`), in what remains of the 0.5 s. This
   is for a child that has crashed, or whose supervisor was killed, could not be made or inherits
   nothing. Any other proves with its exit status that wait(2) knows no descendant any more, and
   none is looked for.

Where all end so, /proc is not read, and what reads it is not imported.
"""

from __future__ import annotations

import os
import select
import sys
from time import sleep

from probe_core.fastpath import signal
from probe_core.isolation import NOTHING_LEFT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_core.isolation.posix import Child

    Clock = Callable[[], float]

__all__ = ["end_all", "end_process"]

REAP_S = 0.5
"""Seconds until processes that have not ended are abandoned.

`probe` promises to return a second after the longest deadline: this is half of it, the rest is for
merging and for a machine that is busy.
"""

_ASKING_S = 0.3
"""Seconds of those that supervisors have for ending everything themselves.

They need a few milliseconds; killing them still leaves 0.2 s for the kernel's part.
"""

_POLL_MS = 5
"""Time between two looks at children without a pidfd (before Linux 5.3, macOS)."""

_FIRST_PAUSE_S = 0.0002
"""Time before the second look at a process that was just killed; each pause is twice as long."""

_LIVES = -1
"""No status of wait(2)."""

_unreaped: set[int] = set()
"""Children that had not ended in time; reaped by a later call once they have."""


def end_all(children: Sequence[Child], clock: Clock) -> None:
    """End every child with all that it started, reap within `REAP_S`, close every pipe."""
    begin = clock()
    limit = begin + REAP_S
    for child in children:
        _ask(child)
    asked = _reap_until(begin + _ASKING_S, children, clock)
    for child in asked:
        _kill(child)
    stuck = _reap_until(limit, asked, clock)
    for child in children:
        child.close()
    unproven = [child for child in children if not child.nothing_left]
    if unproven:
        _end_unproven(unproven, stuck, limit, clock)
    if _unreaped:
        _reap_late()
    for child in stuck:
        _note_unreaped(child)


def _end_unproven(
    children: Sequence[Child], stuck: Sequence[Child], limit: float, clock: Clock
) -> None:
    """End what children left that do not prove that nothing is left, and note what outlives it."""
    from probe_core.isolation.processes import end_leftovers, lives, note_survivor

    remaining: dict[int, int] = {}
    if sys.platform == "linux":
        ended = (child for child in children if child not in stuck)
        marks = {child.pid: child.run.mark for child in ended if child.pid is not None}
        remaining = end_leftovers(marks, limit, clock)
    runs = {child.pid: child.run for child in children}
    for pid, owner in remaining.items():
        note_survivor(runs[owner], pid)
    for child in children:
        prober = child.run.pid
        # It lives on without its supervisor: no signal has reached it.
        if prober is not None and child.pid is not None and lives(prober, child.pid):
            note_survivor(child.run, prober)


def _note_unreaped(child: Child) -> None:
    from probe_core.isolation.processes import is_stuck

    pid = child.pid
    if pid is not None:
        _unreaped.add(pid)
        child.run.still_there.append(lambda: _is_unreaped(pid) and is_stuck(pid))


def _is_unreaped(pid: int) -> bool:
    _reap_late()
    return pid in _unreaped


def end_process(pid: int, clock: Clock) -> None:
    """Kill one process that has started no others, and reap it within `REAP_S`, or later."""
    limit = clock() + REAP_S
    try:
        os.kill(pid, signal.SIGKILL)
    except Exception:  # it has just ended, or an audit hook of the host forbids signals
        pass
    pause = _FIRST_PAUSE_S
    while not _wait_for(pid):
        if clock() >= limit:
            _unreaped.add(pid)
            return
        sleep(pause)
        pause = min(2 * pause, _POLL_MS / 1000)


def _ask(child: Child) -> None:
    # Its end says the same as SIGTERM: for a host that may send no signals, see `_send`. It comes
    # first, because a supervisor that sees it at its own end knows that the host asked.
    child.release("request_end")
    child.release("request_fd")
    if not _has_supervisor(child):
        _kill(child)
    else:
        _send(child, os.kill, signal.SIGTERM)
        _send(child, os.kill, signal.SIGCONT)


def _kill(child: Child) -> None:
    _send(child, os.killpg, signal.SIGKILL)
    _send(child, os.kill, signal.SIGKILL)


def _send(child: Child, send: Callable[[int, int], None], number: int) -> None:
    if child.pid is None or child.reaped:
        return
    try:
        send(child.pid, number)
    except Exception:  # it has ended meanwhile, or an audit hook of the host forbids signals
        pass


def _reap_until(limit: float, children: Sequence[Child], clock: Clock) -> list[Child]:
    """Return the children that have not ended at the time `limit`."""
    while (remaining := [child for child in children if not _reap(child)]) and clock() < limit:
        _wait_a_moment(remaining)
    return remaining


def _wait_a_moment(children: Sequence[Child]) -> None:
    poller = select.poll()
    for child in children:
        if child.pidfd >= 0:
            poller.register(child.pidfd, select.POLLIN)
    poller.poll(_POLL_MS)


def _reap(child: Child) -> bool:
    """Return whether the child has been reaped, or was never started."""
    if not child.reaped:
        status = None if child.pid is None else _status_of(child.pid)
        child.reaped = status != _LIVES
        # A prober that has answered ends before the host asks, and its supervisor then as it did.
        proven = status == NOTHING_LEFT << 8 or (status == 0 and child.run.inherited)
        child.nothing_left = proven and _has_supervisor(child)
    return child.reaped


def _wait_for(pid: int) -> bool:
    """Reap a child if it has ended; return whether it has."""
    return _status_of(pid) != _LIVES


def _status_of(pid: int) -> int | None:
    """Reap a child if it has ended; return its status as wait(2) has it, `_LIVES` if it has not."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # a host that ignores SIGCHLD, or waits for any child, was faster
        return None
    return status if ended else _LIVES


def _has_supervisor(child: Child) -> bool:
    """Return whether the process that the host started is known to be a supervisor.

    The prober's number comes before its plugin is imported, from code of ours.
    """
    return child.run.pid not in (None, child.pid)


def _reap_late() -> None:
    """Reap formerly abandoned children that have ended since, or they would stay zombies."""
    for pid in list(_unreaped):
        if _wait_for(pid):
            _unreaped.discard(pid)
