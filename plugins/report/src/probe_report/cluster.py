"""Several nodes on one page: each report is a row of one table, and a page of its own to fold out.

Takes the reports of `probe --json` and the document of `probe cluster --json`. A file that cannot
be read is refused, not left out: a page that lacks a node is worse than none.
"""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import (
    CommandError,
    parse_json,
    parse_report,
    read_report_text,
    write_json,
)
from probe_core.wording import counted
from probe_report.figures import CELL, SENTENCE, UNKNOWN, cut
from probe_report.page import Page, page_of
from probe_report.summary import Entry, State, Tile, state_of_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from probe_core.model.document import Json, ReportDoc

    Prepare = Callable[[ReportDoc], ReportDoc]

MOST_ROWS = 256
"""Rows of the table, at some 600 bytes of the page each."""

MOST_PAGES = 64
"""Nodes whose own page is made at all; the HTML has as many of them as there is room for."""

_MOST_DIFFERENCES = 24

_CLUSTER_LIMIT = 64 << 20
"""Bytes of a cluster's document: 800 nodes of eight GPUs at 80 kB."""


class Member(NamedTuple):
    """One node: its name, its report, or why there is none."""

    name: str
    report: ReportDoc | None
    reason: str


class Row(NamedTuple):
    """One node of the table; `fold` is whether the page has its own part."""

    name: str
    state: State
    accelerators: str
    memory: str
    peak: str
    processor: str
    host_memory: str
    driver: str
    findings: str
    fold: bool


class Cluster(NamedTuple):
    """All nodes. `pages` are those with a part of their own, `hidden` counts the missing rows."""

    title: str
    eyebrow: str
    state: State
    tiles: tuple[Tile, ...]
    rows: tuple[Row, ...]
    hidden: int
    differences: tuple[Entry, ...]
    pages: tuple[tuple[str, Page], ...]
    notes: tuple[str, ...]


def members_of(
    files: Sequence[str], *, private: bool, prepare: Prepare
) -> tuple[list[Member], tuple[Entry, ...]]:
    """Return the nodes of all files, and what a cluster's document says of their differences.

    A file may be written ``NAME=FILE``. Other names are host names, so that without `private` a
    node is called by its place. Raises `CommandError` for a file that holds no report.
    """
    members: list[Member] = []
    differences: list[Entry] = []
    for text in files:
        name, path = _split(text)
        document = _parsed(path)
        if "nodes" in document:
            members += _gathered(path, document, len(members), private=private, prepare=prepare)
            differences += _differences(document, private=private)
            continue
        own = name or (_stem(path) if private else f"node {len(members) + 1}")
        members.append(Member(own, prepare(_report(path, document)), ""))
    return members, tuple(differences[:_MOST_DIFFERENCES])


def _split(text: str) -> tuple[str, str]:
    """Return the name before the file, ``desk=desk.json``; "" where a path has the sign itself."""
    name, sign, path = text.partition("=")
    if not sign or "/" in name or not path:
        return "", text
    return cut(name, 64), path


def _stem(path: str) -> str:
    name = path.replace("\\", "/").rpartition("/")[2]
    return cut(name.removesuffix(".json"), 64) or "node"


