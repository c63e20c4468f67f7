"""A gather on a terminal: one line while nodes are waited for, then a table."""

from __future__ import annotations

import sys
import time
from collections import Counter

from probe_cluster.shared import names
from probe_core.commands import folded, grid_rows, paint, size
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TextIO

    from probe_cluster.gathering.gathered import Gathered, Node
    from probe_cluster.gathering.summaries import Gpu, Summary
    from probe_core.commands import Context


_FRAME_S = 0.2
_CLEAR = "\r\033[K"

_WIDTH = 79
"""Columns: a longer line would wrap on the narrowest usual terminal, and could not be erased."""


class ProgressLine:
    """The line on one terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._due = 0.0
        self._shown = 0

    def __call__(self, gathered: Gathered) -> None:
        """Draw how many nodes have answered, and who is waited for."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _FRAME_S
        waiting = [node.name for node in gathered.waiting]
        done = len(gathered.nodes) - len(waiting)
        line = f"{done} of {counted(len(gathered.nodes), 'node')}, {gathered.seconds:.0f} s"
        if waiting:
            line += f", waiting for {names(waiting)}"
        self._write(_CLEAR + clean_text(line, _WIDTH))

    def arrived(self, node: Node) -> None:
        """Print what came of a node, above the line; of many nodes those that failed alone."""
        if node.status is None:
            return
        self._shown += 1
        if node.status == "ok" and self._shown > _ALONE:
            return
        what = _devices(node.summary) if node.summary is not None else node.reason
        seconds = f" ({node.seconds:.1f} s)" if node.seconds is not None else ""
        line = f"{node.name}: {node.status}: {what}"
        self._write(f"{_CLEAR}{clean_text(line, _WIDTH - len(seconds))}{seconds}\n")
        self._due = self._due or 1e-9

    def pairs(self, done: int, total: int, seconds: float) -> None:
        """Draw how many pairs are measured."""
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _FRAME_S
            self._write(f"{_CLEAR}{done} of {counted(total, 'pair')}, {seconds:.0f} s")

    def erase(self) -> None:
        """Remove the line."""
        if self._due:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        encoding = self._stream.encoding or "ascii"
        try:
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone
            pass


def progress_line(environ: Mapping[str, str]) -> ProgressLine | None:
    """Return the line; None where nobody would read it."""
    stream = sys.stderr
    try:
        terminal = stream is not None and stream.isatty()
    except ValueError:
        terminal = False
    if not terminal or environ.get("CI") or environ.get("TERM") == "dumb":
        return None
    return ProgressLine(stream)


_HEAD = ("NODE", "STATUS", "GPUS", "USABLE", "ENGINE", "MEMORY", "DRIVER", "DEVICES")
_RIGHT = ("USABLE", "ENGINE", "MEMORY", "GPUS")

_ALONE = 40
"""Nodes up to which each has its own row: a screen. Beyond, alike nodes share one."""

_STYLES = {"error": "red", "warning": "yellow", "info": "dim"}


def table(gathered: Gathered, context: Context) -> list[str]:
    """Return the lines for a terminal."""
    groups = _groups(list(gathered.nodes.values()))
    rows = [_HEAD, *(_row(nodes) for nodes in groups)]
    shown = [[context.encodable(cell) for cell in row] for row in rows]
    leaving = ("DRIVER", "MEMORY", "ENGINE")
    heads, *body = grid_rows(shown, context.width, right=_RIGHT, wrap="DEVICES", leaving=leaving)
    lines = [paint(head, "dim", context.colour) for head in heads]
    for nodes, row in zip(groups, body, strict=True):
        style = None if nodes[0].status == "ok" else "red"
        lines += [paint(line, style, context.colour) for line in row]
    lines += ["", *folded(_total(gathered), context.width)]
    lines += _failures(gathered, context)
    return [*lines, *_differences(gathered, context)]


def _groups(nodes: Sequence[Node]) -> list[list[Node]]:
    if len(nodes) <= _ALONE:
        return [[node] for node in nodes]
    groups: dict[tuple[str, ...], list[Node]] = {}
    for node in nodes:
        groups.setdefault(_row([node])[1:], []).append(node)
    return sorted(groups.values(), key=len, reverse=True)


def _row(nodes: Sequence[Node]) -> tuple[str, ...]:
    node, summary = nodes[0], nodes[0].summary
    name = names([each.name for each in nodes])
    count = node.engine["gpus"] if node.engine is not None else None
    engine = "" if count is None else f"{count:g}"
    status = node.status or "timeout"
    if summary is None:
        return (name, status, "", "", engine, "", "", "")
    return (
        name,
        status,
        str(len(summary.gpus_alone)),
        _usable(summary.usable),
        engine,
        size(summary.memory),
        _drivers(summary),
        _devices(summary),
    )


def _usable(gpus: Sequence[Gpu]) -> str:
    """Return how many are known to be usable; a dash where that is known of none."""
    unknown = sum(gpu.unknown for gpu in gpus)
    return "–" if gpus and unknown == len(gpus) else str(len(gpus) - unknown)


def _drivers(summary: Summary) -> str:
    return ", ".join(sorted({gpu.driver for gpu in summary.gpus if gpu.driver is not None}))


def _devices(summary: Summary) -> str:
    counts = Counter(gpu.name for gpu in summary.whole)
    models = [f"{count} × {name}" if count > 1 else name for name, count in counts.items()]
    return ", ".join(models) or summary.cpu or "unknown CPU"


def _total(gathered: Gathered) -> str:
    summaries = [node.summary for node in gathered.nodes.values() if node.summary is not None]
    gpus = sum(len(summary.gpus_alone) for summary in summaries)
    usable = [gpu for summary in summaries for gpu in summary.usable]
    unknown = sum(gpu.unknown for gpu in usable)
    answered = f"{len(summaries)} of {counted(len(gathered.nodes), 'node')} answered"
    tail = f"{counted(gpus, 'GPU')}, {len(usable) - unknown} usable" if gpus else "no GPU"
    if unknown:
        tail += f", {unknown} unknown"
    if any(gpu.parent is not None for gpu in usable):
        tail += ", partitions counted"
    return f"{answered} in {gathered.seconds:.1f} s: {tail}"


def _failures(gathered: Gathered, context: Context) -> Iterator[str]:
    """Yield each reason once, with its nodes."""
    if gathered.problem is not None:
        yield from _painted(gathered.problem, "red", context)
    reasons: dict[tuple[str, str | None, str | None], list[str]] = {}
    for node in gathered.missing:
        reasons.setdefault((node.status or "", node.reason, node.fix), []).append(node.name)
    for (status, reason, fix), nodes in reasons.items():
        sentence = f"{names(nodes)}: {status}: {reason}"
        yield from _painted(f"{sentence}; {fix}" if fix else sentence, "red", context)


def _differences(gathered: Gathered, context: Context) -> Iterator[str]:
    for entry in gathered.differences():
        sentence = entry["what"]
        if entry["why"]:
            sentence += f"; {entry['why']}"
        if entry["fix"] and entry["severity"] != "info":
            sentence += f"; {entry['fix']}"
        yield from _painted(f"{entry['severity']}: {sentence}", _STYLES[entry["severity"]], context)


def _painted(sentence: str, style: str, context: Context) -> Iterator[str]:
    for line in folded(context.encodable(sentence), context.width, hanging="  "):
        yield paint(line, style, context.colour)
