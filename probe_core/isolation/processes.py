"""Read /proc: which processes belong to a child, and which outlived it.

A process belongs to a child when it is in the child's session, or has the child's mark in its
environment. It escapes both only by making a session of its own *and* starting a program with an
empty environment.
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
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from probe_core.isolation.portable import Child as PortableChild
    from probe_core.isolation.posix import Child
    from probe_core.isolation.posix import Child as PosixChild

    Watched: TypeAlias = PosixChild | PortableChild
    Clock = Callable[[], float]


MARK_VARIABLE = "PROBE_CORE_RUN"
"""Set in a child's environment to a number of its run, so that daemons it made can be found."""

_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of linux/sched.h

EXEC_S = 0.02
"""Seconds for which a process whose environment reads empty is looked at again.

During execve(2) the old environment is gone and the new one not there yet. 20 ms is a judgement:
long for that, also on a busy machine, and short for the host.
"""

_PAUSE_MS = 2
"""Time between two looks at /proc; a look takes 0.06 ms, among 2,000 processes 1.9 ms."""

_ENVIRON_BYTES = 1 << 20
"""Bytes read of an environment, which can be as large as the stack limit allows."""


def lives(pid: int, session: int) -> bool:
    """Return whether a process of that session has not ended."""
    try:
        status = read_status(pid)
        return not status.ended and status.session == session
    except Exception:  # as in `_belongs`
        return False


def end_leftovers(started: Mapping[int, str], limit: float, clock: Callable[[], float]) -> set[int]:
    """Kill what ended children left: processes of their sessions, and ones that hold their mark.

    Returns the children of which something is still there, by their process ids.

    `started` maps the process ids that the children had, which name their sessions, to their
    marks. Looks again until nothing is left or the clock says `limit`. A host that inherits
    orphans (process 1 of a container) is left no zombies of theirs.
    """
    if not started:
        return set()
    search = _Search(started)
    settled_by = min(limit, clock() + EXEC_S)
    while True:
        leftovers, unclear = search.look()
        for pid in leftovers:
            _end(pid)
        now = clock()
        if now >= limit or not (leftovers or (unclear and now < settled_by)):
            return {search.owners[pid] for pid in leftovers if _outlives(pid)}
        select.poll().poll(_PAUSE_MS)


class _Search:
    """Looks for the leftovers of some children; `owners` maps those it has named to the child."""

    def __init__(self, started: Mapping[int, str]) -> None:
        self._oldest = min(started)
        self._sessions = frozenset(started)
        self._marks = {f"{MARK_VARIABLE}={mark}".encode(): pid for pid, mark in started.items()}
        self.owners: dict[int, int] = {}

    def look(self) -> tuple[list[int], bool]:
        """Return the leftovers' process ids, and whether a process could not be told apart yet."""
        belongs = {pid: self._belongs(pid) for pid in younger_than(self._oldest)}
        return [pid for pid, ours in belongs.items() if ours], None in belongs.values()

    def _is_marked(self, pid: int) -> bool | None:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read(_ENVIRON_BYTES)
        mark = next((text for text in environ.split(b"\0") if text in self._marks), None)
        if mark is not None:
            self.owners[pid] = self._marks[mark]
        return mark is not None if environ else None

    def _belongs(self, pid: int) -> bool | None:
        """Return whether a process is a leftover that this process can still end or reap.

        None: not known yet, because it is just being replaced by a program that it starts.
        """
        try:
            status = read_status(pid)
            ours = status.session in self._sessions
            if status.ended:  # a zombie, which only its parent can reap
                return status.parent == os.getpid() and (ours or pid in self.owners)
            if ours:
                self.owners[pid] = status.session
            if ours or status.flags & _KERNEL_THREAD:
                return ours
            return self._is_marked(pid)
        except Exception:  # it has ended, is another user's, or an audit hook forbids the look
            return False


