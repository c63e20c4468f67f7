"""From runs to what the report says: sightings to merge, outcomes, and findings about probers."""

from __future__ import annotations

from probe_core.isolation.run import FAILURES
from probe_core.model.findings import finding
from probe_core.pipeline.merge import Said
from probe_core.pipeline.validate import check_finding, check_sighting
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from probe_core.isolation.run import Run
    from probe_core.model.document import FindingDoc
    from probe_core.registry.prober import Prober
    from probe_core.registry.select import Decision

__all__ = ["Collected", "failed"]

MAX_REJECTIONS_TOLD = 4


def failed(outcome: dict[str, Any]) -> bool:
    """Return whether an outcome may hide an accelerator: a failure, or hardware not to be asked."""
    return outcome["status"] in FAILURES or outcome["status"] == "unavailable"


class Collected:
    """Everything the probers said, checked, in the order in which it came in."""

    __slots__ = ("findings", "outcomes", "said")

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.outcomes: list[dict[str, Any]] = []
        self.findings: list[FindingDoc] = []

    def take(
        self,
        prober: Prober,
        sightings: Iterable[object],
        findings: Iterable[object] = (),
        *,
        status: str = "ok",
        reason: str | None = None,
        elapsed_ms: float = 0.0,
        stderr: Iterable[str] = (),
    ) -> None:
        """Check one prober's sightings and findings, and note its outcome."""
        good, problems = _checked(sightings)
        self.said += [Said(prober.name, prober.priority, one) for one in good]
        checked = (check_finding(raw, prober.name) for raw in findings)
        self.findings += filter(None, checked)
        if status == "ok" and problems and not good:
            status, reason = "invalid", "; ".join(problems[:MAX_REJECTIONS_TOLD])
        elif problems:
            self.findings.append(_rejected(prober, problems))
        partial = bool(good) and status in FAILURES | {"unavailable"}
        self._outcome(prober, status, reason, partial, len(good), elapsed_ms, stderr)

    def take_run(self, run: Run) -> None:
        """Take the run of a child."""
        status = run.status or "protocol"
        self.take(
            run.prober,
            run.sightings,
            run.findings,
            status=status,
            reason=run.reason,
            elapsed_ms=(run.ended - run.started) * 1000,
            stderr=run.stderr_tail() if status in FAILURES else (),
        )
        last = self.outcomes[-1]
        last.update(run.details)
        if run.abandoned:
            self.findings.append(_unkillable(run.prober))
        elif last["status"] in FAILURES:
            self.findings.append(_failure(run.prober, last))
        elif last["status"] == "unavailable":
            self.findings.append(_unavailable(run.prober, last))

    def skip(self, decision: Decision) -> None:
        """Note a prober that was not run."""
        self._outcome(decision.prober, "skipped", decision.reason, False, 0, 0.0, ())
        self.outcomes[-1]["code"] = decision.cause

    def _outcome(
        self,
        prober: Prober,
        status: str,
        reason: str | None,
        partial: bool,
        devices: int,
        elapsed_ms: float,
        stderr: Iterable[str],
    ) -> None:
        outcome: dict[str, Any] = {
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


def _checked(sightings: Iterable[object]) -> tuple[list[dict[str, Any]], list[str]]:
    """Check sightings; of two devices with the same ids only the first is kept."""
    good: list[dict[str, Any]] = []
    problems: list[str] = []
    seen: set[str] = set()
    for raw in sightings:
        sighting, why = check_sighting(raw)
        problems += why
        if sighting is None:
            continue
        twice = seen.intersection(sighting["ids"])
        if twice:
            problems.append(f"two devices have the id {joined(sorted(twice))}; the first was kept")
            continue
        seen.update(sighting["ids"])
        good.append(sighting)
    return good, problems


def _rejected(prober: Prober, problems: list[str]) -> FindingDoc:
    more = len(problems) - MAX_REJECTIONS_TOLD
    why = "; ".join(problems[:MAX_REJECTIONS_TOLD]) + (f"; and {more} more" if more > 0 else "")
    what = f"{prober.owner}: prober {prober.name!r} reported values that cannot be true"
    fix = "tell its author; the values were left out"
    return finding("value-rejected", what, why, fix, prober=prober.name)


def _failure(prober: Prober, outcome: dict[str, Any]) -> FindingDoc:
    fix = f"`probe plugins why-not {prober.name}` tells more; PROBE_DISABLE={prober.name} skips it"
    if outcome["status"] == "timeout":
        fix = f"raise its deadline (PROBE_TIMEOUT=30), or skip it (PROBE_DISABLE={prober.name})"
    what = f"{prober.owner}: prober {prober.name!r} failed ({outcome['status']})"
    return finding(
        "prober-failed", what, outcome["reason"], fix, severity="error", prober=prober.name
    )


def _unavailable(prober: Prober, outcome: dict[str, Any]) -> FindingDoc:
    what = f"{prober.owner}: prober {prober.name!r} could not ask its hardware"
    fix = outcome.get("fix") or f"`probe plugins why-not {prober.name}` tells more"
    return finding("prober-unavailable", what, outcome["reason"], fix, prober=prober.name)


def _unkillable(prober: Prober) -> FindingDoc:
    return finding(
        "prober-unkillable",
        f"{prober.owner}: the process of prober {prober.name!r} cannot be killed",
        "it is stuck in the kernel, usually in a hung driver; it was abandoned",
        "look into the kernel's log, reset the device or reboot the node",
        severity="error",
        prober=prober.name,
    )
