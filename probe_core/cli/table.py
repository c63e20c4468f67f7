"""The table of `probe`: one row a device, as wide as the terminal, then the findings."""

from __future__ import annotations

from probe_core.commands import text
from probe_core.model.readiness import state_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.commands import Context
    from probe_core.model.document import DeviceDoc, ReportDoc

__all__ = ["lines"]

_HEAD = ("", "DEVICE", "STATE", "MEMORY", "FREE", "FP32", "FP16", "INT8", "BANDWIDTH", "ID")
_NAME, _STATE = 1, 2
_RIGHT = frozenset(_HEAD[3:9])
_ALWAYS_SHOWN = frozenset({"", "DEVICE", "STATE", "MEMORY", "FP32", "FP16", "INT8", "ID"})
_LEAVING = ("BANDWIDTH", "INT8", "FP32", "FREE", "FP16", "ID")
"""Columns in the order in which they give way to STATE where the terminal is narrow."""

_FALLBACKS = {
    "no-accelerator": "No accelerator was found: the CPU is primary.",
    "degraded": "Degraded: something failed, so an accelerator may be missing; see below.",
}


def lines(report: ReportDoc, context: Context) -> list[str]:
    """Return the head line, the table of devices and the findings, each as wide as the terminal."""
    from probe_core.cli.findings import finding_lines

    output = text.wrapped(_headline(report), context.width)
    devices = report["devices"]
    rows = text.without_empty(
        [_HEAD, *(_row(device, report) for device in devices)], keep=_ALWAYS_SHOWN
    )
    rows = _fitting(rows, context.width)
    right = [index for index, name in enumerate(rows[0]) if name in _RIGHT]
    head, *body = text.columns(rows, context.width, right=right, flexible=_NAME)
    output += ["", text.paint(head, "dim", context.colour)]
    for device, line in zip(devices, body, strict=True):
        output.append(text.paint(line, _style(device, report), context.colour))
    output += ["", *text.wrapped(_legend(devices), context.width)]
    if report["fallback"]:
        output += text.wrapped(_FALLBACKS[report["fallback"]], context.width)
    return output + finding_lines(report["findings"], context)


def _fitting(rows: list[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    """Leave out columns until STATE takes no character from the names."""
    stateless = [(*row[:_STATE], *row[_STATE + 1 :]) for row in rows]
    least = text.column_widths(stateless, width, flexible=_NAME)[_NAME]
    for name in _LEAVING:
        if _shows_names(rows, width, least):
            break
        shown = [index for index, head in enumerate(rows[0]) if head != name]
        rows = [tuple(row[index] for index in shown) for row in rows]
    return rows


def _shows_names(rows: list[tuple[str, ...]], width: int, least: int) -> bool:
    """Return whether all columns fit, with at least as many characters of each name."""
    widths = text.column_widths(rows, width, flexible=_NAME)
    return len(widths) == len(rows[0]) and widths[_NAME] >= least


def _headline(report: ReportDoc) -> str:
    node = report["node"]
    memory = node["memory"]
    system = " ".join(filter(None, [node["os"], node["kernel"]]))
    limit = f", limited to {text.size(memory['limit'])}" if memory["limit"] else ""
    available = text.size(memory["available"])
    total = f"{text.size(memory['total'])} memory{limit}, {available} available"
    return " · ".join(filter(None, [node["model"], system, node["arch"], total]))


def _row(device: DeviceDoc, report: ReportDoc) -> tuple[str, ...]:
    memory = device["memory"]
    # A CPU and an integrated GPU use the system's memory: printed once, above.
    own = memory["kind"] not in ("shared", "unified")
    total = text.size(memory["total"]) if own else memory["kind"] or ""
    # A static report may lack what only newer cores write.
    free = memory.get("free") if memory.get("free") is not None else memory.get("usable")
    return (
        "*" if device["id"] == report["primary"] else "",
        _title(device),
        state_word(device),
        total,
        text.size(free) if own else "",
        _rate(device, device["fp32"]),
        _rate(device, device["fp16"]),
        _rate(device, device["int8"]),
        text.bandwidth(device["bandwidth"]),
        device["id"],
    )


def _rate(device: DeviceDoc, value: float | None) -> str:
    """Return a figure, marked where it rests on an idle clock or an unknown core."""
    shown = text.rate(value)
    return f"≥ {shown}" if value is not None and _is_bound(device) else shown


def _is_bound(device: DeviceDoc) -> bool:
    return any(peak.get("bound") == "lower" for peak in device["peaks"])


def _title(device: DeviceDoc) -> str:
    name = device["name"] or _nameless(device)
    if device["kind"] == "cpu" and device.get("units"):
        counts = [f"{device['units']} cores", *_allowed(device)]
        name += f" ({', '.join(counts)})"
    return f"└ {name}" if device.get("parent") else name


def _allowed(device: DeviceDoc) -> list[str]:
    """Return what this process may use of a CPU, where that is less than the whole."""
    part = device.get("allowed") or {}
    cores, quota = part.get("cores", part.get("threads")), part.get("quota")
    notes = []
    if cores is not None and cores != device.get("units"):
        notes.append(f"{cores} allowed")
    if quota is not None:
        notes.append(f"{quota} CPUs of time")
    return notes


def _nameless(device: DeviceDoc) -> str:
    """Return what can be said of a device that nobody names."""
    kind = " ".join(filter(None, [device["vendor"], device["kind"]]))
    if device["kind"] == "display":
        return f"{kind} adapter, cannot compute"
    candidates = [chip.rpartition("/")[2] for chip in device["chip"]["candidates"]]
    if len(candidates) > 3:
        return f"{kind}, one of {len(candidates)} chips"
    return " or ".join(candidates) or f"unknown {kind}"


def _hidden(device: DeviceDoc) -> bool:
    from probe_core.model.runtimes import hidden

    return hidden(device)


def _style(device: DeviceDoc, report: ReportDoc) -> str | None:
    if device["id"] == report["primary"]:
        return "bold"
    return "dim" if device["kind"] in ("display", "coprocessor") or _hidden(device) else None


def _legend(devices: list[DeviceDoc]) -> str:
    clocks = {
        peak["clock"] for device in devices for peak in device["peaks"] if device["kind"] != "cpu"
    }
    bound = "; max: an upper bound" if "max" in clocks else ""
    if any(_is_bound(device) for device in devices):
        bound += "; ≥: a lower bound"
    return (
        f"* primary · TFLOPS and TOPS are dense theoretical peaks{bound} · probe explain shows more"
    )
