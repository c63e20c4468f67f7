"""The first half of a probe: which probers there are, which of them run, and what they report."""

from __future__ import annotations

from time import monotonic

from probe_core.machine.budget import Budget
from probe_core.probers import builtin_probers
from probe_core.registry.discover import discover, over_budget
from probe_core.registry.entrypoints import CHIPS
from probe_core.registry.prober import FALLBACK, Prober
from probe_core.registry.select import Decision, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from probe_core.api import NotApplicable
    from probe_core.config import Config
    from probe_core.isolation.launch import Waiting
    from probe_core.isolation.run import Run
    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc, Sighting
    from probe_core.pipeline.collect import Checking, Collected
    from probe_core.probers.bus import Scan
    from probe_core.registry.discover import Registered
    from probe_core.registry.host import Host

    Answer = Iterable[Sighting] | NotApplicable
    Lap = Callable[[str], None]

__all__ = ["Cancelled", "ProberRun"]

_stuck: set[str] = set()
"""Names of probers whose child could not be killed; they are not started again in this process."""


class Cancelled(Exception):
    """The caller gave up waiting; the children are gone."""


class ProberRun:
    """The probers of one probe: found, selected and run, built-in ones first.

    `collected` is what they reported, `decisions` tells why each was run or not, `findings` are
    about distributions and manifests, `names` are those of all probers. `runs` are those of
    processes and of recorded answers. `mentioned` says whether an installed distribution may have
    chips for chipdb. `waiting` is told who is waited for, see `isolation.launch.run_probers`.
    """

    def __init__(self, machine: Machine, config: Config, host: Host | None) -> None:
        self.machine = machine
        self.config = config
        self.host = host
        self.decisions: list[Decision] = []
        self.findings: list[FindingDoc] = []
        self.names = {"bus", "cpu", FALLBACK}
        self.mentioned = {CHIPS: False}
        self.runs: list[Run] = []
        self.budget = Budget()
        self.waiting: Waiting | None = None
        self._scan: Scan | None = None
        self._builtin: list[BuiltinRun] = []
        self._bus: BuiltinRun | None = None
        self._early: dict[Run, Checking] = {}
        self._collected: Collected | None = None

    @property
    def collected(self) -> Collected:
        """What the probers reported, checked.

        The built-in probers run, and the tables to check by are imported, when this is first asked
        for: the children are started by then, which need none of them.
        """
        if self._collected is None:
            from probe_core.pipeline.collect import Collected

            self._collected = Collected(self.config.verbose)
        for run in self._builtin:
            run.add_to(self._collected)
        self._builtin.clear()
        return self._collected

    @property
    def bus(self) -> Sequence[Sighting]:
        """What the bus prober saw.

        Each device is described when this is first asked for: by then the first child is on its
        way, and waits for it.
        """
        return () if self._bus is None else self._bus.sightings

    def scan_buses(self, lap: Lap) -> None:
        """See which vendors' devices are on the buses, for that decides which probers run.

        The built-in probers run in process: they only read files.
        """
        for prober in builtin_probers():
            if prober.name in self.config.disable:
                continue
            run = BuiltinRun(prober, self.machine, self.config)
            self._builtin.append(run)
            if prober.name == "bus":
                self._scan, self._bus = run.scan(), run
        lap("bus")

    def run_plugins(
        self,
        registered: Mapping[str, Registered],
        wake_fd: int,
        lap: Lap,
        while_running: Callable[[], object],
    ) -> None:
        """Find, select and run all other probers; `while_running` is called while they run.

        Raises `Cancelled` when `wake_fd` became readable.
        """
        self.choose(registered, lap)
        self._run_selected(wake_fd, while_running)
        lap("run")

    def choose(self, registered: Mapping[str, Registered], lap: Lap) -> None:
        """Find all other probers, and decide for each whether it runs."""
        probers, self.findings = discover(registered, mentioned=self.mentioned, budget=self.budget)
        if self.machine.answers:
            from probe_core.pipeline.answers import recorded_probers

            installed = [p for p in probers if p.name not in self.machine.answers]
            probers = installed + recorded_probers(self.machine.answers)
        self.names |= {prober.name for prober in probers}
        lap("discover")
        self._select(probers)
        self.findings += over_budget(self.budget)
        lap("select")

    def _select(self, probers: Sequence[Prober]) -> None:
        vendors = None if self._scan is None else self._scan.vendors
        veto = self.host.veto if self.host is not None else None
        self.decisions = select(
            probers, self.config, self.machine, vendors, veto, _stuck, self.budget
        )
        if self.machine.answers:
            from probe_core.pipeline.answers import name_vendors

            name_vendors(self.decisions)
        if self.host is not None:
            for decision in self.decisions:
                details = {"selected": decision.cause is None, "reason": decision.reason}
                self.host.observe("selected", {"prober": decision.prober.name, **details})

    def _run_selected(self, wake_fd: int, while_running: Callable[[], object]) -> None:
        """Run what was selected, each in a child; without any, nothing more is imported."""
        selected = [decision for decision in self.decisions if decision.cause is None]
        live = [decision for decision in selected if decision.prober.answer is None]
        if live:
            from probe_core.isolation.launch import cannot_start

            problem = cannot_start()
            if problem is None:
                self._run_children([d.prober for d in live], wake_fd, while_running)
            else:
                for decision in live:
                    decision.cause, decision.reason = "no-child", problem
        self._replay(decision.prober for decision in selected)
        self.runs.sort(key=lambda run: Prober.rank(run.prober))
        for run in self.runs:
            self.collected.add_run(run, self._early.get(run))
        for decision in self.decisions:
            if decision.cause is not None:
                self.collected.skip(decision)

    def _replay(self, probers: Iterable[Prober]) -> None:
        """Make runs of recorded answers."""
        recorded = [prober for prober in probers if prober.answer is not None]
        if recorded:
            from probe_core.pipeline.answers import replay

            self.runs += map(replay, recorded)

    def _run_children(
        self, probers: Sequence[Prober], wake_fd: int, while_running: Callable[[], object]
    ) -> None:
        from probe_core.isolation.launch import run_probers

        runs = run_probers(
            probers,
            self.machine,
            lambda: self.bus,
            active=self.config.active,
            wake_fd=wake_fd,
            observe=self.host.observe if self.host is not None else None,
            meanwhile=while_running,
            arrived=self._check_early,
            waiting=self.waiting,
        )
        if any(run.status is None for run in runs):
            raise Cancelled
        _stuck.update(run.prober.name for run in runs if run.abandoned)
        self.runs += runs

    def _check_early(self, run: Run, device: object) -> None:
        """Check a device while its prober asks the next one: a library takes as long for it."""
        if run not in self._early:
            from probe_core.pipeline.collect import Checking

            self._early[run] = Checking()
        self._early[run].take(device)


