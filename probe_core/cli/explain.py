"""`probe explain`: the decisions of a probe on a page; of one device, the source of every value."""

from __future__ import annotations

from probe_core.cli.table import finding_lines
from probe_core.commands import text
from probe_core.commands.measured import measured_amount, measured_name, measured_part
from probe_core.commands.options import JSON, SHARED_OPTIONS, Argument, Option
from probe_core.commands.tables import grid_rows
from probe_core.model.device import FIELDS
from probe_core.model.ids import ACCELERATORS
from probe_core.model.naming import short_ids, short_name
from probe_core.model.verdict import state_word
from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import DeviceDoc, MeasuredDoc, PeakDoc, ReportDoc


HELP = (
    "Show the decisions, results and timings of a probe; of DEVICE, the source of every value and"
    " how each peak is derived."
)

EXAMPLES = (
    ("probe explain", "every decision, and every device"),
    ("probe explain 4090", "one device, by a part of its name or id"),
    ("probe explain 01:00.0 --json", "the same for a script"),
)

ARGUMENTS = (
    Argument("device", "a device: its id, whole or as `probe` shows it, or its model", count="?"),
    Option("all", "", "every device in full; of one device, also its peaks with sparsity"),
    JSON,
    *SHARED_OPTIONS,
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the explanation."""
    report = context.report()
    devices = report["devices"]
    if args.device is not None:
        devices = matching(devices, args.device)
    if args.json:
        context.json({**report, "devices": devices})
        return 0
    if args.device is None:
        for line in run_lines(report, context):
            context.out(line)
    if args.device is not None or args.all:
        for device in devices:
            for line in device_lines(device, context, sparse=args.all):
                context.out(line)
    return 0


def matching(devices: list[DeviceDoc], wanted_text: str) -> list[DeviceDoc]:
    """Return the devices that a text names: by an id, whole or short, or by their model.

    A part of an id will do where it fits one device. Raises `CommandError` where no device or, by
    an id, several are named.
    """
    from probe_core.commands import CommandError
    from probe_core.model.naming import named_by

    ids = [[device["id"], *device["ids"]] for device in devices]
    places = named_by(wanted_text, ids)
    part = wanted_text.lower()
    if not places:
        fits = [at for at, device in enumerate(devices) if part in (device["name"] or "").lower()]
        if fits:
            return [devices[at] for at in fits]
        places = [at for at, own in enumerate(ids) if any(part in name.lower() for name in own)]
    if len(places) == 1 or (places and part.startswith("cpu:")):
        return [devices[at] for at in places]
    listed = ", ".join(devices[at]["id"] for at in places or range(len(devices)))
    if places:
        raise CommandError(f"{wanted_text!r} names several devices; write one of {listed}")
    raise CommandError(f"no device has an id with {wanted_text!r} in it; there are: {listed}")


# What `probe explain` says of measured figures: beside the derived peaks, never among them.


def measured_rows(figures: Sequence[MeasuredDoc]) -> list[tuple[str, ...]]:
    """Return the rows of a table, with its head."""
    return [("MEASURED", "BEST", "MEDIAN", "OF PEAK", "COUNTS", "BY"), *map(_row, figures)]


def _row(figure: MeasuredDoc) -> tuple[str, ...]:
    return (
        measured_name(figure),
        measured_amount(figure, figure["best"]),
        measured_amount(figure, figure["median"]),
        measured_part(figure),
        _measured_state(figure),
        f"{figure['by']}, {(figure['date'] or '')[:10]}",
    )


def _measured_state(figure: MeasuredDoc) -> str:
    if figure["stale"] is not None:
        return f"no: {figure['stale']}"
    return f"no: disturbed ({', '.join(figure['disturbed'])})" if figure["disturbed"] else "yes"


# The values of a report as people read them: GiB, GB/s, ``PCIe gen 5 x16``; never JSON.

_BY_UNIT: dict[str, Callable[[float], str]] = {
    "bytes": text.size,
    "bytes per second": text.bandwidth,
    "MHz": lambda number: f"{number:g} MHz",
    "TFLOPS": lambda number: f"{text.rate(number)} TFLOPS",
    "TOPS": lambda number: f"{text.rate(number)} TOPS",
    "bits": lambda number: f"{number:g} bits",
    "watts": lambda number: f"{number:g} W",
}


def value_at(device: DeviceDoc, path: str) -> object:
    """Return the value at a dotted path of a device; None where nothing is there."""
    value: object = device
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def readable(path: str, value: object) -> str:
    """Return the value of a device's field in its unit; ``unknown`` for None."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {readable(f'{path}.{name}', v)}" for name, v in value.items())
    if isinstance(value, list):
        if path == "links":
            return "; ".join(map(_link, value))
        return ", ".join(readable(path, item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        formatted = _BY_UNIT.get(_unit(path))
        plain = str(value) if isinstance(value, int) else f"{value:g}"
        return formatted(value) if formatted is not None else plain
    return "unknown" if value is None else str(value)


def _unit(path: str) -> str:
    """Return the unit of a field; a table's without fields (memory.parts) is the table's own."""
    name, *others = path.split(".")
    field = FIELDS.get(name)
    for part in others:
        if field is None or field.fields is None or part not in field.fields:
            break
        field = field.fields[part]
    return field.unit if field is not None else ""


def _link(link: object) -> str:
    """Return one link: ``PCIe gen 5 x16 (at most gen 5 x16)``, ``nvlink to 43:00.0, 50 GB/s``."""
    if not isinstance(link, dict):
        return str(link)
    peer = link.get("peer") or link.get("to")
    count = link.get("count")
    times = f"{count} × " if isinstance(count, int) and count > 1 else ""
    shown = times + ("PCIe" if link.get("kind") == "pcie" else str(link.get("kind")))
    shown += f" to {peer}" if peer else ""
    if link.get("generation") and link.get("width"):
        shown += f" gen {link['generation']} x{link['width']}"
    if isinstance(link.get("bandwidth"), int | float):
        shown += f", {text.bandwidth(link['bandwidth'])}"
    if link.get("max_width") and link.get("max_gts"):
        shown += f" (at most x{link['max_width']} at {link['max_gts']:g} GT/s)"
    return shown


# What `probe explain` says of one device: its state, the source of each value, its peaks.

_OWN_TABLES = ("peaks", "measured")
"""Fields that have a table of their own below that of the values."""


def device_lines(device: DeviceDoc, context: Context, *, sparse: bool) -> Iterator[str]:
    """Yield all that is known of a device, and where from; its sparse peaks where asked for."""
    yield ""
    title = f"{device['id']}  {context.encodable(device['name'] or '')}".rstrip()
    fits = text.width_of(title) <= context.width
    for line in [title] if fits else text.folded(title, context.width):
        yield text.paint(line, "bold", context.colour)
    yield from _state(device, context)
    yield from _fields(device, context)
    for path, others in (device.get("others") or {}).items():
        for other in others:
            value = readable(path, other["value"])
            yield from _folded(f"{path}: {other['prober']} reports {value}", context, "yellow")
    yield from _chip(device, context)
    for path, reason in sorted(device["unknown"].items()):
        yield from _folded(f"unknown {path}: {reason}", context, "yellow")
    yield from _peaks(device["peaks"], context, sparse=sparse)
    from probe_core.cli.chip import format_lines, formats_of

    for line in format_lines(formats_of(device["chip"]["id"] or "")):
        yield from _folded(line, context)
    if device.get("measured"):
        yield ""
        yield from _table(measured_rows(device["measured"]), context, "BY", ("BEST", "MEDIAN"))


def _folded(sentence: str, context: Context, style: str | None = None) -> Iterator[str]:
    for line in text.folded(context.encodable(sentence), context.width, "  ", " " * 6):
        yield text.paint(line, style, context.colour)


def _table(
    rows: Sequence[Sequence[str]],
    context: Context,
    wrap: str,
    right: Sequence[str] = (),
    leaving: Sequence[str] = (),
) -> Iterator[str]:
    shown = [[context.encodable(cell) for cell in row] for row in rows]
    heads, *body = grid_rows(
        shown, context.width, right=right, wrap=wrap, leaving=leaving, indent="  "
    )
    yield from (text.paint(line, "dim", context.colour) for line in heads)
    for lines in body:
        yield from lines


def _state(device: DeviceDoc, context: Context) -> Iterator[str]:
    """Yield the device's state, and each step of its readiness with what it rests on."""
    word = state_word(device)
    if word:
        yield f"  state: {word}"
    for step in (device.get("readiness") or {}).get("steps", ()):
        facts = [fact for fact in (step["evidence"], step["code"] and f"[{step['code']}]") if fact]
        status = step["status"].replace("_", " ")
        start = f"    {step['step']}: {status}"
        evidence = context.encodable(" ".join(facts))
        yield from text.folded(evidence, context.width, f"{start}  ", " " * 8) or [start]


def _fields(device: DeviceDoc, context: Context) -> Iterator[str]:
    rows = [("FIELD", "VALUE", "SOURCE")]
    for path, source in sorted(device["sources"].items()):
        if path not in _OWN_TABLES:
            rows.append((path, readable(path, value_at(device, path)), source))
    yield from _table(rows, context, "VALUE")


def _chip(device: DeviceDoc, context: Context) -> Iterator[str]:
    chip = device["chip"]
    if chip["id"]:
        sentence = f"chip {chip['id']} by {chip['by']} ({chip['confidence']} confidence)"
        yield from _folded(sentence, context)
    for sentence in chip.get("conflicts", ()):
        yield from _folded(f"conflict: {sentence}", context, "yellow")
    if chip["candidates"] and not chip["id"]:
        yield from _folded(f"chip: ambiguous: {' or '.join(chip['candidates'])}", context, "yellow")
    yield from _clusters(device, context)


def _clusters(device: DeviceDoc, context: Context) -> Iterator[str]:
    """Yield the kinds of cores of a processor that has several."""
    clusters = (device.get("cpu") or {}).get("clusters")
    for cluster in clusters if isinstance(clusters, list) else ():
        if not isinstance(cluster, dict):
            continue
        mhz, fp32 = cluster.get("max_mhz"), cluster.get("fp32")
        clock = f" at {mhz:g} MHz" if isinstance(mhz, int | float) else ""
        part = f": {text.rate(fp32)} TFLOPS fp32" if isinstance(fp32, int | float) else ""
        name = cluster.get("name") or cluster.get("kind") or "unknown core"
        yield from _folded(f"{cluster.get('cores')} × {name}{clock}{part}", context)


def _peaks(peaks: Sequence[PeakDoc], context: Context, *, sparse: bool) -> Iterator[str]:
    """Yield the peaks, each with how it is derived."""
    shown = [peak for peak in peaks if sparse or peak["sparsity"] == "dense"] or list(peaks)
    if not shown:
        return
    rows: list[tuple[str, ...]] = [
        ("PEAK", "ACCUMULATE", "SPARSITY", "FIGURE", "CLOCK", "CONFIDENCE", "HOW")
    ]
    rows += map(_peak, shown)
    yield ""
    leaving = () if len({peak["sparsity"] for peak in shown}) > 1 else ("SPARSITY",)
    yield from _table(rows, context, "HOW", ("FIGURE",), leaving)
    hidden = len(peaks) - len(shown)
    if hidden:
        hint = ": --all" if context.terminal else ""
        yield from _folded(f"{counted(hidden, 'peak')} with sparsity not listed{hint}", context)


def _peak(peak: PeakDoc) -> tuple[str, ...]:
    kind = f"{peak['dtype']} {peak['path']}"
    if peak.get("variant"):
        kind += f", {peak['variant']}"
    unit = "TOPS" if "int" in peak["dtype"] else "TFLOPS"
    least = "≥ " if peak.get("bound") == "lower" else ""
    notes = [peak["source"]]
    if least:
        notes.append("a lower bound")
    if peak.get("high"):
        notes.append(f"{text.rate(peak['high'])} if all are its fastest cores")
    figure = f"{least}{text.rate(peak['tflops'])} {unit}"
    columns = (kind, peak["accumulate"], peak["sparsity"], figure, peak["clock"])
    return (*columns, peak["confidence"], "; ".join(notes))


# What `probe explain` says of a probe as a whole: primary, devices, plugins, time, findings.


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
        key = (short_name(device), state_word(device), _chip_word(device))
        groups.setdefault(key, []).append(device)
    for (name, state, chip), members in groups.items():
        count = f"{len(members)} × " if len(members) > 1 else ""
        shown = f"{count}{name}: {state}" if state else f"{count}{name}"
        yield from text.folded(context.encodable(shown), context.width, "  ", " " * 6)
        listed = " ".join(ids[member["id"]] for member in members)
        yield from text.folded(listed, context.width, " " * 4)
        yield from text.folded(chip, context.width, " " * 4)


def _chip_word(device: DeviceDoc) -> str:
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
