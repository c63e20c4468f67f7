"""What `probe plugins run` prints: each value, what became of it, and where it went."""

from __future__ import annotations

from probe_core.commands.text import wrapped
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from probe_core.model.document import DeviceDoc, ReportDoc
    from probe_core.registry.prober import Prober
    from probe_core.registry.select import Decision
    from probe_core.testing.rehearsal import Item, Rehearsal

__all__ = ["document", "end", "head", "item"]

_SHOWN_ALREADY = ("value-rejected", "prober-failed", "prober-unavailable")
"""Codes of findings that repeat what the run showed."""

_NAME_WIDTH = 16


def head(prober: Prober, decision: Decision, isolated: bool) -> Iterator[str]:
    """Yield what runs, each mistake of its manifest, and why a report would not run it."""
    place = "in a child, as in a report" if isolated else "in this process, without a deadline"
    yield f"prober {prober.name!r} ({prober.target}), {place}"
    if prober.manifest is None:
        yield "note: no manifest lies beside it; the defaults hold"
    for mistake in prober.problems:
        yield f"manifest refused: {clean_text(mistake.reason, 400)}"
    if decision.reason:
        yield f"note: a report would not run it here: {decision.reason}"
    yield ""


def item(value: Item, number: int, width: int) -> Iterator[str]:
    """Yield the lines of one yielded value."""
    yield f"{value.noun} {number}: {_verdict(value)}"
    if value.sighting is not None:
        for name, field in _fields(value):
            yield from _row(name, field, width)
    elif value.finding is not None:
        for name in ("code", "what", "why", "fix"):
            yield from _row(name, value.finding[name], width)  # type: ignore[literal-required]
    for problem in value.rejected:
        yield from _row("refused", problem, width)


def _verdict(value: Item) -> str:
    if value.refused:
        return "refused"
    count = len(value.rejected)
    return f"accepted, {_count(count, 'value')} refused" if count else "accepted"


def _fields(value: Item) -> Iterator[tuple[str, str]]:
    """Yield what was kept of a device; the reason of a refused value is its refusal."""
    sighting = dict(value.sighting or {})
    unknown: Mapping[str, str] = sighting.pop("unknown", {})  # type: ignore[assignment]
    yield from _flat(sighting)
    for path, reason in unknown.items():
        if f"{path}: {reason}" not in value.rejected:
            yield path, f"unknown: {reason}"


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield (``memory.total``, its value as text) for each value that was kept."""
    for name, value in table.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{path}.")
        elif isinstance(value, list) and all(isinstance(part, str) for part in value):
            yield path, ", ".join(value)
        else:
            yield path, _shown(path, value)


def _shown(path: str, value: object) -> str:
    if path.startswith("memory.") and type(value) is int:
        from probe_core.sizes import format_size

        return f"{value} ({format_size(value, decimals=1)})"
    if isinstance(value, (dict, list)):
        from probe_core.jsontext import write

        return write(value)
    return str(value)


def _row(name: str, value: str, width: int) -> Iterator[str]:
    label = f"  {name:<{_NAME_WIDTH}}"
    lines = wrapped(value, max(20, width - _NAME_WIDTH - 3)) or [""]
    yield f"{label} {lines[0]}".rstrip()
    yield from (" " * (_NAME_WIDTH + 3) + line for line in lines[1:])


def end(rehearsal: Rehearsal, report: ReportDoc, width: int) -> Iterator[str]:
    """Yield what merging makes of it, what the report says of the prober, and the summary."""
    name = rehearsal.prober.name
    devices = _merged(report, name)
    for line in rehearsal.run.stderr_tail():
        yield f"  | {line}"
    if rehearsal.items:
        yield ""
    if devices:
        yield "merged with what the built-in probers report:"
    for device in devices:
        yield from _device(device, report, name, width)
    for finding in report["findings"]:
        if finding["prober"] == name and finding["code"] not in _SHOWN_ALREADY:
            sentence = f"{finding['severity']}: {finding['what']}: {finding['why']}"
            yield from wrapped(sentence, width)
    for sentence in _summary(rehearsal):
        yield from wrapped(sentence, width)


def _merged(report: ReportDoc, name: str) -> list[DeviceDoc]:
    return [device for device in report["devices"] if name in device["seen_by"]]


def _device(device: DeviceDoc, report: ReportDoc, name: str, width: int) -> Iterator[str]:
    primary = ", the primary device" if device["id"] == report["primary"] else ""
    yield f"  {device['id']}  {device['name'] or '(no name)'}{primary}"
    for prober in device["seen_by"]:
        fields = [path for path, source in device["sources"].items() if source == prober]
        yield from _row(f"  from {prober}", ", ".join(fields) or "nothing", width)
    for path, values in device["others"].items():
        if any(other["prober"] == name for other in values):
            winner = device["sources"].get(path, "a prober of higher priority")
            yield from _row("  not used", f"{path}: that of {winner} counts", width)
    chip = device["chip"]["id"] if device["chip"] else None
    reason = device["unknown"].get("chip", "it has none")
    yield from _row("  chip", chip or f"unknown: {reason}", width)


def _summary(rehearsal: Rehearsal) -> Iterator[str]:
    run, deadline_s, spent = rehearsal.run, rehearsal.prober.deadline_s, rehearsal.seconds
    yield f"{run.status}: {run.reason}" if run.reason else str(run.status)
    devices = sum(not value.is_finding for value in rehearsal.items)
    counts = f"{_count(devices, 'device')}, {_count(_refused(rehearsal.items), 'value')} refused"
    late = "; a report would have ended it" if run.status == "ok" and spent > deadline_s else ""
    yield f"{counts}, {spent * 1000:.1f} ms (deadline {deadline_s:g} s){late}"


def _refused(items: Iterable[Item]) -> int:
    return sum(max(len(value.rejected), value.refused) for value in items)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def document(rehearsal: Rehearsal, decision: Decision, report: ReportDoc) -> dict[str, object]:
    """Return all of it as plain data."""
    run, prober = rehearsal.run, rehearsal.prober
    return {
        "prober": prober.name,
        "target": prober.target,
        "manifest": prober.manifest,
        "manifest_problems": [mistake.reason for mistake in prober.problems],
        "would_run": decision.cause is None,
        "would_run_reason": decision.reason,
        "status": run.status,
        "reason": run.reason,
        "code": run.details.get("code"),
        "fix": run.details.get("fix"),
        "stderr": run.stderr_tail(),
        "elapsed_ms": round(rehearsal.seconds * 1000, 3),
        "deadline_s": prober.deadline_s,
        "items": [
            {
                "accepted": not value.refused,
                "device": value.sighting,
                "finding": value.finding,
                "refused": value.rejected,
            }
            for value in rehearsal.items
        ],
        "merged": _merged(report, prober.name),
        "primary": report["primary"],
    }
