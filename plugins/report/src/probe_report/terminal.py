"""Writes a page as text: for a terminal, a mail or a ticket, at most 80 columns wide."""

from __future__ import annotations

from probe_core.commands import folded, grid, listed
from probe_report.figures import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probe_report.cluster import Cluster
    from probe_report.page import Page
    from probe_report.picture import Box, Card, Package, Picture
    from probe_report.summary import Entry, Findings, Head

WIDTH = 80

_MOST_COLUMNS = 12
"""Devices of a matrix that 80 columns have room for: a label and five characters for each."""

_LABEL = 21
"""Columns of a tile's label: "Accelerator memory:" with two spaces."""

_STEP = 2
"""Columns by which a box stands inside of another."""


def page_lines(page: Page) -> Iterator[str]:
    """Yield the lines of the page of one node."""
    yield from _head(page.head)
    yield from _node(page)
    yield from _views(page)
    yield from _distances(page)
    yield from _sources(page)
    yield from _probers(page)
    yield from _notes(page.notes)


def cluster_lines(cluster: Cluster) -> Iterator[str]:
    """Yield the lines of several nodes: one table, then each node."""
    yield from _titled(f"{cluster.title}: {cluster.state.mark} {cluster.state.text}", "=")
    yield from folded(cluster.eyebrow, WIDTH)
    yield ""
    rows = [("NODE", "STATE", "ACCELERATORS", "MEMORY", "FP16", "HOST", "FINDINGS")]
    rows += [
        (row.name, row.state.text, row.accelerators, row.memory, row.peak, row.host_memory,
         row.findings)
        for row in cluster.rows
    ]  # fmt: skip
    leaving = ("HOST", "FP16", "MEMORY", "FINDINGS")
    yield from grid(rows, WIDTH, right=("MEMORY", "FP16", "HOST"), wrap="ACCELERATORS",
                    leaving=leaving)  # fmt: skip
    if cluster.hidden:
        yield f"{cluster.hidden} more nodes are not shown."
    if cluster.differences:
        yield from _section("Differences")
        for entry in cluster.differences:
            yield from _entry(entry)
    for name, page in cluster.pages:
        yield ""
        yield from _titled(f"{name}: {page.head.title}", "=")
        yield from folded(f"{page.head.state.mark} {page.head.state.text}", WIDTH)
        yield from _node(page)
    yield from _notes(cluster.notes)


def _titled(text: str, line: str) -> Iterator[str]:
    lines = folded(text, WIDTH)
    yield from lines
    yield line * max(map(len, lines), default=1)


def _section(title: str) -> Iterator[str]:
    yield ""
    yield from _titled(title, "-")


def _head(head: Head) -> Iterator[str]:
    yield from _titled(f"{head.title}: {head.state.mark} {head.state.text}", "=")
    yield from folded(head.eyebrow, WIDTH)
    yield from folded(head.meta, WIDTH)
    yield ""
    for tile in head.tiles:
        value = f"{tile.value} {tile.unit}".rstrip()
        lines = folded(f"{value} ({tile.note})", WIDTH, " " * _LABEL)
        yield f"{tile.label}:".ljust(_LABEL) + lines[0][_LABEL:]
        yield from lines[1:]


def _node(page: Page) -> Iterator[str]:
    yield from _findings(page.findings)
    yield from _picture(page.picture)
    yield from _devices(page)
    yield from _readiness(page)


def _findings(findings: Findings) -> Iterator[str]:
    yield from _section("Findings")
    entries = (*findings.open, *findings.folded)
    if not entries:
        yield "None: nothing on this node needs a look."
    for entry in entries:
        yield from _entry(entry)
    if findings.hidden:
        yield f"{findings.hidden} more are not shown: `probe --json` has all."


def _entry(entry: Entry) -> Iterator[str]:
    for sentence in entry.sentences:
        yield from folded(f"{entry.mark} {entry.severity}: {sentence}", WIDTH, "", "  ")
    if entry.beyond:
        yield f"  and {entry.beyond} more like it"
    if entry.cause:
        yield from folded(f"why: {entry.cause}", WIDTH, "  ", " " * 7)
    if entry.evidence:
        yield from folded(f"seen: {entry.evidence}", WIDTH, "  ", " " * 8)
    if entry.fix:
        yield from folded(f"fix: {entry.fix}", WIDTH, "  ", " " * 7)


def _picture(picture: Picture) -> Iterator[str]:
    yield from _section("The node")
    yield f"{picture.memory} of system memory"
    for package in picture.packages:
        yield from _package(package)
    for fabric in picture.fabrics:
        yield from listed([fabric.title, fabric.note], WIDTH)
    for sentence in filter(None, (picture.numbers, picture.beyond)):
        yield f"{sentence}."


def _package(package: Package) -> Iterator[str]:
    parts = [package.title, package.cpu, package.note]
    yield from listed(parts, WIDTH, "  ", "    ", separator=" · ")
    yield from _box(package.box, 2 * _STEP)
    if package.displays:
        yield from folded(package.displays, WIDTH, " " * 2 * _STEP)


