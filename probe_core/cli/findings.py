"""Findings as lines for people, alike ones together."""

from __future__ import annotations

from probe_core.commands import text
from probe_core.model.findings import NO_FIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.commands import Context
    from probe_core.model.document import FindingDoc

__all__ = ["finding_lines"]

_STYLES = {"error": "red", "warning": "yellow", "info": "dim"}


def finding_lines(findings: Iterable[FindingDoc], context: Context) -> list[str]:
    """Return the findings; those with one cause and fix (eight GPUs, one driver) together."""
    groups: dict[tuple[str, ...], list[FindingDoc]] = {}
    for finding in findings:
        key = (finding["severity"], finding["code"], finding["why"], finding["fix"])
        groups.setdefault(key, []).append(finding)
    return [line for group in groups.values() for line in _group_lines(group, context)]


def _group_lines(group: list[FindingDoc], context: Context) -> list[str]:
    first = group[0]
    lines = [""]
    sentences = [finding["what"] for finding in group]
    for sentence in dict.fromkeys(sentences):
        lines += _headline(first["severity"], sentence, sentences.count(sentence), context)
    lines += text.wrapped(f"why: {first['why']}", context.width, indent="  ")
    if first["fix"] != NO_FIX:
        lines += text.wrapped(f"fix: {first['fix']}", context.width, indent="  ")
    return lines


def _headline(severity: str, sentence: str, count: int, context: Context) -> list[str]:
    times = f" ({count} times)" if count > 1 else ""
    lines = text.wrapped(f"{severity}: {sentence}{times}", context.width)
    # Coloured after wrapping, which would count the escape sequence as columns.
    lines[0] = text.paint(severity, _STYLES[severity], context.colour) + lines[0][len(severity) :]
    return lines
