"""The table of `probe`: its rows, the lines above and below it, and the findings."""

from __future__ import annotations

from probe_core.commands import text
from probe_core.model.findings import NO_FIX
from probe_core.model.ids import ACCELERATORS
from probe_core.model.naming import cores, short_ids, title
from probe_core.model.verdict import state_word, usable_here
from probe_core.wording import counted, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import (
        DeviceDoc,
        FindingDoc,
        NodeMemoryDoc,
        OutcomeDoc,
        ReportDoc,
    )


# The rows of `probe`'s table: which devices, in which order, and what stands in each cell.

UNKNOWN = "–"
FIGURES = {"FP16": ("fp16", "TFLOPS"), "FP32": ("fp32", "TFLOPS"), "INT8": ("int8", "TOPS")}
"""Columns of peaks, the one that tells most first: field and unit."""

_STYLES = {
    "asleep": "cyan",
    "MIG mode": "dim",
    "not granted": "yellow",
    "passthrough": "yellow",
    "limited": "yellow",
    "no driver": "red",
    "no permission": "red",
    "driver error": "red",
    "timed out": "red",
    "lost": "red",
}
"""Word of STATE to its colour; the others have none."""


class Row:
    """One row: a device, or equal processors.

    `cells` has a text for each column; that of DEVICE is the `mark` and the name behind it.
    `devices` are those that the row stands for.
    """

    def __init__(
        self, devices: Sequence[DeviceDoc], cells: dict[str, str], is_primary: bool
    ) -> None:
        first = devices[0]
        self.devices = devices
        self.name = cells["DEVICE"]
        self.is_primary = is_primary
        self.mark = ("* " if is_primary else "  ") + ("└ " if first.get("parent") else "")
        self.cells = {**cells, "DEVICE": self.mark + self.name}
        is_useless = first["kind"] in ("display", "coprocessor")
        self.is_dim = is_useless or usable_here(first).usable is False
        self.state_style = _STYLES.get(cells["STATE"])
        if self.state_style:  # the word has its own colour, and a device that is lost is no detail
            self.is_dim = False


def rows_of(report: ReportDoc, *, all_devices: bool, show: Callable[[str], str] = str) -> list[Row]:
    """Return the rows, in the order of the table; `show` makes a text fit for the terminal.

    Accelerators come first, the primary one with its parts before the others, then processors;
    display adapters only with `all_devices`.
    """
    devices = [d for d in report["devices"] if all_devices or d["kind"] != "display"]
    ids = short_ids(device["id"] for device in report["devices"])
    by_id = {device["id"]: device for device in devices}
    rows = []
    for group in _united(_in_order(devices, report["primary"])):
        parent = by_id.get(group[0].get("parent") or "")
        cells = {name: show(cell) for name, cell in _cells(group, parent, report, ids).items()}
        is_primary = any(device["id"] == report["primary"] for device in group)
        rows.append(Row(group, cells, is_primary))
    return rows


def _in_order(devices: Sequence[DeviceDoc], primary: str | None) -> list[DeviceDoc]:
    """Return parents with their parts below them, the primary's family first of its kind."""
    by_id = {device["id"] for device in devices}
    families: dict[str, list[DeviceDoc]] = {}
    for device in sorted(devices, key=lambda device: device.get("parent") in by_id):
        head = device.get("parent")
        families.setdefault(head if head in by_id and head else device["id"], []).append(device)
    ranked = sorted(
        families.values(),
        key=lambda family: (
            family[0]["kind"] not in ACCELERATORS,
            all(device["id"] != primary for device in family),
        ),
    )
    return [device for family in ranked for device in family]


def _united(devices: Sequence[DeviceDoc]) -> list[list[DeviceDoc]]:
    """Return the devices one by one, but equal processors together."""
    groups: dict[object, list[DeviceDoc]] = {}
    for device in devices:
        key: object = device["id"]
        if device["kind"] == "cpu":
            figures = [device["fp32"], device["fp16"], device["int8"], device["bandwidth"]]
            key = repr((device["name"], device.get("units"), device.get("allowed"), figures))
        groups.setdefault(key, []).append(device)
    return list(groups.values())


