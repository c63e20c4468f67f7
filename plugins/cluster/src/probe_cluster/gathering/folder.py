"""The folder of ``--output``: each report as it arrives, and a journal from which a gather resumes.

The journal has a line of JSON for each node that is listed, and one for each answer; the last of a
node counts. It is only appended to, so that a gather that was killed loses nothing that arrived.
"""

from __future__ import annotations

import os

from probe_cluster.gathering.document import facts, target_in
from probe_cluster.gathering.model import Answer, Target
from probe_cluster.shared import ClusterError, table, text
from probe_core.commands import parse_json, read_report_text, replace_file, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_cluster.gathering.gathered import Gathered, Node
    from probe_core.model.document import Json


JOURNAL = "cluster.jsonl"
"""The journal's name; no report has that ending."""

_SCHEMA = 1

_MOST_NAME = 200
"""Bytes of a node's name in that of its file."""

_MOST_LINE = 1 << 20
_MOST_LINES = 400_000
"""Bounds of a journal that is read: a line is about 300 bytes, and a node has two a gather."""


class Folder:
    """A folder that gets the reports of one gather. Raises `ClusterError` where it cannot be made.

    With `resume` the journal there says what is known already.
    """

    def __init__(self, path: str, collector: str, *, resume: bool = False) -> None:
        self.path = path
        self.problem: ClusterError | None = None
        """The first file that could not be written; the others were."""
        self.known: dict[str, tuple[Target, Answer | None]] = {}
        """Node's id → how it was listed, and its report where it gave one."""
        self._names: set[str] = set()
        self._files: dict[str, str] = {}
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise ClusterError(f"--output {path}: {error.strerror or error}") from None
        self._journal = os.path.join(path, JOURNAL)
        if resume:
            self._read(collector)
        else:
            self._write(self._journal, _line({"schema": _SCHEMA, "collector": collector}))

    def take(self, node: Node) -> None:
        """Write what is new of a node: that it was listed, or its answer."""
        if node.id in self.known and (node.status is None or self.known[node.id][1] is not None):
            return
        row = {"id": node.id, **facts(node), "status": node.status, "file": None}
        if node.text is not None:
            row["file"] = self._file(node)
            if not self._write(os.path.join(self.path, str(row["file"])), node.text + b"\n"):
                row["file"] = None
        self._append(row)

    def close(self, gathered: Gathered) -> None:
        """Write what an engine counts on nodes that had answered before it counted."""
        for node in gathered.nodes.values():
            if node.engine is not None and node.id in self._files:
                row = {"id": node.id, **facts(node), "file": self._files[node.id]}
                self._append(row)

    def _file(self, node: Node) -> str:
        """Return the name of a node's file, which it keeps in a gather that is resumed."""
        if node.id not in self._files:
            self._files[node.id] = f"{_file_name(node.name, self._names)}.json"
        return self._files[node.id]

    def _append(self, row: Mapping[str, object]) -> None:
        try:
            with open(self._journal, "ab") as file:
                file.write(_line(row))
        except OSError as error:
            self._failed(self._journal, error)

    def _write(self, path: str, content: bytes) -> bool:
        try:
            replace_file(path, content)
        except OSError as error:
            self._failed(path, error)
            return False
        return True

    def _failed(self, path: str, error: OSError) -> None:
        reason = error.strerror or str(error)
        self.problem = self.problem or ClusterError(f"--output {path}: {reason}")

    def _read(self, collector: str) -> None:
        """Read the journal. Raises `ClusterError` where there is none of this engine."""
        head, *rows = _rows(self._journal)
        if head.get("schema") != _SCHEMA or head.get("collector") != collector:
            made = text(head.get("collector")) or "another program"
            raise ClusterError(f"--resume: {self._journal} is of {made}, not of {collector}")
        last: dict[str, Mapping[str, Json]] = {}
        for row in rows:
            if id_ := text(row.get("id")):
                last[id_] = row
        for id_, row in last.items():
            file = text(row.get("file"))
            is_name = file is not None and os.path.basename(file) == file
            answer = self._answer(id_, row, file) if file and is_name else None
            self.known[id_] = target_in(id_, row), answer
            if answer is not None and file:
                self._files[id_] = file
                self._names.add(file.removesuffix(".json").lower())

    def _answer(self, id_: str, row: Mapping[str, Json], file: str) -> Answer | None:
        """Return the report that a node gave before; None where its file is gone or no report."""
        if row.get("status") != "ok":
            return None
        try:
            report = read_report_text(os.path.join(self.path, file))
        except (OSError, ValueError):
            return None
        sent = row.get("sent")
        return Answer(id_, "ok", text=report, sent=sent if isinstance(sent, bool) else None)


def _line(row: Mapping[str, object]) -> bytes:
    return f"{write_json(row)}\n".encode()


def _rows(path: str) -> list[Mapping[str, Json]]:
    """Return the journal's tables; a last line that was cut off is left out."""
    rows = []
    try:
        with open(path, "rb") as file:
            for line in iter(lambda: file.readline(_MOST_LINE), b""):
                try:
                    rows.append(table(parse_json(line)))
                except (ValueError, RecursionError):
                    continue
                if len(rows) >= _MOST_LINES:
                    break
    except OSError as error:
        reason = error.strerror or str(error)
        raise ClusterError(f"--resume: {path}: {reason}; gather with --output first") from None
    return rows or [{}]


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
