"""Findings as lines for people: one line each in a report, with cause and fix elsewhere."""

from __future__ import annotations

from probe_core.commands import text
from probe_core.model.findings import NO_FIX
from probe_core.model.ids import short_ids
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import FindingDoc, OutcomeDoc, ReportDoc


_STYLES = {"error": "red", "warning": "yellow", "info": "dim"}
_RANK = ("error", "warning", "info")

_HINT = "`probe doctor` tells cause and fix"

_WITH_CAUSE = (
    "chip-file-unusable",
    "config-ignored",
    "prober-failed",
    "prober-unavailable",
    "restriction-unusable",
    "static-unusable",
)
"""Codes whose sentence is the same for every cause: "a setting was ignored"."""

# The table has a note of its own for these.
_NOTED = ("display-only",)


def summary_lines(report: ReportDoc, context: Context) -> list[str]:
    """Return a line for each finding, most severe first, and where cause and fix are told.

    The code stands behind it where both fit the line. Findings that differ in their device alone
    are one line; ids are written as the table writes them.
    """
    groups: dict[tuple[str, str, str], list[str]] = {}
    ids = short_ids(device["id"] for device in report["devices"])
    for finding in report["findings"]:
        if finding["code"] not in _NOTED:
            device = finding["device"] or ""
            sentence = _shortened(_subject(finding).replace(device or _PLACE, _PLACE), ids)
            key = (finding["severity"], finding["code"], sentence)
            groups.setdefault(key, []).append(ids.get(device, device))
    lines = [""] if groups else []
    for severity, code, sentence in sorted(groups, key=lambda key: _RANK.index(key[0])):
        subjects = groups[severity, code, sentence]
        shown = _of(sentence, subjects)
        lines += _summary(severity, context.encodable(shown), code, context)
    if groups and context.terminal:
        lines.append(" " * _INDENT + text.paint(_HINT, "dim", context.colour))
    return lines


_INDENT = len("warning") + 2
_PLACE = "\0"
"""Stands for the device's id in a sentence; clean text has no such character."""

_SHOWN_IDS = 4
"""Ids of one line: about half of an 80-column terminal."""


def _subject(finding: FindingDoc) -> str:
    """Return what is the matter, with the cause where that is all the news."""
    if finding["code"] in _WITH_CAUSE:
        return f"{finding['what']}: {finding['why']}"
    return finding["what"]


def _shortened(sentence: str, ids: Mapping[str, str]) -> str:
    for whole, short in ids.items():
        if short != whole and ":" in sentence:
            sentence = sentence.replace(whole, short).replace(whole.removeprefix("pci:"), short)
    return sentence


def _of(sentence: str, subjects: Sequence[str]) -> str:
    """Return the sentence about all its devices; how often it occurs where it names none."""
    if _PLACE not in sentence:
        return f"{sentence} ({len(subjects)} times)" if len(subjects) > 1 else sentence
    more = len(subjects) - _SHOWN_IDS
    shown = [*subjects[:_SHOWN_IDS], *([f"{more} more"] if more > 0 else [])]
    return sentence.replace(_PLACE, joined(shown, "and"))


def _summary(severity: str, sentence: str, code: str, context: Context) -> list[str]:
    coded = f"{sentence} [{code}]"
    indent = " " * _INDENT
    fits = text.width_of(coded) + _INDENT <= context.width
    lines = text.folded(coded if fits else sentence, context.width, indent) or [indent]
    word = text.paint(severity, _STYLES[severity], context.colour)
    lines[0] = word + lines[0][len(severity) :]
    return lines


def finding_lines(findings: Iterable[FindingDoc], context: Context) -> list[str]:
    """Return the findings; those with one cause and fix (eight GPUs, one driver) together."""
    groups: dict[tuple[str, ...], list[FindingDoc]] = {}
    for finding in findings:
        key = (finding["severity"], finding["code"], finding["why"], finding["fix"])
        groups.setdefault(key, []).append(finding)
    return [line for group in groups.values() for line in _group_lines(group, context)]


def _group_lines(group: Sequence[FindingDoc], context: Context) -> list[str]:
    first = group[0]
    lines = [""]
    sentences = [finding["what"] for finding in group]
    for sentence in dict.fromkeys(sentences):
        lines += _headline(first["severity"], sentence, sentences.count(sentence), context)
    lines += text.folded(f"why: {first['why']}", context.width, "  ")
    if first["fix"] != NO_FIX:
        lines += text.folded(f"fix: {first['fix']}", context.width, "  ")
    return lines


def _headline(severity: str, sentence: str, count: int, context: Context) -> list[str]:
    times = f" ({count} times)" if count > 1 else ""
    lines = text.folded(f"{severity}: {sentence}{times}", context.width)
    # Coloured after wrapping, which would count the escape sequence as columns.
    lines[0] = text.paint(severity, _STYLES[severity], context.colour) + lines[0][len(severity) :]
    return lines


# What probers that succeeded printed, where the setting `verbose` keeps it.


def printed_lines(outcomes: Iterable[OutcomeDoc]) -> Iterator[str]:
    """Yield the output of each run that succeeded, under the prober's name.

    That of a run that failed has its place beside the failure, and is not repeated.
    """
    from probe_core.model.kinds import FAILURES

    for outcome in outcomes:
        output = outcome.get("stderr")
        if output and outcome["status"] not in FAILURES and not outcome.get("phase"):
            yield f"{outcome['prober']} printed:"
            yield from (f"  | {line}" for line in output)


# Lines about the devices that a request leaves out because this process cannot use them.


def exclusions(excluded: Mapping[str, str]) -> list[str]:
    """Return one line for each reason, with the ids of the devices that it excludes."""
    groups: dict[str, list[str]] = {}
    for name, reason in excluded.items():
        groups.setdefault(reason, []).append(name)
    return [f"leaves out {', '.join(names)}: {reason}" for reason, names in groups.items()]