def _cells(
    group: Sequence[DeviceDoc], parent: DeviceDoc | None, report: ReportDoc, ids: dict[str, str]
) -> dict[str, str]:
    device, count = group[0], len(group)
    name = title(device, parent) + cores(device, each=count > 1)
    memory, free = _memory(device, report)
    return {
        "DEVICE": f"{count} × {name}" if count > 1 else name,
        "STATE": state_word(device),
        "MEMORY": memory,
        "FREE": free,
        **{column: _figure(device, field) for column, (field, _) in FIGURES.items()},
        "BANDW.": text.bandwidth(device["bandwidth"]).partition(" ")[0],
        "ID": ids[device["id"]] if count == 1 else _joined_ids([ids[d["id"]] for d in group]),
    }


def has_own_memory(device: DeviceDoc, report: ReportDoc) -> bool:
    """Return whether the device's memory is another amount than the system's.

    An APU's is: what its firmware set aside, and what its driver may take of the system's.
    """
    memory = device["memory"]
    if memory["kind"] not in ("shared", "unified"):
        return True
    total = memory["total"]
    return total is not None and total != report["node"]["memory"]["total"]


def _memory(device: DeviceDoc, report: ReportDoc) -> tuple[str, str]:
    """Return how much memory the device has, and how much of it is free."""
    if device["kind"] == "display":
        return "", ""
    if not has_own_memory(device, report):
        return "shared", ""
    memory = device["memory"]
    # A static report may lack what only newer cores write.
    free = memory.get("free") if memory.get("free") is not None else memory.get("usable")
    return _gib(memory["total"]), _gib(free)


def _gib(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count / (1 << 30):.1f}"


def _figure(device: DeviceDoc, field: str) -> str:
    """Return a peak, marked where it rests on an idle clock or an unknown core."""
    if device["kind"] == "display":
        return ""
    value: float | None = device[field]  # type: ignore[literal-required]  # of FIGURES
    shown = text.rate(value)
    return f"≥ {shown}" if value is not None and is_bound(device) else shown


def is_bound(device: DeviceDoc) -> bool:
    """Return whether the device's figures are lower bounds."""
    return any(peak.get("bound") == "lower" for peak in device["peaks"])


def _joined_ids(ids: Sequence[str]) -> str:
    """Return the ids of equal processors: ``cpu:0-1`` for cpu:0 and cpu:1."""
    numbers = [name.removeprefix("cpu:") for name in ids]
    if not all(number.isdecimal() for number in numbers):
        return ", ".join(ids)
    first, last = int(numbers[0]), int(numbers[-1])
    if [int(number) for number in numbers] == list(range(first, last + 1)):
        return f"cpu:{first}-{last}"
    return f"cpu:{','.join(numbers)}"


# What stands above and below the table of `probe`: the computer, the legend, and notes.

_SYSTEMS = {"linux": "Linux", "darwin": "Darwin", "windows": "Windows"}
"""Name of a system as `uname -s` writes it: on macOS the version beside it is the kernel's."""


_MEMORY_UNITS = ((1 << 40, "TiB", 2), (1 << 30, "GiB", 1), (1 << 20, "MiB", 0))
"""Bytes, name and decimals of the units in which the system's memory is shown, largest first."""


def head_lines(report: ReportDoc, context: Context) -> list[str]:
    """Return model, system, architecture and memory of the computer."""
    node = report["node"]
    system = " ".join(filter(None, [_SYSTEMS.get(node["os"], node["os"]), node["kernel"]]))
    container = node.get("container")
    place = container and f"{container} container".replace("container container", "container")
    parts = [node["model"] or place, system, node["arch"], _memory_note(node["memory"])]
    shown = [context.encodable(part) for part in parts if part]
    first, *others = text.listed(shown, context.width)
    name, separator, remainder = first.partition(" · ")
    return [text.paint(name, "bold", context.colour) + separator + remainder, *others]


