"""Reports that are files already: what `probe --json` or `probe cluster --json` wrote."""

from __future__ import annotations

from dataclasses import replace

from probe_cluster.gathering.model import Answer, Target
from probe_cluster.shared import ClusterError, is_cluster_file, split_id
from probe_core.commands import read_report_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_cluster.gathering.document import SavedCluster
    from probe_cluster.gathering.model import Limits, Sink


_FIX = "write it there: probe --json > FILE"


class Files:
    """Files, each of one node; desk=FILE gives the node an id, else the file's name does.

    A saved document of a cluster has many nodes, their links, and why some have no report.
    """

    name = "files"

    def __init__(self, files: Sequence[str]) -> None:
        self._files = list(files)
        self._targets: dict[str, Target] = {}
        self._answers: dict[str, Answer] = {}
        self._saved: list[tuple[SavedCluster, dict[str, str]]] = []

    async def targets(self) -> list[Target]:
        """Return a node for each file; of two with one id the second is ID#2."""
        self._targets, self._answers, self._saved = {}, {}, []
        for argument in self._files:
            id_, path = split_id(argument)
            if is_cluster_file(path):
                self._add_saved(id_, path)
            else:
                self._add(Target(id_, path))
        return list(self._targets.values())

    def _add(self, target: Target) -> str:
        key, number = target.id, 1
        while key in self._targets:
            number += 1
            key = f"{target.id}#{number}"
        self._targets[key] = replace(target, id=key)
        return key

    def _add_saved(self, id_: str, path: str) -> None:
        from probe_cluster.gathering.document import SavedCluster

        try:
            saved = SavedCluster(path)
        except ClusterError as error:
            self._answers[self._add(Target(id_, path))] = Answer(id_, "invalid", str(error))
            return
        ids: dict[str, str] = {}
        for own, (target, answer) in saved.nodes.items():
            ids[own] = self._add(target)
            self._answers[ids[own]] = answer
        self._saved.append((saved, ids))

    async def collect(self, targets: Sequence[Target], limits: Limits, sink: Sink) -> None:
        """Read each file; nodes of a saved document were read with it."""
        for target in targets:
            answer = self._answers.pop(target.id, None)
            sink.answer(replace(answer, id=target.id) if answer else _answer(target))
        for saved, ids in self._saved:
            sink.links(saved.links(ids), saved.findings(ids))
            if saved.problem is not None:
                sink.problem(saved.problem)


def _answer(target: Target) -> Answer:
    try:
        return Answer(target.id, "ok", text=read_report_text(target.address))
    except OSError as error:
        return Answer(target.id, "missing", f"{target.address}: {error.strerror or error}", _FIX)
    except ValueError as error:
        return Answer(target.id, "invalid", f"{target.address}: {error}", _FIX)
