"""`probe explain`: every decision and outcome with its time, and per field who said what."""

from __future__ import annotations

from probe_core.cli import text
from probe_core.cli.options import add_probe_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_core.cli.context import Context

    Device = Mapping[str, Any]

NAME = "explain"
HELP = "Show every decision, outcome and timing, and for each field who said it."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe explain`."""
    parser.add_argument("device", nargs="?", help="explain only this device (an id, or part of it)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the explanation."""
    document = context.report()
    devices = _chosen(document["devices"], args.device)
    if args.json:
        context.json({**document, "devices": devices})
        return 0
    if args.device is None:
        for line in _run_lines(document, context):
            context.out(line)
    for device in devices:
        for line in _device_lines(device, context):
            context.out(line)
    return 0


def _chosen(devices: list[Device], wanted: str | None) -> list[Device]:
    from probe_core.cli.context import CommandError

    if wanted is None:
        return devices
    chosen = [d for d in devices if any(wanted.lower() in i.lower() for i in d["ids"])]
    if not chosen:
        ids = ", ".join(device["id"] for device in devices)
        raise CommandError(f"no device has an id with {wanted!r} in it; there are: {ids}")
    return chosen


def _run_lines(document: Mapping[str, Any], context: Context) -> Iterator[str]:
    yield from _section("Probers", context)
    rows = [("PROBER", "FROM", "OUTCOME", "MS", "DEVICES", "REASON")]
    for outcome in document["outcomes"]:
        status = outcome["status"] + (" (partial)" if outcome["partial"] else "")
        rows.append(
            (
                outcome["prober"],
                outcome["distribution"],
                status,
                f"{outcome['elapsed_ms']:.1f}" if outcome["status"] != "skipped" else "",
                str(outcome["devices"]),
                outcome["reason"] or "",
            )
        )
    yield from text.columns(rows, max(context.width, 200), right=(3, 4), flexible=5)
    for outcome in document["outcomes"]:
        for line in outcome.get("stderr", ()):
            yield f"  {outcome['prober']}| {line}"
    yield from _section("Time", context)
    timings = document.get("timings_ms", {})
    yield "  ".join(f"{step} {taken:.1f}" for step, taken in timings.items()) + " ms"
    yield from _section("Findings", context)
    if not document["findings"]:
        yield "none"
    for finding in document["findings"]:
        yield f"[{finding['severity']}] {finding['code']}: {finding['what']}"
        yield f"    why: {finding['why']}"
        yield f"    fix: {finding['fix']}"
    yield f"fallback: {document['fallback'] or 'none was needed'}"


def _section(title: str, context: Context) -> list[str]:
    return ["", text.paint(title, "bold", context.colour)]


def _device_lines(device: Device, context: Context) -> Iterator[str]:
    yield from _section(f"{device['id']}  {device['name'] or ''}", context)
    rows = [("  FIELD", "VALUE", "SAID BY")]
    for path, who in sorted(device["sources"].items()):
        if path != "peaks":
            rows.append((f"  {path}", _value(device, path), who))
    yield from text.columns(rows, max(context.width, 160), flexible=1)
    for path, said in device.get("others", {}).items():
        for other in said:
            yield f"  {path}: {other['prober']} said {_shown(other['value'])} instead"
    yield from _chip_lines(device)
    for path, reason in sorted(device["unknown"].items()):
        yield f"  unknown {path}: {reason}"


def _chip_lines(device: Device) -> Iterator[str]:
    chip = device["chip"]
    if chip["id"]:
        yield f"  chip {chip['id']} by {chip['by']} ({chip['confidence']} confidence)"
    for sentence in chip.get("conflicts", ()):
        yield f"    conflict: {sentence}"
    if chip["candidates"] and not chip["id"]:
        yield f"  chip: one of {', '.join(chip['candidates'])}"
    for peak in device["peaks"]:
        kind = f"{peak['dtype']} {peak['path']} acc {peak['accumulate']} {peak['sparsity']}"
        if peak.get("variant"):
            kind += f" {peak['variant']}"
        yield f"  peak {kind}: {peak['tflops']:g} T at {peak['clock']} ({peak['confidence']})"
        yield f"       {peak['source']}"


def _value(device: Device, path: str) -> str:
    value: Any = device
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        import json

        return json.dumps(value)
    return str(value)
