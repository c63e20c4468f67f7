"""Await a blocking call from any event loop: asyncio's, or trio's where anyio runs on it."""

from __future__ import annotations

import sys
from contextlib import suppress

from probe_core.background import Call, Seat, notified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any, TypeVar

    from probe_core.background import Probe
    from probe_core.model import Report

    Result = TypeVar("Result")

__all__ = ["in_thread", "loop_event", "share_awaited", "within"]


async def in_thread(function: Callable[[int], Result]) -> Result:
    """Run `function(wake_fd)` in a thread that ends with it; a byte on the fd has it give up.

    Not the loop's executor: its threads would stay in the host for good. Under trio, which
    anyio can run on, trio's own events are used.
    """
    done, notify = loop_event()
    call = _Awaited(function, notify)
    try:
        call.begin()
        await done.wait()
    finally:
        call.give_up(call)
    result: Result = call.result()
    return result


async def within(function: Callable[[], Result], seconds: float) -> Result:
    """Return what `function` returns in a thread of its own; raises `TimeoutError` after `seconds`.

    The thread is a daemon and goes on after that: what it finds is cached for the next caller. Not
    the loop's executor, whose threads a stuck driver would fill and whose exit waits for them.
    """
    done, notify = loop_event()
    call = _Awaited(lambda _: function(), notify)
    call.begin()
    await _wait(done, seconds)
    if not call.over:
        raise TimeoutError
    result: Result = call.result()
    return result


async def share_awaited(key: Hashable, refresh: bool, probe: Probe) -> Report:
    """Return what `background.share` returns, awaited in a task that may be cancelled."""
    seat = Seat(key, refresh, probe)
    try:
        while seat.takes_another():
            done, seat.notify = loop_event()
            if not seat.board().over:
                await done.wait()
    finally:
        seat.leave()
    return seat.report()


def loop_event() -> tuple[Any, Callable[[], object]]:
    """Return an event of the running loop, asyncio's or trio's, and what sets it from a thread."""
    if _under_trio():
        trio: Any = sys.modules["trio"]
        event, token = trio.Event(), trio.lowlevel.current_trio_token()
        return event, lambda: token.run_sync_soon(event.set)
    import asyncio

    loop, done = asyncio.get_running_loop(), asyncio.Event()
    return done, lambda: loop.call_soon_threadsafe(done.set)


async def _wait(event: Any, seconds: float) -> None:
    """Wait until the event is set, `seconds` at most."""
    if _under_trio():
        with sys.modules["trio"].move_on_after(seconds):
            await event.wait()
        return
    import asyncio

    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


def _under_trio() -> bool:
    # Not imported to find out: where trio runs, it is there.
    trio: Any = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


class _Awaited(Call):
    """A call that an event loop waits for.

    Where the system has no room for a thread the loop waits for the call itself: a late report is
    better than none.
    """

    def __init__(self, function: Callable[[int], object], notify: Callable[[], object]) -> None:
        super().__init__()
        self._function = function
        self._notify = notify

    def _do(self, wake_fd: int) -> object:
        return self._function(wake_fd)

    def _tell(self) -> None:
        notified(self._notify)
