"""The chain of each device, from the bus to the program, with the cause and fix of its break."""

from __future__ import annotations

from typing import NamedTuple

from probe_core.model.findings import NO_FIX
from probe_core.model.readiness import broken_step
from probe_report.figures import CELL, SENTENCE, cut, short
from probe_report.groups import Names, alike, model_of, style_of, word_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc, FindingDoc, ReportDoc, StepDoc

__all__ = ["Chain", "Step", "chains_of"]

_MARKS = {"ok": "✓", "broken": "✕", "unknown": "?", "not_applicable": "–"}
_STYLES = {"ok": "good", "broken": "bad", "unknown": "none", "not_applicable": "none"}

_MOST = 24
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
    shown = tuple(_chain(group, report["findings"], names) for group in groups[:_MOST])
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
