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
inherits everything and keeps the devices; it has no witness then, and passes a signal of the group
on as well. If both are, whatever kept the descriptor of the locks does; what closed it is found by
its mark, see `records`.
"""

from __future__ import annotations

import os
from time import sleep

from probe_core.fastpath import call_c, signal
from probe_core.isolation.posix import new_pipe
from probe_core.isolation.start import become_subreaper, discard
from probe_core.leasing.execute import NOT_EXECUTABLE, CannotRun, complain, end_as, quiet, spawn
from probe_core.proc import open_files, pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import NoReturn

    from probe_core.leasing.acquire import Leased

    Program = tuple[str, Sequence[str], Mapping[str, str]]
    """A command to run: its file, its arguments, its environment."""

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15  # linux/prctl.h
_PARENT_ENDED = 34
"""The signal that wakes the keeper when the front has ended: the first real-time signal that glibc
does not use itself (signal(7)). It may come from anybody: the keeper looks who its parent is."""

_STARTED, _STOPPED, _ENDED = range(3)
"""What the keeper reports of a command: it started (with its process), was stopped (the signal),
has ended (its wait status)."""

_SIZE = 8
"""Bytes of a report: two numbers of four bytes. The module struct takes 0.2 ms to import."""

_SI_KERNEL = 0x80  # asm-generic/siginfo.h
_OF_TERMINAL = {
    getattr(signal, f"SIG{name}", None) for name in "INT QUIT TSTP TTIN TTOU HUP WINCH".split()
}  # None: on Windows, which has few of them
"""Signals that the kernel sends to the terminal's foreground group: the command is in it too."""

_SPREAD_S = 0.002
"""Seconds in which a signal that was sent to a group has reached all of it: kill(2) sends to one
after the other, without sleeping in between."""


def can_keep() -> bool:
    """Make this process inherit orphans; return whether the system lets it: Linux since 3.4."""
    return hasattr(signal, "sigwaitinfo") and become_subreaper()


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
        reports, reporting = new_pipe()
        keeper = os.fork()
    except OSError as error:  # no room for a process, or for a file
        raise CannotRun(f"no command can be started: {error.strerror}", NOT_EXECUTABLE) from None
    if keeper == 0:
        try:
            Keeper(leased, programs, reporting, front).run(mask, ignored)
        except OSError as error:
            complain(CannotRun(f"no command can be started: {error.strerror}", NOT_EXECUTABLE))
        finally:
            os._exit(NOT_EXECUTABLE)
    os.close(reporting)
    os.set_blocking(reports, False)
    Front(leased, keeper, reports, len(programs)).run()


def _prctl(option: int, argument: int | bytes) -> bool:
    """Call prctl(2); return whether it worked."""
    return call_c("prctl", option, argument, 0, 0, 0) == 0


class Keeper:
    """The process that holds a lease: `pids` are its commands that run."""

    def __init__(self, leased: Leased, programs: Sequence[Program], wire: int, front: int) -> None:
        self.leased = leased
        self.programs = programs
        self.wire = wire
        self.front = front
        self.pids: set[int] = set()
        self._ends: list[int] = []

    def run(self, mask: set[int], ignored: bool) -> NoReturn:
        """Start the commands, wait for all that descends from them, give the devices back."""
        become_subreaper()
        for path, arguments, environ in self.programs:
            pid = spawn(path, arguments, environ, mask, ignored)
            self.pids.add(pid)
            self._report(_STARTED, pid)
        self._leave()
        signals = signal.valid_signals()
        while self._reap():
            if os.getppid() != self.front:
                send(self.pids, signal.SIGKILL)
            info = signal.sigwaitinfo(signals)
            # What the front passes on it sends here as it is. From others nothing is taken.
            if info.si_signo != signal.SIGCHLD and info.si_pid == self.front:
                send(self.pids, info.si_signo)
        os._exit(0)

    def _leave(self) -> None:
        """Leave the caller's session, files and folder, which are the commands' alone."""
        os.setsid()  # or a signal to the group would end this process too
        _prctl(_PR_SET_NAME, b"probe-lease")
        _prctl(_PR_SET_PDEATHSIG, _PARENT_ENDED)
        _leave_files((*self.leased.files, self.wire))
        self.leased.be_kept_by(os.getpid())

    def _reap(self) -> bool:
        """Reap what has ended; return whether anything is left to wait for."""
        try:
            for status in reaped(self.pids):
                if os.WIFSTOPPED(status):
                    self._report(_STOPPED, os.WSTOPSIG(status))
                else:
                    self._ends.append(status)
        except ChildProcessError:  # the front is told of the end after the devices are free
            self.leased.put_back()
            self._report_ends()
            return False
        if not self.pids:
            self._report_ends()
        return True

    def _report_ends(self) -> None:
        while self._ends:
            self._report(_ENDED, self._ends.pop(0))

    def _report(self, kind: int, value: int) -> None:
        if os.getppid() != self.front:
            return
        try:
            os.write(self.wire, kind.to_bytes(4, "little") + value.to_bytes(4, "little"))
            os.kill(self.front, signal.SIGCHLD)
        except OSError:  # it has just been killed
            return


