"""One line on a terminal while plugins are slow: who is waited for, and until when at most.

A probe that waits for a hung driver is silent until its deadline and looks dead: fastfetch's users
reported stalls of seconds for which they could name no module (#1077, #2419, #568). The line goes
to standard error, and is gone without a trace before anything else is written.
"""

from __future__ import annotations

import os
import sys

from probe_core.commands import text
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from probe_core.isolation.run import Run

    Segment = tuple[str, bool]
    """A text, and whether it is dim."""

_FRAME_S = 0.1
"""Seconds between two drawings: how often the supervising thread looks at its children anyway."""

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES = "|/-\\"

_NAMED = 3
"""Plugins that are named one by one: four names of a dozen letters fill an 80-column line."""

_CLEAR_LINE, _CLEAR_BELOW = "\r\033[K", "\r\033[J"


class WaitingLine:
    """The line on one terminal. `show` is called again and again, at last with nothing to wait for.

    The cursor stays in front of the text. Terminals that wrap their lines anew when they become
    narrower keep it there, so that all which the line then takes is below it and can be erased.
    """

    def __init__(self, stream: TextIO, environ: Mapping[str, str], choice: str | None) -> None:
        self._fd = stream.fileno()
        self._encoding = stream.encoding or "ascii"
        self._dim = choice != "never" and not environ.get("NO_COLOR")
        self._due = 0.0
        self._drawn = 0

    def show(self, now: float, runs: Sequence[Run]) -> None:
        """Draw the line for the runs that have no outcome yet; without any, erase it."""
        if not runs:
            self._erase()
        elif now >= self._due and _in_foreground(self._fd):
            self._due = now + _FRAME_S
            self._draw(_segments(now, runs, self._encoding))

    def _draw(self, segments: Sequence[Segment]) -> None:
        # A line of the whole width would wrap on some terminals, and could not be erased.
        room = self._columns() - 1
        line, used = "", 0
        for shown, dim in segments:
            piece = text.cut(shown, room - used)
            used += text.width_of(piece)
            line += text.paint(piece, "dim" if dim and piece else None, self._dim)
        self._write(self._clearing() + line + "\r")
        self._drawn = used

    def _erase(self) -> None:
        if self._drawn:
            self._write(self._clearing())
            self._drawn = 0

    def _clearing(self) -> str:
        return _CLEAR_LINE if self._drawn <= self._columns() else _CLEAR_BELOW

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._fd).columns or 80
        except OSError:  # the terminal was closed
            return 80

    def _write(self, characters: str) -> None:
        try:
            os.write(self._fd, characters.encode(self._encoding, "replace"))
        except OSError:  # closed, or a terminal that takes nothing now: the report goes on
            pass


def _in_foreground(fd: int) -> bool:
    """Return whether this process may write to its terminal, or it is not its own.

    With `stty tostop` a background job that writes is stopped, see termios(3).
    """
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except (OSError, AttributeError):
        return sys.platform != "win32"


def _segments(now: float, runs: Sequence[Run], encoding: str) -> list[Segment]:
    since = min(run.started for run in runs)
    limit = max(run.deadline for run in runs) - since
    frames = _FRAMES if text.encodable(_FRAMES, encoding) == _FRAMES else _ASCII_FRAMES
    frame = frames[int((now - since) / _FRAME_S) % len(frames)]
    # Of `runtimes.ask`, whose probers are named after what they ask.
    names = [run.prober.name.removeprefix("ask-") for run in runs]
    times = f"{now - since:.1f} s of at most {round(limit, 1):g} s"
    segments = [
        (f"{frame} waiting for ", True),
        (joined(names, "and"), False),
        (f" … {times}", True),
    ]
    if len(names) > _NAMED:
        segments[0] = (f"{frame} waiting for {len(names)} plugins, first of all ", True)
        segments[1] = (names[0], False)
    return [(text.encodable(piece, encoding), dim) for piece, dim in segments]
