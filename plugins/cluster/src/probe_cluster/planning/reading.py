"""Read the nodes of a plan from files of reports; every error names the file or the node."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain

from probe_cluster.planning.links import Link
from probe_cluster.planning.members import Member, member
from probe_cluster.shared import (
    ClusterError,
    bits,
    is_cluster_file,
    milliseconds,
    rate,
    read_document,
    split_id,
    table,
    tables,
)
from probe_core.commands import parse_report, read_report, write_json
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from probe_cluster.planning.links import Links
    from probe_core.model.document import Json, ReportDoc


def _of_cluster_file(
    path: str, links: dict[tuple[str, str], Link]
) -> Iterator[tuple[str, ReportDoc]]:
    """Yield each node of a document of `probe cluster` that has a report; `links` then gets theirs.

    A node is called by its name, by its id where two have one name. A link that was not measured
    is left out.
    """
    document = read_document(path)
    entries = dict(table(document.get("nodes")))
    names = _names(entries)
    reported = set()
    for id_ in names:
        report = table(entries.pop(id_)).get("report")
        if report is None:
            continue
        try:
            complete = parse_report(write_json(report).encode())
        except (ValueError, RecursionError) as error:
            problem = f"{path}: node {names[id_]!r} has no usable report: {error}"
            raise ClusterError(problem, node=names[id_]) from None
        reported.add(names[id_])
        yield names[id_], complete
    if not reported:
        raise ClusterError(f"{path}: no node of it has a report")
    links |= _links(document.get("links"), names, reported)


def _names(entries: Mapping[str, Json]) -> dict[str, str]:
    """Return id → what the node is called."""
    names = {id_: table(entry).get("name") for id_, entry in entries.items()}
    counts = Counter(name for name in names.values() if isinstance(name, str))
    return {
        id_: clean_text(name if isinstance(name, str) and counts[name] == 1 and name else id_)
        for id_, name in names.items()
    }


def _links(rows: Json, names: Mapping[str, str], reports: Set[str]) -> dict[tuple[str, str], Link]:
    links = {}
    for row in tables(rows):
        ends = row.get("ends")
        if not isinstance(ends, list) or len(ends) != 2:
            continue
        pair = [names.get(str(end), "") for end in ends]
        bandwidth, latency = rate(row.get("bandwidth")), rate(row.get("latency"))
        if bandwidth and latency and pair[0] in reports and pair[1] in reports:
            kind = f"measured, {bits(bandwidth)}, {milliseconds(latency)}"
            links[min(pair), max(pair)] = Link(kind, bandwidth, latency)
    return links


def each_report(
    files: Iterable[str], links: Links | None = None
) -> Iterator[tuple[str, ReportDoc]]:
    """Yield each node's id and report, in the order given: of many none need be kept.

    Each file is what `probe --json` wrote. Its node's id is what stands before ``=`` (desk=FILE),
    else the file's name without its ending. Or it is what `probe cluster --json` wrote: then it has
    many nodes with their names, and `links` gets those that were measured. Raises `ClusterError`
    for a file that is neither and for an id that is there twice.
    """
    origin: dict[str, str] = {}
    for argument in files:
        id_, path = split_id(argument)
        for name, report in _of_file(id_, path, links):
            if name in origin:
                raise ClusterError(
                    f"node {name!r} is in two files: {origin[name]} and {path};"
                    f" name one of them: other={path}",
                    node=name,
                )
            origin[name] = path
            yield name, report


def _of_file(id_: str, path: str, links: Links | None) -> Iterator[tuple[str, ReportDoc]]:
    if not is_cluster_file(path):
        yield id_, _document(path, id_)
        return
    measured: dict[tuple[str, str], Link] = {}
    yield from _of_cluster_file(path, measured)
    if links is not None:
        links.add_measured(measured)


def _document(path: str, id_: str) -> ReportDoc:
    try:
        return read_report(path)
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror or error}", node=id_) from None
    except (ValueError, RecursionError) as error:
        fix = "write it with `probe --json` of this version"
        problem = (str(error) or "nested too deep") + _schema(path)
        raise ClusterError(f"{path} is no usable report: {problem}; {fix}", node=id_) from None


# Bytes; a report of eight GPUs takes about 100 KiB.
_PEEK_LIMIT = 1 << 20


def _schema(path: str) -> str:
    """Return which schema a refused file has, or which other document it is, as an addition."""
    # A pipe was read to its end already, or would never end.
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read(_PEEK_LIMIT))
    except (OSError, ValueError, RecursionError):
        return ""
    if not isinstance(document, dict):
        return f" (it is a {type(document).__name__})"
    for keys, meaning in _OTHERS.items():
        if all(key in document for key in keys):
            return f" (it is {meaning})"
    schema = document.get("schema")
    if type(schema) is int and schema != 1:
        return f" (it has schema {str(schema)[:20]})"
    return ""


_OTHERS = {
    ("peer_graph", "nodes"): "a topology of old exo",
    ("plans", "fit"): "a document of `probe partition --json`",
    ("num_hidden_layers",): "a model's config.json: give it with --model",
}


def described(have: Iterable[str], links: Links | None) -> Iterator[tuple[str, Json]]:
    """Yield the reports of computers that nobody has probed; their data is read for these alone."""
    texts = list(have)
    if texts:
        from probe_cluster.planning.whatif import what_if

        yield from what_if(texts, links).items()


def read_members(
    files: Iterable[str],
    *,
    devices: str = "all",
    bandwidth: Mapping[str, float] | None = None,
    assumed: float | None = None,
    engine: str = "auto",
    links: Links | None = None,
    have: Iterable[str] = (),
) -> list[Member]:
    """Return the members that the files describe; `links` gets what a cluster's document measured.

    `have` describes computers that nobody has probed, as `what_if` reads them.
    `bandwidth` gives a node's memory bandwidth, `assumed` that of every node that does not tell
    it, both in bytes per second; `engine` is one of `ENGINES`. Raises `ClusterError`.
    """
    speeds = dict(bandwidth or {})
    members = [
        member(id_, report, devices=devices, bandwidth=speeds.get(id_, assumed), engine=engine)
        for id_, report in chain(each_report(files, links), described(have, links))
    ]
    known = {each.id for each in members}
    for id_ in speeds:
        if id_ not in known:
            names = ", ".join(each.id for each in members)
            raise ClusterError(f"a bandwidth names node {id_!r}; there are {names}", node=id_)
    return members
