"""`probe`: one table a person likes to read, or one JSON document for a script."""

from __future__ import annotations

from probe_core import __version__
from probe_core.cli import text
from probe_core.cli.options import add_probe_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from probe_core.cli.context import Context

    Device = Mapping[str, Any]

NAME = "report"
HELP = "Say what this node is: accelerators, CPU, usable memory and peak FLOPS."

_HEAD = ("", "DEVICE", "MEMORY", "FREE", "FP32", "FP16", "INT8", "BANDWIDTH", "ID")
_RIGHT = frozenset(_HEAD[2:8])
_ALWAYS_SHOWN = frozenset({"", "DEVICE", "MEMORY", "FP32", "FP16", "INT8", "ID"})
_FALLBACKS = {
    "no-accelerator": "No accelerator was found: the CPU is primary.",
    "degraded": "Degraded: something failed, so an accelerator may be missing; see below.",
}
_STYLES = {"error": "red", "warning": "yellow", "info": "dim"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe`."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 when the node is degraded"
    )
    parser.add_argument("--version", action="version", version=f"probe-core {__version__}")
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the report."""
    document = context.report()
    if args.json:
        context.json(document)
    else:
        for line in _lines(document, context):
            context.out(line)
    return 1 if args.strict and is_degraded(document) else 0


def is_degraded(document: Mapping[str, Any]) -> bool:
    """Return whether something is wrong with the node: a net was needed, or an error was found."""
    errors = any(finding["severity"] == "error" for finding in document["findings"])
    return document["fallback"] == "degraded" or errors


def _lines(document: Mapping[str, Any], context: Context) -> list[str]:
    lines = text.wrapped(_headline(document), context.width)
    devices = document["devices"]
    rows = text.without_empty(
        [_HEAD, *(_row(device, document) for device in devices)], keep=_ALWAYS_SHOWN
    )
    right = [index for index, name in enumerate(rows[0]) if name in _RIGHT]
    head, *body = text.columns(rows, context.width, right=right, flexible=1)
    lines += ["", text.paint(head, "dim", context.colour)]
    for device, line in zip(devices, body, strict=True):
        lines.append(text.paint(line, _style(device, document), context.colour))
    lines += ["", *text.wrapped(_legend(devices), context.width)]
    if document["fallback"]:
        lines += text.wrapped(_FALLBACKS[document["fallback"]], context.width)
    return lines + _findings(document, context)


def _headline(document: Mapping[str, Any]) -> str:
    node = document["node"]
    memory = node["memory"]
    system = " ".join(filter(None, [node["os"], node["kernel"]]))
    parts = [node["model"], system, node["arch"]]
    limit = f", limited to {text.size(memory['limit'])}" if memory["limit"] else ""
    available = text.size(memory["available"])
    parts.append(f"{text.size(memory['total'])} memory{limit}, {available} available")
    return " · ".join(filter(None, parts))


def _row(device: Device, document: Mapping[str, Any]) -> tuple[str, ...]:
    memory = device["memory"]
    # A CPU and an integrated GPU use the system's memory: printed once, above.
    own = memory["kind"] not in ("shared", "unified")
    total = text.size(memory["total"]) if own else memory["kind"]
    free = memory.get("free") if own else None
    free = memory.get("usable") if own and free is None else free
    return (
        "*" if device["id"] == document["primary"] else "",
        _title(device),
        total,
        text.size(free) if own else "",
        text.rate(device["fp32"]),
        text.rate(device["fp16"]),
        text.rate(device["int8"]),
        text.bandwidth(device["bandwidth"]),
        device["id"],
    )


def _title(device: Device) -> str:
    name = device["name"] or _nameless(device)
    notes = []
    if device["kind"] == "cpu" and device.get("units"):
        notes.append(f"{device['units']} cores")
    if device.get("parent"):
        name = f"└ {name}"
    if _hidden(device):
        notes.append("hidden")
    if device.get("power_state") == "suspended":
        notes.append("asleep")
    return name + (f" ({', '.join(notes)})" if notes else "")


def _nameless(device: Device) -> str:
    """Return what can be said of a device that nobody names."""
    kind = " ".join(filter(None, [device["vendor"], device["kind"]]))
    if device["kind"] == "display":
        return f"{kind} adapter, cannot compute"
    candidates = [one.rpartition("/")[2] for one in device["chip"]["candidates"]]
    if len(candidates) > 3:
        return f"{kind}, one of {len(candidates)} chips"
    return " or ".join(candidates) or f"unknown {kind}"


def _hidden(device: Any) -> bool:
    from probe_core.model.runtimes import hidden

    return hidden(device)


def _style(device: Device, document: Mapping[str, Any]) -> str | None:
    if device["id"] == document["primary"]:
        return "bold"
    return "dim" if device["kind"] == "display" or _hidden(device) else None


def _legend(devices: list[Device]) -> str:
    clocks = {
        peak["clock"] for device in devices for peak in device["peaks"] if device["kind"] != "cpu"
    }
    bound = "; max: an upper bound" if "max" in clocks else ""
    return (
        f"* primary · TFLOPS and TOPS are dense theoretical peaks{bound} · probe explain tells more"
    )


def _findings(document: Mapping[str, Any], context: Context) -> list[str]:
    """Return the findings; those with one cause and fix (eight GPUs, one driver) told at once."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for finding in document["findings"]:
        key = tuple(finding[name] for name in ("severity", "code", "why", "fix"))
        groups.setdefault(key, []).append(finding["what"])
    return [line for key, whats in groups.items() for line in _told(key, whats, context)]


def _told(key: tuple[str, ...], whats: list[str], context: Context) -> list[str]:
    severity, _, why, fix = key
    label = text.paint(severity, _STYLES[severity], context.colour)
    lines = [""]
    for what in dict.fromkeys(whats):
        times = f" ({whats.count(what)} times)" if whats.count(what) > 1 else ""
        first, *more = text.wrapped(f"{severity}: {what}{times}", context.width)
        lines += [first.replace(severity, label, 1), *more]
    lines += text.wrapped(f"why: {why}", context.width, indent="  ")
    if fix != "nothing to do":
        lines += text.wrapped(f"fix: {fix}", context.width, indent="  ")
    return lines
