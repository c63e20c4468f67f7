"""How a node's report travels through an engine that mixes the lines of all nodes.

A shell script runs `probe --json` on the node and prints its text in pieces. Each line bears a
mark, the node's name and a number. So banners, labels and the lines of other nodes do no harm, and
a piece that is missing is noticed.

Each line is 512 bytes and one write: a divisor of the 1,024 bytes of Slurm's messages
(MAX_MSG_LEN, slurmstepd) and of the 4,096 of Open MPI's reads, which both pass on what they have,
line or not. Longer lines of two nodes were mixed in the middle.
"""

from __future__ import annotations

import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Line = tuple[str, str, str, bytes]
    """Node, tag, kind, data."""


MARK = b"#probe-cluster "

LINE_SIZE = 512
"""Bytes of a line, its end included."""

_MOST_LINE = 4096
"""Bytes of a line that can be ours, with the label that an engine puts before it."""

MOST_TEXT = 4 << 20
"""Bytes of a report: as many as a file of one may have."""

_MOST_STREAMS = 200_000
"""Nodes of one engine: twice the largest cluster that the plan of docs/explanation names."""

TO_STDERR = "exec 1>&2; "
"""What a script begins with where standard output is no pipe on the node. Open MPI 4.1 gives each
process a terminal there, whose reads of 4,095 bytes cut lines, and a pipe for standard error."""

# The tag keeps nodes of one host name apart. csh expands "!" and fish reads a backslash within
# quotes: there is none of either. `command -v` is POSIX, `which` is not everywhere.
_SCRIPT = (
    "n=${{SLURMD_NODENAME:-$(uname -n)}};"
    " t=${{SLURM_PROCID:-${{OMPI_COMM_WORLD_RANK:-${{PMIX_RANK:-${{PMI_RANK:-$$}}}}}}}};"
    " e() {{ printf '%-511s\n' \"#probe-cluster $n $t $1|\"; }};"
    ' e "start $SLURM_STEP_NODELIST";'
    " PATH=$PATH:$HOME/.local/bin:/usr/local/bin:/opt/probe/bin;"
    " command -v {name} >/dev/null 2>&1 || {{ e 'absent '; exit 0; }};"
    " o=$({command} --json 2>/dev/null); s=$?;"
    ' if [ -n "$o" ]; then printf \'%s\n\' "$o" | fold -w 360 |'
    ' {{ i=0; while IFS= read -r c; do e "$i $c"; i=$((i+1)); done; e "end $s $i"; }};'
    ' else e "error $s $({command} --json 2>&1 >/dev/null | tail -n 1)"; fi'
).replace("\n", "\\n")


def node_script(command: Iterable[str] = ("probe",)) -> str:
    """Return the script of one node, for ``sh -c``; `command` are the words that start `probe`."""
    quoted = [shlex.quote(argument) for argument in command]
    return _SCRIPT.format(name=quoted[0], command=" ".join(quoted))


class Lines:
    """Splits bytes into lines; what is longer than a line of ours is dropped, not kept."""

    __slots__ = ("_buffer", "_skipping")

    def __init__(self) -> None:
        self._buffer = b""
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[Line]:
        """Yield the lines with a mark that `data` completes."""
        *complete, self._buffer = (self._buffer + data).split(b"\n")
        for line in complete:
            skipped, self._skipping = self._skipping, False
            parsed = None if skipped else _parsed(line)
            if parsed is not None:
                yield parsed
        if len(self._buffer) > _MOST_LINE:
            self._buffer, self._skipping = b"", True


def _parsed(line: bytes) -> Line | None:
    """Return the line at the first mark, else at the last: two lines may have run together."""
    text = line.rstrip(b"\r")
    return _at(text, text.find(MARK)) or _at(text, text.rfind(MARK))


def _at(text: bytes, start: int) -> Line | None:
    body = text[start:].rstrip()
    if start < 0 or not body.endswith(b"|"):
        return None
    fields = body[len(MARK) : -1].split(b" ", 3)
    if len(fields) != 4:
        return None
    node, tag, kind = (field.decode("utf-8", "replace") for field in fields[:3])
    # The piece of a line that lost a part, or took one of another, would be a wrong report. The
    # line of an error holds a sentence of any length.
    if (kind.isdecimal() or kind == "end") and len(text) - start != LINE_SIZE - 1:
        return None
    return node, tag, kind, fields[3]


class Stream:
    """What arrived of one node: pieces by number, and how it ended."""

    __slots__ = ("_pieces", "_size", "end", "node")

    def __init__(self, node: str) -> None:
        self.node = node
        self.end: tuple[str, bytes] | None = None
        """``absent``, ``end`` or ``error``, with the line's data; None while it runs."""
        self._pieces: dict[int, bytes] = {}
        self._size = 0

    def add(self, kind: str, data: bytes) -> None:
        """Take one line."""
        if kind in ("absent", "end", "error"):
            self.end = self.end or (kind, data)
        elif kind.isdecimal() and len(kind) < 7 and self._size <= MOST_TEXT:
            self._size += len(data)
            self._pieces.setdefault(int(kind), data)

    def text(self) -> bytes:
        """Return the report's text. Raises `ValueError` that says how many pieces are missing."""
        _, data = self.end or ("", b"0 0")
        expected = data.split()[-1:]
        count = int(expected[0]) if expected and expected[0].isdigit() else 0
        if self._size > MOST_TEXT:
            raise ValueError(f"its answer is longer than {MOST_TEXT >> 20} MiB")
        if len(self._pieces) != count or any(at not in self._pieces for at in range(count)):
            raise ValueError(f"{len(self._pieces)} of the {count} lines of its answer arrived")
        return b"".join(self._pieces[at] for at in range(count))

    def clear(self) -> None:
        """Forget the pieces, which the node's answer holds now."""
        self._pieces.clear()


class Streams:
    """The streams of all nodes of one process; `ended` is called for each that is complete."""

    __slots__ = ("_ended", "_lines", "_started", "_streams")

    def __init__(
        self, ended: Callable[[Stream], None], started: Callable[[str, bytes], None] | None = None
    ) -> None:
        self._lines = Lines()
        self._streams: dict[tuple[str, str], Stream] = {}
        self._ended = ended
        self._started = started

    def feed(self, data: bytes) -> None:
        """Take output of the process, cut anywhere."""
        for node, tag, kind, piece in self._lines.feed(data):
            stream = self._streams.get((node, tag))
            if stream is None:
                if len(self._streams) >= _MOST_STREAMS:
                    continue
                stream = self._streams[node, tag] = Stream(node)
                if self._started is not None:
                    self._started(node, piece if kind == "start" else b"")
            if stream.end is None:
                stream.add(kind, piece)
                if stream.end is not None:
                    self._ended(stream)
                    stream.clear()

    def running(self) -> list[str]:
        """Return the nodes that started and have not ended."""
        return [stream.node for stream in self._streams.values() if stream.end is None]
