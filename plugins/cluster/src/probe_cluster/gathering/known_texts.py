"""Leave out of the texts of reports what no comparison of nodes reads, and what most of them share.

Of a report of eight GPUs 60 % are the peaks of its devices and the names of who reported what: the
same for all GPUs of a kind. Each such text is parsed once for all nodes, and taken out of a report
before that is parsed.
"""

from __future__ import annotations

from probe_core.commands import parse_json

_PARTS = ((b', "peaks": ', b"[{", b"}]"), (b', "sources": ', b"{", b"}"))
"""Name, begin and end of what is left out, in a device's order and as `probe --json` writes it.

What another program writes otherwise is parsed as it is.
"""

_MOST_KNOWN, _MOST_PARTS = 64, 1024
"""Texts of a name that are tried: one for each kind of device of a cluster; and parts of a report,
of which each device has two. Of more the others stay in."""

_MOST_BYTES = 32 << 10
"""Of one text. A chip with 17 peaks has 6 kB."""


class KnownTexts:
    """The parts that were met, as text that is known to be JSON."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[bytes]] = {name: [] for name, _, _ in _PARTS}
        self._tries = dict.fromkeys(self._known, 0)

    def left_out(self, text: bytes) -> bytes:
        """Return the text with null in place of each known part: as sound a JSON as before.

        For what is taken out is one whole value after a name and a colon. The name's first quote,
        with a blank before it, cannot lie within a text, where it would be escaped.
        """
        pieces: list[bytes] = []
        at = turn = 0
        while len(pieces) < 2 * _MOST_PARTS and (found := text.find(_PARTS[turn][0], at)) >= 0:
            start = found + len(_PARTS[turn][0])
            size = self._size(text, start, *_PARTS[turn])
            pieces += (text[at:start], b"null" if size else b"")
            at, turn = start + size, (turn + 1) % len(_PARTS)
        return b"".join((*pieces, text[at:]))

    def _size(self, text: bytes, start: int, name: bytes, begin: bytes, end: bytes) -> int:
        """Return the length of the part that begins there; 0 where it is not known."""
        for part in self._known[name]:
            if text.startswith(part, start):
                return len(part)
        if self._tries[name] == _MOST_KNOWN or not text.startswith(begin, start):
            return 0
        stop = text.find(end, start, start + _MOST_BYTES) + len(end)
        if stop < start:
            return 0
        self._tries[name] += 1
        try:
            parse_json(text[start:stop])
        except (ValueError, RecursionError):  # its end is within a text, or it has parts itself
            return 0
        self._known[name].append(text[start:stop])
        return stop - start
