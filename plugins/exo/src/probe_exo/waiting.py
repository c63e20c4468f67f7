"""Await a blocking call without blocking the event loop, and for a bounded time."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["bounded"]

Result = TypeVar("Result")


async def bounded(call: Callable[[], Result], seconds: float) -> Result:
    """Return what `call` returns in a thread of its own; raises `TimeoutError` after `seconds`.

    The thread is a daemon and goes on after that: what it finds is cached for the next caller. Not
    the loop's executor, whose threads a stuck driver would fill and whose exit waits for them.
    Works under asyncio, and under trio where anyio runs on it.
    """
    # Not imported to find out: where trio runs, it is there.
    if "trio" in sys.modules and _under_trio():
        return await _in_trio(call, seconds)
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def give(result: Any, error: BaseException | None) -> None:
        if not future.done():
            future.set_result(result) if error is None else future.set_exception(error)

    def deliver(result: Any, error: BaseException | None) -> None:
        try:
            loop.call_soon_threadsafe(give, result, error)
        except RuntimeError:
            pass  # the loop was closed meanwhile: nobody waits

    _start(call, deliver)
    return await asyncio.wait_for(future, seconds)


def _start(call: Callable[[], Any], deliver: Callable[[Any, BaseException | None], object]) -> None:
    def work() -> None:
        try:
            result = call()
        except BaseException as error:
            deliver(None, error)
        else:
            deliver(result, None)

    threading.Thread(target=work, name="probe-exo", daemon=True).start()


def _under_trio() -> bool:
    trio: Any = sys.modules["trio"]
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


async def _in_trio(call: Callable[[], Result], seconds: float) -> Result:
    trio: Any = sys.modules["trio"]
    token, done = trio.lowlevel.current_trio_token(), trio.Event()
    box: list[tuple[Any, BaseException | None]] = []

    def deliver(result: Any, error: BaseException | None) -> None:
        box.append((result, error))
        try:
            token.run_sync_soon(done.set)
        except trio.RunFinishedError:
            pass  # nobody waits

    _start(call, deliver)
    with trio.move_on_after(seconds):
        await done.wait()
    if not box:
        raise TimeoutError
    result, error = box[0]
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]
