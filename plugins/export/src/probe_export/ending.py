"""What runs until a signal: it ends cleanly at SIGTERM and Ctrl-C, in a pause, too."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from time import monotonic, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

_PIECE_S = 1.0
"""Seconds of sleep at most before Python looks for signals: one that comes between its last look
and the system call interrupts nothing."""


@contextmanager
def reacting(names: Iterable[str], reaction: Callable[[int], object]) -> Iterator[None]:
    """Call `reaction` at these signals, while the block runs; those that do not exist are left out.

    A signal that the caller ignores (nohup, a shell's background job) stays ignored.
    """
    before: dict[int, Any] = {}
    # Python lets no other thread install a handler.
    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name, None) for name in names):
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, lambda caught, frame: reaction(caught))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def until_signal(*names: str) -> Iterator[list[int]]:
    """Have these signals, or SIGTERM and SIGINT, end the block, quietly; gives those that came.

    A second one does not strike while what the block began is ended because of the first.
    """
    caught: list[int] = []

    def end(number: int) -> None:
        caught.append(number)
        if len(caught) == 1:
            # asyncio lets no other exception out of a callback, and nothing catches it by mistake.
            raise KeyboardInterrupt

    try:
        with reacting(names or ("SIGTERM", "SIGINT"), end):
            yield caught
    except KeyboardInterrupt:
        if not caught:
            raise


def pause(seconds: float = float("inf")) -> None:
    """Wait so long; without a time until a signal."""
    end = monotonic() + seconds
    while (rest := end - monotonic()) > 0:
        sleep(min(rest, _PIECE_S))
