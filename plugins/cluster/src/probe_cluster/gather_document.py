"""A gather as plain data, and as files; names and nesting are a contract, fields are only added."""

from __future__ import annotations

import os

from probe_cluster.errors import ClusterError
from probe_core.commands import replace_file, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypedDict

    from probe_cluster.gather_model import EngineDoc, LinkDoc, LinkFindingDoc
    from probe_cluster.gathering import Gathered, Node
    from probe_cluster.unlike import DifferenceDoc
    from probe_core.model.document import ReportDoc

    class NodeRow(TypedDict):
        """One node of the document; `report` is None where none arrived."""

        name: str
        status: str
        reason: str | None
        fix: str | None
        seconds: float | None
        engine: EngineDoc | None
        report: ReportDoc | None

    class ClusterDoc(TypedDict):
        """The document of `probe cluster --json`."""

        schema: int
        collector: str
        complete: bool
        problem: str | None
        seconds: float
        nodes: dict[str, NodeRow]
        links: list[LinkDoc]
        differences: list[DifferenceDoc]
        findings: list[LinkFindingDoc]


__all__ = ["cluster_document", "document_lines", "make_folder", "write_reports"]

SCHEMA = 1

_MOST_NAME = 200
"""Bytes of a node's name in that of its file."""


def cluster_document(gathered: Gathered) -> ClusterDoc:
    """Return the whole document, each report checked and complete; raises nothing."""
    return {
        "schema": SCHEMA,
        "collector": gathered.collector,
        "complete": gathered.complete,
        "problem": gathered.problem,
        "seconds": round(gathered.seconds, 3),
        "nodes": {node.id: _row(node) for node in gathered.nodes.values()},
        "links": gathered.links,
        "differences": gathered.differences(),
        "findings": gathered.findings,
    }


def document_lines(gathered: Gathered) -> Iterator[str]:
    """Yield the document as lines of JSON, a node on each: reports are never all objects at once.

    A report stands there as the node wrote it.
    """
    head = {
        "schema": SCHEMA,
        "collector": gathered.collector,
        "complete": gathered.complete,
        "problem": gathered.problem,
        "seconds": round(gathered.seconds, 3),
    }
    yield f'{write_json(head)[:-1]}, "nodes": {{'
    last = len(gathered.nodes) - 1
    for number, node in enumerate(gathered.nodes.values()):
        row = write_json({**_facts(node), "report": None})
        if node.text is not None:
            row = f"{row.removesuffix('null}')}{node.text.decode('ascii')}}}"
        yield f"{write_json(node.id)}: {row}{'' if number == last else ','}"
    tail = {
        "links": gathered.links,
        "differences": gathered.differences(),
        "findings": gathered.findings,
    }
    yield f"}}, {write_json(tail)[1:]}"


def _row(node: Node) -> NodeRow:
    try:
        report = node.report() if node.text is not None else None
    except (ValueError, RecursionError):
        report = None
    return {**_facts(node), "report": report}  # type: ignore[typeddict-item]


def _facts(node: Node) -> dict[str, object]:
    return {
        "name": node.name,
        "status": node.status or "timeout",
        "reason": node.reason,
        "fix": node.fix,
        "seconds": None if node.seconds is None else round(node.seconds, 3),
        "engine": node.engine,
    }


def make_folder(path: str) -> None:
    """Make the folder of the reports. Raises `ClusterError` where that fails."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise ClusterError(f"--output {path}: {error.strerror or error}") from None


def write_reports(gathered: Gathered, folder: str) -> list[str]:
    """Write each report to ``FOLDER/NODE.json``, each in one step; return the paths.

    Raises `ClusterError` for a file that cannot be written, after the others were.
    """
    paths: list[str] = []
    names: set[str] = set()
    problem: ClusterError | None = None
    for node in gathered.nodes.values():
        if node.text is None:
            continue
        name = _file_name(node.name, names)
        path = os.path.join(folder, f"{name}.json")
        try:
            replace_file(path, node.text + b"\n")
        except OSError as error:
            problem = problem or ClusterError(f"--output {path}: {error.strerror or error}")
            continue
        paths.append(path)
    if problem is not None:
        raise problem
    return paths


def _file_name(name: str, used: set[str]) -> str:
    """Return a name that is no path, no hidden file, and no other node's."""
    safe = "".join(char if char.isalnum() or char in "-_.@" else "_" for char in name)
    # A file system counts bytes: 255 with the hidden name under which it is written.
    safe = safe.encode()[:_MOST_NAME].decode("utf-8", "ignore").lstrip(".") or "node"
    unique, number = safe, 1
    # Compared without case: macOS and Windows have one file for both.
    while unique.lower() in used:
        number += 1
        unique = f"{safe}-{number}"
    used.add(unique.lower())
    return unique