def _memory_note(memory: NodeMemoryDoc) -> str:
    """Return the system's memory: ``RAM limit 8.0 GiB of 62.5, 5.0 free``, in one unit.

    That is the unit of the limit: a container of 40 MiB is not one of 0.0 GiB.
    """
    total, limit, available = memory["total"], memory["limit"], memory["available"]
    largest = limit if total is None else total
    if largest is None:
        return "RAM unknown"
    fitting = (entry for entry in _MEMORY_UNITS if (limit or largest) >= entry[0])
    scale, unit, digits = next(fitting, _MEMORY_UNITS[-1])
    amounts = [f"{amount / scale:.{digits}f}" for amount in (limit or largest, largest)]
    shown = f"RAM {amounts[0]} {unit}"
    if limit is not None:
        shown = f"RAM limit {amounts[0]} {unit}" + (f" of {amounts[1]}" if total else "")
    return shown if available is None else f"{shown}, {available / scale:.{digits}f} free"


def notes(report: ReportDoc, rows: Sequence[Row], context: Context, *, narrow: bool) -> list[str]:
    """Return the legend, and what a reader of the figures must know."""
    legend = text.listed(_legend(report, rows, context, narrow=narrow), context.width)
    lines = [text.paint(line, "dim", context.colour) for line in legend]
    for sentence in _sentences(report, rows, context):
        folded = text.folded(sentence, context.width)
        lines += [text.paint(line, "dim", context.colour) for line in folded]
    if report["fallback"] is not None:
        verdict = _verdict(report)
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
    devices = [device for row in rows for device in row.devices]
    from_chips = [d for d in devices if d["sources"].get("memory.total") == "chipdb"]
    if from_chips:
        asleep = all(device["power_state"] == "suspended" for device in from_chips)
        # A sleeping device's driver is not asked; the others' did not answer, or nobody asked.
        owner = "a sleeping GPU" if asleep else counted(len(from_chips), "device")
        yield f"MEMORY of {owner} comes from the chip table, not from the driver."
    for device in (row.devices[0] for row in rows):
        limit = device["memory"]["parts"].get("limit")
        if device["kind"] in ACCELERATORS and limit and not has_own_memory(device, report):
            kind, size = device["kind"].upper(), text.size(limit)
            yield f"The {kind} may use up to {size} of the shared memory."
    if any(len(row.devices) > 1 and row.devices[0]["fp32"] for row in rows):
        yield context.encodable("Peaks of a row with × are those of each processor.")
    listed = {device["id"] for device in devices}
    displays = [device for device in report["devices"] if device["id"] not in listed]
    if displays:
        yield _unlisted(displays, context)


def _unlisted(displays: Sequence[DeviceDoc], context: Context) -> str:
    """Return that display adapters are no rows, and why."""
    vendors = joined(dict.fromkeys(d["vendor"] or "unknown vendor" for d in displays), "and")
    are, they, them = ("is", "it", "it") if len(displays) == 1 else ("are", "they", "them")
    sentence = f"{counted(len(displays), 'display adapter')} ({vendors}) {are} not listed:"
    hint = f" `probe --all` lists {them}." if context.terminal else ""
    return f"{sentence} {they} cannot compute.{hint}"


def _verdict(report: ReportDoc) -> str:
    """Return what the CPU as primary device means."""
    accelerators = [device for device in report["devices"] if device["kind"] in ACCELERATORS]
    if report["fallback"] == "degraded" and not accelerators:
        is_refused = any(finding["code"] == "prober-refused" for finding in report["findings"])
        what = "did not run" if is_refused else "failed"
        return f"DEGRADED: a plugin {what}, so an accelerator may be missing; the CPU is primary."
    if report["fallback"] == "degraded":
        gpus = all(device["kind"] == "gpu" for device in accelerators)
        devices = counted(len(accelerators), "GPU" if gpus else "accelerator")
        was, none = ("was", "it cannot") if len(accelerators) == 1 else ("were", "none can")
        if _is_undecided(accelerators):
            none = "it is not known whether it can" if len(accelerators) == 1 else "none surely can"
        return f"DEGRADED: {devices} {was} found and {none} be used; the CPU is primary."
    if _is_undecided(accelerators):
        return "No accelerator is known to be usable: the CPU is primary."
    if accelerators:
        return "No accelerator can be used: the CPU is primary."
    return "No accelerator was found: the CPU is primary."


