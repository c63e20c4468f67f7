"""What `probe explain` says of one device: its state, the source of each value, its peaks."""

from __future__ import annotations

from probe_core.cli.values import readable, value_at
from probe_core.commands import text
from probe_core.commands.tables import grid_rows
from probe_core.model.readiness import state_word
from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import DeviceDoc, PeakDoc

__all__ = ["device_lines"]

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
    if device.get("measured"):
        from probe_core.cli.explain_measured import measured_rows

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
