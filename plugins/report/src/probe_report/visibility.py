"""What each runtime would show a program that is started now, and under which numbers."""

from __future__ import annotations

from typing import NamedTuple

from probe_core.model.readiness import RUNTIMES
from probe_core.wording import counted
from probe_report.figures import SENTENCE, cut, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import ReportDoc, VisibilityDoc
    from probe_report.groups import Names

__all__ = ["View", "views_of"]

_REASONS = 3


class View(NamedTuple):
    """One runtime: a mark, how many of its devices it shows, their order, and why not all."""

    runtime: str
    mark: str
    style: str
    shown: str
    order: str
    reasons: tuple[str, ...]


def views_of(report: ReportDoc, names: Names) -> tuple[View, ...]:
    """Return the runtimes that any device of the report concerns; those that agree are one row."""
    views: dict[View, list[str]] = {}
    for runtime in RUNTIMES:
        entries = [
            (device["id"], entry)
            for device in report["devices"]
            if (entry := (device.get("visibility") or {}).get(runtime)) is not None
        ]
        if entries:
            views.setdefault(_view(entries, names), []).append(runtime)
    return tuple(view._replace(runtime=", ".join(own)) for view, own in views.items())


def _view(entries: Sequence[tuple[str, VisibilityDoc]], names: Names) -> View:
    shown = [(identity, entry) for identity, entry in entries if entry["visible"]]
    unsure = sum(entry["visible"] is None for _, entry in entries)
    mark, style = ("✓", "good") if len(shown) == len(entries) else ("!", "warn")
    if not shown:
        mark, style = ("?", "none") if unsure else ("–", "none")
    text = f"{len(shown)} of {counted(len(entries), 'device')} visible"
    if unsure:
        text += f", {unsure} known to the driver alone"
    return View(
        "", mark, style, text, _order(shown, names), _reasons([entry for _, entry in entries])
    )


def _order(shown: Sequence[tuple[str, VisibilityDoc]], names: Names) -> str:
    """Return ``0 is GPU 1, 1 is GPU 0``; ``numbers 0–7`` where they are the page's own."""
    ranked = sorted(
        (entry["index"], names.of(identity))
        for identity, entry in shown
        if entry["index"] is not None
    )
    if ranked and [name for _, name in ranked] == [f"GPU {index}" for index, _ in ranked]:
        first, last = ranked[0][0], ranked[-1][0]
        whole = last - first + 1 == len(ranked)
        if whole:
            return f"number {first}" if first == last else f"numbers {first}–{last}"
    return short([f"{index} is {name}," for index, name in ranked], 8).rstrip(",")


def _reasons(entries: Sequence[VisibilityDoc]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for entry in entries:
        if not entry["visible"] and entry["reason"]:
            counts[entry["reason"]] = counts.get(entry["reason"], 0) + 1
    return tuple(
        cut(f"{reason} ({count} devices)" if count > 1 else reason, SENTENCE)
        for reason, count in list(counts.items())[:_REASONS]
    )
