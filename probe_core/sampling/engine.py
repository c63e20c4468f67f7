"""What is sampled, and by whom: the same probers as a probe selects, before any of them runs."""

from __future__ import annotations

from time import monotonic

from probe_core.isolation.launch import cannot_start, new_driver
from probe_core.isolation.worker import Worker
from probe_core.pipeline.probers import Builtins, Found, find, select_probers
from probe_core.probing import registered_probers
from probe_core.registry.prober import Prober
from probe_core.sampling import boards, sampler
from probe_core.sampling.collect import Samples
from probe_core.sampling.node import HOST_PROBER, Host
from probe_core.sampling.roster import IDLE_S, Hotplug, Roster, ids_of
from probe_core.sampling.sampler import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_core.config import Config
    from probe_core.machine import Machine
    from probe_core.model.document import EventDoc, FindingDoc, SampleDoc
    from probe_core.registry.document import Registered
    from probe_core.sampling.roster import Entry


_PRIORITY = 60
"""That of the bus prober: any installed sampler goes first."""


class Choice:
    """The probers that may sample, in the order of priority, and what the built-in ones saw.

    `devices` are the sightings of the buses and of the processors.
    """

    def __init__(self, builtins: Builtins, found: Found, probers: Sequence[Prober]) -> None:
        self.probers = probers
        self.bus = builtins.describe_bus()
        self.devices = [seen.sighting for seen in builtins.collect().observations]
        self.findings: list[FindingDoc] = list(found.findings)


def choose(
    machine: Machine, config: Config, extra: Mapping[str, Registered] | None = None
) -> Choice:
    """Look at the buses, and decide which probers are asked for samples.

    On a recorded machine only those are that read its files: no library knows it.
    """
    builtins = Builtins(machine, config)
    found = find(machine, {**registered_probers(), **(extra or {})})
    decisions = select_probers(found, builtins.scan, machine, config, None)
    selected = [decision.prober for decision in decisions if decision.cause is None]
    probers = [prober for prober in selected if prober.answer is None]
    if boards.present(builtins.describe_bus()) and config.sealed is None and _is_allowed(config):
        probers.append(Prober(boards.BOARDS, boards.__name__, "probe-core", priority=_PRIORITY))
    return Choice(builtins, found, probers)


def _is_allowed(config: Config) -> bool:
    """Return whether the settings let the core's own sampler of boards run, as the bus prober."""
    return "bus" not in config.disable and (config.only is None or "bus" in config.only)


# Asks every sampler once a round, and goes around what hangs.
#
# One call of `observe` is one round: it asks all processes, waits for their answers within bounds,
# and starts, ends and replaces processes. Between two calls nothing runs but processes that wait.

_CHECK_S = 30.0
"""Seconds between two looks at how much memory the processes take: a leak grows slowly, and a look
reads /proc of all younger processes."""


