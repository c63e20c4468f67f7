"""Read a saved document of `probe cluster --json`: its reports, and the links that it measured."""

from __future__ import annotations

from collections import Counter

from probe_cluster.errors import ClusterError
from probe_cluster.figures import rate
from probe_cluster.link_units import bits, milliseconds
from probe_cluster.links import Link
from probe_cluster.report_files import is_cluster_file, read_document, table
from probe_core.commands import parse_report, write_json
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.model.document import Json, ReportDoc

    Saved = tuple[dict[str, ReportDoc], dict[tuple[str, str], Link]]
    """Node → report, and two nodes → the link between them."""

__all__ = ["is_cluster_file", "read_cluster_file", "read_document"]


def read_cluster_file(path: str) -> Saved:
    """Return the reports and links of a saved document. Raises `ClusterError`.

    A node is called by its name, by its id where two have one name. A node without a report is
    left out, and so is a link that was not measured.
    """
    document = read_document(path)
    entries = table(document.get("nodes"))
    names = _names(entries)
    reports: dict[str, ReportDoc] = {}
    for id_, entry in entries.items():
        report = table(entry).get("report")
        if report is None:
            continue
        try:
            reports[names[id_]] = parse_report(write_json(report).encode())
        except (ValueError, RecursionError) as error:
            problem = f"{path}: node {names[id_]!r} has no usable report: {error}"
            raise ClusterError(problem, node=names[id_]) from None
    if not reports:
        raise ClusterError(f"{path}: no node of it has a report")
    return reports, _links(document.get("links"), names, reports)


def _names(entries: Mapping[str, Json]) -> dict[str, str]:
    """Return id → what the node is called."""
    names = {id_: table(entry).get("name") for id_, entry in entries.items()}
    counts = Counter(name for name in names.values() if isinstance(name, str))
    return {
        id_: clean_text(name if isinstance(name, str) and counts[name] == 1 and name else id_)
        for id_, name in names.items()
    }


def _links(
    rows: Json, names: Mapping[str, str], reports: Mapping[str, ReportDoc]
) -> dict[tuple[str, str], Link]:
    links = {}
    for row in map(table, rows if isinstance(rows, list) else []):
        ends = row.get("ends")
        if not isinstance(ends, list) or len(ends) != 2:
            continue
        pair = [names.get(str(end), "") for end in ends]
        bandwidth, latency = rate(row.get("bandwidth")), rate(row.get("latency"))
        if bandwidth and latency and pair[0] in reports and pair[1] in reports:
            kind = f"measured, {bits(bandwidth)}, {milliseconds(latency)}"
            links[min(pair), max(pair)] = Link(kind, bandwidth, latency)
    return links
