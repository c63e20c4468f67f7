"""A terminal that is drawn on: only what changed is written, and it is as before at the end.

The screen is written through a descriptor of our own that does not block: a terminal that takes
nothing (Ctrl-S, a slow line) costs frames and never stops the samples. A frame that is under way
is finished before the next one begins. Lines that are as they were are not written again, so that
a frame of eight devices is some hundred bytes on a slow line.
"""

from __future__ import annotations

import errno
import os
import re
import select
import termios
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Screen"]

# xterm's alternate screen and cursor: terminfo's smcup, rmcup, civis and cnorm of every terminal
# that has them; without autowrap (DECAWM) a line that became too long by a resize stays one line.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
_LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
_CLEAR = "\x1b[0m\x1b[2J"

LAST_WORD_S = 0.3
"""Seconds that a terminal has to take the sequences which restore it."""

_KEYS = 64
"""Bytes of keys that are read at once."""

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|O.?|[^\x1b])")
"""A key of several characters: CSI (ECMA-48 5.4), SS3, or Alt with another key. Escape is not."""

_MODES = 3
"""Place of the local modes in what tcgetattr returns."""


class Screen:
    """The screen of one terminal: `enter`, `draw` as often as wanted, `leave`.

    `keys` is the descriptor to read keys from, None where standard input is no terminal.
    """

    def __init__(self, output: int, keys: int | None) -> None:
        self.keys = keys
        self._output = _own_descriptor(output)
        self._saved: list[Any] | None = None
        self._lines: list[str] = []
        self._pending = b""
        self._size = (0, 0)
        self.entered = False

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of now; 80 and 24 where the terminal does not tell them."""
        try:
            size = os.get_terminal_size(self._output)
        except OSError:  # closed: a write will tell
            return 80, 24
        return size.columns or 80, size.lines or 24

    def in_foreground(self) -> bool:
        """Return whether this process may use its terminal; see termios(3) for the background."""
        try:
            return os.tcgetpgrp(self._output) == os.getpgrp()
        except OSError:
            return True  # not our controlling terminal: there are no jobs

    def enter(self) -> None:
        """Take the screen; keys come at once and are not shown, but Ctrl-C and Ctrl-Z stay."""
        if self.entered:
            return
        self.entered = True
        if self.keys is not None:
            try:
                self._saved = termios.tcgetattr(self.keys)
                modes = termios.tcgetattr(self.keys)
                modes[_MODES] &= ~(termios.ICANON | termios.ECHO)
                termios.tcsetattr(self.keys, termios.TCSANOW, modes)
            except termios.error:
                self._saved = None
        self._pending = _ENTER.encode()
        self._lines = []
        self.flush()

    def leave(self) -> None:
        """Give the terminal back as it was. May be called at any moment, and more than once."""
        if not self.entered:
            return
        self.entered = False
        # Half of an escape sequence may be out: CAN ends it (ECMA-48 5.4, xterm's ctlseqs).
        self._pending = b"\x18" + _LEAVE.encode() if self._pending else _LEAVE.encode()
        end = time.monotonic() + LAST_WORD_S
        while not self.flush() and time.monotonic() < end:
            select.select([], [self._output], [], max(0.0, end - time.monotonic()))
        if self.keys is None or self._saved is None:
            return
        try:
            # What was typed meanwhile was for this screen, not for the shell. Not TCSAFLUSH, which
            # waits for a terminal that may be stopped.
            termios.tcflush(self.keys, termios.TCIFLUSH)
            termios.tcsetattr(self.keys, termios.TCSANOW, self._saved)
        except termios.error:  # it was closed: there is nothing to restore
            pass

    def close(self) -> None:
        """Leave, and close the descriptor."""
        self.leave()
        if self._output >= 0:
            os.close(self._output)
            self._output = -1

    def fileno(self) -> int:
        """Return the descriptor that is written to."""
        return self._output

    def read_keys(self) -> list[str]:
        """Return the keys that were typed, "" for the end of the terminal.

        A key of several characters (an arrow) is none of ours, and none of its characters is.
        """
        assert self.keys is not None
        try:
            typed = os.read(self.keys, _KEYS)
        except BlockingIOError:
            return []
        except OSError:  # EIO: it was hung up
            typed = b""
        if not typed:
            return [""]
        return list(_SEQUENCE.sub("", typed.decode("ascii", "replace")))

    def draw(self, lines: Sequence[str]) -> bool:
        """Show the lines; return False where the terminal still has a frame to take."""
        if not self.entered or not self.flush():
            return False
        columns, rows = self.size
        shown = list(lines[:rows])
        self._pending = self._changes(shown, (columns, rows)).encode("utf-8", "replace")
        self._lines, self._size = shown, (columns, rows)
        self.flush()
        return True

    def _changes(self, lines: Sequence[str], size: tuple[int, int]) -> str:
        parts = []
        before = self._lines
        if size != self._size:
            parts.append(_CLEAR)
            before = []
        for row, line in enumerate(lines):
            if row >= len(before) or before[row] != line:
                parts.append(f"\x1b[{row + 1};1H{line}\x1b[0m\x1b[K")
        if len(before) > len(lines):
            parts.append(f"\x1b[{len(lines) + 1};1H\x1b[J")
        return "".join(parts)

    def flush(self) -> bool:
        """Write what the terminal takes; return whether all is out.

        Raises `OSError` where the terminal is gone.
        """
        while self._pending:
            try:
                count = os.write(self._output, self._pending)
            except BlockingIOError:
                return False
            except OSError as error:
                self._pending = b""
                if error.errno == errno.EIO and not self.entered:
                    return True  # hung up: nothing is to be restored
                raise
            self._pending = self._pending[count:]
        return True


def _own_descriptor(output: int) -> int:
    """Open the terminal once more, so that O_NONBLOCK is ours alone: flags are shared with a dup.

    Where it has no name here (a container whose /dev/pts is another) writes may block.
    """
    try:
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(os.ttyname(output), flags)
    except OSError:
        return os.dup(output)
