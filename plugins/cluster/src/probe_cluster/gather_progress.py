"""One line on a terminal while nodes are waited for; gone before anything else is written."""

from __future__ import annotations

import sys
import time

from probe_cluster.naming import names
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from probe_cluster.gathering import Gathered

__all__ = ["ProgressLine", "progress_line"]

_FRAME_S = 0.2
_CLEAR = "\r\033[K"

_WIDTH = 79
"""Columns: a longer line would wrap on the narrowest usual terminal, and could not be erased."""


class ProgressLine:
    """The line on one terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._due = 0.0

    def __call__(self, gathered: Gathered) -> None:
        """Draw how many nodes have answered, and who is waited for."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _FRAME_S
        waiting = [node.name for node in gathered.waiting]
        done = len(gathered.nodes) - len(waiting)
        line = f"{done} of {counted(len(gathered.nodes), 'node')}, {gathered.seconds:.0f} s"
        if waiting:
            line += f", waiting for {names(waiting)}"
        self._write(_CLEAR + clean_text(line, _WIDTH))

    def pairs(self, done: int, total: int, seconds: float) -> None:
        """Draw how many pairs are measured."""
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _FRAME_S
            self._write(f"{_CLEAR}{done} of {counted(total, 'pair')}, {seconds:.0f} s")

    def erase(self) -> None:
        """Remove the line."""
        if self._due:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        encoding = self._stream.encoding or "ascii"
        try:
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone
            pass


def progress_line(environ: Mapping[str, str]) -> ProgressLine | None:
    """Return the line; None where nobody would read it."""
    stream = sys.stderr
    try:
        terminal = stream is not None and stream.isatty()
    except ValueError:
        terminal = False
    if not terminal or environ.get("CI") or environ.get("TERM") == "dumb":
        return None
    return ProgressLine(stream)
