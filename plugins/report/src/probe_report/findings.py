"""Findings by severity; those with one cause and one fix are one entry."""

from __future__ import annotations

from typing import NamedTuple

from probe_core.model.findings import NO_FIX
from probe_report.figures import SENTENCE, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.model.document import FindingDoc

__all__ = ["Entry", "Findings", "findings_of"]

_MARKS = {"error": "✕", "warning": "!", "info": "i"}
_RANK = tuple(_MARKS)

_OPEN = 12
"""Entries that stand open: a screen and a half."""

_FOLDED = 48
"""Entries behind a fold; 60 of them at their longest are 90 kB of the page."""

_SUBJECTS = 4
"""Sentences of an entry: eight GPUs with one cause need not be read eight times."""


class Entry(NamedTuple):
    """One cause: `sentences` about the devices, up to a bound; `beyond` counts the rest."""

    severity: str
    mark: str
    sentences: tuple[str, ...]
    beyond: int
    cause: str
    fix: str
    code: str
    evidence: str


class Findings(NamedTuple):
    """The entries that stand open, those behind a fold, and how many are not shown."""

    open: tuple[Entry, ...]
    folded: tuple[Entry, ...]
    hidden: int


def findings_of(findings: Iterable[FindingDoc]) -> Findings:
    """Return the findings, worst first, in bounds."""
    groups: dict[tuple[str, ...], list[FindingDoc]] = {}
    for finding in sorted(findings, key=lambda finding: _RANK.index(finding["severity"])):
        key = (finding["severity"], finding["code"], finding["why"], finding["fix"])
        groups.setdefault(key, []).append(finding)
    shown = [_entry(group) for group in list(groups.values())[: _OPEN + _FOLDED]]
    return Findings(
        tuple(shown[:_OPEN]), tuple(shown[_OPEN:]), max(0, len(groups) - _OPEN - _FOLDED)
    )


def _entry(group: list[FindingDoc]) -> Entry:
    first = group[0]
    sentences = list(dict.fromkeys(finding["what"] for finding in group))
    evidence = first["evidence"]
    return Entry(
        severity=first["severity"],
        mark=_MARKS[first["severity"]],
        sentences=tuple(cut(sentence, SENTENCE) for sentence in sentences[:_SUBJECTS]),
        beyond=max(0, len(sentences) - _SUBJECTS),
        cause=cut(first["why"], SENTENCE),
        fix="" if first["fix"] == NO_FIX else cut(first["fix"], SENTENCE),
        code=cut(first["code"]),
        evidence="" if evidence == first["why"] else cut(evidence, SENTENCE),
    )
