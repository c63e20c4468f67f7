"""Await a blocking call from any event loop: asyncio's, or trio's where anyio runs on it."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Result = TypeVar("Result")

__all__ = ["in_thread", "loop_event", "within"]

PATIENCE_S = 2.0
"""Seconds that a cancelled call has to end: four times what ending its children takes."""


async def in_thread(function: Callable[[int], Result]) -> Result:
    """Run `function(wake_fd)` in a thread that ends with it; a byte on the fd has it give up.

    Not the loop's executor: its threads would stay in the host for good. Under trio, which
    anyio can run on, trio's own events are used.
    """
    done, notify = loop_event()
    call = _Call(function, notify)
    try:
        await done.wait()
    finally:
        call.stop()
    result: Result = call.result()
    return result


async def within(function: Callable[[], Result], seconds: float) -> Result:
    """Return what `function` returns in a thread of its own; raises `TimeoutError` after `seconds`.

    The thread is a daemon and goes on after that: what it finds is cached for the next caller. Not
    the loop's executor, whose threads a stuck driver would fill and whose exit waits for them.
    """
    done, notify = loop_event()
    call = _Call(lambda _: function(), notify)
    await _wait(done, seconds)
    if not call.ended:
        raise TimeoutError
    result: Result = call.result()
    return result


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


class _Call:
    """A blocking call in a thread of its own, and the pipe that has it give up.

    The thread makes and closes the pipe: a signal handler that raises in the caller's thread, at
    any moment, leaves no descriptor. Where the system has no room for a thread the call is made at
    once, and the event loop waits for it: a late report is better than none.
    """

    def __init__(self, function: Callable[[int], Any], notify: Callable[[], object]) -> None:
        self._function = function
        self._notify = notify
        self._result: Any = None
        self._error: BaseException | None = None
        self.ended = False
        self._write_fd = -1
        self._stopping = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="probe-core", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._stopping = True
            self._call(-1)
        except BaseException:  # a signal handler's; the thread may have been started just before
            self.stop()
            raise

    def _run(self) -> None:
        read_fd = -1
        try:
            with self._lock:
                read_fd, self._write_fd = os.pipe()
            if not self._stopping:
                self._call(read_fd)
        except OSError as error:  # no descriptor is free: the caller's call would fail, too
            self._error = error
            self._report_end()
        finally:
            self._close(read_fd)

    def _close(self, read_fd: int) -> None:
        with self._lock:  # `stop` would write to another file's descriptor
            for fd in (read_fd, self._write_fd):
                if fd >= 0:
                    os.close(fd)
            self._write_fd = -1

    def _call(self, wake_fd: int) -> None:
        try:
            self._result = self._function(wake_fd)
        except BaseException as error:
            self._error = error
        self._report_end()

    def _report_end(self) -> None:
        self.ended = True
        try:
            self._notify()
        except RuntimeError:  # the loop was closed meanwhile: nobody waits
            pass

    def stop(self) -> None:
        """Have the call give up if it still runs, and wait: ending the children is bounded."""
        self._stopping = True
        with self._lock:
            if self._write_fd >= 0:
                os.write(self._write_fd, b"x")
        if self._thread.is_alive():
            self._thread.join(PATIENCE_S)

    def result(self) -> Any:
        """Return what the call returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._result