def _is_undecided(accelerators: Sequence[DeviceDoc]) -> bool:
    """Return whether one of them may be usable, and nothing shows that it is."""
    return any(usable_here(device).usable is None for device in accelerators)


# The table of `probe`: a row a device, or two lines where the terminal is narrow, then notes.
#
# A model's name is never cut: columns leave first, then each device takes two lines, then its name
# wraps at a space. A cut name misleads, see fastfetch#224 ("RX 470/480/").

_UNITS = {
    "DEVICE": "",
    "STATE": "",
    "MEMORY": "GiB",
    "FREE": "GiB",
    "FP32": "TFLOPS",
    "FP16": "TFLOPS",
    "INT8": "TOPS",
    "BANDW.": "GB/s",
    "ID": "",
}
"""Columns in their order, and the units below their heads."""

_HEADS = {**{column: column for column in _UNITS}, "DEVICE": "  DEVICE"}
"""That of DEVICE stands above the names, not the mark."""

_LEAVING = ("BANDW.", "INT8", "FP32", "FREE")
"""Columns in the order in which they leave where the terminal is narrow."""

_TWO_LINES_BELOW = 72
"""Columns of a terminal on which each device takes two lines: a head, five columns and an id take
about as many with a short name (mockups)."""


def lines(report: ReportDoc, context: Context) -> list[str]:
    """Return the head line, the table of devices, the notes and the findings."""
    findings = summary_lines(report, context) if report["findings"] else []
    all_devices = bool(getattr(context.args, "all", False))
    rows = rows_of(report, all_devices=all_devices, show=context.encodable)
    if not rows:  # of a static report that somebody wrote
        return [*head_lines(report, context), "", "no device", *findings]
    columns = _columns(rows, context.width)
    if columns is None:
        table = _two_lines_each(rows, context)
    else:
        table = _one_line_each(rows, columns, context)
    below = notes(report, rows, context, narrow=columns is None)
    return [*head_lines(report, context), "", *table, "", *below, *findings]


def _columns(rows: Sequence[Row], width: int) -> dict[str, int] | None:
    """Return the columns that fit, with their widths; None where each device takes two lines."""
    if width < _TWO_LINES_BELOW:
        return None
    widths = {
        name: max(map(text.width_of, [head, _UNITS[name], *(row.cells[name] for row in rows)]))
        for name, head in _HEADS.items()
        if name == "DEVICE" or _has_value(rows, name)
    }
    for name in ("", *_LEAVING):
        if name in widths and _may_leave(name, rows, widths):
            del widths[name]
        if text.table_width([*widths.values()]) <= width:
            return widths
    return None


def _has_value(rows: Sequence[Row], column: str) -> bool:
    return any(row.cells[column] not in ("", UNKNOWN, "-") for row in rows)


def _may_leave(column: str, rows: Sequence[Row], columns: Iterable[str]) -> bool:
    """Return whether no accelerator loses its only peak with a column."""
    if column not in FIGURES:
        return True
    others = [name for name in columns if name in FIGURES and name != column]
    for row in rows:
        is_alone = _has_value([row], column) and not any(_has_value([row], o) for o in others)
        if is_alone and (row.devices[0]["kind"] in ACCELERATORS or not others):
            return False
    return True


def _one_line_each(rows: Sequence[Row], widths: dict[str, int], context: Context) -> list[str]:
    """Return the heads, their units where a column has one, and each row's line."""
    figures = [place for place, column in enumerate(widths) if _UNITS[column]]
    heads = [_HEADS, _UNITS] if figures else [_HEADS]
    lines = [
        text.aligned([cells[column] for column in widths], [*widths.values()], figures)
        for cells in (*heads, *(row.cells for row in rows))
    ]
    if not context.colour:
        return lines
    output = [text.paint(line, "dim", True) for line in lines[: len(heads)]]
    for row, line in zip(rows, lines[len(heads) :], strict=True):
        output.append(_painted(row, line, widths["DEVICE"]))
    return output


def _painted(row: Row, line: str, width: int) -> str:
    """Return a row's line in its colours, which take no columns; its first one has `width`."""
    if row.is_dim:
        return text.paint(line, "dim", True)
    name, state = row.cells["DEVICE"], row.cells["STATE"]
    # The state stands behind the name's column, so the name is painted last.
    start = width + len(text.GAP) - (text.width_of(name) - len(name))
    line = line[:start] + line[start:].replace(state, text.paint(state, row.state_style, True), 1)
    return text.paint(name, "bold", True) + line[len(name) :] if row.is_primary else line


