"""What runs until a signal: it ends cleanly at SIGTERM and Ctrl-C, in a pause, too."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from time import monotonic, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE_S = 1.0
"""Seconds of sleep at most before Python looks for signals: one that comes between its last look
and the system call interrupts nothing."""


@contextmanager
def until_signal() -> Iterator[None]:
    """SIGTERM and SIGINT end the block, quietly; the handlers that were there are put back."""

    def end(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def pause(seconds: float = float("inf")) -> None:
    """Wait so long; without a time until a signal."""
    end = monotonic() + seconds
    while (rest := end - monotonic()) > 0:
        sleep(min(rest, _PIECE_S))
