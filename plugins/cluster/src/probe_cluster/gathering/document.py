"""The document of `probe cluster --json`, written and read again; its names are a contract."""

from __future__ import annotations

import os

from probe_cluster.gathering.model import LINK_CODES, STATUSES, Answer, Target
from probe_cluster.shared import (
    ClusterError,
    amount,
    rate,
    read_document,
    sentence,
    table,
    tables,
    text,
)
from probe_core.commands import replace_file, write_json
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypedDict

    from probe_cluster.gathering.differences import DifferenceDoc
    from probe_cluster.gathering.gathered import Gathered, Node
    from probe_cluster.gathering.model import EngineDoc, LinkDoc, LinkFindingDoc
    from probe_core.model.document import Json, ReportDoc

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


# The nodes of a saved document of `probe cluster --json` as answers, so that it is shown again.


class SavedCluster:
    """A saved document: its nodes, links and findings, each part that has no sound form left out.

    Raises `ClusterError` for a file that is no such document.
    """

    def __init__(self, path: str) -> None:
        self._document = read_document(path)
        self.nodes = {
            id_: (_target(id_, table(entry)), _answer(id_, table(entry)))
            for id_, entry in table(self._document.get("nodes")).items()
        }

        problem = self._document.get("problem")
        self.problem = problem if isinstance(problem, str) and problem else None
        """What was wrong with the engine as a whole."""

    def links(self, ids: Mapping[str, str]) -> list[LinkDoc]:
        """Return the measured links; `ids` are the nodes' ids beside those of other files."""
        return [link for row in self._rows("links") if (link := _link(row, ids)) is not None]

    def findings(self, ids: Mapping[str, str]) -> list[LinkFindingDoc]:
        """Return the findings about its links."""
        rows = (_finding(row, ids) for row in self._rows("findings"))
        return [finding for finding in rows if finding is not None]

    def _rows(self, key: str) -> list[Mapping[str, Json]]:
        rows = self._document.get(key)
        return tables(rows)


def _target(id_: str, entry: Mapping[str, Json]) -> Target:
    return Target(id_, name=text(entry.get("name")) or "", engine=_engine(entry.get("engine")))


def _engine(value: Json) -> EngineDoc | None:
    counts = table(value)
    source = text(counts.get("source"))
    if source is None:
        return None
    return {
        "source": clean_text(source),
        "gpus": _count(counts.get("gpus")),
        "cpus": _count(counts.get("cpus")),
        "memory": amount(counts.get("memory")),
        "state": sentence(counts.get("state")),
    }


def _count(value: Json) -> float | None:
    """Return a number of GPUs or CPUs; none at all is 0 and not unknown."""
    return value if type(value) in (int, float) and value == 0 else rate(value)


def _answer(id_: str, entry: Mapping[str, Json]) -> Answer:
    report = entry.get("report")
    if report is not None:
        return Answer(id_, "ok", text=write_json(report).encode())
    status = entry.get("status")
    if status == "ok" or status not in STATUSES:
        return Answer(id_, "invalid", "the saved document has no report of it", "gather it again")
    reason, fix = sentence(entry.get("reason")), sentence(entry.get("fix"))
    return Answer(id_, str(status), reason, fix)


def _link(row: Mapping[str, Json], ids: Mapping[str, str]) -> LinkDoc | None:
    ends = _ends(row.get("ends"), ids)
    if ends is None:
        return None
    there, back = _pair(row.get("bandwidths"))
    interfaces = _pair(row.get("interfaces"))
    return {
        "ends": ends,
        "kind": sentence(row.get("kind")),
        "latency": rate(row.get("latency")),
        "round_trip": rate(row.get("round_trip")),
        "bandwidth": rate(row.get("bandwidth")),
        "bandwidths": [rate(there), rate(back)],
        "interfaces": [sentence(interface) for interface in interfaces],
        "speed": rate(row.get("speed")),
        "reason": sentence(row.get("reason")),
        "fix": sentence(row.get("fix")),
    }


def _finding(row: Mapping[str, Json], ids: Mapping[str, str]) -> LinkFindingDoc | None:
    nodes, code = _ends(row.get("nodes"), ids), row.get("code")
    if nodes is None or code not in LINK_CODES:
        return None
    return {
        "code": str(code),
        "severity": "warning",
        "nodes": nodes,
        "what": sentence(row.get("what")) or "",
        "why": sentence(row.get("why")) or "",
        "fix": sentence(row.get("fix")) or "",
        "evidence": sentence(row.get("evidence")) or "",
    }


def _ends(value: Json, ids: Mapping[str, str]) -> list[str] | None:
    ends = [ids.get(str(end)) for end in _pair(value)]
    own = [end for end in ends if end is not None]
    return own if len(own) == 2 else None


def _pair(value: Json) -> list[Json]:
    return value if isinstance(value, list) and len(value) == 2 else [None, None]
