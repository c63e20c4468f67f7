"""How each prober's run ended, and how long it took."""

from __future__ import annotations

from typing import NamedTuple

from probe_report.figures import SENTENCE, cut, percent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import OutcomeDoc, ReportDoc

__all__ = ["Run", "runs_of"]

_MOST = 48
"""Probers; an installation of all plugins has a dozen."""

_NORMAL = ("ok", "not_applicable", "skipped")


class Run(NamedTuple):
    """One prober: `spent` is its time, `share` that of the slowest one in percent."""

    name: str
    package: str
    status: str
    style: str
    spent: str
    share: float | None
    devices: str
    reason: str
    output: tuple[str, ...]


def runs_of(report: ReportDoc) -> tuple[tuple[Run, ...], tuple[Run, ...], int]:
    """Return the probers that ran, those that were not needed, and how many are not shown."""
    outcomes = report["outcomes"][:_MOST]
    slowest = max((outcome["elapsed_ms"] for outcome in outcomes), default=0.0)
    ran = [outcome for outcome in outcomes if outcome["status"] != "skipped"]
    skipped = [outcome for outcome in outcomes if outcome["status"] == "skipped"]
    return (
        _runs(ran, slowest),
        _runs(skipped, slowest),
        max(0, len(report["outcomes"]) - _MOST),
    )


def _runs(outcomes: Sequence[OutcomeDoc], slowest: float) -> tuple[Run, ...]:
    return tuple(_run(outcome, slowest) for outcome in outcomes)


def _run(outcome: OutcomeDoc, slowest: float) -> Run:
    status = cut(outcome["status"], 24).replace("_", " ")
    if outcome["partial"]:
        status += " (partial)"
    good = outcome["status"] == "ok"
    return Run(
        name=cut(outcome["prober"], 64),
        package=cut(outcome["distribution"], 64),
        status=status,
        style="good" if good else "none" if outcome["status"] in _NORMAL else "bad",
        spent=f"{outcome['elapsed_ms']:.1f} ms",
        share=percent(outcome["elapsed_ms"], slowest),
        devices=str(outcome["devices"]),
        reason=cut(outcome["reason"], SENTENCE),
        output=tuple(cut(line, SENTENCE) for line in outcome.get("stderr", ())[:8]),
    )
