"""Textual's driver for a terminal of POSIX that may be slow, stopped, in the background, or gone.

Textual's own writes through a queue that blocks when it is full, draws on standard error, reads in
a thread that looks ten times a second, and leaves signals to keys. This one writes to standard
output through a descriptor of its own that does not block: a terminal that takes nothing (Ctrl-S, a
slow line) costs frames and stops neither samples nor the end. Keys come through the event loop, and
Ctrl-C, Ctrl-Z and Ctrl-\\ stay signals.

Textual has no public parser of keys, and its private one is used here and nowhere else: some 900
lines of sequences that terminals disagree on. A release without it is drawn by Textual's own
driver (`driver_class`): all works there but what is said above.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import termios
import time
from codecs import getincrementaldecoder

from textual import constants, events
from textual.driver import Driver
from textual.geometry import Size

from probe_watch.rounds import HANGUP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Parser = Any

# xterm's alternate screen, cursor, autowrap (DECAWM) and bracketed paste, so that what is pasted is
# no key that ends a process.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[2J"
_LEAVE = "\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"

LAST_WORD_S = 0.3
"""Seconds that a terminal has to take the sequences which restore it."""

_FOREGROUND_S = 0.5
"""Seconds between two looks whether this process may draw: a shell puts it there with a signal, but
nothing says so to one that was started in the background by another program."""

_READ = 4096
_INPUT, _LOCAL = 0, 3
"""Places of the modes in what tcgetattr returns."""


def driver_class() -> type[Driver] | None:
    """Return what draws: `Terminal`; None, for Textual's own, without the parser of keys."""
    try:
        parser = _parser()
        list(parser.feed("q"))
        list(parser.tick())
    except Exception:  # whatever a changed class raises
        return None
    return Terminal


def is_monochrome(term: str) -> bool:
    """Return whether a kind of terminal has no colours; one that terminfo does not know has."""
    try:
        import curses
    except ImportError:  # Python was built without it
        return False
    try:
        curses.setupterm(term)
    except curses.error:
        return False
    return curses.tigetnum("colors") <= 0


def _parser() -> Parser:
    from textual._xterm_parser import XTermParser

    return XTermParser()


