"""The nodes of a saved document of `probe cluster --json` as answers, so that it is shown again."""

from __future__ import annotations

from probe_cluster.figures import amount, rate, text
from probe_cluster.gather_model import LINK_CODES, STATUSES, Answer, Target
from probe_cluster.report_files import read_document
from probe_core.commands import write_json
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_cluster.gather_model import EngineDoc, LinkDoc, LinkFindingDoc
    from probe_core.model.document import Json

__all__ = ["SavedCluster"]


class SavedCluster:
    """A saved document: its nodes, links and findings, each part that has no sound form left out.

    Raises `ClusterError` for a file that is no such document.
    """

    def __init__(self, path: str) -> None:
        self._document = read_document(path)
        self.nodes = {
            id_: (_target(id_, _table(entry)), _answer(id_, _table(entry)))
            for id_, entry in _table(self._document.get("nodes")).items()
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
        return [_table(row) for row in rows] if isinstance(rows, list) else []


def _target(id_: str, entry: Mapping[str, Json]) -> Target:
    return Target(id_, name=text(entry.get("name")) or "", engine=_engine(entry.get("engine")))


def _engine(value: Json) -> EngineDoc | None:
    counts = _table(value)
    source = text(counts.get("source"))
    if source is None:
        return None
    return {
        "source": clean_text(source),
        "gpus": _count(counts.get("gpus")),
        "cpus": _count(counts.get("cpus")),
        "memory": amount(counts.get("memory")),
        "state": _sentence(counts.get("state")),
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
    reason, fix = _sentence(entry.get("reason")), _sentence(entry.get("fix"))
    return Answer(id_, str(status), reason, fix)


def _link(row: Mapping[str, Json], ids: Mapping[str, str]) -> LinkDoc | None:
    ends = _ends(row.get("ends"), ids)
    if ends is None:
        return None
    there, back = _pair(row.get("bandwidths"))
    interfaces = _pair(row.get("interfaces"))
    return {
        "ends": ends,
        "kind": _sentence(row.get("kind")),
        "latency": rate(row.get("latency")),
        "round_trip": rate(row.get("round_trip")),
        "bandwidth": rate(row.get("bandwidth")),
        "bandwidths": [rate(there), rate(back)],
        "interfaces": [_sentence(interface) for interface in interfaces],
        "speed": rate(row.get("speed")),
        "reason": _sentence(row.get("reason")),
        "fix": _sentence(row.get("fix")),
    }


def _finding(row: Mapping[str, Json], ids: Mapping[str, str]) -> LinkFindingDoc | None:
    nodes, code = _ends(row.get("nodes"), ids), row.get("code")
    if nodes is None or code not in LINK_CODES:
        return None
    return {
        "code": str(code),
        "severity": "warning",
        "nodes": nodes,
        "what": _sentence(row.get("what")) or "",
        "why": _sentence(row.get("why")) or "",
        "fix": _sentence(row.get("fix")) or "",
        "evidence": _sentence(row.get("evidence")) or "",
    }


def _ends(value: Json, ids: Mapping[str, str]) -> list[str] | None:
    ends = [ids.get(str(end)) for end in _pair(value)]
    own = [end for end in ends if end is not None]
    return own if len(own) == 2 else None


def _pair(value: Json) -> list[Json]:
    return value if isinstance(value, list) and len(value) == 2 else [None, None]


def _sentence(value: Json) -> str | None:
    return clean_text(value, 600) if isinstance(value, str) and value else None


def _table(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}
