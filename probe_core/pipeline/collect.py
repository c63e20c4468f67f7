"""From runs to what the report says: sightings to merge, outcomes, and findings about probers."""

from __future__ import annotations

from probe_core.model.findings import finding
from probe_core.model.ids import FAILURES, single, strength
from probe_core.pipeline.merge import Observation
from probe_core.pipeline.validate import Repeats, check_finding, check_sighting
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from probe_core.isolation.launch import Unresponsive
    from probe_core.isolation.run import Run
    from probe_core.model.document import FindingDoc, OutcomeDoc, Sighting
    from probe_core.pipeline.probers import Runs
    from probe_core.registry.prober import Prober
    from probe_core.registry.select import Decision

    Load = Callable[[str], object]


MAX_REJECTIONS = 4
"""Rejected values that a sentence lists: a wrong unit is rejected of every device alike."""


def failed(outcome: OutcomeDoc) -> bool:
    """Return whether an outcome may hide an accelerator: a failure, or hardware not queried.

    What was only in part queried is a failure too: a device that a prober had to go around.
    """
    status = outcome["status"]
    return status in FAILURES or status == "unavailable" or bool(outcome.get("avoided"))


def is_wrong(run: Run, outcome: OutcomeDoc) -> bool:
    """Return whether anything went wrong in a run, if only over one device, or after the last."""
    return bool(run.unresponsive or run.stuck or "phase" in outcome) or failed(outcome)


class Collected:
    """Everything the probers reported, checked, in the order in which it came in.

    `unresponsive` are pairs of a prober's name and a device that it had to go around. With
    `verbose` the outcome of a child keeps what it printed also where it succeeded.
    """

    __slots__ = ("findings", "observations", "outcomes", "unresponsive", "verbose")

    def __init__(self, verbose: bool = False) -> None:
        self.verbose = verbose
        self.observations: list[Observation] = []
        self.outcomes: list[OutcomeDoc] = []
        self.findings: list[FindingDoc] = []
        self.unresponsive: list[tuple[str, Unresponsive]] = []

    def add(
        self,
        prober: Prober,
        sightings: Sequence[object],
        findings: Iterable[object] = (),
        *,
        early: Checking | None = None,
        status: str = "ok",
        reason: str | None = None,
        elapsed_ms: float = 0.0,
        stderr: Iterable[str] = (),
        rejected: Iterable[str] = (),
    ) -> None:
        """Check one prober's sightings and findings, and note its outcome.

        `rejected` are sentences about values that were rejected before; `early` has checked some of
        the sightings.
        """
        good, problems = checked(sightings, early)
        problems = [*problems, *rejected]
        self.observations += [Observation(prober.name, prober.priority, each) for each in good]
        self.findings += filter(None, (check_finding(raw, prober.name) for raw in findings))
        if status == "ok" and problems and not good:
            status, reason = "invalid", "; ".join(problems[:MAX_REJECTIONS])
        elif problems:
            self.findings.append(_rejected(prober, problems))
        partial = bool(good) and status in FAILURES | {"unavailable"}
        self._note(prober, status, reason, partial, len(good), elapsed_ms, stderr)

    def add_all(self, runs: Runs, decisions: Iterable[Decision], load: Load = bool) -> None:
        """Take the runs of children and of recorded answers, and note what was not run.

        `load` is called with the part of `gate` that a run needs in which something went wrong.
        """
        for run in runs.runs:
            self.add_run(run, runs.early.get(run), load)
        for decision in decisions:
            if decision.cause is not None:
                self.skip(decision)

    def add_run(self, run: Run, early: Checking | None = None, load: Load = bool) -> None:
        """Take the run of a child, of which `early` may have checked what came first."""
        # Of several processes together, or recorded: `Run` bounds what one process sends.
        from probe_core.isolation import MAX_DEVICES, MAX_FINDINGS

        status = run.status or "protocol"
        if len(run.sightings) > MAX_DEVICES:
            run.rejected.append(f"more than {MAX_DEVICES} devices; the first were kept")
        self.add(
            run.prober,
            run.sightings[:MAX_DEVICES],
            run.findings[:MAX_FINDINGS],
            early=early,
            status=status,
            reason=run.reason,
            elapsed_ms=(run.ended - run.started) * 1000,
            rejected=run.rejected,
            stderr=run.stderr_tail() if self._keeps_output(run, status) else (),
        )
        outcome = self.outcomes[-1]
        outcome.update(run.details)  # type: ignore[typeddict-item]
        if is_wrong(run, outcome):
            load("failures")
            from probe_core.pipeline import failures

            self.unresponsive += failures.mark_unresponsive(run, outcome, self.observations)
            self.findings += failures.findings_about(run, outcome)

    def _keeps_output(self, run: Run, status: str) -> bool:
        return self.verbose or status in FAILURES or "phase" in run.details

    def has_devices(self) -> bool:
        """Return whether anything else than processors was reported."""
        return any(each.sighting["kind"] != "cpu" for each in self.observations)

    def skip(self, decision: Decision) -> None:
        """Note a prober that was not run."""
        self._note(decision.prober, "skipped", decision.reason, False, 0, 0.0, ())
        self.outcomes[-1]["code"] = decision.cause

    def _note(
        self,
        prober: Prober,
        status: str,
        reason: str | None,
        partial: bool,
        devices: int,
        elapsed_ms: float,
        stderr: Iterable[str],
    ) -> None:
        outcome: OutcomeDoc = {
            "prober": prober.name,
            "distribution": prober.owner,
            "status": status,
            "reason": reason,
            "partial": partial,
            "devices": devices,
            "elapsed_ms": round(elapsed_ms, 3),
        }
        tail = list(stderr)
        if tail:
            outcome["stderr"] = tail
        self.outcomes.append(outcome)


