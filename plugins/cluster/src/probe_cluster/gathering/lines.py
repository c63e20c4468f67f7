"""How messages of a node travel through an engine that mixes the lines of all nodes.

A program on the node prints each message in pieces. Each line bears a mark, the node's name and a
number. So banners, labels and the lines of other nodes do no harm, and a piece that is missing is
noticed.

Each line is 512 bytes and one write: a divisor of the 1,024 bytes of Slurm's messages
(MAX_MSG_LEN, slurmstepd) and of the 4,096 of Open MPI's reads, which both pass on what they have,
line or not. Longer lines of two nodes were mixed in the middle.
"""

from __future__ import annotations

import binascii
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Line = tuple[str, str, str, bytes]
    """Node, tag, kind, data."""


MARK = b"#probe-cluster "

LINE_SIZE = 512
"""Bytes of a line, its end included."""

_MOST_LINE = 4096
"""Bytes of a line that can be ours, with the label that an engine puts before it."""

MOST_TEXT = 4 << 20
"""Bytes of a report: as many as a file of one may have."""

_MOST_MESSAGE = 3 * MOST_TEXT
"""Bytes of a message, unpacked: JSON writes a control character of a report with six."""

_MOST_STREAMS = 400_000
"""Messages of one engine: three of a node of the largest cluster, and some."""

TO_STDERR = "exec 1>&2; "
"""What a script begins with where standard output is no pipe on the node. Open MPI 4.1 gives each
process a terminal there, whose reads of 4,095 bytes cut lines, and a pipe for standard error."""


class Lines:
    """Splits bytes into lines; what is longer than a line of ours is dropped, not kept."""

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
    # The piece of a line that lost a part, or took one of another, would be a wrong report.
    if (kind.isdecimal() or kind == "end") and len(text) - start != LINE_SIZE - 1:
        return None
    return node, tag, kind, fields[3]


class Stream:
    """What arrived of one message: pieces by number, and how it ended."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.end: tuple[str, bytes] | None = None
        """``absent`` or ``end``, with the line's data; None while it runs."""
        self._pieces: dict[int, bytes] = {}
        self._size = 0

    def add(self, kind: str, data: bytes) -> None:
        """Take one line."""
        if kind in ("absent", "end"):
            self.end = self.end or (kind, data)
        elif kind.isdecimal() and len(kind) < 7 and self._size <= MOST_TEXT:
            self._size += len(data)
            self._pieces.setdefault(int(kind), data)

    def text(self) -> bytes:
        """Return the message's text. Raises `ValueError` that says what is missing of it."""
        _, data = self.end or ("", b"plain 0")
        how, _, expected = data.partition(b" ")
        count = int(expected) if expected.isdigit() else 0
        if self._size > MOST_TEXT:
            raise ValueError(f"its answer is longer than {MOST_TEXT >> 20} MiB")
        if len(self._pieces) != count or any(at not in self._pieces for at in range(count)):
            raise ValueError(f"{len(self._pieces)} of the {count} lines of its answer arrived")
        text = b"".join(self._pieces[at] for at in range(count))
        return _unpacked(text) if how == b"packed" else text

    def clear(self) -> None:
        """Forget the pieces, which the node's answer holds now."""
        self._pieces.clear()


def _unpacked(text: bytes) -> bytes:
    """Return what an agent packed. Raises `ValueError` where bytes of it changed on the way."""
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(binascii.a2b_base64(text), _MOST_MESSAGE)
    except (ValueError, zlib.error):
        raise ValueError("its answer was damaged on the way") from None
    if not unpacker.eof:
        raise ValueError(f"its answer is longer than {MOST_TEXT >> 20} MiB, or was cut off")
    return data


class Streams:
    """The messages of all nodes of one process; `ended` is called for each that is complete."""

    def __init__(self, ended: Callable[[Stream], None]) -> None:
        self._lines = Lines()
        self._streams: dict[tuple[str, str], Stream] = {}
        self._ended = ended

    def feed(self, data: bytes) -> None:
        """Take output of the process, cut anywhere."""
        for node, tag, kind, piece in self._lines.feed(data):
            stream = self._streams.get((node, tag))
            if stream is None:
                if len(self._streams) >= _MOST_STREAMS:
                    continue
                stream = self._streams[node, tag] = Stream(node)
            if stream.end is None:
                stream.add(kind, piece)
                if stream.end is not None:
                    self._ended(stream)
                    stream.clear()

    def unfinished(self) -> int:
        """Return of how many messages a part has arrived."""
        return sum(stream.end is None for stream in self._streams.values())
