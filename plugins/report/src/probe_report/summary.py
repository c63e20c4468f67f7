"""The head of the page: what the node is, whether it can be used, and four figures."""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import size
from probe_core.model.readiness import blocked, hidden, native_runtime
from probe_core.wording import counted, joined
from probe_report.figures import UNKNOWN, cut, dense, spaced, summed
from probe_report.groups import accelerators, alike, has_own_memory, model_of, word_of
from probe_report.measured import measured_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc, ReportDoc

__all__ = ["Head", "State", "Tile", "head_of", "state_of_node", "tiles_of"]

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
            _count(devices),
            _memory(devices) if devices else _processors(report),
            _peak(devices or _cpus(report), "fp16" if devices else "fp32"),
            _host_memory(report),
        ),
    )


def tiles_of(reports: Sequence[ReportDoc]) -> tuple[Tile, Tile, Tile]:
    """Return the accelerators, their memory and their fp16 peak of several nodes together."""
    devices = [device for report in reports for device in accelerators(report)]
    return _count(devices), _memory(devices), _peak(devices, "fp16")


def _cpus(report: ReportDoc) -> list[DeviceDoc]:
    return [device for device in report["devices"] if device["kind"] == "cpu"]


def _title(report: ReportDoc, devices: Sequence[DeviceDoc]) -> str:
    groups = alike(list(devices) or _cpus(report), model_of)
    parts = [
        f"{len(group)} × {model_of(group[0])}" if len(group) > 1 else model_of(group[0])
        for group in groups
    ]
    beyond = len(parts) - _SHOWN_MODELS
    parts = [*parts[:_SHOWN_MODELS], *([f"{beyond} more"] if beyond > 0 else [])]
    return joined(parts, "and") or "a computer of which nothing is known"


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
    """Return whether the node's accelerators can be used by this process."""
    devices = accelerators(report)
    usable = [device for device in devices if not (blocked(device) or hidden(device))]
    severities = {finding["severity"] for finding in report["findings"]}
    if report["fallback"] == "degraded":
        return State("✕", "degraded", "bad")
    if not devices:
        trouble = State("!", "no accelerator, with warnings", "warn")
        return trouble if severities - {"info"} else State("✓", "no accelerator", "none")
    if not usable:
        return State("✕", "no accelerator can be used", "bad")
    if len(usable) < len(devices):
        return State("!", f"{len(usable)} of {len(devices)} accelerators can be used", "warn")
    if "error" in severities:
        return State("✕", "ready, with errors", "bad")
    if "warning" in severities:
        return State("!", "ready, with warnings", "warn")
    if {word_of(device) for device in devices} == {"unknown"}:
        return State("?", "readiness not known", "none")
    return State("✓", "ready", "good")


def _count(devices: Sequence[DeviceDoc]) -> Tile:
    if not devices:
        return Tile("Accelerators", "0", "", "none is on any bus")
    usable = sum(not (blocked(device) or hidden(device)) for device in devices)
    runtimes = {native_runtime(device) for device in devices}
    through = f" through {runtimes.pop()}" if len(runtimes) == 1 else ""
    return Tile("Accelerators", str(len(devices)), "", f"{usable} usable{through}")


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
    together = "derived" if len(devices) == 1 else "derived, all together"
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
