"""The process that `probe exec` was called as: it stands for the command towards its caller.

It passes on the signals that are sent to it, stops when the command is stopped, and ends as the
command ends. Signals of the terminal, and those sent to the whole process group, reach the command
without it: passed on they would come twice, and the second Ctrl-C of many programs means "at once".
"""

from __future__ import annotations

import os

from probe_core.fastpath import signal
from probe_core.leasing.execute import end_as
from probe_core.leasing.processes import descendants
from probe_core.leasing.wire import ENDED, PASS_ON, STARTED, STOPPED, WAKE, leave_files, pipe
from probe_core.proc import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from probe_core.leasing.leased import Leased
    from probe_core.leasing.wire import Event, Wire

__all__ = ["Front"]

_SI_KERNEL = 0x80  # asm-generic/siginfo.h
_OF_TERMINAL = ("SIGINT", "SIGQUIT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGHUP", "SIGWINCH")
"""Signals that the kernel sends to the terminal's foreground group: the command is in it too."""

_SPREAD_S = 0.002
"""Seconds in which a signal that was sent to a group has reached all of it: kill(2) sends to one
after the other, without sleeping in between."""


class Front:
    """The calling side of a lease: `count` commands run, `status` is that of the first failure."""

    def __init__(self, leased: Leased, keeper: int, wire: Wire, count: int) -> None:
        self.leased = leased
        self.keeper = keeper
        self.wire = wire
        self.count = count
        self.status = 0
        self.pids: dict[int, int] = {}
        self.inherits = False
        self._unseen = 0
        self._witness = Witness()
        self._terminal = {getattr(signal, name) for name in _OF_TERMINAL}

    def run(self) -> NoReturn:
        """Stand for the commands until they have ended, then end as they did."""
        leave_files((*self.leased.files, *self.wire.files, *self._witness.files))
        signals = signal.valid_signals()
        while not self._take_stock():
            info = signal.sigwaitinfo(signals)
            if info.si_signo != signal.SIGCHLD and self._concerns(info):
                self._pass_on(info.si_signo)
        self._witness.end()
        end_as(self.status)

    def _concerns(self, info: signal.struct_siginfo) -> bool:
        """Return whether a signal was sent to this process alone."""
        if info.si_signo == signal.SIGCONT:
            return True  # harmless when it comes twice, and `fg` may mean this group alone
        if info.si_code == _SI_KERNEL:
            return info.si_signo not in self._terminal
        return not self._witness.has(info.si_signo)

    def _pass_on(self, number: int) -> None:
        if not self.inherits:
            self.wire.send((PASS_ON, 0, number))
            self._signal(self.keeper, WAKE)
            return
        for pid in self.pids:
            self._signal(pid, number)

    def _signal(self, pid: int, number: int) -> None:
        try:
            os.kill(pid, number)
        except OSError:  # it has just ended, or became another user's
            pass

    def _take_stock(self) -> bool:
        """Take in what the keeper reports; return whether there is nothing more to wait for."""
        self._take_in()
        if not self.inherits:
            ended, status = os.waitpid(self.keeper, os.WNOHANG)
            if ended:
                self._take_in()
                self._inherit(status)
        return self._reap() if self.inherits else self.count == 0

    def _inherit(self, status: int) -> None:
        """Do the keeper's work if it ended before its commands; `status` is how it ended.

        Commands whose ends nobody sees any more count as ended like it: none may have started.
        """
        self.inherits = self.count > 0
        self._unseen = status
        if self.inherits and not processes():  # no /proc, which tells the witness from a command
            self._witness.end()

    def _take_in(self) -> None:
        for event in self.wire.receive():
            self._handle(event)

    def _handle(self, event: Event) -> None:
        kind, number, value = event
        if kind == STARTED:
            self.pids[value] = number
        elif kind == STOPPED:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif kind == ENDED:
            self._ended(value)

    def _ended(self, status: int) -> None:
        self.count -= 1
        self.status = self.status or status

    def _reap(self) -> bool:
        """Do the keeper's work after somebody killed it: its children are this process's now."""
        alone = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return self._give_back()
            if pid == 0:
                # A command that ends between the look at the children and that at /proc is in
                # neither: it is reaped by one look more, or its status would be the keeper's.
                if alone:
                    return self._give_back()
                alone = self._is_alone()
                if not alone:
                    return False
                continue
            alone = False
            if os.WIFSTOPPED(status):
                if pid in self.pids:
                    os.kill(os.getpid(), signal.SIGSTOP)
            elif self.pids.pop(pid, None) is not None:
                self._ended(status)

    def _is_alone(self) -> bool:
        """Return whether nothing but the witness runs below this process, as /proc shows it."""
        return bool(processes()) and not descendants([os.getpid()]) - {self._witness.pid}

    def _give_back(self) -> bool:
        if self.count:
            self.status = self.status or self._unseen
        self.leased.put_back()
        return True


class Witness:
    """A process in the front's group that does nothing but attest which signals it got."""

    def __init__(self) -> None:
        self._questioning = self._answers = self.pid = -1
        self.files: tuple[int, ...] = ()
        try:
            self._start()
        except OSError:  # no room for it: each signal is then passed on
            return

    def _start(self) -> None:
        questions, self._questioning = pipe()
        self._answers, answering = pipe()
        self.files = (self._questioning, self._answers)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                leave_files((questions, answering))
                _attest(questions, answering)
            finally:
                os._exit(1)
        os.close(questions)
        os.close(answering)

    def has(self, number: int) -> bool:
        """Return whether the signal came to the group; False where there is no witness."""
        if self.pid < 0:
            return False
        from time import sleep

        sleep(_SPREAD_S)
        try:
            os.write(self._questioning, bytes((number,)))
            return os.read(self._answers, 1) == b"1"
        except OSError:
            return False

    def end(self) -> None:
        """End the witness, and reap it. Can be called twice."""
        if self.pid < 0:
            return
        os.kill(self.pid, signal.SIGKILL)
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass
        self.pid = -1


def _attest(questions: int, answering: int) -> None:
    """Answer whether signals are pending, and take them; all are blocked since before the fork."""
    while number := os.read(questions, 1):
        pending = number[0] in signal.sigpending()
        if pending:
            signal.sigtimedwait(number, 0)
        os.write(answering, b"1" if pending else b"0")