def _parsed(path: str) -> dict[str, Json]:
    try:
        document = parse_json(read_report_text(path, _CLUSTER_LIMIT))
    except OSError as error:
        raise CommandError(f"--cluster {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise CommandError(f"--cluster {path}: {_no_report(error)}") from None
    if not isinstance(document, dict):
        raise CommandError(f"--cluster {path}: {_no_report(ValueError('no table'))}")
    return document


def _no_report(error: Exception) -> str:
    reason = str(error) if isinstance(error, ValueError) and "MiB" in str(error) else "no report"
    return f"{reason}; give files of `probe --json` or `probe cluster --json`"


def _report(path: str, document: Json) -> ReportDoc:
    try:
        return parse_report(write_json(document).encode())
    except (ValueError, RecursionError) as error:
        raise CommandError(f"--cluster {path}: {error or 'nested too deep'}") from None


def _gathered(
    path: str, document: Mapping[str, Json], before: int, *, private: bool, prepare: Prepare
) -> Iterator[Member]:
    nodes = document["nodes"]
    if not isinstance(nodes, dict):
        raise CommandError(f"--cluster {path}: {_no_report(ValueError())}")
    for number, node in enumerate(nodes.values(), start=before + 1):
        table = node if isinstance(node, dict) else {}
        name = f"node {number}"
        if private:
            name = cut(str(table.get("name") or name), 64)
        if table.get("report") is None:
            reason = table.get("reason") if private else table.get("status")
            yield Member(name, None, cut(str(reason or "no report"), CELL))
        else:
            yield Member(name, prepare(_report(path, table["report"])), "")


def _differences(document: Mapping[str, Json], *, private: bool) -> Iterator[Entry]:
    """Yield what differs; the sentences name hosts, so without `private` the fields stand alone."""
    entries = document.get("differences")
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            continue
        severity = "warning" if entry.get("severity") == "warning" else "info"
        nodes = entry.get("nodes")
        count = len(nodes) if isinstance(nodes, list) else 0
        plain = f"{counted(count, 'node')} unlike the others: {entry.get('field')}"
        expected = f"the others have {entry['expected']}" if entry.get("expected") else ""
        yield Entry(
            severity=severity,
            mark="!" if severity == "warning" else "i",
            sentences=(cut(str(entry.get("what")) if private else plain, SENTENCE),),
            beyond=0,
            cause=cut(str(entry.get("why") or "") if private else expected, SENTENCE),
            fix=cut(str(entry.get("fix") or "") if private else "", SENTENCE),
            code=cut(str(entry.get("code") or ""), CELL),
            evidence="",
        )


def cluster_of(
    members: Sequence[Member], differences: tuple[Entry, ...], notes: tuple[str, ...]
) -> Cluster:
    """Return the page of several nodes."""
    pages: list[tuple[str, Page]] = []
    rows: list[Row] = []
    for member in members[:MOST_ROWS]:
        if member.report is None:
            rows.append(_absent(member))
            continue
        page = page_of(member.report, raw=False)
        fold = len(pages) < MOST_PAGES
        rows.append(_row(member.name, member.report, page, fold=fold))
        if fold:
            pages.append((member.name, page))
    return Cluster(
        title=f"{counted(len(members), 'node')}",
        eyebrow=_eyebrow(members),
        state=_state(members),
        tiles=_tiles(members),
        rows=tuple(rows),
        hidden=len(members[MOST_ROWS:]),
        differences=differences,
        pages=tuple(pages),
        notes=notes,
    )


def _absent(member: Member) -> Row:
    state = State("✕", member.reason, "bad")
    dash = UNKNOWN
    return Row(member.name, state, dash, dash, dash, dash, dash, dash, "", fold=False)


def _row(name: str, report: ReportDoc, page: Page, *, fold: bool) -> Row:
    accelerators, memory, peak, host = page.head.tiles
    cpus = [package.cpu for package in page.picture.packages if package.cpu]
    drivers = dict.fromkeys(row.driver for row in page.devices.rows if row.figures and row.driver)
    title = page.head.title if accelerators.value != "0" else "none"
    is_memory = memory.label == "Accelerator memory"
    return Row(
        name=name,
        state=page.head.state,
        accelerators=title,
        memory=f"{memory.value} {memory.unit}".rstrip() if is_memory else UNKNOWN,
        peak=peak.value if is_memory else UNKNOWN,
        processor=cut(f"{len(cpus)} × {cpus[0]}" if len(cpus) > 1 else "".join(cpus[:1])),
        host_memory=f"{host.value} {host.unit}".rstrip(),
        driver=cut(", ".join(list(drivers)[:2])),
        findings=_counts(report),
        fold=fold,
    )


def _counts(report: ReportDoc) -> str:
    severities = [finding["severity"] for finding in report["findings"]]
    counts = ((severities.count(severity), severity) for severity in ("error", "warning"))
    return ", ".join(counted(count, severity) for count, severity in counts if count) or "none"


def _eyebrow(members: Sequence[Member]) -> str:
    absent = sum(member.report is None for member in members)
    return f"{counted(absent, 'node')} without a report" if absent else "each node has a report"


def _state(members: Sequence[Member]) -> State:
    """Return the worst of the nodes' states, with how many nodes are in it."""
    states = [
        State("✕", "without a report", "bad")
        if member.report is None
        else state_of_node(member.report)
        for member in members
    ]
    for style in ("bad", "warn"):
        count = sum(state.style == style for state in states)
        if count:
            mark = "✕" if style == "bad" else "!"
            verb = "needs" if count == 1 else "need"
            return State(mark, f"{count} of {len(states)} nodes {verb} a look", style)
    unknown = sum(state.mark == "?" for state in states)
    if unknown:
        return State("?", f"readiness of {unknown} of {len(states)} nodes not known", "none")
    return State("✓", "every node is ready", "good")


def _tiles(members: Sequence[Member]) -> tuple[Tile, ...]:
    """Return the four tiles of all nodes together, made of the nodes' own figures."""
    from probe_report.summary import tiles_of

    reports = [member.report for member in members if member.report is not None]
    return (Tile("Nodes", str(len(members)), "", _eyebrow(members)), *tiles_of(reports))