def _two_lines_each(rows: Sequence[Row], context: Context) -> list[str]:
    longest = max(text.width_of(row.cells["DEVICE"]) for row in rows)
    state = max(text.width_of(row.cells["STATE"]) for row in rows)
    edge = min(context.width, max(_TWO_LINES_BELOW, longest + len(text.GAP) + state))
    output = []
    for row in rows:
        shown = [*_name_lines(row, edge, context)]
        shown += text.listed(_details(row), context.width, " " * 4)
        is_dim = row.is_dim and context.colour
        output += [text.paint(line, "dim", True) for line in shown] if is_dim else shown
    return output


def _name_lines(row: Row, edge: int, context: Context) -> list[str]:
    """Return the name, wrapped at spaces, with the state at the end of its first line."""
    state = row.cells["STATE"]
    room = edge - len(text.GAP) - text.width_of(state)
    first, *others = text.folded(row.name, room, row.mark, " " * 4)
    space = " " * (edge - text.width_of(first) - text.width_of(state))
    colour = context.colour and not row.is_dim
    style = "bold" if row.is_primary else None
    line = text.paint(first, style, colour) + space + text.paint(state, row.state_style, colour)
    return [line.rstrip(), *(text.paint(other, style, colour) for other in others)]


def _details(row: Row) -> list[str]:
    """Return memory, the peak that tells most, and the id: what a narrow terminal shows."""
    memory, free = row.cells["MEMORY"], row.cells["FREE"]
    details = []
    if memory == "shared":
        details.append("shared memory")
    elif _has_value([row], "MEMORY"):
        details.append(f"{memory} GiB" + (f", {free} free" if _has_value([row], "FREE") else ""))
    for column, (field, unit) in FIGURES.items():
        if _has_value([row], column):
            details.append(f"{field} {row.cells[column]} {unit}")
            break
    return [*details, row.cells["ID"]]


# Findings as lines for people: one line each in a report, with cause and fix elsewhere.

_SEVERITY_STYLES = {"error": "red", "warning": "yellow", "info": "dim"}
_RANK = ("error", "warning", "info")

_HINT = "`probe doctor` tells cause and fix"

_WITH_CAUSE = (
    "chip-file-unusable",
    "config-ignored",
    "prober-failed",
    "prober-unavailable",
    "restriction-unusable",
    "static-unusable",
)
"""Codes whose sentence is the same for every cause: "a setting was ignored"."""

# The table has a note of its own for these.
_NOTED = ("display-only",)


def summary_lines(report: ReportDoc, context: Context) -> list[str]:
    """Return a line for each finding, most severe first, and where cause and fix are told.

    The code stands behind it where both fit the line. Findings that differ in their device alone
    are one line; ids are written as the table writes them.
    """
    groups: dict[tuple[str, str, str], list[str]] = {}
    ids = short_ids(device["id"] for device in report["devices"])
    for finding in report["findings"]:
        if finding["code"] not in _NOTED:
            device = finding["device"] or ""
            sentence = _shortened(_subject(finding).replace(device or _PLACE, _PLACE), ids)
            key = (finding["severity"], finding["code"], sentence)
            groups.setdefault(key, []).append(ids.get(device, device))
    lines = [""] if groups else []
    for severity, code, sentence in sorted(groups, key=lambda key: _RANK.index(key[0])):
        subjects = groups[severity, code, sentence]
        shown = _of(sentence, subjects)
        lines += _summary(severity, context.encodable(shown), code, context)
    if groups and context.terminal:
        lines.append(" " * _INDENT + text.paint(_HINT, "dim", context.colour))
    return lines


_INDENT = len("warning") + 2
_PLACE = "\0"
"""Stands for the device's id in a sentence; clean text has no such character."""

_SHOWN_IDS = 4
"""Ids of one line: about half of an 80-column terminal."""


