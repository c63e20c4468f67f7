"""When the next round begins: on multiples of the interval, on the monotonic clock."""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PIECE_S", "Rhythm", "is_readable"]


PIECE_S = 1.0
"""Seconds of sleep at most before Python looks for signals.

One that comes between its last look and the system call interrupts nothing: its handler would run
after the whole pause, which may be an hour.
"""


def is_readable(fd: int, seconds: float = 0.0) -> bool:
    """Return whether a pipe has something, waiting for it at most some seconds; -1 never has.

    On Windows only sockets can be waited for: there nobody wakes the caller early.
    """
    if fd < 0 or os.name == "nt":
        if seconds:
            time.sleep(seconds)
        return False
    return bool(select.select([fd], [], [], seconds)[0])


class Rhythm:
    """Waits until the next round is due. A round that takes longer than the interval skips beats.

    `clock` and `sleep` are replaced by tests that have no hour.
    """

    def __init__(
        self,
        interval: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.clock = clock
        self._interval = interval
        self._sleep = sleep
        self._due: float | None = None

    def wait(self, wake_fd: int = -1) -> None:
        """Return when the next round is due, the first at once, or when `wake_fd` is readable."""
        now = self.clock()
        if self._due is None:
            self._due = now
        pause = self._due - now
        while pause > 0:
            piece = min(pause, PIECE_S)
            pause -= piece
            if wake_fd < 0:
                self._sleep(piece)
            elif is_readable(wake_fd, piece):
                break
        late = max(0.0, self.clock() - self._due)
        beats = int(late / self._interval) + 1 if self._interval else 1
        self._due += beats * self._interval
