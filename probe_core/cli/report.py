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
_RIGHT = (2, 3, 4, 5, 6, 7)
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
    rows = [_HEAD, *(_row(device, document) for device in devices)]
    head, *body = text.columns(rows, context.width, right=_RIGHT, flexible=1)
    lines += ["", text.paint(head, "dim", context.colour)]
    for device, line in zip(devices, body, strict=True):
        lines.append(text.paint(line, _style(device, document), context.colour))
    lines += ["", *text.wrapped(_legend(devices), context.width)]
    return lines + _findings(document, context)


def _headline(document: Mapping[str, Any]) -> str:
    node = document["node"]
    memory = node["memory"]
    system = " ".join(filter(None, [node["os"], node["kernel"]]))
    parts = [node["model"], system, node["arch"]]
    parts.append(f"{text.size(memory['total'])} memory, {text.size(memory['available'])} available")
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
    name = device["name"] or " ".join(filter(None, ["unknown", device["vendor"], device["kind"]]))
    notes = []
    if device["kind"] == "cpu" and device.get("units"):
        notes.append(f"{device['units']} cores")
    if device["kind"] == "display":
        notes.append("display only")
    if device.get("parent"):
        name = f"└ {name}"
    if _hidden(device):
        notes.append("hidden")
    if device.get("power_state") == "suspended":
        notes.append("asleep")
    return name + (f" ({', '.join(notes)})" if notes else "")


def _hidden(device: Device) -> bool:
    from probe_core.visibility import main_consumer

    seen = (device.get("visibility") or {}).get(main_consumer(device))
    return bool(seen) and seen["visible"] is False


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
    lines: list[str] = []
    for finding in document["findings"]:
        label = text.paint(finding["severity"], _STYLES[finding["severity"]], context.colour)
        first, *more = text.wrapped(
            f"{finding['severity']}: {finding['what']}", context.width, indent=""
        )
        lines += ["", first.replace(finding["severity"], label, 1), *more]
        lines += text.wrapped(f"why: {finding['why']}", context.width, indent="  ")
        lines += text.wrapped(f"fix: {finding['fix']}", context.width, indent="  ")
    return lines
