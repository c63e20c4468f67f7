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


async def in_thread(call: Callable[[int], Result]) -> Result:
    """Run `call(wake_fd)` in a thread that ends with it; a byte on the fd tells it to give up.

    Not the loop's executor: its threads would stay in the host for good. Under trio, which
    anyio can run on, trio's own thread call is used.
    """
    if "trio" in sys.modules and _under_trio():
        return await _in_trio(call)
    return await _in_asyncio(call)


def _under_trio() -> bool:
    trio: Any = sys.modules["trio"]
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


async def _in_trio(call: Callable[[int], Result]) -> Result:
    trio: Any = sys.modules["trio"]
    read_fd, write_fd = os.pipe()
    done = trio.Event()
    box: list[Any] = []
    token = trio.lowlevel.current_trio_token()
    worker = _start(call, read_fd, box, lambda: token.run_sync_soon(done.set))
    try:
        await done.wait()
    finally:
        _stop(worker, read_fd, write_fd)
    result: Result = _unpack(box)
    return result


async def _in_asyncio(call: Callable[[int], Result]) -> Result:
    import asyncio

    loop = asyncio.get_running_loop()
    read_fd, write_fd = os.pipe()
    done = asyncio.Event()
    box: list[Any] = []
    worker = _start(call, read_fd, box, lambda: loop.call_soon_threadsafe(done.set))
    try:
        await done.wait()
    finally:
        _stop(worker, read_fd, write_fd)
    result: Result = _unpack(box)
    return result


def _start(
    call: Callable[[int], Any], read_fd: int, box: list[Any], tell: Callable[[], object]
) -> threading.Thread:
    def work() -> None:
        try:
            box.append((call(read_fd), None))
        except BaseException as error:
            box.append((None, error))
        try:
            tell()
        except RuntimeError:
            pass  # the loop was closed meanwhile: nobody waits

    worker = threading.Thread(target=work, name="probe-core", daemon=True)
    worker.start()
    return worker


def _stop(worker: threading.Thread, read_fd: int, write_fd: int) -> None:
    """Tell the thread to give up if it still runs, and wait: killing the children is bounded."""
    os.write(write_fd, b"x")
    worker.join(2.0)
    os.close(write_fd)
    if not worker.is_alive():
        os.close(read_fd)


def _unpack(box: list[tuple[Any, BaseException | None]]) -> Any:
    result, error = box[0]
    if error is not None:
        raise error
    return result
