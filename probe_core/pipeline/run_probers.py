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

    from probe_core.config import Config
    from probe_core.isolation.launch import Waiting
    from probe_core.isolation.run import Run
    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc, Sighting
    from probe_core.pipeline.collect import Checking, Collected
    from probe_core.registry.discover import Registered
    from probe_core.registry.host import Host

    Lap = Callable[[str], None]

__all__ = ["Cancelled", "ProberRun", "pci_vendors"]

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
        self._bus: list[Sighting] | None = None
        self._builtin: list[BuiltinRun] = []
        self._early: dict[Run, Checking] = {}
        self._collected: Collected | None = None

    @property
    def collected(self) -> Collected:
        """What the probers reported, checked.

        The tables to check it by are imported when this is first asked for: the children are
        started by then, which need none of them.
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
        """What the bus prober saw."""
        return self._bus or ()

    def run_builtin(self, lap: Lap) -> None:
        """Run the built-in probers, in process: they only read files."""
        for prober in builtin_probers():
            if prober.name not in self.config.disable:
                run = BuiltinRun(prober, self.machine, self.config)
                self._builtin.append(run)
                if prober.name == "bus" and run.status != "call_error":
                    self._bus = run.sightings
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
        vendors = None if self._bus is None else set(pci_vendors(self._bus))
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
            self.bus,
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
    """What a built-in prober answered, as it came."""

    def __init__(self, prober: Prober, machine: Machine, config: Config) -> None:
        """Call the prober, in this process; never raises."""
        from probe_core.api import NotApplicable, Request
        from probe_core.wording import error_text

        start = monotonic()
        self.sightings: list[Sighting] = []
        self.status = "ok"
        self._prober = prober
        self._reason: str | None = None
        try:
            assert prober.builtin is not None
            answer = prober.builtin(Request(machine, active=config.active))
            if isinstance(answer, NotApplicable):
                self.status, self._reason = "not_applicable", answer.reason
            else:
                self.sightings = list(answer)
        except Exception as error:  # whatever a file held, the node starts
            self.status, self._reason = "call_error", error_text(error)
        self._elapsed_ms = (monotonic() - start) * 1000

    def add_to(self, collected: Collected) -> None:
        """Have the answer checked and noted."""
        collected.add(
            self._prober,
            self.sightings,
            status=self.status,
            reason=self._reason,
            elapsed_ms=self._elapsed_ms,
        )


def pci_vendors(sightings: Iterable[Sighting]) -> Iterable[str]:
    """Return the PCI vendor ids, four hexadecimal digits each, of what the bus prober saw."""
    for sighting in sightings:
        pci = sighting.get("pci", {})
        if "id" in pci:
            yield pci["id"][:4]
