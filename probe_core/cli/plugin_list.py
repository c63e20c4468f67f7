"""`probe plugins list`: what failed first, then what ran, then what was not needed and why."""

from __future__ import annotations

from probe_core.commands import text
from probe_core.commands.tables import grid, grid_rows
from probe_core.model.statuses import FAILURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import DecisionDoc, OutcomeDoc, ReportDoc

__all__ = ["BUILT_IN", "grouped_lines", "long_lines"]

BUILT_IN = ("bus", "cpu", "fallback")

_FAILED, _RAN, _UNNEEDED, _OFF = "Failed here", "Run here", "Not needed here", "Not run"
_STYLES = {_FAILED: "red", _RAN: "green"}


def grouped_lines(
    report: ReportDoc, decisions: Sequence[DecisionDoc], context: Context
) -> Iterator[str]:
    """Yield the plugins in groups, each with its version and the shortest reason."""
    groups: dict[str, list[tuple[str, str, str]]] = {
        name: [] for name in (_FAILED, _RAN, _UNNEEDED, _OFF)
    }
    outcomes = {(o["prober"], o["distribution"]): o for o in report["outcomes"]}
    summaries = _summaries()
    for decision in decisions:
        outcome = outcomes.get((decision["prober"], decision["distribution"]))
        group, note = _judged(decision, outcome)
        summary = summaries.get((decision["prober"], decision["distribution"]), "")
        name = f"{decision['prober']} {_version(decision)}".strip()
        groups[group].append((name, summary if group == _RAN else "", note))
    if len(decisions) == len(report["decisions"]):
        groups[_RAN].append((", ".join(BUILT_IN), "built in", "ok"))
    is_first = True
    for title, rows in groups.items():
        if rows:
            yield from () if is_first else ("",)
            yield text.paint(f"{title}:", "bold", context.colour)
            yield from _rows(rows, title, context)
            is_first = False
    if context.terminal:
        yield ""
        hint = ["`probe plugins why-not NAME` tells more", "`--long`: priority, deadline, package"]
        for line in text.listed(map(context.encodable, hint), context.width):
            yield text.paint(line, "dim", context.colour)


def _rows(rows: Sequence[tuple[str, str, str]], title: str, context: Context) -> Iterator[str]:
    """Yield the rows of a group; the note at the end of a line is coloured."""
    heads = ("", "SUMMARY", "NOTE")  # for the columns alone: they are not printed
    shown = [heads, *([context.encodable(cell) for cell in row] for row in rows)]
    wrap = "SUMMARY" if title == _RAN else "NOTE"
    lines = grid_rows(shown, context.width, wrap=wrap, indent="  ")
    style = "dim" if title == _UNNEEDED else None
    for (_, _, note), own in zip(shown[1:], lines[1:], strict=True):
        for line in own:
            if note and line.endswith(note) and title in _STYLES:
                line = line[: -len(note)] + text.paint(note, _STYLES[title], context.colour)
            yield text.paint(line, style, context.colour)


def _judged(decision: DecisionDoc, outcome: OutcomeDoc | None) -> tuple[str, str]:
    """Return the group of a plugin, and what to say of it there."""
    if not decision["selected"]:
        group = _UNNEEDED if decision["cause"] == "when" else _OFF
        return group, decision["reason"] or ""
    if outcome is None:
        return _RAN, ""
    if outcome["status"] in FAILURES or outcome["status"] == "unavailable":
        status = outcome["status"].replace("_", " ")
        return _FAILED, f"{status}: {outcome['reason']}" if outcome["reason"] else status
    if outcome["status"] == "not_applicable":
        return _UNNEEDED, outcome["reason"] or ""
    return _RAN, f"ok, {outcome['elapsed_ms']:.0f} ms"


def _version(decision: DecisionDoc) -> str:
    """Return the version in ``probe-acme 1.0``; empty for a prober of the host's."""
    return decision["distribution"].partition(" ")[2]


def _summaries() -> Mapping[tuple[str, str], str]:
    """Return what the manifests say of the installed plugins, by name and distribution."""
    from probe_core.registry.discover import discover

    probers, _ = discover({})
    return {(prober.name, prober.owner): prober.summary for prober in probers}


def long_lines(report: ReportDoc, decisions: Sequence[DecisionDoc], context: Context) -> list[str]:
    """Return the plugins as one table with what their authors ask about."""
    rows: list[tuple[str, ...]] = [("PLUGIN", "PACKAGE", "PRIORITY", "DEADLINE", "RUNS", "WHY NOT")]
    rows += [tuple(map(context.encodable, _long_row(decision))) for decision in decisions]
    if len(decisions) == len(report["decisions"]):
        rows += [(name, "probe-core", "", "", "built in", "") for name in BUILT_IN]
    return grid(rows, context.width, right=("PRIORITY", "DEADLINE"), wrap="WHY NOT")


def _long_row(decision: DecisionDoc) -> tuple[str, ...]:
    return (
        decision["prober"],
        decision["distribution"],
        str(decision["priority"]),
        f"{decision['deadline_s']:g} s",
        "yes" if decision["selected"] else "no",
        decision["reason"] or "",
    )