class Terminal(Driver):
    """The terminal on standard output; keys come from standard input where that is one, too.

    The app has `encodable`, which returns a text in the terminal's characters.
    """

    def __init__(
        self,
        app: Any,
        *,
        debug: bool = False,
        mouse: bool = False,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._watch = app
        self._events = asyncio.get_running_loop()
        stdout = sys.__stdout__
        assert stdout is not None  # `probe watch` draws on a terminal alone
        self._output = _reopened(stdout.fileno(), os.O_WRONLY)
        self._keys = _keyboard(stdout.fileno())
        self._saved: list[Any] | None = None
        self._pending = b""
        self._is_behind = False
        self._entered = False
        self._parser = _parser()
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def _resized(self) -> None:
        try:
            columns, rows = os.get_terminal_size(self._output)
        except OSError:  # closed: a write will tell
            return
        size = Size(columns or 80, rows or 24)
        self._watch.post_message(events.Resize(size, size))

    def start_application_mode(self) -> None:
        """Take the screen, or wait where another program has the terminal."""
        self._react("SIGWINCH", self._resized)
        self._react("SIGCONT", self._attend)
        self._react("SIGTSTP", self._stop)
        self._resized()
        self._attend()

    def _react(self, name: str, reaction: Callable[[], object]) -> None:
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:  # as its caller wants it
            self._events.add_signal_handler(number, reaction)

    def _stop(self) -> None:
        """Stop as Ctrl-Z wants it: with the terminal as it was, until the shell goes on."""
        self.stop_application_mode()
        # By the default action, which the kernel leaves out where no shell could go on with it.
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        self._react("SIGTSTP", self._stop)
        self._attend()

    def _attend(self) -> None:
        """Take the screen as soon as this process is in the foreground; see termios(3)."""
        if self._entered or self._output < 0:
            return
        if not self._in_foreground():
            self._events.call_later(_FOREGROUND_S, self._attend)
            return
        self._entered = True
        if self._keys >= 0:
            try:
                self._saved = termios.tcgetattr(self._keys)
                modes = termios.tcgetattr(self._keys)
                modes[_LOCAL] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
                modes[_INPUT] &= ~termios.ICRNL  # Enter is a key of its own, and not Ctrl-J
                termios.tcsetattr(self._keys, termios.TCSANOW, modes)
            except termios.error:
                self._saved = None
            self._events.add_reader(self._keys, self._read)
        self._pending, self._is_behind = _ENTER.encode(), True
        self._flush()
        self._resized()

    def _in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._output) == os.getpgrp()
        except OSError:
            return True  # not our controlling terminal: there are no jobs

    def write(self, data: str) -> None:
        """Write a frame; one that comes while another is under way is left out, and made up for."""
        if not self._entered:
            return
        if self._pending:
            self._is_behind = True
            return
        self._pending = self._watch.encodable(data).encode("utf-8", "replace")
        self._flush()

    def _flush(self) -> None:
        """Write what the terminal takes, and the rest when it takes more."""
        try:
            while self._pending:
                self._pending = self._pending[os.write(self._output, self._pending) :]
        except BlockingIOError:
            self._events.add_writer(self._output, self._flush)
            return
        except OSError:
            self._pending = b""
            self._watch.exit(HANGUP)
        self._events.remove_writer(self._output)
        if self._is_behind:
            self._is_behind = False
            self._watch.refresh_all()

    def _read(self) -> None:
        try:
            typed = os.read(self._keys, _READ)
        except BlockingIOError:
            return
        except OSError:  # EIO: it was hung up
            typed = b""
        if not typed:
            self._events.remove_reader(self._keys)  # an end can be read for ever
            self._watch.exit(HANGUP)
            return
        for event in self._parser.feed(self._decode(typed)):
            self.process_message(event)
        # Escape alone is a key only when nothing has followed it for a while.
        self._events.call_later(constants.ESCAPE_DELAY * 1.1, self._tick)

    def _tick(self) -> None:
        for event in self._parser.tick():
            self.process_message(event)

    def disable_input(self) -> None:
        if self._keys >= 0 and not self._events.is_closed():
            self._events.remove_reader(self._keys)

    def stop_application_mode(self) -> None:
        """Give the terminal back as it was. May be called at any moment, and more than once."""
        self.disable_input()
        if not self._entered:
            return
        self._entered = False
        if not self._events.is_closed():
            self._events.remove_writer(self._output)
        # Half of an escape sequence may be out: CAN ends it (ECMA-48 5.4, xterm's ctlseqs).
        pending = b"\x18" * bool(self._pending) + _LEAVE.encode()
        self._pending = b""
        end = time.monotonic() + LAST_WORD_S
        while pending and time.monotonic() < end:
            try:
                pending = pending[os.write(self._output, pending) :]
            except BlockingIOError:
                select.select([], [self._output], [], max(0.0, end - time.monotonic()))
            except OSError:  # gone: nothing is to be restored
                break
        if self._saved is None:
            return
        try:
            # What was typed meanwhile was for this screen, not for the shell. Not TCSAFLUSH, which
            # waits for a terminal that may be stopped.
            termios.tcflush(self._keys, termios.TCIFLUSH)
            termios.tcsetattr(self._keys, termios.TCSANOW, self._saved)
        except termios.error:  # it was closed: there is nothing to restore
            pass

    def close(self) -> None:
        self.stop_application_mode()
        for handle in {self._output, self._keys} - {-1}:
            os.close(handle)
        self._output = self._keys = -1


def _keyboard(stdout: int) -> int:
    """Return a descriptor of the terminal to read keys from; -1 where it cannot be opened.

    Standard input where that is a terminal; else (`… | probe watch`) that of standard output.
    """
    stdin = sys.__stdin__
    try:
        if stdin is not None and stdin.isatty():
            return _reopened(stdin.fileno(), os.O_RDONLY)
        return os.open(os.ttyname(stdout), os.O_RDONLY | _FLAGS)
    except (OSError, ValueError):
        return -1


_FLAGS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def _reopened(handle: int, mode: int) -> int:
    """Open the terminal once more, so that O_NONBLOCK is ours alone: flags are shared with a dup.

    Where it has no name here (a container whose /dev/pts is another) writes may block.
    """
    try:
        return os.open(os.ttyname(handle), mode | _FLAGS)
    except OSError:
        return os.dup(handle)
