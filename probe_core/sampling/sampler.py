"""How a sampler's process begins, is asked, and ends."""

from __future__ import annotations

import marshal
import os
from time import monotonic

from probe_core.isolation import launch
from probe_core.isolation.resident import Resident
from probe_core.model.findings import finding
from probe_core.model.ids import FAILURES, normalise_id
from probe_core.sampling.roster import Idle, ids_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.isolation.launch import Bus, Driver
    from probe_core.isolation.messages import RoundMessage
    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc
    from probe_core.registry.prober import Prober
    from probe_core.sampling.roster import Entry


ROUND_S = 2.0
"""Seconds that a device may be silent. A driver answers in milliseconds; what hangs does for ever.
"""

CLOSE_S = 0.2
"""Seconds for `sample_close`: what `isolation` gives a prober's cleanup."""


def failure_message(number: int, avoid: frozenset[str], asleep: frozenset[str]) -> RoundMessage:
    """Return what a process is asked in a round."""
    return {
        "number": number,
        "seconds": ROUND_S,
        "avoid": sorted(avoid),
        "asleep": sorted(asleep),
        "close": False,
    }


def start(
    driver: Driver,
    prober: Prober,
    machine: Machine,
    bus: Bus,
    active: bool,
    first: RoundMessage,
) -> Resident:
    """Start a process that begins with a round."""
    run = Resident(prober, os.urandom(8).hex(), os.urandom(8).hex(), monotonic(), first)
    launch.start(driver, run, machine, bus, active, first)
    return run


def ask(driver: Driver, run: Resident, request: RoundMessage) -> None:
    """Ask a process that waits for a round."""
    run.begin(request, monotonic())
    data = marshal.dumps(dict(request))
    driver.send(run, b"%08x" % len(data) + data)


def ask_to_close(driver: Driver, runs: Sequence[Resident]) -> None:
    """Have processes that wait close what they opened; returns when they have, or after 0.2 s."""
    waiting = [run for run in runs if run.status is None and run.answer is not None]
    for run in waiting:
        closing: RoundMessage = {**failure_message(0, frozenset(), frozenset()), "close": True}
        closing["seconds"] = CLOSE_S
        ask(driver, run, closing)
    if waiting:
        driver.wake_on(-1)
        driver.watch(monotonic, lambda: all(run.over for run in waiting), lambda now: None)


def findings(prober: Prober, run: Resident, ended: bool) -> list[FindingDoc]:
    """Return what a person should know of a process that failed."""
    reason, device = run.reason or str(run.status), run.patience.device
    facts = [_failure(prober, run, device, reason, ended)]
    if run.stuck:
        from probe_core.pipeline.failures import unkillable

        facts.append(unkillable(prober))
    return facts


def mistake(prober: Prober, status: str, device: str | None, reason: str) -> FindingDoc:
    """Return the finding about a sampler that raised or answered nonsense, and runs on."""
    over = f" over {device}" if device else ""
    return finding(
        "prober-raises" if device else "prober-failed",
        f"{prober.owner}: the sampler of prober {prober.name!r} failed ({status}){over}",
        reason,
        "report it to its author",
        severity="error",
        device=device,
        prober=prober.name,
        evidence=status,
    )


def _failure(
    prober: Prober, run: Resident, device: str | None, reason: str, ended: bool
) -> FindingDoc:
    if device is not None:
        hangs = run.status == "timeout"
        return finding(
            "driver-hangs" if hangs else "driver-crashes",
            f"sampling {device} {'hangs' if hangs else 'kills the process'}",
            reason,
            "look into the kernel's log; it is asked again after growing pauses",
            severity="error",
            device=device,
            prober=prober.name,
            step="responding",
        )
    fix = "it is not asked again" if ended else "it is asked again after growing pauses"
    return finding(
        "prober-failed",
        f"{prober.owner}: the sampler of prober {prober.name!r} failed ({run.status})",
        reason,
        fix,
        severity="error",
        prober=prober.name,
        evidence=run.status,
    )


# When what failed is tried again: after pauses that grow.

FIRST_S, LONGEST_S = 10.0, 600.0
"""Seconds until the second attempt, and between two at most. Judgements: a driver that recovers
does so in seconds (a reset), or when somebody comes; each attempt costs a process."""


