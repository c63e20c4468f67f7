"""Asks whether a file system answers, in a process that may hang in this one's place.

A child of Python takes twenty milliseconds; stat(1) takes half of one, and asks with statfs(2),
which network file systems do not answer from their caches (nfs_statfs in linux/fs/nfs/super.c).
"""

from __future__ import annotations

import os
import sys
from errno import ENOENT
from time import monotonic, sleep

from probe_core.fastpath import signal, start_thread
from probe_core.isolation.ending import end_process
from probe_core.isolation.worker import Worker
from probe_core.machine import Mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

__all__ = ["LOOK_S", "Looks", "answers"]

LOOK_S = 1.0
"""Seconds that a server has: a hundred round trips to another continent, or one automount."""

_STAT = "/usr/bin/stat"
_BY_PYTHON = "import os, sys; os.statvfs(sys.argv[1])"
_PAUSES_S = (0.0003, 0.0003, 0.0005, 0.001, 0.002, 0.005)
"""Times between two looks at the process, of which most end after half a millisecond."""


class Looks:
    """Says which paths this host may look at; each server is asked once.

    A server that stops between the answer and the look hangs the host all the same. That is a
    millisecond, and what somebody else may choose is read in a child, see `pipeline.settings`.
    """

    __slots__ = ("_mounts", "_servers")

    def __init__(self) -> None:
        self._mounts = Mounts()
        self._servers: dict[str, bool] = {}

    def allow(self, path: str) -> bool:
        """Return whether no dead server stands between this process and an absolute path."""
        return not self._mounts.may_hang(path, self._answers)

    def _answers(self, point: str) -> bool:
        if point not in self._servers:
            self._servers[point] = answers(point)
        return self._servers[point]


def answers(path: str, seconds: float = LOOK_S) -> bool:
    """Return whether the file system of a path answers in time, be it that nothing is there.

    False also where no process can be started to ask.
    """
    ended: list[bool] = []

    def work(worker: Worker) -> None:
        try:
            pid = _spawn(path)
        except Exception:  # no room for a process, or an audit hook of the host forbids it
            return
        try:
            if _ends(pid, monotonic() + seconds, worker):
                ended.append(True)
        finally:
            if not ended:
                end_process(pid, monotonic)

    Worker(work, start_thread).run()
    return bool(ended)


def _spawn(path: str) -> int:
    asking = [_STAT, "-f"] if os.access(_STAT, os.X_OK) else _python()
    actions = [(os.POSIX_SPAWN_CLOSE, number) for number in (0, 1, 2)]
    defaults = [s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)]
    argv = [*asking, path]
    return os.posix_spawn(
        argv[0], argv, {}, file_actions=actions, setsigmask=[], setsigdef=defaults
    )


def _python() -> list[str]:
    """Return the command of Python; raises `OSError` where the host's own would start once more."""
    from probe_core.isolation.launch import cannot_start

    if getattr(sys, "frozen", False) or cannot_start() is not None:
        raise OSError(ENOENT, "no program that could ask")
    return [sys.executable, "-ISc", _BY_PYTHON]


def _ends(pid: int, until: float, worker: Worker) -> bool:
    """Wait for the process; return whether it ended in time, and was reaped."""
    looks = 0
    while not worker.stopping:
        try:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return True
        except ChildProcessError:  # a host that ignores SIGCHLD, or waits for any child
            return True
        if monotonic() >= until:
            return False
        sleep(_PAUSES_S[min(looks, len(_PAUSES_S) - 1)])
        looks += 1
    return False
