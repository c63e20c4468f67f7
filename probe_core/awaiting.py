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
