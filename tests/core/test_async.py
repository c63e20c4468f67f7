"""Awaiting a probe from asyncio, anyio and trio: the loop turns, cancelling leaves no child."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fake_probers import Probers, gpu
from reports import validated

import probe_core
from probe_core import ConfigError, Report
from probe_core.awaiting import within

GPU = "pci:0000:01:00.0"


def run_asyncio(body: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await body()

    return asyncio.run(main())


def run_anyio(body: Callable[[], Awaitable[Any]]) -> Any:
    anyio = pytest.importorskip("anyio")
    return anyio.run(body, backend="asyncio")


def run_anyio_trio(body: Callable[[], Awaitable[Any]]) -> Any:
    anyio = pytest.importorskip("anyio")
    pytest.importorskip("trio")
    return anyio.run(body, backend="trio")


def run_trio(body: Callable[[], Awaitable[Any]]) -> Any:
    return pytest.importorskip("trio").run(body)


LOOPS = [run_asyncio, run_anyio, run_anyio_trio, run_trio]


async def sleep(seconds: float) -> None:
    """Sleep on whichever loop runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        import trio

        await trio.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


@pytest.mark.parametrize("run", LOOPS)
def test_report_is_that_of_probe(run: Any, probers: Probers) -> None:
    probers.reports("a", gpu())
    before = threading.active_count()

    async def body() -> Report:
        return await probe_core.probe_async(**probers.arguments)

    report = run(body)
    validated(report.to_json())
    assert report.primary == GPU
    assert threading.active_count() == before


@pytest.mark.heavy
def test_loop_turns_while_a_prober_sleeps(probers: Probers) -> None:
    probers.add("slow", f"import time; time.sleep(0.4); return [{gpu()!r}]")
    turns = 0

    async def main() -> Report:
        nonlocal turns
        task = asyncio.ensure_future(probe_core.probe_async(**probers.arguments))
        while not task.done():
            turns += 1
            await asyncio.sleep(0.01)
        return task.result()

    assert asyncio.run(main()).primary == GPU
    assert turns >= 10


def started_by(folder: Path) -> int:
    """Wait for the prober to write its process's number."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        text = (folder / "pid").read_text() if (folder / "pid").exists() else ""
        if text.endswith("\n"):
            return int(text)
        time.sleep(0.005)
    raise AssertionError("the prober never started")


def hang(probers: Probers) -> None:
    """Add a prober that says where it runs, and then never ends."""
    pid = str(probers.folder / "pid")
    probers.add(
        "hang",
        f"""
        import os, time
        open({pid!r}, "w").write(str(os.getpid()) + "\\n")
        time.sleep(600)
        """,
        deadline_s=600.0,
    )


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_cancelling_under_asyncio_kills_the_children(probers: Probers) -> None:
    hang(probers)

    async def main() -> tuple[int, bool]:
        task = asyncio.ensure_future(probe_core.probe_async(**probers.arguments))
        pid = await asyncio.to_thread(started_by, probers.folder)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pid, is_alive(pid)

    before = open_files()
    pid, alive = asyncio.run(main())
    assert not alive
    assert not is_alive(pid)
    assert open_files() == before


def test_timeout_of_the_caller_kills_the_children(probers: Probers) -> None:
    hang(probers)

    async def expire(limit: asyncio.Timeout) -> None:
        # Not after a fixed time: on a busy computer the prober may need longer to start.
        await asyncio.to_thread(started_by, probers.folder)
        limit.reschedule(asyncio.get_running_loop().time())

    async def main() -> None:
        async with asyncio.timeout(60) as limit:
            expiring = asyncio.create_task(expire(limit))
            await probe_core.probe_async(**probers.arguments)
            await expiring

    start = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert time.monotonic() - start < 20
    assert not is_alive(started_by(probers.folder))


def test_cancelling_under_trio_kills_the_children(probers: Probers) -> None:
    trio = pytest.importorskip("trio")
    hang(probers)

    async def expire(scope: Any) -> None:
        await trio.to_thread.run_sync(started_by, probers.folder)
        scope.deadline = trio.current_time()

    async def main() -> bool:
        async with trio.open_nursery() as nursery:
            with trio.move_on_after(60) as scope:
                nursery.start_soon(expire, scope)
                await probe_core.probe_async(**probers.arguments)
        return bool(scope.cancelled_caught)

    assert trio.run(main) is True
    assert not is_alive(started_by(probers.folder))


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()


def test_errors_reach_the_awaiting_task(probers: Probers) -> None:
    async def body() -> Report:
        return await probe_core.probe_async(timeout=-1)

    with pytest.raises(ConfigError, match="the arguments set 'timeout'"):
        asyncio.run(body())


def test_many_at_once(probers: Probers) -> None:
    probers.reports("a", gpu())

    async def main() -> list[Report]:
        return await asyncio.gather(
            *(probe_core.probe_async(**probers.arguments) for _ in range(8))
        )

    assert [report.primary for report in asyncio.run(main())] == [GPU] * 8


def test_misspelt_argument_is_named() -> None:
    async def body() -> Report:
        return await probe_core.probe_async(timeot=3)

    with pytest.raises((TypeError, ConfigError), match="timeot"):
        asyncio.run(body())


RUNNERS = [run_asyncio, run_anyio, run_anyio_trio]


@pytest.mark.parametrize("run", RUNNERS)
def test_a_call_within_its_time_gives_its_result_and_its_error(run: Callable[..., Any]) -> None:
    def fail() -> int:
        raise KeyError("x")

    assert run(lambda: within(lambda: 7, 5.0)) == 7
    with pytest.raises(KeyError):
        run(lambda: within(fail, 5.0))


@pytest.mark.parametrize("run", RUNNERS)
def test_a_call_beyond_its_time_goes_on_and_is_not_waited_for(run: Callable[..., Any]) -> None:
    let_go, ended = threading.Event(), threading.Event()

    def hang() -> None:
        let_go.wait(30)
        ended.set()

    start = time.monotonic()
    with pytest.raises(TimeoutError):
        run(lambda: within(hang, 0.1))
    assert time.monotonic() - start < 10
    assert not ended.is_set()
    let_go.set()
    assert ended.wait(10)