class BuiltinRun:
    """A built-in prober, which is called once its answer is asked for; never raises."""

    def __init__(self, prober: Prober, machine: Machine, config: Config) -> None:
        self._prober = prober
        self._machine = machine
        self._config = config
        self._call: Callable[[], Answer] = self._probe
        self._called = False
        self._elapsed_s = 0.0
        self._sightings: list[Sighting] = []
        self._status = "ok"
        self._reason: str | None = None

    @property
    def sightings(self) -> list[Sighting]:
        """What it saw, as it came."""
        if not self._called:
            self._called = True
            self._timed(self._answer)
        return self._sightings

    def scan(self) -> Scan | None:
        """Take the first of the bus prober's two steps; None where that fails."""
        from probe_core.probers.bus import Scan

        scans: list[Scan] = []
        self._timed(lambda: scans.append(Scan(self._machine)))
        if not scans:
            return None
        self._call = scans[0].answer
        return scans[0]

    def add_to(self, collected: Collected) -> None:
        """Have the answer checked and noted."""
        collected.add(
            self._prober,
            self.sightings,
            status=self._status,
            reason=self._reason,
            elapsed_ms=self._elapsed_s * 1000,
        )

    def _probe(self) -> Answer:
        from probe_core.api import Request

        assert self._prober.builtin is not None
        answer: Answer = self._prober.builtin(Request(self._machine, active=self._config.active))
        return answer

    def _answer(self) -> None:
        from probe_core.api import NotApplicable

        answer = self._call()
        if isinstance(answer, NotApplicable):
            self._status, self._reason = "not_applicable", answer.reason
        else:
            self._sightings = list(answer)

    def _timed(self, step: Callable[[], object]) -> None:
        start = monotonic()
        try:
            step()
        except Exception as error:  # whatever a file held, the node starts
            from probe_core.wording import error_text

            self._called, self._status, self._reason = True, "call_error", error_text(error)
        self._elapsed_s += monotonic() - start