class Checking:
    """Sightings of one prober while they are checked, each after those before it."""

    __slots__ = ("_known", "_raw", "_repeats", "good", "problems")

    def __init__(self) -> None:
        self.good: list[Sighting] = []
        self.problems: list[str] = []
        self._raw: list[object] = []
        self._known: dict[str, Sighting] = {}
        self._repeats = Repeats()

    def take(self, raw: object) -> Sighting | None:
        """Check the next one, and return it if it is kept: of two that are one device the first."""
        sighting, problems = check_next(raw, self._known, self._repeats)
        self._raw.append(raw)
        self.problems += problems
        if sighting is not None:
            self.good.append(sighting)
        return sighting

    def remaining(self, sightings: Sequence[object]) -> Sequence[object] | None:
        """Return those of `sightings` that are still to be checked; None where others were."""
        count = len(self._raw)
        same = all(ours is theirs for ours, theirs in zip(self._raw, sightings, strict=False))
        return sightings[count:] if count <= len(sightings) and same else None


def checked(
    sightings: Sequence[object], early: Checking | None = None
) -> tuple[list[Sighting], list[str]]:
    """Check sightings, of which `early` may have checked the first ones already."""
    remaining = None if early is None else early.remaining(sightings)
    if early is None or remaining is None:  # a prober's several processes are sorted by device
        early, remaining = Checking(), sightings
    for raw in remaining:
        early.take(raw)
    return early.good, early.problems


def check_next(
    raw: object, known: dict[str, Sighting], repeats: Repeats | None = None
) -> tuple[Sighting | None, list[str]]:
    """Check a sighting after others, which are `known` by their ids; one that is kept is added.

    `repeats` has what was accepted of the others.
    """
    sighting, problems = check_sighting(raw, repeats)
    if sighting is None:
        return None, problems
    repeated = sorted(known.keys() & sighting["ids"])
    if repeated and not _is_another(sighting, [known[identity] for identity in repeated]):
        repetition = f"two devices have the id {joined(repeated)}; the first was kept"
        return None, [*problems, repetition]
    for identity in repeated:
        first = min(known[identity]["ids"], key=strength)
        problems.append(f"ids: {identity} is the id of {first}, which came first")
    ids = [identity for identity in sighting["ids"] if identity not in known]
    if repeated:
        sighting = {**sighting, "ids": ids}
    known.update(dict.fromkeys(ids, sighting))
    return sighting, problems


def _is_another(sighting: Sighting, others: Iterable[Sighting]) -> bool:
    """Return whether an id proves that a device is none of `others`, with which it shares one.

    Firmware may give two cards one UUID; two PCI addresses are two cards all the same. The order of
    the proof is that of `merge`: the strongest id decides.
    """
    strongest = min(sighting["ids"], key=strength)
    kind = single(strongest)
    return kind is not None and all(
        strongest not in other["ids"] and kind in map(single, other["ids"]) for other in others
    )


def _rejected(prober: Prober, problems: list[str]) -> FindingDoc:
    unlisted = len(problems) - MAX_REJECTIONS
    listed = "; ".join(problems[:MAX_REJECTIONS])
    return finding(
        "value-rejected",
        f"{prober.owner}: prober {prober.name!r} reported values that cannot be true",
        f"{listed}; and {unlisted} more" if unlisted > 0 else listed,
        "report it to its author; the values were left out",
        prober=prober.name,
    )
