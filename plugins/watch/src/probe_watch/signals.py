"""Signals while a command runs: reactions for its time, and what was there before at its end."""

from __future__ import annotations

import signal
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType, TracebackType
    from typing import Any

    Reaction = Callable[[int], object]

__all__ = ["ENDINGS", "Ended", "Signals", "status_of"]

ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP")


class Ended(KeyboardInterrupt):
    """A signal that ends the command, raised where it struck. `number` is the signal's.

    Of this type because asyncio lets no other exception out of a callback, and because nothing
    catches it by mistake.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def status_of(number: int) -> int:
    """Return the exit status for a signal as shells write it; raises for Ctrl-C, as others do."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    return 128 + number


class Signals:
    """A context in which signals have reactions, by name; those that do not exist are left out.

    A signal that the caller ignores (nohup, a shell's background job) stays ignored.
    """

    def __init__(self, reactions: Mapping[str, Reaction]) -> None:
        self._reactions = reactions
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        # Python lets no other thread install a handler.
        if threading.current_thread() is threading.main_thread():
            for name, reaction in self._reactions.items():
                self._install(getattr(signal, name, None), reaction)
        return self

    def _install(self, number: int | None, reaction: Reaction) -> None:
        if number is None or signal.getsignal(number) is signal.SIG_IGN:
            return

        def handle(caught: int, frame: FrameType | None) -> None:
            reaction(caught)

        self._before[number] = signal.getsignal(number)
        signal.signal(number, handle)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