def _outlives(pid: int) -> bool:
    """Return whether a process that was killed is still there: stuck, or another user's."""
    try:
        return not read_status(pid).ended
    except (OSError, ValueError, IndexError):
        return False


class Status:
    """Fields of /proc/PID/stat, see proc_pid_stat(5)."""

    __slots__ = ("ended", "flags", "parent", "session")

    def __init__(self, fields: list[bytes]) -> None:
        self.ended = fields[0] in b"ZX"
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.flags = int(fields[6])


def read_status(pid: int) -> Status:
    """Return what /proc says of a process; raises `OSError` when it has ended."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The name in parentheses may hold anything; fields count from behind it.
        return Status(file.read().rpartition(b")")[2].split())


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, os.WNOHANG)
    except Exception:  # it has ended, is another process's orphan, or an audit hook forbids it
        pass


def younger_than(oldest: int) -> list[int]:
    """Return the processes made after process `oldest`; all of them once the numbers wrapped."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        with open("/proc/loadavg", "rb") as file:
            newest = int(file.read().split()[-1])
    except Exception:  # no /proc, or an audit hook of the host forbids to look there
        return []
    wrapped = newest < oldest
    return [pid for pid in pids if (wrapped or pid > oldest) and pid != os.getpid()]


# How much memory a prober takes with all that it started, and how many processes that is.
#
# Resident memory, not RLIMIT_AS: GPU runtimes reserve address space beyond any sane limit.

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

MAX_PROCESSES = 1024
"""Processes of one prober. A judgement: vendors' tools start one or two, a fork bomb thousands."""


_PAUSE_SHARE = 10
"""Times as long as a look takes until the next: where process numbers wrapped it reads all of
/proc, which took 0.2 s among 2,000 processes."""