class Engine:
    """All samplers of a machine."""

    def __init__(
        self,
        machine: Machine,
        config: Config,
        *,
        report: Sequence[Mapping[str, object]] | None = None,
        selected: Sequence[str] | None = None,
        extra: Mapping[str, Registered] | None = None,
        clock: Callable[[], float] = monotonic,
        portable: bool = False,
    ) -> None:
        self.roster = Roster(machine, selected)
        self.samples = Samples(self.roster)
        self.sources: list[Source] = []
        self._machine, self._config, self._extra = machine, config, extra
        self._clock = clock
        self._driver = new_driver(portable)
        self._checked = clock()
        self._open(report)

    def _open(self, report: Sequence[Mapping[str, object]] | None) -> None:
        """Look at the buses, and choose the samplers; nothing is started yet."""
        chosen = choose(self._machine, self._config, self._extra)
        for device in chosen.devices if report is None else report:
            self.roster.enlist(device)
        self._bus = chosen.bus
        self._host = Host(self._machine, chosen.devices)
        self._hotplug = Hotplug(self._machine, self.roster)
        self._add(chosen.probers)

    def _add(self, probers: Sequence[Prober]) -> None:
        present = {source.prober.name for source in self.sources}
        problem = cannot_start() if probers else None
        for prober in probers:
            if prober.name not in present:
                source = Source(prober, self._machine, self._driver, self._config.active)
                source.ended, source.problem = problem is not None, problem
                self.sources.append(source)
        self.sources.sort(key=lambda source: source.prober.rank())

    def listed(self) -> list[SampleDoc]:
        """Return a sample without figures of each device that is known; nothing is started."""
        self.samples.begin()
        self._say_why(self.roster.asleep())
        return self.samples.ordered()

    def observe(
        self, number: int, is_cancelled: Callable[[], bool], wake_fd: int = -1
    ) -> tuple[list[SampleDoc], list[EventDoc], list[FindingDoc]]:
        """Ask everything once; return samples, events and findings."""
        events, sightings = self._hotplug.compare()
        if sightings is not None:
            chosen = choose(self._machine, self._config, self._extra)
            self._bus = chosen.bus
            # What had nothing to sample may have something now.
            self.sources = [s for s in self.sources if s.stuck or not s.ended]
            self._add(chosen.probers)
        asleep = self.roster.asleep()
        self.samples.begin()
        self._driver.wake_on(wake_fd)

        def work(worker: Worker) -> None:
            if sightings is not None:  # libraries count devices when they start
                self._end(self.sources)
            self._ask(number, asleep)
            self._watch(lambda: worker.stopping or is_cancelled())
            for source in self.sources:
                self._harvest(source)
            if not worker.stopping:
                self._replace(number, asleep)

        if self.sources:
            Worker(work, self._driver.start_thread).run()
        self.samples.add(HOST_PROBER, self._host.sample())
        self._say_why(asleep)
        return self.samples.ordered(), events, self.samples.findings

    def close(self) -> None:
        """End all processes; a second call does nothing."""

        def work(worker: Worker) -> None:
            runs = [run for source in self.sources for run in source.runs()]
            sampler.ask_to_close(self._driver, runs)
            self._driver.end_all(monotonic)

        if any(source.runs() for source in self.sources):
            Worker(work, self._driver.start_thread).run()
        for source in self.sources:
            source.run = None
            source.avoided.clear()

    def _end(self, sources: Sequence[Source]) -> None:
        """End the processes of some samplers; the next round starts them anew."""
        runs = [run for source in sources for run in source.runs()]
        sampler.ask_to_close(self._driver, runs)
        self._driver.end(runs, monotonic)
        for source in sources:
            source.forget_process(self._clock())

    def _ask(self, number: int, asleep: Sequence[Entry]) -> None:
        now = self._clock()
        unwanted = self.roster.unwanted()
        sleeping = ids_of(asleep)
        for source in self.sources:
            served = [entry for entry in self.roster.entries if source.serves(entry)]
            if source.idle.may_ask(served, now):
                source.ask(number, unwanted, sleeping, self._bus, now)
                source.start_trials(number, self.roster.entries, sleeping, self._bus, now)

    def _replace(self, number: int, asleep: Sequence[Entry]) -> None:
        """Start anew what has just failed over a device: the next round has the others again."""
        sleeping = ids_of(asleep)
        for source in self.sources:
            if source.run is None and not source.idle.left_alone:
                source.ask(number, self.roster.unwanted(), sleeping, self._bus, self._clock())

    def _watch(self, is_stopping: Callable[[], bool]) -> None:
        """Wait for those processes that this round waits for, and read what the others bring."""
        first = [True]  # in a list, so that the function below can change it

        def is_over() -> bool:
            again = not first.pop() if first else True
            return is_stopping() or (again and not any(s.awaited for s in self.sources))

        if not any(not run.over for source in self.sources for run in source.runs()):
            return
        if self._clock() - self._checked >= _CHECK_S:
            self._checked = self._clock()
            self._driver.check(monotonic)
        self._driver.watch(monotonic, is_over, lambda now: None)

    def _harvest(self, source: Source) -> None:
        """Take what a sampler's processes brought, and end those that failed."""
        now, name = self._clock(), source.prober.name
        run = source.run
        if run is not None and run.over:
            added = self.samples.add(name, run.samples)
            self.samples.add_findings(name, run.findings)
            source.seen.update(entry.id for entry, _ in added)
            if run.status is None:
                for fact in source.note_answer(run, now):
                    self.samples.note(fact)
                if source.ended:
                    self._driver.end([run], monotonic)
                    source.run = None
                elif added and source.idle.note([e for e, _ in added], [s for _, s in added], now):
                    source.idle.leave_alone(now)
                    self._end([source])
            else:
                self._driver.end([run], monotonic)
                for fact in source.note_end(run, now):
                    self.samples.note(fact)
        for avoided in [a for a in source.avoided.values() if a.trial and a.trial.over]:
            if samples := source.harvest_trial(avoided, now):
                self.samples.forget(avoided.device)
                self.samples.add(name, samples)

    def _say_why(self, asleep: Sequence[Entry]) -> None:
        """Say of each device without figures why it has none."""
        for entry in asleep:
            if self.roster.shows(entry):
                self.samples.put(entry, "asleep", "it sleeps, and asking would wake it", None)
        for source in self.sources:
            for avoided in source.avoided.values():
                listed = filter(None, map(self.roster.get, sorted(avoided.ids)))
                device = next(listed, None) or self.roster.add([avoided.device], None, listed=False)
                if device is not None and self.roster.wants(device):
                    name = source.prober.name
                    self.samples.put(device, "unresponsive", avoided.reason, name)
        for entry in self.samples.missing():
            if not entry.listed and self._is_gone(entry):
                self.roster.remove(entry.id)
                continue
            prober, reason = self._waits_for(entry)
            if reason is not None:
                self.samples.put(entry, "pending", reason, prober)
                continue
            prober, reason = self._reason(entry)
            self.samples.put(entry, "unavailable", reason, prober)

    def _is_gone(self, entry: Entry) -> bool:
        """Return whether a device that only its sampler knows, such as a MIG instance, is gone:
        the sampler answers, and does not yield it any more."""
        serving = [source for source in self.sources if source.serves(entry)]
        return all(s.run is not None and s.run.over and not s.problem for s in serving)

    def _waits_for(self, entry: Entry) -> tuple[str | None, str | None]:
        """Return (prober, reason) of a device that will be asked; (None, None) of any other."""
        if entry.kind == "cpu":
            return HOST_PROBER, _NOT_ASKED
        serving = [source for source in self.sources if source.serves(entry)]
        for source in serving or self.sources:
            reason = _waiting(source)
            if reason is not None:
                return (source.prober.name if serving else None), reason
        return None, None

    def _reason(self, entry: Entry) -> tuple[str | None, str]:
        """Return (prober, reason) of a device that nobody answered for."""
        for source in self.sources:
            if not source.serves(entry):
                continue
            if source.idle.left_alone:
                reason = f"it was idle for {IDLE_S:g} s and is left alone, so that it can sleep"
                return source.prober.name, reason
            if source.problem:
                return source.prober.name, source.problem
            return source.prober.name, "its prober yields no sample of it"
        return None, "no installed prober samples it"


_NOT_ASKED = "it was not asked yet"


def _waiting(source: Source) -> str | None:
    """Return why the devices of a sampler have no figures yet; None where it waits for nothing.

    What failed as a whole, and not over one device, is no healthy neighbour of that device.
    """
    if source.ended or source.idle.left_alone or (source.problem and not source.avoided):
        return None
    if source.run is None:
        return _NOT_ASKED if source.starts == 0 else None
    if source.run.over:
        return None
    if not source.avoided:
        return "its prober's process is starting"
    return f"its prober's process is starting anew, without {', '.join(sorted(source.avoided))}"
