"""The probers of one probe: those that are built in, those that are installed, and their runs."""

from __future__ import annotations

from time import monotonic

from probe_core.probers import BUILTIN

# The registry is imported once a first child is on its way: `find` is the first to need it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from probe_core.api import NotApplicable
    from probe_core.config import Config
    from probe_core.isolation.launch import Waiting
    from probe_core.isolation.run import Run
    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc, Sighting
    from probe_core.pipeline.validate import Collected
    from probe_core.probers.bus import Scan
    from probe_core.registry.document import Registered
    from probe_core.registry.host import Host
    from probe_core.registry.prober import Decision, Prober

    Answer = Iterable[Sighting] | NotApplicable

__all__ = [
    "Builtins",
    "Cancelled",
    "Found",
    "expects_child",
    "find",
    "run_selected",
    "select_probers",
]


class Cancelled(Exception):
    """The caller gave up waiting; the children are gone."""


_abandoned: dict[str, Run] = {}
"""The last run of each prober whose process could not be killed, by its name; the prober is not
started again in this process while that one is there."""


class Builtins:
    """The built-in probers of one probe, each of which is called once, and never raises.

    `scan` is the bus prober's first step, which says whose hardware there is; None where that
    prober is disabled or failed.
    """

    def __init__(
        self, machine: Machine, config: Config, load: Callable[[str], object] = bool
    ) -> None:
        self._verbose = config.verbose
        self._load = load
        self._calls: list[BuiltinCall] = []
        self._bus: BuiltinCall | None = None
        for name in BUILTIN:
            if name not in config.disable:
                self._calls.append(BuiltinCall(name, machine, config))
                if name == "bus":
                    self._bus = self._calls[-1]
        self.scan = None if self._bus is None else self._bus.scan()
        if self.scan is not None and self.scan.shows_any:
            load("buses")

    def describe_bus(self) -> Sequence[Sighting]:
        """Return what the bus prober saw; the first call describes each device."""
        return () if self._bus is None else self._bus.answer()

    def collect(self) -> Collected:
        """Have all of them answer, and return what they saw, checked.

        The tables to check by are imported now: children are started before, and need none.
        """
        from probe_core.pipeline.validate import Collected

        collected = Collected(self._verbose, self._load)
        for call in self._calls:
            call.add_to(collected)
        return collected


class Found:
    """The probers that there are, besides the built-in ones.

    `names` are those of all probers, `findings` are about distributions and manifests. `mentioned`
    says whether an installed distribution may have chips for chipdb. `budget` is what was spent on
    reading their metadata.
    """

    __slots__ = ("budget", "findings", "mentioned", "names", "probers")

    def __init__(self) -> None:
        from probe_core.registry import CHIPS, Budget
        from probe_core.registry.prober import FALLBACK

        self.budget = Budget()
        self.mentioned = {CHIPS: False}
        self.names = {*BUILTIN, FALLBACK}
        self.probers: list[Prober] = []
        self.findings: list[FindingDoc] = []


def find(machine: Machine, registered: Mapping[str, Registered]) -> Found:
    """Find the probers that are installed, registered by the host, or part of a recording."""
    from probe_core.registry.prober import discover

    found = Found()
    probers, found.findings = discover(registered, mentioned=found.mentioned, budget=found.budget)
    if machine.answers:
        from probe_core.pipeline.answers import recorded_probers

        installed = [prober for prober in probers if prober.name not in machine.answers]
        probers = installed + recorded_probers(machine.answers)
    found.probers = probers
    found.names |= {prober.name for prober in probers}
    return found


def select_probers(
    found: Found, scan: Scan | None, machine: Machine, config: Config, host: Host | None
) -> list[Decision]:
    """Decide for each prober whether it runs; what the preconditions cost too much is a finding."""
    from probe_core.registry.prober import over_budget, select

    vendors = None if scan is None else scan.vendors
    veto = host.veto if host is not None else None
    stuck = {name for name, run in _abandoned.items() if run.stuck}
    decisions = select(found.probers, config, machine, vendors, veto, stuck, found.budget)
    if machine.answers:
        from probe_core.pipeline.answers import name_vendors

        name_vendors(decisions)
    if host is not None:
        for decision in decisions:
            details = {"selected": decision.cause is None, "reason": decision.reason}
            host.observe("selected", {"prober": decision.prober.name, **details})
    found.findings += over_budget(found.budget)
    return decisions


def expects_child(scan: Scan | None, machine: Machine, config: Config) -> bool:
    """Return whether a prober most likely runs: its vendor's hardware is here, and none is barred.

    A process that was started for none costs as much as a bare interpreter.
    """
    is_barred = config.sealed or config.disable or config.only is not None
    is_barred = is_barred or config.allow is not None
    return machine.live and scan is not None and scan.shows_accelerator and not is_barred


