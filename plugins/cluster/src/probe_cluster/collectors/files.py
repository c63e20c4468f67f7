"""Reports that are files already: what `probe --json` wrote on each node."""

from __future__ import annotations

from probe_cluster.gather_model import Answer, Target
from probe_cluster.reading import split_id
from probe_core.commands import read_report_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_cluster.gather_model import Limits, Sink

__all__ = ["Files"]


class Files:
    """Files, each of one node; desk=FILE gives the node an id, else the file's name does."""

    name = "files"

    def __init__(self, files: Sequence[str]) -> None:
        self._files = list(files)

    async def targets(self) -> list[Target]:
        """Return a node for each file; of two with one id the second is ID#2."""
        targets: dict[str, Target] = {}
        for argument in self._files:
            id_, path = split_id(argument)
            key, number = id_, 1
            while key in targets:
                number += 1
                key = f"{id_}#{number}"
            targets[key] = Target(key, path)
        return list(targets.values())

    async def collect(self, targets: Sequence[Target], limits: Limits, sink: Sink) -> None:
        """Read each file."""
        for target in targets:
            sink.answer(_answer(target))


def _answer(target: Target) -> Answer:
    fix = "write it there: probe --json > FILE"
    try:
        return Answer(target.id, "ok", text=read_report_text(target.address))
    except OSError as error:
        return Answer(target.id, "missing", f"{target.address}: {error.strerror or error}", fix)
    except ValueError as error:
        return Answer(target.id, "invalid", f"{target.address}: {error}", fix)
