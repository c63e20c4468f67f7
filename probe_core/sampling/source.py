"""One sampler: its process, the devices that it must go around, and when it is tried again."""

from __future__ import annotations

from probe_core.model.statuses import FAILURES
from probe_core.sampling import fates
from probe_core.sampling.avoided import Avoided, culprit_ids
from probe_core.sampling.idle import Idle
from probe_core.sampling.pauses import Pauses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.isolation.launch import Bus, Driver
    from probe_core.isolation.resident import Resident
    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc
    from probe_core.registry.prober import Prober
    from probe_core.sampling.roster import Entry

__all__ = ["Source"]


class Source:
    """The sampler of one prober.

    `run` is its process, None while there is none. `problem` says why it has no samples now, None
    where it has. `ended` says that it is not asked again: it has nothing to sample, or hangs
    whenever it begins. `seen` are the ids that it has sampled. `avoided` are by the device's id.
    `stuck` says that a process of it could not be killed.
    """

    def __init__(self, prober: Prober, machine: Machine, driver: Driver, active: bool) -> None:
        self.prober = prober
        self.run: Resident | None = None
        self.problem: str | None = None
        self.ended = False
        self.stuck = False
        self.seen: set[str] = set()
        self.avoided: dict[str, Avoided] = {}
        self.idle = Idle(machine)
        self._machine, self._driver, self._active = machine, driver, active
        self._starts = 0
        self._pauses = Pauses()

    @property
    def awaited(self) -> bool:
        """Whether a round waits for it: its process has answered before, or is the first."""
        run = self.run
        return run is not None and not run.over and (self._starts == 1 or not run.initial)

    def serves(self, entry: Entry) -> bool:
        """Return whether the sampler may know a device: it has sampled it, or its manifest says."""
        if not self.seen.isdisjoint(entry.ids):
            return True
        return any(entry.vendor in when.get("pci_vendor", ()) for when in self.prober.when)

    def ask(
        self,
        number: int,
        unwanted: frozenset[str],
        asleep: frozenset[str],
        bus: Bus,
        now: float,
    ) -> None:
        """Ask the process for a round, or start one that begins with it, if one is due."""
        message = fates.message(number, unwanted | culprit_ids(self.avoided.values()), asleep)
        if self.run is None:
            if not self.ended and self._pauses.due(now):
                self._starts += 1
                self.run = fates.start(
                    self._driver, self.prober, self._machine, bus, self._active, message, now
                )
        elif self.run.answer is not None:
            self.run.begin(message, now)
            fates.send(self._driver, self.run, message)

    def start_trials(
        self,
        number: int,
        entries: Iterable[Entry],
        asleep: frozenset[str],
        bus: Bus,
        now: float,
    ) -> None:
        """Ask devices that failed again, each alone in a process of its own: the others go on."""
        for avoided in self.avoided.values():
            # Where a process could not be killed, each attempt would leave one more.
            if self.stuck or self.ended or avoided.trial or not avoided.pauses.due(now):
                continue
            others = (entry.ids for entry in entries if entry.ids.isdisjoint(avoided.ids))
            message = fates.message(number, frozenset().union(*others), asleep)
            avoided.trial = fates.start(
                self._driver, self.prober, self._machine, bus, self._active, message, now
            )

    def note_answer(self, run: Resident, now: float) -> None:
        """Note how a round of the process ended, which goes on."""
        status, reason = run.answer or ("protocol", None)
        if status == "ok":
            self.problem = None
            self._pauses.succeed()
        elif status == "not_applicable":
            self.ended, self.problem = True, reason
        else:
            self.problem = reason or status
            if run.answered_device:
                self._avoid(run.answered_device, self.problem, now)

    def note_end(self, run: Resident, now: float) -> list[FindingDoc]:
        """Note that the process has ended, and when the next is due; return findings."""
        self.run = None
        self.stuck = self.stuck or run.abandoned
        status = run.status or "protocol"
        self.problem = run.reason or status
        if status not in FAILURES:
            self.ended = status == "not_applicable"
            return []
        if run.patience.device is not None:
            self._avoid(run.patience.device, self.problem, now)
            self._pauses.retry_now(now)
        elif status == "load_error" or (run.initial and status == "timeout" and self._starts > 1):
            # A library that hangs before any device can be named: each attempt may leave one more
            # process that nothing ends.
            self.ended = True
        else:
            self._pauses.fail(now)
        return fates.findings(self.prober, run, self.ended)

    def harvest_trial(self, avoided: Avoided, now: float) -> None:
        """Take how a trial ended: the device is asked with the others again, or stays avoided."""
        trial = avoided.trial
        if trial is None:
            return
        avoided.trial = None
        is_well = trial.answer is not None and trial.answer[0] == "ok" and bool(trial.samples)
        fates.end(self._driver, trial)
        self.stuck = self.stuck or trial.abandoned
        if is_well:
            del self.avoided[avoided.device]
        else:
            avoided.pauses.fail(now)

    def forget_process(self, now: float) -> None:
        """Note that the processes were ended on purpose: the next may start at once."""
        self.run = None
        self._starts = 0
        self._pauses.retry_now(now)
        for avoided in self.avoided.values():
            avoided.trial = None

    def runs(self) -> Sequence[Resident]:
        """Return all processes of this sampler."""
        trials = [avoided.trial for avoided in self.avoided.values() if avoided.trial]
        return [*([self.run] if self.run else []), *trials]

    def _avoid(self, device: str, reason: str, now: float) -> None:
        """Go around a device from now on."""
        avoided = self.avoided.setdefault(device, Avoided(device))
        avoided.reason = reason
        avoided.pauses.fail(now)