def _box(box: Box, indent: int) -> Iterator[str]:
    for inner in box.boxes:
        yield " " * indent + f"{inner.title} {inner.address}".rstrip()
        yield from _box(inner, indent + _STEP)
    for card in box.cards:
        yield from _card(card, indent)


def _card(card: Card, indent: int) -> Iterator[str]:
    bar = _bar(card.used) if card.has_bar else ""
    parts = [f"{card.label} {card.name}", card.status, f"{bar} {card.memory}".strip(), card.link]
    yield from listed([*parts, card.address], WIDTH, " " * indent, " " * (indent + 4))
    for part in card.parts:
        yield " " * (indent + 2 * _STEP) + part


def _bar(share: float | None) -> str:
    """Return ``[####......]``; question marks where it is not known."""
    if share is None:
        return "[??????????]"
    full = round(share / 10)
    return f"[{'#' * full}{'.' * (10 - full)}]"


def _devices(page: Page) -> Iterator[str]:
    yield from _section("Devices")
    rows: list[tuple[str, ...]] = [
        ("DEVICE", "STATE", "MEMORY", "FP32", "FP16", "INT8", "GB/S", "DRIVER")
    ]
    for row in page.devices.rows:
        figures = [figure.derived for figure in row.figures] or [""] * 4
        count = f"{row.number} × " if row.number > 1 else ""
        rows.append((f"{count}{row.name}", row.status, row.memory, *figures, row.driver))
    right = ("MEMORY", "FP32", "FP16", "INT8", "GB/S")
    yield from grid(rows, WIDTH, right=right, wrap="DEVICE", leaving=("DRIVER", "GB/S", "INT8"))
    yield "Each device, not together: TFLOPS, TOPS and GB/s, derived."
    if page.devices.measured:
        yield "Measured here by `probe bench`:"
    for line in page.devices.measured:
        yield from folded(line, WIDTH, "  ", "    ")
    if page.devices.hidden:
        yield f"{page.devices.hidden} more devices are not shown."


def _readiness(page: Page) -> Iterator[str]:
    if page.chains:
        yield from _section("Readiness")
    for chain in page.chains:
        yield from folded(f"{chain.title} ({chain.ids}): {chain.status}", WIDTH, "", "  ")
        yield from listed([f"{step.mark} {step.name}" for step in chain.steps], WIDTH, "  ")
        if chain.cause:
            yield from folded(f"{chain.cause}: {chain.reason or UNKNOWN}", WIDTH, "  ", "    ")
        if chain.fix:
            yield from folded(f"fix: {chain.fix}", WIDTH, "  ", " " * 7)
    if page.chains_hidden:
        yield f"{page.chains_hidden} more kinds of devices are not shown."


def _views(page: Page) -> Iterator[str]:
    if page.views:
        yield from _section("Visibility by runtime")
    for view in page.views:
        order = f" ({view.order})" if view.order else ""
        yield from folded(f"{view.mark} {view.runtime}: {view.shown}{order}", WIDTH, "", "    ")
        for reason in view.reasons:
            yield from folded(reason, WIDTH, "    ")


def _distances(page: Page) -> Iterator[str]:
    matrix = page.distances
    if matrix is None or len(matrix.labels) > _MOST_COLUMNS:
        return
    yield from _section("Distances")
    heads = ["", *matrix.heads]
    body = zip(matrix.labels, matrix.rows, strict=True)
    yield from grid([heads, *([label, *cells] for label, cells in body)], WIDTH)
    yield from folded(matrix.meanings, WIDTH)
    if matrix.hidden:
        yield f"{matrix.hidden} more devices are not in the table."


def _sources(page: Page) -> Iterator[str]:
    yield from _section("Sources of every figure")
    for source in page.sources.groups:
        yield from listed([f"{source.title} ({source.ids})", source.chip], WIDTH, "", "  ")
        for line in source.lines:
            value = f" {line.value}" if line.value else ""
            text = f"{line.name}:{value} [{line.confidence}] {line.how}"
            yield from folded(text, WIDTH, "  ", " " * 6)
        if source.hidden:
            yield f"  {source.hidden} more lines are not shown."
    if page.sources.hidden:
        yield f"{page.sources.hidden} more kinds of devices are not shown."


def _probers(page: Page) -> Iterator[str]:
    yield from _section("Probers")
    rows = [("PROBER", "STATUS", "TIME", "DEVICES", "REASON")]
    rows += [(run.name, run.status, run.spent, run.devices, run.reason) for run in page.runs]
    yield from grid(rows, WIDTH, right=("TIME", "DEVICES"), wrap="REASON")
    for run in page.skipped:
        yield from folded(f"{run.name}, not run: {run.reason}", WIDTH, "", "  ")
    if page.runs_hidden:
        yield f"{page.runs_hidden} more are not shown."


def _notes(notes: Iterable[str]) -> Iterator[str]:
    yield ""
    for note in notes:
        yield from folded(note, WIDTH)
