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

import fcntl
import os
from time import sleep

from probe_core.fastpath import call_c, signal
from probe_core.isolation.start import discard
from probe_core.leasing.execute import NOT_EXECUTABLE, CannotRun, complain, end_as, quiet, spawn
from probe_core.proc import descendants, open_files, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import NoReturn

    from probe_core.leasing.acquire import Leased

    Event = tuple[int, int, int]

__all__ = ["Program", "can_keep", "run"]

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36  # linux/prctl.h
_PARENT_ENDED = 34
"""The signal that wakes the keeper when the front has ended: the first real-time signal that glibc
does not use itself (signal(7)). It may come from anybody: the keeper looks who its parent is."""

_STARTED, _STOPPED, _ENDED, _PASS_ON = range(4)
"""Kinds of events: a command started (value: its process), was stopped (the signal), has ended (its
wait status); a signal is to be passed on (its number)."""

_WAKE = 35
"""The signal that tells the keeper to look at its wire: the second real-time signal that glibc does
not use itself (signal(7))."""
_SIZE = 12
"""Bytes of an event: three numbers of four bytes. The module struct takes 0.2 ms to import."""

_SI_KERNEL = 0x80  # asm-generic/siginfo.h
_OF_TERMINAL = ("SIGINT", "SIGQUIT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGHUP", "SIGWINCH")
"""Signals that the kernel sends to the terminal's foreground group: the command is in it too."""

_SPREAD_S = 0.002
"""Seconds in which a signal that was sent to a group has reached all of it: kill(2) sends to one
after the other, without sleeping in between."""


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
            self.wire.send((_STARTED, number, pid))
        self._leave()
        wakes = (signal.SIGCHLD, _PARENT_ENDED, _WAKE)
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
                    self._report_event((_STOPPED, self.pids[pid], os.WSTOPSIG(status)))
            elif pid in self.pids:
                self._ends.append((_ENDED, self.pids.pop(pid), status))
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
            self.wire.send((_PASS_ON, 0, number))
            self._signal(self.keeper, _WAKE)
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
        if kind == _STARTED:
            self.pids[value] = number
        elif kind == _STOPPED:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif kind == _ENDED:
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


class Wire:
    """A pair of pipes for events: kind, number of the command, value."""

    __slots__ = ("files",)

    def __init__(self, reading: int, writing: int) -> None:
        self.files = (reading, writing)
        os.set_blocking(reading, False)

    def send(self, event: Event) -> None:
        """Send an event; nothing happens where the other end is gone."""
        try:
            os.write(self.files[1], b"".join(number.to_bytes(4, "little") for number in event))
        except OSError:
            return

    def receive(self) -> Iterator[Event]:
        """Yield the events that have come; each was written whole (PIPE_BUF, pipe(7))."""
        while True:
            try:
                data = os.read(self.files[0], _SIZE)
            except OSError:
                return
            if len(data) < _SIZE:
                return
            kind, number, value = (data[at : at + 4] for at in (0, 4, 8))
            yield (
                int.from_bytes(kind, "little"),
                int.from_bytes(number, "little"),
                int.from_bytes(value, "little"),
            )


def pipe() -> tuple[int, int]:
    """Make a pipe of which no end is a standard descriptor, which a caller may have closed."""
    ends = os.pipe()
    if min(ends) > 2:
        return ends
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


def leave_files(needed: Collection[int]) -> None:
    """Close everything but `needed`, point 0 to 2 at nothing, and leave the current folder.

    A pipe that the command closes would otherwise stay open here, and its reader wait for ever;
    a folder could not be unmounted.
    """
    discard((0,), os.O_RDONLY)
    discard((1, 2), os.O_WRONLY)
    for number in open_files():
        if number > 2 and number not in needed:
            try:
                os.close(number)
            except OSError:  # the listing's own
                continue
    os.chdir("/")
