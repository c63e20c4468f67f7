"""Await a blocking probe from any event loop, leaving no thread behind."""

from __future__ import annotations

import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Result = TypeVar("Result")

__all__ = ["in_thread"]

PATIENCE_S = 2.0
"""Seconds that a cancelled call has to end: four times what ending its children takes."""


async def in_thread(function: Callable[[int], Result]) -> Result:
    """Run `function(wake_fd)` in a thread that ends with it; a byte on the fd has it give up.

    Not the loop's executor: its threads would stay in the host for good. Under trio, which
    anyio can run on, trio's own events are used.
    """
    if "trio" in sys.modules and _under_trio():
        return await _in_trio(function)
    return await _in_asyncio(function)


def _under_trio() -> bool:
    trio: Any = sys.modules["trio"]
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


async def _in_trio(function: Callable[[int], Result]) -> Result:
    trio: Any = sys.modules["trio"]
    done = trio.Event()
    token = trio.lowlevel.current_trio_token()
    call = _Call(function, lambda: token.run_sync_soon(done.set))
    try:
        await done.wait()
    finally:
        call.stop()
    result: Result = call.result()
    return result


async def _in_asyncio(function: Callable[[int], Result]) -> Result:
    import asyncio

    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    call = _Call(function, lambda: loop.call_soon_threadsafe(done.set))
    try:
        await done.wait()
    finally:
        call.stop()
    result: Result = call.result()
    return result


class _Call:
    """A blocking call in a thread of its own, and the pipe that has it give up."""

    def __init__(self, function: Callable[[int], Any], notify: Callable[[], object]) -> None:
        self._function = function
        self._notify = notify
        self._result: Any = None
        self._error: BaseException | None = None
        self._read_fd, self._write_fd = os.pipe()
        self._thread = threading.Thread(target=self._run, name="probe-core", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._function(self._read_fd)
        except BaseException as error:
            self._error = error
        try:
            self._notify()
        except RuntimeError:  # the loop was closed meanwhile: nobody waits
            pass

    def stop(self) -> None:
        """Have the call give up if it still runs, and wait: ending the children is bounded."""
        os.write(self._write_fd, b"x")
        self._thread.join(PATIENCE_S)
        os.close(self._write_fd)
        if not self._thread.is_alive():  # else it would look at another file's descriptor
            os.close(self._read_fd)

    def result(self) -> Any:
        """Return what the call returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._result