def run_selected(
    decide: Callable[[], Iterable[Decision]],
    builtins: Builtins,
    machine: Machine,
    config: Config,
    host: Host | None = None,
    *,
    starts_ahead: bool = False,
    wake_fd: int = -1,
    waiting: Waiting | None = None,
    meanwhile: Callable[[], object] | None = None,
    arrived: Callable[[Run, object], None] | None = None,
    answered: Callable[[Sequence[Run]], None] | None = None,
) -> list[Run]:
    """Run what `decide` selects, each prober in a child; without any, nothing more is imported.

    With `starts_ahead` a first child is started before `decide` is called, where one can be.
    `meanwhile` is called once while children run, `arrived` with each device, and `answered` with
    all runs, as soon as the last one has its outcome; not without children, and not in a copy of
    the process that a fork made just then. Where no child can be started, the decisions say so
    then. Raises `Cancelled` when `wake_fd` became readable.
    """
    live: list[Prober] = []
    replayed: list[Run] = []

    def choose() -> list[Prober]:
        """Return the probers that a child runs; have recorded answers stand for the others."""
        selected = [decision for decision in decide() if decision.cause is None]
        recorded = [d.prober for d in selected if d.prober.answer is not None]
        if recorded:
            from probe_core.pipeline.answers import replay

            replayed.extend(map(replay, recorded))
        asked = [decision for decision in selected if decision.prober.answer is None]
        problem = _no_child() if asked else None
        if problem is None:
            live.extend(decision.prober for decision in asked)
        else:
            for decision in asked:
                decision.cause, decision.reason = "no-child", problem
        return live

    probers = choose if starts_ahead and _no_child() is None else choose()
    if not probers:
        return replayed
    from probe_core.isolation.launch import run_probers

    runs = run_probers(
        probers,
        machine,
        builtins.describe_bus,
        active=config.active,
        wake_fd=wake_fd,
        observe=host.observe if host is not None else None,
        meanwhile=meanwhile,
        arrived=arrived,
        answered=answered,
        waiting=waiting,
        replayed=replayed,
    )
    if len(runs) < len(live) + len(replayed):
        raise Cancelled
    for run in runs:
        if run.status is None:
            raise Cancelled
    for run in runs:
        if run.still_there:
            _abandoned[run.prober.name] = run
    return runs


def _no_child() -> str | None:
    """Return why this application cannot start children; None when it can."""
    from probe_core.isolation.launch import cannot_start

    return cannot_start()


class BuiltinCall:
    """One built-in prober, and its answer once it was called."""

    def __init__(self, name: str, machine: Machine, config: Config) -> None:
        self._name = name
        self._machine = machine
        self._config = config
        self._scan: Scan | None = None
        self._called = False
        self._elapsed_s = 0.0
        self._sightings: list[Sighting] = []
        self._status = "ok"
        self._reason: str | None = None
        self._details: dict[str, str | None] = {}

    def scan(self) -> Scan | None:
        """Take the first of the bus prober's two steps; None where that fails."""
        from probe_core.probers.bus import Scan

        def look() -> None:
            self._scan = Scan(self._machine)

        self._timed(look)
        return self._scan

    def answer(self) -> list[Sighting]:
        """Return what it saw, as it came; the first call asks it."""
        if not self._called:
            self._called = True
            self._timed(self._ask)
        return self._sightings

    def add_to(self, collected: Collected) -> None:
        """Have the answer checked and noted."""
        sightings = self.answer()
        collected.add_builtin(
            self._prober(),
            sightings,
            self._details,
            status=self._status,
            reason=self._reason,
            elapsed_ms=self._elapsed_s * 1000,
        )

    def _prober(self) -> Prober:
        from probe_core.probers import builtin_probers

        return next(prober for prober in builtin_probers() if prober.name == self._name)

    def _ask(self) -> None:
        from probe_core.api import NotApplicable, Request

        if self._scan is not None:
            answer: Answer = self._scan.answer()
        else:
            builtin = self._prober().builtin
            assert builtin is not None
            answer = builtin(Request(self._machine, active=self._config.active))
        if isinstance(answer, NotApplicable):
            self._status, self._reason = "not_applicable", answer.reason
        else:
            self._sightings = list(answer)

    def _timed(self, step: Callable[[], object]) -> None:
        start = monotonic()
        try:
            step()
        except Exception as error:  # whatever a file held, the node starts
            from probe_core.api import Unavailable
            from probe_core.wording import error_text

            self._called, self._status, self._reason = True, "call_error", error_text(error)
            if isinstance(error, Unavailable):
                self._status, self._reason = "unavailable", error.reason
                self._details = {"code": error.code, "fix": error.fix}
        self._elapsed_s += monotonic() - start
