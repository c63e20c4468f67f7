"""`probe explain`: every decision and result with its time, and the source of every value."""

from __future__ import annotations

from probe_core.commands import text
from probe_core.commands.options import add_probe_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from probe_core.commands import Context
    from probe_core.model.document import DeviceDoc, PeakDoc, ReportDoc

HELP = "Show every decision, result and timing, and the source of every value of a device."

# Reasons are what the tables are for, so they are cut only where no screen is that wide: a
# terminal wraps the lines. Judgements, by the longest reasons of our own plugins.
_WIDE_RUNS, _WIDE_FIELDS = 200, 160
EXAMPLES = (
    ("probe explain", "every decision, and every device"),
    ("probe explain 4090", "one device, by a part of its name or id"),
    ("probe explain 01:00.0 --json", "the same for a script"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe explain`."""
    parser.add_argument("device", nargs="?", help="explain only this device (an id, or part of it)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the explanation."""
    report = context.report()
    devices = _matching(report["devices"], args.device)
    if args.json:
        context.json({**report, "devices": devices})
        return 0
    if args.device is None:
        for line in _run_lines(report, context):
            context.out(line)
    for device in devices:
        for line in _device_lines(device, context):
            context.out(line)
    return 0


def _matching(devices: list[DeviceDoc], part: str | None) -> list[DeviceDoc]:
    """Return the devices that have `part` in an id or the name, of any case; None: all."""
    from probe_core.commands import CommandError

    if part is None:
        return devices
    matching = [device for device in devices if _names(device, part.casefold())]
    if not matching:
        ids = ", ".join(device["id"] for device in devices)
        raise CommandError(f"no device has an id with {part!r} in it; there are: {ids}")
    return matching


def _names(device: DeviceDoc, part: str) -> bool:
    return any(part in text.casefold() for text in (*device["ids"], device["name"] or ""))


def _run_lines(report: ReportDoc, context: Context) -> Iterator[str]:
    yield from _section("Plugins", context)
    rows = [("PLUGIN", "PACKAGE", "STATUS", "MS", "DEVICES", "REASON")]
    for outcome in report["outcomes"]:
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
    yield from text.columns(rows, max(context.width, _WIDE_RUNS), right=(3, 4), flexible=5)
    for outcome in report["outcomes"]:
        for line in outcome.get("stderr", ()):
            yield f"  {outcome['prober']}| {line}"
    yield from _section("Time", context)
    timings = report.get("timings_ms", {})
    yield "  ".join(f"{step} {spent:.1f}" for step, spent in timings.items()) + " ms"
    yield from _section("Findings", context)
    yield from _finding_lines(report)
    yield f"fallback: {report['fallback'] or 'no'}"


def _finding_lines(report: ReportDoc) -> Iterator[str]:
    from probe_core.model.findings import NO_FIX

    if not report["findings"]:
        yield "none"
    for finding in report["findings"]:
        yield f"[{finding['severity']}] {finding['code']}: {finding['what']}"
        yield f"    why: {finding['why']}"
        if finding["fix"] != NO_FIX:
            yield f"    fix: {finding['fix']}"


def _section(title: str, context: Context) -> list[str]:
    return ["", text.paint(title, "bold", context.colour)]


def _device_lines(device: DeviceDoc, context: Context) -> Iterator[str]:
    yield from _section(f"{device['id']}  {device['name'] or ''}", context)
    yield from _state_lines(device)
    rows = [("  FIELD", "VALUE", "SOURCE")]
    for path, source in sorted(device["sources"].items()):
        if path != "peaks":
            rows.append((f"  {path}", _value(device, path), source))
    yield from text.columns(rows, max(context.width, _WIDE_FIELDS), flexible=1)
    for path, others in device.get("others", {}).items():
        for other in others:
            yield f"  {path}: {other['prober']} reports {_shown(other['value'])}"
    yield from _chip_lines(device)
    for path, reason in sorted(device["unknown"].items()):
        yield f"  unknown {path}: {reason}"


def _state_lines(device: DeviceDoc) -> Iterator[str]:
    """Yield the device's state, and each step of its readiness with what it rests on."""
    from probe_core.model.readiness import state_word

    word = state_word(device)
    if word:
        yield f"  state: {word}"
    for step in (device.get("readiness") or {}).get("steps", ()):
        facts = [fact for fact in (step["evidence"], step["code"] and f"[{step['code']}]") if fact]
        yield f"    {step['step']}: {step['status'].replace('_', ' ')}  {' '.join(facts)}".rstrip()


def _chip_lines(device: DeviceDoc) -> Iterator[str]:
    chip = device["chip"]
    if chip["id"]:
        yield f"  chip {chip['id']} by {chip['by']} ({chip['confidence']} confidence)"
    for sentence in chip.get("conflicts", ()):
        yield f"    conflict: {sentence}"
    if chip["candidates"] and not chip["id"]:
        yield f"  chip: ambiguous: {' or '.join(chip['candidates'])}"
    yield from _cluster_lines(device)
    for peak in device["peaks"]:
        yield from _peak_lines(peak)


def _cluster_lines(device: DeviceDoc) -> Iterator[str]:
    """Yield the kinds of cores of a processor that has several."""
    clusters = (device.get("cpu") or {}).get("clusters")
    for cluster in clusters if isinstance(clusters, list) else ():
        if not isinstance(cluster, dict):
            continue
        mhz, fp32 = cluster.get("max_mhz"), cluster.get("fp32")
        clock = f" at {mhz:g} MHz" if isinstance(mhz, int | float) else ""
        part = f": {fp32:g} TFLOPS fp32" if isinstance(fp32, int | float) else ""
        name = cluster.get("name") or cluster.get("kind") or "unknown core"
        yield f"  {cluster.get('cores')} × {name}{clock}{part}"


def _peak_lines(peak: PeakDoc) -> Iterator[str]:
    kind = f"{peak['dtype']} {peak['path']}, {peak['accumulate']} accumulate, {peak['sparsity']}"
    if peak.get("variant"):
        kind += f", {peak['variant']}"
    unit = "TOPS" if "int" in peak["dtype"] else "TFLOPS"
    least, notes = "", ""
    if peak.get("bound") == "lower":
        least, notes = "≥ ", ", a lower bound"
    if peak.get("high"):
        notes += f", {peak['high']:g} if all are its fastest cores"
    figure = f"{least}{peak['tflops']:g} {unit} at {peak['clock']}"
    yield f"  peak {kind}: {figure} ({peak['confidence']}{notes})"
    yield f"       {peak['source']}"


def _value(device: DeviceDoc, path: str) -> str:
    value: Any = device
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return _shown(value)


def _shown(value: object) -> str:
    if isinstance(value, (dict, list)):
        import json

        return json.dumps(value)
    return str(value)
