"""What `probe explain` says of a probe as a whole: primary, devices, plugins, time, findings."""

from __future__ import annotations

from probe_core.cli.findings import finding_lines
from probe_core.cli.values import readable
from probe_core.commands import text
from probe_core.commands.tables import grid_rows
from probe_core.model.kinds import ACCELERATORS
from probe_core.model.names import short_name
from probe_core.model.readiness import state_word
from probe_core.model.short_ids import short_ids
from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.commands import Context
    from probe_core.model.document import DeviceDoc, ReportDoc

__all__ = ["run_lines", "section"]


def run_lines(report: ReportDoc, context: Context) -> Iterator[str]:
    """Yield the decisions of a probe, each with what it rests on."""
    ids = short_ids(device["id"] for device in report["devices"])
    yield from _primary(report, ids, context)
    yield from section("Devices", context)
    yield from _devices(report, ids, context)
    yield from section("Plugins", context)
    yield from _plugins(report, context)
    yield from section("Time", context)
    timings = report.get("timings_ms", {})
    steps = (f"{step} {spent:.1f} ms" for step, spent in timings.items())
    yield from text.listed(map(context.encodable, steps), context.width)
    yield from section("Differences", context)
    yield from _differences(report, ids, context)
    yield from section("Unknown", context)
    yield from _unknown(report, ids, context)
    yield from section("Findings", context)
    yield from finding_lines(report["findings"], context)[1:] or ["none"]
    yield f"fallback: {report['fallback'] or 'no'}"


def section(title: str, context: Context) -> list[str]:
    """Return the head of a section."""
    return ["", text.paint(title, "bold", context.colour)]


def _primary(report: ReportDoc, ids: dict[str, str], context: Context) -> Iterator[str]:
    primary = next((d for d in report["devices"] if d["id"] == report["primary"]), None)
    if primary is None:
        yield "Primary: none"
        return
    title = f"Primary: {ids[primary['id']]} {short_name(primary)}"
    for line in text.folded(title, context.width, "", "  "):
        yield text.paint(line, "bold", context.colour)
    usable = [d for d in report["devices"] if d["kind"] in ACCELERATORS]
    if primary["kind"] not in ACCELERATORS:
        reason = "no accelerator can be used" if usable else "no accelerator was detected"
    elif len(usable) == 1:
        reason = "it is the only accelerator"
    else:
        # The order of `pipeline.primary.choose`.
        reason = (
            "the first of the accelerators that can be used, by kind, priority of the plugin,"
            " dedicated memory, fp16 peak, memory and address"
        )
    yield from text.folded(reason, context.width, "  ")


def _devices(report: ReportDoc, ids: dict[str, str], context: Context) -> Iterator[str]:
    groups: dict[tuple[str, ...], list[DeviceDoc]] = {}
    for device in report["devices"]:
        key = (short_name(device), state_word(device), _chip(device))
        groups.setdefault(key, []).append(device)
    for (name, state, chip), members in groups.items():
        count = f"{len(members)} × " if len(members) > 1 else ""
        shown = f"{count}{name}: {state}" if state else f"{count}{name}"
        yield from text.folded(context.encodable(shown), context.width, "  ", " " * 6)
        listed = " ".join(ids[member["id"]] for member in members)
        yield from text.folded(listed, context.width, " " * 4)
        yield from text.folded(chip, context.width, " " * 4)


def _chip(device: DeviceDoc) -> str:
    chip = device["chip"]
    if chip["id"]:
        return f"chip {chip['id']} by {chip['by']} ({chip['confidence']} confidence)"
    if chip["candidates"]:
        return f"chip: ambiguous: {' or '.join(chip['candidates'])}"
    return ""


def _plugins(report: ReportDoc, context: Context) -> Iterator[str]:
    rows = [("PLUGIN", "PACKAGE", "STATUS", "TIME", "DEVICES", "REASON")]
    for outcome in report["outcomes"]:
        has_run = outcome["status"] != "skipped"
        rows.append(
            (
                outcome["prober"],
                outcome["distribution"],
                outcome["status"] + (" (partial)" if outcome["partial"] else ""),
                f"{outcome['elapsed_ms']:.1f} ms" if has_run else "",
                str(outcome["devices"]) if has_run else "",
                context.encodable(outcome["reason"] or ""),
            )
        )
    options = {"right": ("TIME", "DEVICES"), "wrap": "REASON", "leaving": ("PACKAGE",)}
    heads, *lines = grid_rows(rows, context.width, **options)  # type: ignore[arg-type]  # of one call
    yield from (text.paint(line, "dim", context.colour) for line in heads)
    for outcome, own in zip(report["outcomes"], lines, strict=True):
        yield from own
        for line in outcome.get("stderr", ()):
            yield from text.folded(line, context.width, f"  {outcome['prober']}| ")


def _differences(report: ReportDoc, ids: dict[str, str], context: Context) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for device in report["devices"]:
        for path, others in (device.get("others") or {}).items():
            for other in others:
                value = readable(path, other["value"])
                sentence = f"{path}: {other['prober']} reports {value}"
                groups.setdefault(sentence, []).append(ids[device["id"]])
    if not groups:
        yield "none: all sources agree"
    for sentence, devices in groups.items():
        shown = context.encodable(f"{sentence} ({_named(devices)})")
        yield from text.folded(shown, context.width, "  ", " " * 6)


def _unknown(report: ReportDoc, ids: dict[str, str], context: Context) -> Iterator[str]:
    """Yield what is unknown and why, alike reasons of several devices and fields together."""
    fields: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    reasons: dict[tuple[str, str], list[str]] = {}
    for device in report["devices"]:
        for path, reason in device["unknown"].items():
            reasons.setdefault((path, reason), []).append(ids[device["id"]])
    for (path, reason), devices in reasons.items():
        fields.setdefault((reason, tuple(devices)), []).append(path)
    if not fields:
        yield "nothing"
    for (reason, listed), paths in fields.items():
        sentence = f"unknown {', '.join(sorted(paths))}: {reason} ({_named(list(listed))})"
        yield from text.folded(context.encodable(sentence), context.width, "  ", " " * 6)


def _named(devices: list[str]) -> str:
    return ", ".join(devices) if len(devices) <= 4 else counted(len(devices), "device")
