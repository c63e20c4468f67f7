"""Read a cluster from report files; every error names the file or the node."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping

from probe_cluster.cluster_file import read_cluster_file
from probe_cluster.errors import ClusterError
from probe_cluster.members import Member, member
from probe_cluster.report_files import is_cluster_file, split_id
from probe_core.commands import read_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_cluster.links import Links
    from probe_core.model.document import ReportDoc

__all__ = ["read_members", "read_reports", "split_id"]


def read_reports(files: Iterable[str], links: Links | None = None) -> dict[str, ReportDoc]:
    """Return node id → report's document, in the order given.

    Each file is what `probe --json` wrote. Its node's id is what stands before ``=`` (desk=FILE),
    else the file's name without its ending. Or it is what `probe cluster --json` wrote: then it has
    many nodes with their names, and `links` gets those that were measured. Raises `ClusterError`
    for a file that is neither and for an id that is there twice.
    """
    reports: dict[str, ReportDoc] = {}
    origin: dict[str, str] = {}
    for argument in files:
        id_, path = split_id(argument)
        for name, report in _of_file(id_, path, links).items():
            if name in reports:
                raise ClusterError(
                    f"node {name!r} is in two files: {origin[name]} and {path};"
                    f" name one of them: other={path}",
                    node=name,
                )
            reports[name] = report
            origin[name] = path
    return reports


def _of_file(id_: str, path: str, links: Links | None) -> dict[str, ReportDoc]:
    if not is_cluster_file(path):
        return {id_: _document(path, id_)}
    reports, measured = read_cluster_file(path)
    if links is not None:
        links.add_measured(measured)
    return reports


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


def read_members(
    files: Iterable[str],
    *,
    devices: str = "all",
    bandwidth: Mapping[str, float] | None = None,
    assumed: float | None = None,
    engine: str = "auto",
    links: Links | None = None,
) -> list[Member]:
    """Return the members that the files describe; `links` gets what a cluster's document measured.

    `bandwidth` gives a node's memory bandwidth, `assumed` that of every node that does not tell
    it, both in bytes per second; `engine` is one of `ENGINES`. Raises `ClusterError`.
    """
    speeds = dict(bandwidth or {})
    reports = read_reports(files, links)
    for id_ in speeds:
        if id_ not in reports:
            names = ", ".join(reports)
            raise ClusterError(f"a bandwidth names node {id_!r}; there are {names}", node=id_)
    return [
        member(id_, report, devices=devices, bandwidth=speeds.get(id_, assumed), engine=engine)
        for id_, report in reports.items()
    ]
