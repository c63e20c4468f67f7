"""When the next round begins: on multiples of the interval, on the monotonic clock."""

from __future__ import annotations

import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Rhythm"]


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
        if pause > 0:
            if wake_fd >= 0:
                select.select([wake_fd], [], [], pause)
            else:
                self._sleep(pause)
        late = max(0.0, self.clock() - self._due)
        beats = int(late / self._interval) + 1 if self._interval else 1
        self._due += beats * self._interval