class Front:
    """The calling side of a lease: `count` commands run, `status` is that of the first failure.

    `keeper` is 0 once that has ended before its commands.
    """

    def __init__(self, leased: Leased, keeper: int, wire: int, count: int) -> None:
        self.leased = leased
        self.keeper = keeper
        self.wire = wire
        self.count = count
        self.status = 0
        self.pids: set[int] = set()
        self._unseen = 0
        self._witness = Witness()

    def run(self) -> NoReturn:
        """Stand for the commands until they have ended, then end as they did."""
        _leave_files((*self.leased.files, self.wire))
        signals, passed_on = signal.valid_signals(), 0
        # Passed on after a look at the keeper: SIGTERM comes before the SIGCHLD of its end, and
        # would be lost with it.
        while not self._take_stock():
            if passed_on:
                send((self.keeper,) if self.keeper else self.pids, passed_on)
            info = signal.sigwaitinfo(signals)
            is_passed_on = info.si_signo != signal.SIGCHLD and self._concerns(info)
            passed_on = info.si_signo if is_passed_on else 0
        self._witness.end()
        end_as(self.status)

    def _concerns(self, info: signal.struct_siginfo) -> bool:
        """Return whether a signal was sent to this process alone."""
        if info.si_signo == signal.SIGCONT:
            return True  # harmless when it comes twice, and `fg` may mean this group alone
        if info.si_code == _SI_KERNEL:
            return info.si_signo not in _OF_TERMINAL
        return not self._witness.has(info.si_signo)

    def _take_stock(self) -> bool:
        """Take in what the keeper reports; return whether there is nothing more to wait for."""
        self._take_in()
        if self.keeper:
            ended, self._unseen = os.waitpid(self.keeper, os.WNOHANG)
            if not ended:
                return self.count == 0
            self._take_in()
            if not self.count:
                return True
            # Killed, or none of its commands could be started. Its children are this process's now,
            # and the last of them is seen to end when no witness is left.
            self._witness.end()
            self.keeper = 0
        return self._reap()

    def _take_in(self) -> None:
        try:
            while data := os.read(self.wire, _SIZE):  # written whole (PIPE_BUF, pipe(7))
                kind, value = data[0], int.from_bytes(data[4:], "little")
                if kind == _STARTED:
                    self.pids.add(value)
                elif kind == _STOPPED:
                    os.kill(os.getpid(), signal.SIGSTOP)
                else:
                    self._ended(value)
        except BlockingIOError:
            return

    def _ended(self, status: int) -> None:
        self.count -= 1
        self.status = self.status or status

    def _reap(self) -> bool:
        """Do the keeper's work in its place; return whether nothing runs any more."""
        try:
            for status in reaped(self.pids):
                if os.WIFSTOPPED(status):
                    os.kill(os.getpid(), signal.SIGSTOP)
                else:
                    self._ended(status)
        except ChildProcessError:
            if self.count:  # ends that nobody saw: they count as the keeper's
                self._ended(self._unseen)
            self.leased.put_back()
            return True
        return False


def reaped(pids: set[int]) -> Iterator[int]:
    """Reap all children that have ended; yield the statuses of those among `pids`, also of stops.

    Who has ended is taken out of `pids`. Raises `ChildProcessError` once no child is left.
    """
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            return
        if pid in pids:
            if not os.WIFSTOPPED(status):
                pids.remove(pid)
            yield status


def send(pids: Collection[int], number: int) -> None:
    """Send a signal to children, none of them reaped: no number can be another process's."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:  # it has just ended, or became another user's, as `su` does
            continue


class Witness:
    """A process in the front's group that does nothing but get the signals that the group gets."""

    def __init__(self) -> None:
        self.pid = self._start()

    def _start(self) -> int:
        front = os.getpid()
        try:
            pid = os.fork()
        except OSError:  # no room for it: each signal is then passed on
            return -1
        if pid == 0:
            try:
                _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                _leave_files(())
                while os.getppid() == front:
                    signal.pause()  # for ever: all signals are blocked since before the fork
            finally:
                os._exit(1)
        return pid

    def has(self, number: int) -> bool:
        """Return whether the signal came to the group; False where there is no witness.

        One that has got a signal has served: the next one looks for the next signal.
        """
        if self.pid < 0:
            return False
        sleep(_SPREAD_S)
        if number not in pending(self.pid):
            return False
        following = self._start()
        self.end()
        self.pid = following
        return True

    def end(self) -> None:
        """End the witness, and reap it. Can be called twice."""
        if self.pid > 0:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.pid = -1


def _leave_files(needed: Collection[int]) -> None:
    """Close everything but `needed`, point 0 to 2 at nothing, and leave the current folder.

    A pipe that the command closes would otherwise stay open here, and its reader wait for ever;
    a folder could not be unmounted.
    """
    for number in open_files():
        if number > 2 and number not in needed:
            try:
                os.close(number)
            except OSError:  # the listing's own
                continue
    discard((0,), os.O_RDONLY)
    discard((1, 2), os.O_WRONLY)
    os.chdir("/")