def _machine_limit() -> int:
    """Return 4 GiB, or half of a smaller machine: the host itself must never be short."""
    # 4 GiB is a judgement: far more than asking a driver takes, far less than a node has.
    try:
        return min(4 << 30, os.sysconf("SC_PHYS_PAGES") * _PAGE // 2)
    except (AttributeError, OSError, ValueError):
        return 4 << 30


MEMORY_LIMIT = _machine_limit()
"""Resident bytes that one prober may use, where no control group says less."""


def memory_limit() -> int:
    """Return the limit of a prober's memory in bytes: also at most half of the control group's.

    In a container the kernel kills when the group is full, and it may choose the host.
    """
    from probe_core.machine import Machine
    from probe_core.machine.cgroups import memory_limits

    limit, *_ = memory_limits(Machine(environ={}))
    return MEMORY_LIMIT if limit is None else min(MEMORY_LIMIT, limit // 2)


class Watch:
    """Ends the runs of probers that use too much, whoever drives them."""

    __slots__ = ("_limit", "_next")

    def __init__(self) -> None:
        self._limit = memory_limit()
        self._next = 0.0

    def check(self, children: Iterable[Watched], clock: Callable[[], float]) -> None:
        """Look at each child's tree, unless the last look was just now."""
        begin = clock()
        if begin < self._next:
            return
        for child in children:
            if child.pid is not None and not child.run.over:
                prober = child.run.pid or child.pid
                if problem := excess(child.pid, prober, self._limit):
                    child.run.finish("resource", problem, clock())
        now = clock()
        self._next = now + _PAUSE_SHARE * (now - begin)


def excess(child: int, prober: int, limit: int) -> str | None:
    """Return what a prober uses too much of, with all that it started; None if nothing.

    `child` is the process that the host started, the prober's supervisor where it has one.
    """
    pids = _tree(child) - ({child} if child != prober else set())
    if len(pids) > MAX_PROCESSES:
        return f"it started more than {MAX_PROCESSES:,} processes"
    # Forked copies share memory, which the first sum counts several times and the second divides.
    if sum(map(_resident, pids)) > limit and sum(map(_proportional, pids)) > limit:
        processes = f" in {len(pids)} processes" if len(pids) > 1 else ""
        return f"it used more than {limit / (1 << 30):.3g} GiB of memory{processes}"
    return None


def _tree(child: int) -> set[int]:
    """Return a child, its descendants, and all others of its session."""
    parents: dict[int, int] = {}
    tree = {child}
    for pid in younger_than(child):
        try:
            status = read_status(pid)
        except Exception:  # it has ended, or an audit hook of the host forbids the look
            continue
        parents[pid] = status.parent
        if status.session == child:
            tree.add(pid)
    return tree | _descendants(tree, parents)


def _descendants(roots: Iterable[int], parents: dict[int, int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    reached, pending = set(roots), list(roots)
    while pending:
        for pid in children.get(pending.pop(), ()):
            if pid not in reached:
                reached.add(pid)
                pending.append(pid)
    return reached


def _resident(pid: int) -> int:
    """Return a process's resident memory; 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except Exception:  # as in `_tree`
        return 0


def _proportional(pid: int) -> int:
    """Return a process's share of the memory it has; its resident memory before Linux 4.14."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except Exception:  # another user's process, or as in `_tree`
        pass
    return _resident(pid)


# End children with all that they started, in bounded time.
#
# 1. Ask: a child with a supervisor gets SIGTERM, and SIGCONT should the prober have stopped it.
# The
# supervisor kills the prober's group, then every process that it inherits, and ends last. A child
#    without one is killed at once, with its group.
# 2. Wait until 0.3 s have passed, or all have ended.
# 3. Kill: what is left gets SIGKILL, with its group. The kernel kills the prober's group when the
#    supervisor dies, so nobody has to find it.
# 4. Wait until 0.5 s have passed in all.
# 5. Abandon: a process that has not ended is stuck in the kernel (D state), and no signal ends it.
#    The report says so, and a later call reaps it. Waiting on would hang the host, as
#    `subprocess.run(timeout=…)` does after its kill.
# 6. Kill leftovers, found by session and mark (see `sessions`), in what remains of the 0.5 s. This
#    is for a child whose supervisor was killed, could not be made or inherits nothing. Any other
#    proves with its exit status that wait(2) knows no descendant any more, and none is looked for.

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
    remaining = _reap_until(begin + _ASKING_S, children, clock)
    for child in remaining:
        _kill(child)
    stuck = _reap_until(limit, remaining, clock)
    for child in children:
        child.close()
    remaining_of: set[int] = set()
    if sys.platform == "linux":
        ended = (child for child in children if not (child in stuck or child.nothing_left))
        marks = {child.pid: child.run.mark for child in ended if child.pid is not None}
        remaining_of = end_leftovers(marks, limit, clock)
    for child in children:
        outlived = child.pid in remaining_of or (not child.nothing_left and _prober_outlived(child))
        child.run.abandoned = child in stuck or outlived
    _reap_late()
    _unreaped.update(child.pid for child in stuck if child.pid is not None)


def end_process(pid: int, clock: Clock) -> None:
    """Kill one process that has started no others, and reap it within `REAP_S`, or later."""
    limit = clock() + REAP_S
    try:
        os.kill(pid, signal.SIGKILL)
    except Exception:  # it has just ended, or an audit hook of the host forbids signals
        pass
    while not _wait_for(pid):
        if clock() >= limit:
            _unreaped.add(pid)
            return
        sleep(_POLL_MS / 1000)


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
        proof = NOTHING_LEFT << 8  # as wait(2) has an exit status
        child.nothing_left = status == proof and _has_supervisor(child)
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


def _prober_outlived(child: Child) -> bool:
    """Return whether the prober lives on without its supervisor: no signal has reached it."""
    prober = child.run.pid
    return prober is not None and child.pid is not None and lives(prober, child.pid)


def _reap_late() -> None:
    """Reap formerly abandoned children that have ended since, or they would stay zombies."""
    for pid in list(_unreaped):
        if _wait_for(pid):
            _unreaped.discard(pid)
