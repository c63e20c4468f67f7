"""What stands above and below the table of `probe`: the computer, the legend, and notes."""

from __future__ import annotations

from probe_core.cli.rows import has_own_memory, is_bound
from probe_core.commands import text
from probe_core.model.kinds import ACCELERATORS
from probe_core.wording import counted, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_core.cli.rows import Row
    from probe_core.commands import Context
    from probe_core.model.document import DeviceDoc, NodeMemoryDoc, ReportDoc

__all__ = ["head_lines", "notes"]

_SYSTEMS = {"linux": "Linux", "darwin": "Darwin", "windows": "Windows"}
"""Name of a system as `uname -s` writes it: on macOS the version beside it is the kernel's."""


def head_lines(report: ReportDoc, context: Context) -> list[str]:
    """Return model, system, architecture and memory of the computer."""
    node = report["node"]
    system = " ".join(filter(None, [_SYSTEMS.get(node["os"], node["os"]), node["kernel"]]))
    container = node.get("container")
    place = container and f"{container} container".replace("container container", "container")
    parts = [node["model"] or place, system, node["arch"], _memory(node["memory"])]
    shown = [context.encodable(part) for part in parts if part]
    first, *others = text.listed(shown, context.width)
    name, separator, remainder = first.partition(" · ")
    return [text.paint(name, "bold", context.colour) + separator + remainder, *others]


def _memory(memory: NodeMemoryDoc) -> str:
    """Return the system's memory: ``RAM limit 8.0 GiB of 62.5, 5.0 free``, in one unit."""
    total, limit, available = memory["total"], memory["limit"], memory["available"]
    largest = limit if total is None else total
    if largest is None:
        return "RAM unknown"
    scale, unit, digits = _unit(largest)
    amounts = [f"{amount / scale:.{digits}f}" for amount in (limit or largest, largest)]
    shown = f"RAM {amounts[0]} {unit}"
    if limit is not None:
        shown = f"RAM limit {amounts[0]} {unit}" + (f" of {amounts[1]}" if total else "")
    return shown if available is None else f"{shown}, {available / scale:.{digits}f} free"


def _unit(count: int) -> tuple[int, str, int]:
    if count >= 1 << 40:
        return 1 << 40, "TiB", 2
    return (1 << 30, "GiB", 1) if count >= 1 << 30 else (1 << 20, "MiB", 0)


def notes(report: ReportDoc, rows: Sequence[Row], context: Context, *, narrow: bool) -> list[str]:
    """Return the legend, and what a reader of the figures must know."""
    legend = text.listed(_legend(report, rows, context, narrow=narrow), context.width)
    lines = [text.paint(line, "dim", context.colour) for line in legend]
    for sentence in _sentences(report, rows, context):
        folded = text.folded(sentence, context.width)
        lines += [text.paint(line, "dim", context.colour) for line in folded]
    verdict = _verdict(report)
    if verdict:
        folded = text.folded(verdict, context.width)
        style = "red" if verdict.startswith("DEGRADED") else None
        lines += [text.paint(line, style, context.colour) for line in folded]
    return lines


def _legend(
    report: ReportDoc, rows: Sequence[Row], context: Context, *, narrow: bool
) -> Iterator[str]:
    if report["primary"]:
        yield "* primary"
    devices = [device for row in rows for device in row.devices]
    if any(device["peaks"] for device in devices):
        yield "dense peaks" if narrow else "peaks are dense, fp16 with fp32 accumulate"
    if any(peak["clock"] == "max" for d in devices if d["kind"] != "cpu" for peak in d["peaks"]):
        yield "peaks at the driver's maximum clock are upper bounds"
    if any(map(is_bound, devices)):
        yield context.encodable("≥: a lower bound")
    if context.terminal:
        yield "sources: probe explain"


def _sentences(report: ReportDoc, rows: Sequence[Row], context: Context) -> Iterator[str]:
    from_chips = [d for row in rows for d in row.devices if _is_from_chips(d)]
    if from_chips:
        asleep = all(device["power_state"] == "suspended" for device in from_chips)
        # A sleeping device's driver is not asked; the others' did not answer, or nobody asked.
        owner = "a sleeping GPU" if asleep else counted(len(from_chips), "device")
        yield f"MEMORY of {owner} comes from the chip table, not from the driver."
    for row in rows:
        yield from _limit(row.devices[0], report)
    if any(len(row.devices) > 1 and row.devices[0]["fp32"] for row in rows):
        yield context.encodable("Peaks of a row with × are those of each processor.")
    yield from _displays(report, rows, context)


def _is_from_chips(device: DeviceDoc) -> bool:
    return device["sources"].get("memory.total") == "chipdb"


def _limit(device: DeviceDoc, report: ReportDoc) -> Iterator[str]:
    """Yield what of the shared memory an accelerator may take at most, where its driver limits."""
    memory = device["memory"]
    limit = memory["parts"].get("limit")
    if device["kind"] in ACCELERATORS and limit and not has_own_memory(device, report):
        yield f"The {device['kind'].upper()} may use up to {text.size(limit)} of the shared memory."


def _displays(report: ReportDoc, rows: Sequence[Row], context: Context) -> Iterator[str]:
    listed = {device["id"] for row in rows for device in row.devices}
    displays = [device for device in report["devices"] if device["id"] not in listed]
    if not displays:
        return
    vendors = joined(dict.fromkeys(d["vendor"] or "unknown vendor" for d in displays), "and")
    are, pronoun = ("is", "it") if len(displays) == 1 else ("are", "they")
    sentence = f"{counted(len(displays), 'display adapter')} ({vendors}) {are} not listed:"
    hint = f" `probe --all` lists {'it' if len(displays) == 1 else 'them'}."
    yield f"{sentence} {pronoun} cannot compute." + (hint if context.terminal else "")


def _verdict(report: ReportDoc) -> str:
    """Return what the CPU as primary device means; empty where an accelerator is."""
    accelerators = [device for device in report["devices"] if device["kind"] in ACCELERATORS]
    if report["fallback"] == "degraded" and not accelerators:
        return "DEGRADED: a plugin failed, so an accelerator may be missing; the CPU is primary."
    if report["fallback"] == "degraded":
        gpus = all(device["kind"] == "gpu" for device in accelerators)
        devices = counted(len(accelerators), "GPU" if gpus else "accelerator")
        was, none = ("was", "it cannot") if len(accelerators) == 1 else ("were", "none can")
        return f"DEGRADED: {devices} {was} found and {none} be used; the CPU is primary."
    if report["fallback"] is None:
        return ""
    if accelerators:
        return "No accelerator can be used: the CPU is primary."
    return "No accelerator was found: the CPU is primary."
