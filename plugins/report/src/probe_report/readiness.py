"""Whether a program can use each device, and under which number.

The chain of a device leads from the bus to the program, with the cause and fix of its break.
"""

from __future__ import annotations

from typing import NamedTuple

from probe_core.model.findings import NO_FIX
from probe_core.model.runtimes import RUNTIMES
from probe_core.model.verdict import broken_step
from probe_core.wording import counted
from probe_report.figures import (
    CELL,
    SENTENCE,
    Names,
    alike,
    cut,
    model_of,
    short,
    style_of,
    word_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc, FindingDoc, ReportDoc, StepDoc, VisibilityDoc


_MARKS = {"ok": "✓", "broken": "✕", "unknown": "?", "not_applicable": "–"}
_STYLES = {"ok": "good", "broken": "bad", "unknown": "none", "not_applicable": "none"}

_MOST_CHAINS = 24
"""Chains; a chain with all its evidence takes 4 kB of the page."""


class Step(NamedTuple):
    """One step: a mark, its name, its status in words, and what it rests on."""

    name: str
    mark: str
    style: str
    status: str
    evidence: str


class Chain(NamedTuple):
    """Devices whose chains are alike; `evidence` of their steps is the first device's."""

    title: str
    ids: str
    status: str
    style: str
    steps: tuple[Step, ...]
    cause: str
    reason: str
    fix: str


def chains_of(report: ReportDoc, names: Names) -> tuple[tuple[Chain, ...], int]:
    """Return the chains of devices that have one, and how many groups of devices are not shown."""
    devices = [device for device in report["devices"] if _steps(device)]
    groups = alike(devices, lambda device: (model_of(device), word_of(device), _outline(device)))
    shown = tuple(_chain(group, report["findings"], names) for group in groups[:_MOST_CHAINS])
    return shown, len(groups) - len(shown)


def _steps(device: DeviceDoc) -> Sequence[StepDoc]:
    readiness = device.get("readiness")
    return readiness["steps"] if readiness else ()


def _outline(device: DeviceDoc) -> tuple[tuple[str, str, str | None], ...]:
    return tuple((step["step"], step["status"], step["code"]) for step in _steps(device))


def _chain(group: Sequence[DeviceDoc], findings: Sequence[FindingDoc], names: Names) -> Chain:
    device, broken = group[0], broken_step(group[0])
    finding = _finding(device, broken, findings)
    cause = f"{broken['step']} is broken" if broken is not None else ""
    if broken is not None and broken["code"]:
        cause += f" ({broken['code']})"
    reason = (finding["why"] if finding else None) or (broken["evidence"] if broken else None)
    fix = finding["fix"] if finding and finding["fix"] != NO_FIX else None
    count = f"{len(group)} × " if len(group) > 1 else ""
    return Chain(
        title=f"{count}{model_of(device)}",
        ids=short([names.address(member["id"]) for member in group], 16),
        status=word_of(device),
        style=style_of(word_of(device)),
        steps=tuple(map(_step, _steps(device))),
        cause=cut(cause),
        reason=cut(reason if broken else None, SENTENCE),
        fix=cut(fix, SENTENCE),
    )


def _finding(
    device: DeviceDoc, broken: StepDoc | None, findings: Sequence[FindingDoc]
) -> FindingDoc | None:
    """Return the finding about the step of a device that is broken."""
    if broken is None:
        return None
    own = [finding for finding in findings if finding["device"] == device["id"]]
    by_code = [finding for finding in own if finding["code"] == broken["code"]]
    by_step = [finding for finding in own if finding["step"] == broken["step"]]
    return next(iter([*by_code, *by_step]), None)


def _step(step: StepDoc) -> Step:
    return Step(
        name=cut(step["step"], 24),
        mark=_MARKS.get(step["status"], "?"),
        style=_STYLES.get(step["status"], "none"),
        status=cut(step["status"].replace("_", " "), 24),
        evidence=cut(step["evidence"], 2 * CELL),
    )


# What each runtime would show a program that is started now, and under which numbers.

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
