"""What a recording keeps of a prober's run, and the run that is made of it again.

A prober that asks a library answers differently on another machine. Its recorded answer stands for
a run there, and passes the same checks as a live one.
"""

from __future__ import annotations

from copy import deepcopy

from probe_core.isolation.launch import Unresponsive
from probe_core.isolation.run import Run
from probe_core.model.ids import FAILURES
from probe_core.pipeline.failures import check_finding
from probe_core.pipeline.validate import checked
from probe_core.registry.prober import Prober
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.model.document import Frame, RecordedAnswer
    from probe_core.registry.prober import Decision

__all__ = ["answer_of", "answers_of", "name_vendors", "recorded_probers", "replay"]

_TEXT_LIMIT = 1024
"""Characters of a recorded sentence, as of a live reason."""


def answers_of(runs: Iterable[Run]) -> dict[str, RecordedAnswer]:
    """Return what a recording must keep: answers that files alone would not give again.

    Those are of probers that say so in their manifest, and of runs that failed: a file hangs
    nobody.
    """
    return {run.prober.name: answer_of(run) for run in runs if _is_worth_keeping(run)}


def _is_worth_keeping(run: Run) -> bool:
    records = run.prober.records
    declared = isinstance(records, dict) and records.get("answers") is True
    failed = run.status in FAILURES or bool(run.unresponsive)
    return declared or failed or run.prober.answer is not None


def answer_of(run: Run) -> RecordedAnswer:
    """Return what stands for a run on a recorded machine."""
    prober = run.prober
    return {
        "distribution": prober.distribution,
        "version": prober.version,
        "api": prober.api,
        "priority": prober.priority,
        "deadline_s": prober.deadline_s,
        "elapsed_ms": round((run.ended - run.started) * 1000, 3),
        "vendors": _vendors(prober),
        "frames": [*_contents(run), *_failures(run), _end(run)],
    }


def _vendors(prober: Prober) -> list[str]:
    """Return the PCI vendors whose hardware it queries: whom its failure concerns."""
    named = (vendor for when in prober.when for vendor in when.get("pci_vendor", ()))
    return sorted({vendor.lower().removeprefix("0x") for vendor in named})


def _contents(run: Run) -> list[Frame]:
    """Return checked devices and findings, and why something was rejected."""
    sightings, problems = checked(run.sightings)
    findings = filter(None, (check_finding(raw, run.prober.name) for raw in run.findings))
    frames: list[Frame] = [{"kind": "device", "device": sighting} for sighting in sightings]
    frames += [{"kind": "finding", "finding": found} for found in findings]
    frames += [{"kind": "rejected", "reason": text} for text in (*problems, *run.rejected)]
    return frames


def _failures(run: Run) -> Iterable[Frame]:
    for lost in run.unresponsive:
        frame: Frame = {"kind": "unresponsive", "device": lost.device, "ids": sorted(lost.ids)}
        frame["how"], frame["reason"] = lost.how, lost.reason
        if lost.stuck_at:
            frame["stuck_at"] = lost.stuck_at
        yield frame


def _end(run: Run) -> Frame:
    end: Frame = {"kind": "end", "status": str(run.status), "reason": run.reason}
    facts = run.details.copy()
    facts.pop("replayed", None)
    return {**end, "facts": facts, "abandoned": run.stuck}


def recorded_probers(answers: Mapping[str, RecordedAnswer]) -> list[Prober]:
    """Return probers that stand for recorded answers; no code of theirs runs.

    Whoever is installed here under such a name, and whatever its preconditions were, the answer
    was given there. Only the settings can refuse it.
    """
    return [_prober(name, answer) for name, answer in answers.items()]


def _prober(name: str, answer: RecordedAnswer) -> Prober:
    owner, version = clean_text(answer["distribution"]), clean_text(answer["version"])
    prober = Prober(name, "", owner, version, priority=answer["priority"])
    prober.deadline_s = answer["deadline_s"]
    prober.answer = answer
    return prober


def name_vendors(decisions: Iterable[Decision]) -> None:
    """Tell whom each replayed answer concerns, once no precondition is checked any more."""
    for decision in decisions:
        if decision.prober.answer is not None:
            decision.prober.when = [{"pci_vendor": decision.prober.answer["vendors"]}]


def replay(prober: Prober) -> Run:
    """Return the run that a prober's recorded answer stands for."""
    assert prober.answer is not None
    answer = deepcopy(prober.answer)  # merging writes into sightings
    run = Run(prober, "", "", 0.0)
    _fill(run, answer["frames"])
    end = next(frame for frame in answer["frames"] if frame["kind"] == "end")
    run.status, reason = end["status"], end["reason"]
    run.reason = clean_text(reason, _TEXT_LIMIT) if reason else None
    run.was_stuck = end.get("abandoned") is True
    run.ended = answer["elapsed_ms"] / 1000
    facts = {name: _clean(fact) for name, fact in end["facts"].items()}
    run.details = {**facts, "replayed": True}  # type: ignore[typeddict-item]
    return run


def _fill(run: Run, frames: Sequence[Frame]) -> None:
    for frame in frames:
        if frame["kind"] == "device":
            run.sightings.append(frame["device"])
        elif frame["kind"] == "finding":
            run.findings.append(frame["finding"])
        elif frame["kind"] == "rejected":
            run.rejected.append(clean_text(str(frame["reason"]), _TEXT_LIMIT))
        elif frame["kind"] == "unresponsive":
            reason, stuck_at = clean_text(str(frame["reason"]), _TEXT_LIMIT), frame.get("stuck_at")
            place = clean_text(stuck_at, _TEXT_LIMIT) if stuck_at else None
            ids = frozenset((frame["device"], *frame["ids"]))
            run.unresponsive.append(Unresponsive(frame["device"], ids, frame["how"], reason, place))


def _clean(value: object) -> object:
    """Return a fact fit for a terminal: a text, a list of texts or a number."""
    if isinstance(value, str):
        return clean_text(value, _TEXT_LIMIT)
    return [clean_text(text) for text in value] if isinstance(value, list) else value