class Pauses:
    """Counts failures in a row; times are seconds on the monotonic clock."""

    def __init__(self) -> None:
        self._at = float("-inf")
        self._pause = FIRST_S

    def due(self, now: float) -> bool:
        """Return whether the next attempt is due."""
        return now >= self._at

    def fail(self, now: float) -> None:
        """Have the next attempt wait, twice as long as the last."""
        self._at = now + self._pause
        self._pause = min(LONGEST_S, self._pause * 2)

    def succeed(self) -> None:
        """Begin anew with the first pause."""
        self._pause = FIRST_S

    def retry_now(self, now: float) -> None:
        """Have the next attempt be due at once."""
        self._at = now


# A device that is gone around, because asking it hung or killed a process.


class Avoided:
    """One such device, by the id that its sampler announced.

    `reason` says how it failed, `pauses` when it is asked again, `trial` is the process that asks.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.ids = frozenset({device, _written(device)})
        self.reason = ""
        self.pauses = Pauses()
        self.trial: Resident | None = None


def _written(device: str) -> str:
    try:
        return normalise_id(device)
    except ValueError:
        return device


# One sampler: its process, the devices that it must go around, and when it is tried again.


class Source:
    """The sampler of one prober.

    `run` is its process, None while there is none. `problem` says why it has no samples now, None
    where it has. `ended` says that it is not asked again: it has nothing to sample, or hangs
    whenever it begins. `seen` are the ids that it has sampled. `avoided` are by the device's id.
    `starts` counts its processes since they were last ended on purpose.
    """

    def __init__(self, prober: Prober, machine: Machine, driver: Driver, active: bool) -> None:
        self.prober = prober
        self.run: Resident | None = None
        self.problem: str | None = None
        self.ended = False
        self._abandoned: list[Resident] = []
        self.seen: set[str] = set()
        self.avoided: dict[str, Avoided] = {}
        self.idle = Idle(machine)
        self._machine, self._driver, self._active = machine, driver, active
        self.starts = 0
        self._pauses = Pauses()

    @property
    def stuck(self) -> bool:
        """Whether a process of it that could not be killed is there."""
        return any(run.stuck for run in self._abandoned)

    @property
    def awaited(self) -> bool:
        """Whether a round waits for it: its process has answered before, or is the first."""
        run = self.run
        return run is not None and not run.over and (self.starts == 1 or not run.initial)

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
        message = failure_message(number, unwanted | ids_of(self.avoided.values()), asleep)
        if self.run is None:
            if not self.ended and self._pauses.due(now):
                self.starts += 1
                self.run = start(
                    self._driver, self.prober, self._machine, bus, self._active, message
                )
        elif self.run.answer is not None:
            ask(self._driver, self.run, message)

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
            others = ids_of(entry for entry in entries if entry.ids.isdisjoint(avoided.ids))
            message = failure_message(number, others, asleep)
            avoided.trial = start(
                self._driver, self.prober, self._machine, bus, self._active, message
            )

    def note_answer(self, run: Resident, now: float) -> list[FindingDoc]:
        """Note how a round of the process ended, which goes on; return findings."""
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
            if status in FAILURES:
                return [mistake(self.prober, status, run.answered_device, self.problem)]
        return []

    def note_end(self, run: Resident, now: float) -> list[FindingDoc]:
        """Note that the process has ended, and when the next is due; return findings."""
        self.run = None
        self._note_abandoned(run)
        status = run.status or "protocol"
        self.problem = run.reason or status
        if status not in FAILURES:
            self.ended = status == "not_applicable"
            return []
        if run.patience.device is not None:
            self._avoid(run.patience.device, self.problem, now)
        elif status == "load_error" or (run.initial and status == "timeout" and self.starts > 1):
            # A library that hangs before any device can be named: each attempt may leave one more
            # process that nothing ends.
            self.ended = True
        else:
            self._pauses.fail(now)
        return findings(self.prober, run, self.ended)

    def _note_abandoned(self, run: Resident) -> None:
        if run.still_there:
            self._abandoned.append(run)

    def harvest_trial(self, avoided: Avoided, now: float) -> list[object]:
        """Take how a trial ended: the device is asked with the others again, or stays avoided.

        Returns the samples of a device that is well again.
        """
        trial = avoided.trial
        if trial is None:
            return []
        avoided.trial = None
        is_well = trial.answer is not None and trial.answer[0] == "ok" and bool(trial.samples)
        self._driver.end([trial], monotonic)
        self._note_abandoned(trial)
        if not is_well:
            avoided.pauses.fail(now)
            return []
        del self.avoided[avoided.device]
        return trial.samples

    def forget_process(self, now: float) -> None:
        """Note that the processes were ended on purpose: the next may start at once."""
        self.run = None
        self.starts = 0
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
