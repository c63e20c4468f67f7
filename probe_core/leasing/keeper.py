"""Runs commands under a lease that lasts until the last process below them has ended.

::

    front        the process that was called: passes signals on, ends as the command does
    ├─ witness   in the front's process group: a signal that it got too was sent to the group
    └─ keeper    in a session of its own, holds the locks, inherits every orphan
       └─ command, in the front's group and session, with its terminal
          └─ … workers

The keeper is a subreaper, see prctl(2): whatever descends from the command stays below it, also
what closed its files, left the session and forked twice. It ends when nothing is left, and only
then are the devices free. If the front is killed, the keeper kills the command, as if that had
been killed itself, and keeps the devices for what remains. If the keeper is killed, the front
inherits everything and keeps the devices. If both are, whatever kept the descriptor of the locks
does; what closed it is found by its mark, see `records`.
"""

from __future__ import annotations

import os

from probe_core.fastpath import call_c, signal
from probe_core.leasing.execute import NOT_EXECUTABLE, CannotRun, complain, quiet, spawn
from probe_core.leasing.wire import ENDED, STARTED, STOPPED, WAKE, Wire, leave_files, pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from probe_core.leasing.leased import Leased
    from probe_core.leasing.wire import Event

__all__ = ["Program", "can_keep", "run"]

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36  # linux/prctl.h
_PARENT_ENDED = 34
"""The signal that wakes the keeper when the front has ended: the first real-time signal that glibc
does not use itself (signal(7)). It may come from anybody: the keeper looks who its parent is."""


class Program:
    """A command to run: its file, arguments and environment."""

    __slots__ = ("arguments", "environ", "path")

    def __init__(self, path: str, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        self.path = path
        self.arguments = list(arguments)
        self.environ = environ


def can_keep() -> bool:
    """Make this process inherit orphans; return whether the system lets it: Linux since 3.4."""
    return hasattr(signal, "sigwaitinfo") and _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def run(leased: Leased, programs: Sequence[Program]) -> NoReturn:
    """Run the programs under the lease; end as the first one that failed does, or with 0.

    After `can_keep`. Raises `CannotRun` where no process can be started.
    """
    quiet()
    mask = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    ignored = signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    # Ignored, children would be reaped by the kernel, and their statuses lost (waitpid(2)).
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    leased.keep_on_exec()
    front = os.getpid()
    try:
        reports, reporting = pipe()
        requests, requesting = pipe()
        keeper = os.fork()
    except OSError as error:  # no room for a process, or for a file
        raise CannotRun(f"no command can be started: {error.strerror}", NOT_EXECUTABLE) from None
    if keeper == 0:
        try:
            Keeper(leased, programs, Wire(requests, reporting), front).run(mask, ignored)
        except OSError as error:
            complain(CannotRun(f"no command can be started: {error.strerror}", NOT_EXECUTABLE))
        finally:
            os._exit(NOT_EXECUTABLE)
    from probe_core.leasing.front import Front

    os.close(reporting)
    os.close(requests)
    Front(leased, keeper, Wire(reports, requesting), len(programs)).run()


def _prctl(option: int, argument: int | bytes) -> bool:
    """Call prctl(2); return whether it worked."""
    return call_c("prctl", option, argument, 0, 0, 0) == 0


class Keeper:
    """The process that holds a lease: `pids` maps its commands that run to their numbers."""

    def __init__(self, leased: Leased, programs: Sequence[Program], wire: Wire, front: int) -> None:
        self.leased = leased
        self.programs = programs
        self.wire = wire
        self.front = front
        self.pids: dict[int, int] = {}
        self._ends: list[Event] = []

    def run(self, mask: set[int], ignored: bool) -> NoReturn:
        """Start the commands, wait for all that descends from them, give the devices back."""
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        for number, program in enumerate(self.programs):
            pid = spawn(program.path, program.arguments, program.environ, mask, ignored)
            self.pids[pid] = number
            self.wire.send((STARTED, number, pid))
        self._leave()
        wakes = (signal.SIGCHLD, _PARENT_ENDED, WAKE)
        while self._reap():
            self._pass_on()
            if os.getppid() != self.front:
                self._kill()
            signal.sigwaitinfo(wakes)
        os._exit(0)

    def _leave(self) -> None:
        """Leave the caller's session, files and folder, which are the commands' alone."""
        os.setsid()  # or a signal to the group would end this process too
        _prctl(_PR_SET_NAME, b"probe-lease")
        _prctl(_PR_SET_PDEATHSIG, _PARENT_ENDED)
        leave_files((*self.leased.files, *self.wire.files))
        self.leased.be_kept_by(os.getpid())

    def _reap(self) -> bool:
        """Reap what has ended; return whether anything is left to wait for."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:  # the front is told of the end after the devices are free
                self.leased.put_back()
                self._report()
                return False
            if pid == 0:
                break
            if os.WIFSTOPPED(status):
                if pid in self.pids:
                    self._report_event((STOPPED, self.pids[pid], os.WSTOPSIG(status)))
            elif pid in self.pids:
                self._ends.append((ENDED, self.pids.pop(pid), status))
        if not self.pids:
            self._report()
        return True

    def _report(self) -> None:
        while self._ends:
            self._report_event(self._ends.pop(0))

    def _report_event(self, event: Event) -> None:
        if os.getppid() == self.front:
            self.wire.send(event)
            os.kill(self.front, signal.SIGCHLD)

    def _pass_on(self) -> None:
        for _, _, number in self.wire.receive():
            self._send(number)

    def _kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        for pid in self.pids:  # not reaped, so that no number can be another process's
            try:
                os.kill(pid, number)
            except OSError:  # it became another user's, as `su` does
                continue
