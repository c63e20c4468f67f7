"""Run one prober in this process, for its author: prints and breakpoints work, no deadline ends it.

What it yields takes the way that a child's does: the same encoding, the same state of a run and
the same checks, so that what is accepted here is accepted in a report.
"""

from __future__ import annotations

from time import monotonic

from probe_core.api import NotApplicable, Request, Unavailable
from probe_core.isolation.hook import Answers, HookError, failure, load_hook
from probe_core.isolation.run import Run
from probe_core.isolation.wire import frame
from probe_core.pipeline.failures import check_finding
from probe_core.pipeline.validate import Checking
from probe_core.wording import error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    from probe_core.isolation.hook import End, Hook
    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc, Sighting
    from probe_core.registry.prober import Prober

_OWN = __name__.partition(".")[0]


class Item:
    """One yielded value: the checked device, or None where it was refused, and each rejection.

    A yielded finding is in `finding`, with `sighting` None; None for both is a refusal.
    """

    def __init__(
        self,
        sighting: Sighting | None,
        rejected: Sequence[str],
        *,
        finding: FindingDoc | None = None,
        is_finding: bool = False,
    ) -> None:
        self.sighting = sighting
        self.rejected = list(rejected)
        self.finding = finding
        self.is_finding = is_finding

    @property
    def noun(self) -> str:
        """What it was meant to be."""
        return "finding" if self.is_finding else "device"

    @property
    def refused(self) -> bool:
        """Whether nothing of the value reaches a report."""
        return self.sighting is None and self.finding is None


class Rehearsal:
    """One prober's run in this process.

    `show` is called with each `Item` as soon as it is yielded, `announce` with the id of each
    device that the prober is about to touch. `run` is as a child's would be, `items` are all that
    was yielded, and `error` is what the prober raised.
    """

    def __init__(
        self,
        prober: Prober,
        show: Callable[[Item], None],
        announce: Callable[[str], None],
    ) -> None:
        self.prober = prober
        self.run = Run(prober, "", "", 0.0, deadline=float("inf"))
        self.items: list[Item] = []
        self.error: BaseException | None = None
        self._show = show
        self._announce = announce
        self._checking = Checking()

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return isinstance(self.error, KeyboardInterrupt)

    @property
    def seconds(self) -> float:
        """What import and call took together."""
        return self.run.ended - self.run.started

    @property
    def mistake(self) -> BaseException | None:
        """What it raised by mistake: worth a traceback."""
        intended = isinstance(self.error, Unavailable) or _is_quit(self.error)
        return None if intended else self.error

    def perform(
        self, machine: Machine, bus: Sequence[Mapping[str, Any]], active: bool = False
    ) -> None:
        """Import the prober, call its hook, and take what it yields until it ends or raises."""
        request = Request(
            machine,
            bus,
            active=active,
            deadline_s=self.prober.deadline_s,
            serial=True,  # an author who stops at a line has one thread
            announce=self.announce,
        )
        self.run.started = monotonic()
        function = self._load()
        if function is not None:
            try:
                status, reason, details = Answers(self._send).take(function, request)
            except BaseException as error:
                self.error = error
                status, reason, details = _named(error)
            self._send("end", status=status, reason=reason, **details)

    def perform_isolated(
        self, machine: Machine, bus: Sequence[Mapping[str, Any]], active: bool = False
    ) -> None:
        """Run it as a report does: in a child, with its limits and under its deadline."""
        from probe_core.isolation.launch import run_probers

        (self.run,) = run_probers([self.prober], machine, bus, active=active)
        for raw in self.run.sightings:
            self._take(Item(*self._checking.take(raw)))
        for finding in self.run.findings:
            self._take(_finding(finding, self.prober.name))

    def _load(self) -> Hook | None:
        target = self.prober.target
        try:
            return load_hook(target)
        except HookError as error:
            self._send("end", status="load_error", reason=str(error))
        except BaseException as error:
            self.error = error
            reason = f"importing {target} failed: {error_text(error)}"
            self._send("end", status="load_error", reason=reason)
        return None

    def announce(self, kind: str, device: object) -> None:
        """Take an announcement, as `Request` makes it."""
        self._send(kind, device=device)
        if kind == "touching":
            self._announce(str(device))

    def _send(self, kind: str, **fields: object) -> None:
        devices, findings = len(self.run.sightings), len(self.run.findings)
        # The secret of a run in a child stands before the blank; here there is none.
        self.run.feed(f" {frame(kind, fields)}\n".encode("ascii"), monotonic())
        if len(self.run.sightings) > devices:
            self._take(Item(*self._checking.take(self.run.sightings[-1])))
        elif len(self.run.findings) > findings:
            self._take(_finding(self.run.findings[-1], self.prober.name))

    def _take(self, item: Item) -> None:
        self.items.append(item)
        self._show(item)


def _finding(raw: object, prober: str) -> Item:
    checked = check_finding(raw, prober)
    problem = "a finding needs texts for code, what, why and fix; make it with api.finding()"
    return Item(None, [] if checked else [problem], finding=checked, is_finding=True)


def _named(error: BaseException) -> End:
    """Return the end of a prober that raised, or was ended from the keyboard."""
    if isinstance(error, KeyboardInterrupt):
        return "call_error", "it was interrupted", {}
    if _is_quit(error):
        return "call_error", "it was ended in the debugger", {}
    return failure(error)


def _is_quit(error: BaseException | None) -> bool:
    """Return whether the author ended the debugger; whoever called breakpoint() imported `bdb`."""
    if isinstance(error, SystemExit):  # what `q` does from Python 3.14 on
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        return trace is not None and trace.tb_frame.f_globals.get("__name__") == "pdb"
    return type(error).__name__ == "BdbQuit"


def author_frames(error: BaseException) -> TracebackType | None:
    """Return the traceback from the author's first frame on, without ours and the import system's.

    What the author's code calls in turn stays, also where it is ours.
    """
    trace = error.__traceback__
    while trace is not None and _is_machinery(trace.tb_frame.f_globals.get("__name__")):
        trace = trace.tb_next
    return trace


def _is_machinery(module: object) -> bool:
    name = str(module)
    return name.partition(".")[0] == _OWN or name.startswith(("importlib.", "_frozen_importlib"))


def bus_sightings(machine: Machine) -> list[Mapping[str, Any]]:
    """Return what the built-in bus prober sees, as a request has it."""
    from probe_core.probers import builtin_probers

    for prober in builtin_probers():
        if prober.name == "bus" and prober.builtin is not None:
            answer = prober.builtin(Request(machine))
            return [] if isinstance(answer, NotApplicable) else list(answer)
    return []