def _subject(finding: FindingDoc) -> str:
    """Return what is the matter, with the cause where that is all the news."""
    if finding["code"] in _WITH_CAUSE:
        return f"{finding['what']}: {finding['why']}"
    return finding["what"]


def _shortened(sentence: str, ids: Mapping[str, str]) -> str:
    for whole, short in ids.items():
        if short != whole and ":" in sentence:
            sentence = sentence.replace(whole, short).replace(whole.removeprefix("pci:"), short)
    return sentence


def _of(sentence: str, subjects: Sequence[str]) -> str:
    """Return the sentence about all its devices; how often it occurs where it names none."""
    if _PLACE not in sentence:
        return f"{sentence} ({len(subjects)} times)" if len(subjects) > 1 else sentence
    more = len(subjects) - _SHOWN_IDS
    shown = [*subjects[:_SHOWN_IDS], *([f"{more} more"] if more > 0 else [])]
    if len(subjects) > 1 and sentence.startswith(f"{_PLACE} is "):
        sentence = sentence.replace(" is ", " are ", 1)
    return sentence.replace(_PLACE, joined(shown, "and"))


def _summary(severity: str, sentence: str, code: str, context: Context) -> list[str]:
    coded = f"{sentence} [{code}]"
    indent = " " * _INDENT
    fits = text.width_of(coded) + _INDENT <= context.width
    lines = text.folded(coded if fits else sentence, context.width, indent) or [indent]
    word = text.paint(severity, _SEVERITY_STYLES[severity], context.colour)
    lines[0] = word + lines[0][len(severity) :]
    return lines


def finding_lines(findings: Iterable[FindingDoc], context: Context) -> list[str]:
    """Return the findings; those with one cause and fix (eight GPUs, one driver) together."""
    groups: dict[tuple[str, ...], list[FindingDoc]] = {}
    for finding in findings:
        key = (finding["severity"], finding["code"], finding["why"], finding["fix"])
        groups.setdefault(key, []).append(finding)
    return [line for group in groups.values() for line in _group_lines(group, context)]


def _group_lines(group: Sequence[FindingDoc], context: Context) -> list[str]:
    first = group[0]
    lines = [""]
    sentences = [finding["what"] for finding in group]
    for sentence in dict.fromkeys(sentences):
        lines += _headline(first["severity"], sentence, sentences.count(sentence), context)
    lines += text.folded(f"why: {first['why']}", context.width, "  ")
    if first["fix"] != NO_FIX:
        lines += text.folded(f"fix: {first['fix']}", context.width, "  ")
    return lines


def _headline(severity: str, sentence: str, count: int, context: Context) -> list[str]:
    times = f" ({count} times)" if count > 1 else ""
    lines = text.folded(f"{severity}: {sentence}{times}", context.width)
    # Coloured after wrapping, which would count the escape sequence as columns.
    word = text.paint(severity, _SEVERITY_STYLES[severity], context.colour)
    lines[0] = word + lines[0][len(severity) :]
    return lines


# What probers that succeeded printed, where the setting `verbose` keeps it.


def printed_lines(outcomes: Iterable[OutcomeDoc]) -> Iterator[str]:
    """Yield the output of each run that succeeded, under the prober's name.

    That of a run that failed has its place beside the failure, and is not repeated.
    """
    from probe_core.model.ids import FAILURES

    for outcome in outcomes:
        output = outcome.get("stderr")
        if output and outcome["status"] not in FAILURES and not outcome.get("phase"):
            yield f"{outcome['prober']} printed:"
            yield from (f"  | {line}" for line in output)


# Lines about the devices that a request leaves out because this process cannot use them.


def exclusions(excluded: Mapping[str, str]) -> list[str]:
    """Return one line for each reason, with the ids of the devices that it excludes."""
    groups: dict[str, list[str]] = {}
    for name, reason in excluded.items():
        groups.setdefault(reason, []).append(name)
    return [f"leaves out {', '.join(names)}: {reason}" for reason, names in groups.items()]


def unconfined_line(devices: Sequence[DeviceDoc]) -> str:
    """Return what is said of devices to which no variable confines a program."""
    ids = ", ".join(device["id"] for device in devices)
    return f"does not hide others beside {ids}: no variable is known that does"
