"""Waits between two writes, and ends at once when a signal asks for it."""

from __future__ import annotations

import signal
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

__all__ = ["PIECE_S", "Rhythm"]

PIECE_S = 1.0
"""Seconds of a pause at most before Python looks for signals: one that comes between its last look
and the system call interrupts nothing."""


class Rhythm:
    """Ends cleanly at SIGTERM and SIGINT; the handlers that were there are put back."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ended = threading.Event()
        self._interruptible = False
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> Rhythm:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._handlers[number] = signal.signal(number, self._end)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._ended.set()
        if self._interruptible:
            # A probe of a hung driver lasts for its deadline; Ctrl-C ends it and its processes.
            raise KeyboardInterrupt

    def made(self, make: Callable[[], str]) -> str | None:
        """Return what `make` returns; None where a signal ended it."""
        self._interruptible = True
        try:
            if self._ended.is_set():
                return None
            return make()
        except KeyboardInterrupt:
            return None
        finally:
            self._interruptible = False

    def wait(self) -> bool:
        """Wait for one period; return False when a signal ended it."""
        pause = self._seconds
        while pause > 0 and not self._ended.wait(min(pause, PIECE_S)):
            pause -= PIECE_S
        return not self._ended.is_set()
