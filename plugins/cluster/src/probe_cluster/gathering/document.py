"""The document of `probe cluster --json`, written and read again; its names are a contract."""

from __future__ import annotations

from probe_cluster.gathering.answers import basics_of
from probe_cluster.gathering.model import LINK_CODES, STATUSES, Answer, Target
from probe_cluster.shared import (
    amount,
    rate,
    read_document,
    sentence,
    table,
    tables,
    text,
)
from probe_core.commands import write_json
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from probe_cluster.gathering.gathered import Gathered, Node
    from probe_cluster.gathering.model import EngineDoc, LinkDoc, LinkFindingDoc
    from probe_core.model.document import Json

SCHEMA = 1


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
        row = write_json({**facts(node), "report": None})
        if node.text is not None:
            row = f"{row.removesuffix('null}')}{node.text.decode('ascii')}}}"
        yield f"{write_json(node.id)}: {row}{'' if number == last else ','}"
    tail = {
        "links": gathered.links,
        "differences": gathered.differences(),
        "findings": gathered.findings,
    }
    yield f"}}, {write_json(tail)[1:]}"


def facts(node: Node) -> dict[str, object]:
    """Return a node's row without its report."""
    return {
        "name": node.name,
        "status": node.status or "timeout",
        "reason": node.reason,
        "fix": node.fix,
        "seconds": None if node.seconds is None else round(node.seconds, 3),
        "engine": node.engine,
        "sent": node.sent,
        "basics": node.basics,
    }


# The nodes of a saved document of `probe cluster --json` as answers, so that it is shown again.


class SavedCluster:
    """A saved document: its nodes, links and findings, each part that has no sound form left out.

    Raises `ClusterError` for a file that is no such document.
    """

    def __init__(self, path: str) -> None:
        self._document = read_document(path)
        self.nodes = {
            id_: (target_in(id_, table(entry)), answer_in(id_, table(entry)))
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


def target_in(id_: str, entry: Mapping[str, Json]) -> Target:
    """Return the node of a row."""
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


def answer_in(id_: str, entry: Mapping[str, Json]) -> Answer:
    """Return the answer of a row."""
    report = entry.get("report")
    if report is not None:
        sent = entry.get("sent") is True if isinstance(entry.get("sent"), bool) else None
        return Answer(id_, "ok", text=write_json(report).encode(), sent=sent)
    status = entry.get("status")
    if status == "ok" or status not in STATUSES:
        return Answer(id_, "invalid", "the saved document has no report of it", "gather it again")
    reason, fix = sentence(entry.get("reason")), sentence(entry.get("fix"))
    found = table(entry.get("basics"))
    return Answer(id_, str(status), reason, fix, basics=basics_of(found) if found else None)


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
