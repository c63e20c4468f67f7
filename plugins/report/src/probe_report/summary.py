"""The head of the page: what the node is, whether it can be used, four figures and the findings."""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import size
from probe_core.model.findings import NO_FIX
from probe_core.model.verdict import NodeVerdict, native_runtime, native_sight, usable_here
from probe_core.wording import counted, joined
from probe_report.devices import measured_of
from probe_report.figures import (
    SENTENCE,
    UNKNOWN,
    accelerators,
    alike,
    cut,
    dense,
    has_own_memory,
    model_of,
    spaced,
    summed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.document import DeviceDoc, FindingDoc, ReportDoc


_SHOWN_MODELS = 3


class State(NamedTuple):
    """Whether the node can be used: a mark, a text and a style, so that colour is no news."""

    mark: str
    text: str
    style: str


class Tile(NamedTuple):
    """One figure of the head, with its unit and what it rests on."""

    label: str
    value: str
    unit: str
    note: str


class Head(NamedTuple):
    """The head: `eyebrow` stands above the title, `meta` below it."""

    eyebrow: str
    title: str
    state: State
    meta: str
    tiles: tuple[Tile, ...]


def head_of(report: ReportDoc) -> Head:
    """Return the head of a report's page."""
    node, devices = report["node"], accelerators(report)
    kernel = " ".join(filter(None, [node["os"], node["kernel"]]))
    inside = [node["container"] and f"in {node['container']}", node["vm"] and f"on {node['vm']}"]
    eyebrow = [node["model"], kernel, node["arch"], *inside, node["host"]]
    return Head(
        eyebrow=cut(" · ".join(filter(None, eyebrow)), 240),
        title=_title(report, devices),
        state=state_of_node(report),
        meta=_meta(report),
        tiles=(
            _count([report]),
            _memory(devices) if devices else _processors(report),
            _peak(devices or _cpus(report), "fp16" if devices else "fp32"),
            _host_memory(report),
        ),
    )


def tiles_of(reports: Sequence[ReportDoc]) -> tuple[Tile, Tile, Tile]:
    """Return the accelerators, their memory and their fp16 peak of several nodes together."""
    devices = [device for report in reports for device in accelerators(report)]
    return _count(reports), _memory(devices), _peak(devices, "fp16")


def _cpus(report: ReportDoc) -> list[DeviceDoc]:
    return [device for device in report["devices"] if device["kind"] == "cpu"]


def _title(report: ReportDoc, devices: Sequence[DeviceDoc]) -> str:
    groups = alike(list(devices) or _cpus(report), model_of)
    parts = [
        f"{len(group)} × {model_of(group[0])}" if len(group) > 1 else model_of(group[0])
        for group in groups
    ]
    shown, others = parts[:_SHOWN_MODELS], parts[_SHOWN_MODELS:]
    return (
        joined([*shown, f"{len(others)} more"] if others else shown, "and")
        or "a computer of which nothing is known"
    )


def _meta(report: ReportDoc) -> str:
    time = report["node"]["time"]
    # 2026-11-22T09:30:00.000Z
    when = f"{time[:10]} {time[11:16]} UTC" if time and len(time) > 16 else "a recorded machine"
    spent = report["timings_ms"].get("total")
    parts = [
        f"probe-core {report['probe_core']}",
        report["chipdb"] and f"chipdb {report['chipdb']}",
        when,
        f"probed in {spent:.0f} ms" if spent is not None else None,
    ]
    return cut(" · ".join(filter(None, parts)), 240)


def state_of_node(report: ReportDoc) -> State:
    """Return the badge of the node's verdict."""
    node = NodeVerdict(report)
    if report["fallback"] == "degraded":
        return State("✕", "degraded", "bad")
    if node.state == "none":
        absent = "no accelerator for jobs" if node.set_aside else "no accelerator"
        trouble = State("!", f"{absent}, with warnings", "warn")
        return trouble if node.severity == "warning" else State("✓", absent, "none")
    if node.state == "bad":
        return State("✕", "no accelerator can be used", "bad")
    if node.missing:
        whole = len(node.grantable) + len(node.missing)
        return State("!", f"{len(node.grantable)} of {whole} accelerators can be used", "warn")
    if node.severity == "error":
        return State("✕", "ready, with errors", "bad")
    if node.severity == "warning":
        return State("!", "ready, with warnings", "warn")
    if node.state == "unknown":
        return State("?", "readiness not known", "none")
    here, whole = len(_whole(report, node.usable)), len(accelerators(report))
    part = "" if here == whole else f", {here or 'none'} of {whole} here"
    return State("✓", f"ready{part}", "good")


def _count(reports: Sequence[ReportDoc]) -> Tile:
    devices = [device for report in reports for device in accelerators(report)]
    if not devices:
        return Tile("Accelerators", "0", "", "none is on any bus")
    usable = sum(len(_usable(report)) for report in reports)
    if usable == 0 and any(node.state == "unknown" for node in map(NodeVerdict, reports)):
        return Tile("Accelerators", str(len(devices)), "", "none is known to be usable")
    # An NPU is in no runtime of its vendor's GPUs.
    runtimes = {native_runtime(device) if native_sight(device) else "" for device in devices}
    runtime = runtimes.pop() if len(runtimes) == 1 else ""
    through = f" through {runtime}" if runtime else ""
    return Tile("Accelerators", str(len(devices)), "", f"{usable} usable{through}")


def _usable(report: ReportDoc) -> list[DeviceDoc]:
    """Return the whole accelerators that this process may use, or parts of them."""
    return _whole(report, [d for d in NodeVerdict(report).usable if usable_here(d).usable])


def _whole(report: ReportDoc, units: Sequence[DeviceDoc]) -> list[DeviceDoc]:
    """Return the whole accelerators that are among `units`, or have parts there."""
    ids = {device["id"] for device in units} | {device["parent"] for device in units}
    return [device for device in accelerators(report) if device["id"] in ids]


def _memory(devices: Sequence[DeviceDoc]) -> Tile:
    own = [device for device in devices if has_own_memory(device)]
    if not own and devices:
        # What the CPU has, too, is there once: two such devices share it.
        amounts = [device["memory"]["total"] for device in devices]
        largest = max((amount for amount in amounts if amount is not None), default=None)
        return _amount("Accelerator memory", largest, "shared with the system", 0)
    total, unknown = summed(device["memory"]["total"] for device in own)
    free, unread = summed(device["memory"]["free"] for device in own)
    note = f"{size(free)} free" if free is not None and not unread else "what is free is not known"
    return _amount("Accelerator memory", total, note, unknown)


def _amount(label: str, count: float | None, note: str, unknown: int) -> Tile:
    if count is None:
        return Tile(label, UNKNOWN, "", "not known")
    value, _, unit = size(count).partition(" ")
    note = f"at least: {counted(unknown, 'device')} not known" if unknown else note
    return Tile(label, f"≥ {value}" if unknown else value, unit, note)


def _processors(report: ReportDoc) -> Tile:
    cpus = _cpus(report)
    cores, unknown = summed(device["units"] for device in cpus)
    threads = summed(device.get("threads") for device in cpus)[0]
    note = f"{threads:.0f} threads" if threads else "threads not known"
    if cores is None or unknown:
        return Tile("Cores", UNKNOWN, "", note)
    return Tile("Cores", f"{cores:.0f}", "", f"{counted(len(cpus), 'package')}, {note}")


def _peak(devices: Sequence[DeviceDoc], field: str) -> Tile:
    total, unknown = summed(dense(device, field) for device in devices)
    label = f"{field} peak, dense"
    if total is None:
        return Tile(label, UNKNOWN, "", "not known; the reasons are under Sources")
    measured = sum(bool(measured_of(device)) for device in devices)
    together = "derived" if len(devices) == 1 else f"derived, all {len(devices)} together"
    note = f"derived; {measured} of {len(devices)} measured" if measured else together
    if unknown:
        note = f"at least: {counted(unknown, 'device')} not known"
    return Tile(label, f"≥ {spaced(total)}" if unknown else spaced(total), "TFLOPS", note)


def _host_memory(report: ReportDoc) -> Tile:
    memory = report["node"]["memory"]
    note = f"{size(memory['available'])} available"
    if memory["limit"] is not None:
        note += f", limited to {size(memory['limit'])}"
    return _amount("Host memory", memory["total"], note, 0)


# Findings by severity; those with one cause and one fix are one entry.

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
    ordered = list(groups.values())
    shown, hidden = ordered[: _OPEN + _FOLDED], ordered[_OPEN + _FOLDED :]
    entries = tuple(map(_entry, shown))
    return Findings(entries[:_OPEN], entries[_OPEN:], len(hidden))


def _entry(group: list[FindingDoc]) -> Entry:
    first = group[0]
    sentences = list(dict.fromkeys(finding["what"] for finding in group))
    evidence = first["evidence"]
    return Entry(
        severity=first["severity"],
        mark=_MARKS[first["severity"]],
        sentences=tuple(cut(sentence, SENTENCE) for sentence in sentences[:_SUBJECTS]),
        beyond=len(sentences[_SUBJECTS:]),
        cause=cut(first["why"], SENTENCE),
        fix="" if first["fix"] == NO_FIX else cut(first["fix"], SENTENCE),
        code=cut(first["code"]),
        evidence="" if evidence == first["why"] else cut(evidence, SENTENCE),
    )
