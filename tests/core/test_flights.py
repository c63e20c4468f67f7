"""One probe for all who ask the same at the same time: who shares which, and who ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fake_probers import Probers, gpu

import probe_core
from probe_core import background, probing
from probe_core.awaiting import share_awaited
from probe_core.background import share
from probe_core.pipeline.probers import Cancelled

linux = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="reads /proc")


class Counted:
    """A probe that numbers its runs, lasts until it is let go, and gives up when it is told to."""

    def __init__(self) -> None:
        self.runs: list[bool] = []
        self.given_up = 0
        self.go = threading.Event()

    def __call__(self, wake_fd: int, is_fresh: bool) -> Any:
        self.runs.append(is_fresh)
        number = len(self.runs)
        until = time.monotonic() + 20
        while not self.go.wait(0.005):
            if os.get_blocking(wake_fd) and self._is_told(wake_fd):
                self.given_up += 1
                raise Cancelled
            assert time.monotonic() < until
        return number

    def _is_told(self, wake_fd: int) -> bool:
        os.set_blocking(wake_fd, False)
        try:
            return bool(os.read(wake_fd, 1))
        except BlockingIOError:
            return False
        finally:
            os.set_blocking(wake_fd, True)


@pytest.fixture
def counted() -> Iterator[Counted]:
    """Return a probe, and check that it leaves no flight, thread or descriptor."""
    probe, before = Counted(), traces()
    yield probe
    probe.go.set()
    until = time.monotonic() + 5
    while remaining(before) and time.monotonic() < until:
        time.sleep(0.005)
    assert not remaining(before)
    assert background._flights == {}
    assert background._running == {}


def traces() -> tuple[set[str], set[str]]:
    """Return the descriptors and threads of this process."""
    if not os.path.isdir("/proc/self/task"):
        return set(), set()
    return set(os.listdir("/proc/self/fd")), set(os.listdir("/proc/self/task"))


def remaining(before: tuple[set[str], set[str]]) -> list[set[str]]:
    """Return the new descriptors and threads. The timer of the test before may have ended."""
    return [extra for now, old in zip(traces(), before, strict=True) if (extra := now - old)]


def eventually(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.002)


def seats() -> int:
    """Return how many seats are taken in all flights."""
    known = {*background._flights.values(), *background._running}
    return sum(len(flight._seats) for flight in known)


def asked(pool: ThreadPoolExecutor, probe: Counted, refresh: bool = False) -> Any:
    """Have a thread ask; return its future when it has its seat."""
    count = seats()
    future = pool.submit(share, "key", refresh, probe)
    eventually(lambda: seats() > count)
    return future


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    # Its threads are started here: the test counts those of flights.
    with ThreadPoolExecutor(8) as executor:
        barrier = threading.Barrier(8)
        list(executor.map(lambda _: barrier.wait(), range(8)))
        yield executor


def test_those_who_ask_meanwhile_share_it(pool: ThreadPoolExecutor, counted: Counted) -> None:
    first, second = asked(pool, counted), asked(pool, counted)
    counted.go.set()
    assert (first.result(10), second.result(10), counted.runs) == (1, 1, [False])
    assert share("key", False, counted) == 2  # what has ended is shared no more: that is a cache's


def test_other_keys_are_other_flights(pool: ThreadPoolExecutor, counted: Counted) -> None:
    asked(pool, counted)
    pool.submit(share, "other", False, counted)
    eventually(lambda: len(counted.runs) == 2)
    counted.go.set()


def test_a_fresh_report_is_of_a_probe_that_began_after(
    pool: ThreadPoolExecutor, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "NEXT_S", 20.0)
    first = asked(pool, counted)
    eventually(lambda: counted.runs == [False])
    fresh = [asked(pool, counted, refresh=True) for _ in range(3)]
    late = asked(pool, counted)  # it shares the newest: that has not begun either
    counted.go.set()
    assert [each.result(10) for each in (first, *fresh, late)] == [1, 2, 2, 2, 2]
    assert counted.runs == [False, True]


@pytest.mark.heavy
def test_the_next_one_does_not_wait_for_a_driver_that_hangs(
    pool: ThreadPoolExecutor, counted: Counted
) -> None:
    asked(pool, counted)
    eventually(lambda: len(counted.runs) == 1)
    start = time.monotonic()
    asked(pool, counted, refresh=True)
    eventually(lambda: len(counted.runs) == 2)
    assert background.NEXT_S - 0.05 < time.monotonic() - start < background.NEXT_S + 5
    asked(pool, counted, refresh=True)  # the second began before this was asked
    eventually(lambda: len(counted.runs) == 3)
    counted.go.set()


def test_an_exception_goes_to_all_and_is_forgotten(
    pool: ThreadPoolExecutor, counted: Counted
) -> None:
    def fail(wake_fd: int, is_fresh: bool) -> Any:
        counted(wake_fd, is_fresh)
        raise MemoryError("no room")

    waiting = [pool.submit(share, "key", False, fail) for _ in range(4)]
    eventually(lambda: seats() == 4)
    counted.go.set()
    for each in waiting:
        with pytest.raises(MemoryError, match="no room"):
            each.result(10)
    assert counted.runs == [False]
    assert share("key", False, counted) == 2


LOOPS = ["asyncio", "trio"]


def run(loop: str, body: Any) -> Any:
    if loop == "asyncio":
        return asyncio.run(body())
    return pytest.importorskip("trio").run(body)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_task_shares_the_flight_of_a_thread(
    loop: str, pool: ThreadPoolExecutor, counted: Counted
) -> None:
    async def main() -> Any:
        pool.submit(lambda: (eventually(lambda: seats() == 2), counted.go.set()))
        return await share_awaited("key", False, counted)

    first = asked(pool, counted)
    assert (run(loop, main), first.result(10), counted.runs) == (1, 1, [False])


def test_a_cancelled_task_leaves_and_the_others_have_their_report(counted: Counted) -> None:
    async def main() -> list[Any]:
        tasks = [asyncio.ensure_future(share_awaited("key", False, counted)) for _ in range(3)]
        await asyncio.to_thread(eventually, lambda: seats() == 3)
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert seats() == 2
        counted.go.set()
        return await asyncio.gather(*tasks[1:])

    assert (asyncio.run(main()), counted.runs, counted.given_up) == ([1, 1], [False], 0)


def test_the_last_cancelled_task_ends_the_probe(counted: Counted) -> None:
    async def main() -> None:
        tasks = [asyncio.ensure_future(share_awaited("key", False, counted)) for _ in range(2)]
        await asyncio.to_thread(eventually, lambda: len(counted.runs) == 1 and seats() == 2)
        for number, task in enumerate(tasks):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert counted.given_up == number

    asyncio.run(main())


def test_under_trio_the_last_cancelled_task_ends_the_probe(counted: Counted) -> None:
    trio = pytest.importorskip("trio")

    async def main() -> bool:
        with trio.move_on_after(0.2) as scope:
            await share_awaited("key", False, counted)
        return bool(scope.cancelled_caught) and counted.given_up == 1

    assert trio.run(main)


def test_who_comes_while_it_gives_up_has_a_probe_of_his_own(
    pool: ThreadPoolExecutor, counted: Counted
) -> None:
    slow = threading.Event()

    def probe(wake_fd: int, is_fresh: bool) -> Any:
        try:
            return counted(wake_fd, is_fresh)
        except Cancelled:
            slow.wait(10)
            raise

    async def main() -> Any:
        task = asyncio.ensure_future(share_awaited("key", False, probe))
        await asyncio.to_thread(eventually, lambda: len(counted.runs) == 1)
        late = pool.submit(ask_late)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return late.result(10)

    def ask_late() -> Any:
        eventually(lambda: counted.given_up == 1)
        counted.go.set()
        threading.Timer(0.1, slow.set).start()
        return share("key", False, probe)

    assert asyncio.run(main()) == 2


def test_an_interrupted_thread_ends_the_probe_alone(counted: Counted) -> None:
    """Ctrl-C reaches the main thread; the thread that shares its probe does not notice."""

    def interrupt() -> None:
        eventually(lambda: len(counted.runs) == 1)
        os.kill(os.getpid(), signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        share("key", False, counted)
    assert counted.given_up == 1
    killer.join()


def test_an_interrupted_thread_leaves_the_others_their_report(
    pool: ThreadPoolExecutor, counted: Counted
) -> None:
    def interrupt() -> None:
        eventually(lambda: seats() == 2)
        os.kill(os.getpid(), signal.SIGINT)

    other = asked(pool, counted)
    pool.submit(interrupt)
    with pytest.raises(KeyboardInterrupt):
        share("key", False, counted)
    assert (seats(), counted.given_up) == (1, 0)
    counted.go.set()
    assert other.result(10) == 1


def test_a_signal_handler_shares_the_flight_of_the_thread_below(counted: Counted) -> None:
    reports: list[Any] = []

    def handle(*_: object) -> None:
        threading.Timer(0.05, counted.go.set).start()
        reports.append(share("key", False, counted))

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        reports.append(share("key", False, counted))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert (reports, counted.runs) == ([1, 1], [False])


def test_without_room_for_a_thread_the_caller_probes(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    inner: list[Any] = []

    def probe(wake_fd: int, is_fresh: bool) -> Any:
        if not inner:  # as a signal handler above would: it cannot wait for the thread below
            inner.append(None)
            inner.append(share("key", False, probe))
        return counted(wake_fd, is_fresh)

    monkeypatch.setattr(background, "start_thread", full)
    counted.go.set()
    assert (share("key", False, probe), inner) == (2, [None, 1])


@linux
def test_a_finalizer_in_the_thread_of_the_flight_has_a_probe_of_its_own(counted: Counted) -> None:
    def probe(wake_fd: int, is_fresh: bool) -> Any:
        counted.go.set()
        return counted(wake_fd, is_fresh), share("key", False, counted)

    assert share("key", False, probe) == (1, 2)


@linux
def test_without_a_descriptor_it_goes_on(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pipe", full)
    counted.go.set()
    assert share("key", False, counted) == 1


@linux
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_begins_without_flights(pool: ThreadPoolExecutor, counted: Counted) -> None:
    asked(pool, counted)
    eventually(lambda: len(counted.runs) == 1)
    before = len(os.listdir("/proc/self/fd"))
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        counted.go.set()
        is_new = not background._flights and not background._running
        is_new = is_new and len(os.listdir("/proc/self/fd")) == before - 2
        os._exit(share("key", False, counted) if is_new else 99)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
    counted.go.set()


def test_who_waits_in_a_copy_of_the_process_takes_another_flight(counted: Counted) -> None:
    flight = background.Flight("key", counted)
    flight.drop()
    assert (flight.over, flight.gave_up, flight.thread, flight._pipe) == (True, True, 0, (-1, -1))
    flight.wait()  # returns


@linux
def test_the_exit_of_a_thread_is_awaited_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(background, "sleep", pauses.append)
    background.await_exit(threading.get_native_id())  # this one
    background.await_exit(1 << 30)  # one that has ended
    assert pauses == []
    seconds = iter(range(1000))
    monkeypatch.setattr(background, "monotonic", lambda: next(seconds) * background._EXIT_S / 50)
    own = threading.get_native_id()
    thread = threading.Thread(target=background.await_exit, args=(own,))  # which stays
    thread.start()
    thread.join()
    looks = background._EXIT_LOOKS + 1
    assert pauses == [0.0] * looks + [background._EXIT_PAUSE_S] * (49 - looks)


# The same through the public calls.


@linux
def test_a_probe_has_one_thread_beside_its_callers(probers: Probers, tmp_path: Path) -> None:
    """The flight's: children are started and watched in it, for no signal handler runs there."""
    seen = tmp_path / "seen"
    probers.add(
        "counts",
        f"""
        import os
        host = int(open("/proc/%d/stat" % os.getppid()).read().rsplit(")")[1].split()[1])
        open({str(seen)!r}, "w").write(" ".join(os.listdir(f"/proc/{{host}}/task")))
        return []
        """,
    )
    probe_core.register("counts", "fake_counts")
    before = set(os.listdir("/proc/self/task"))
    try:
        probe_core.probe(only="counts")
    finally:
        probe_core.unregister("counts")
    assert len(set(seen.read_text().split()) - before) in (1, 2)  # that of a step may be there, too


@pytest.fixture
def counting(probers: Probers, tmp_path: Path) -> Iterator[Callable[[], int]]:
    """Register a prober that takes a moment; return what says how often it was started."""
    log = tmp_path / "log"
    probers.add(
        "counting",
        f"""
        import time
        open({str(log)!r}, "a").write("x")
        time.sleep(0.3)
        return [{gpu()!r}]
        """,
    )
    probe_core.register("counting", "fake_counting")
    yield lambda: len(log.read_text()) if log.exists() else 0
    probe_core.unregister("counting")
    probing._cache.clear()


GPU = "pci:0000:01:00.0"


@pytest.mark.heavy
def test_a_hundred_tasks_and_32_threads_start_one_child(counting: Callable[[], int]) -> None:
    async def main() -> list[Any]:
        return await asyncio.gather(*(probe_core.probe_async(only="counting") for _ in range(100)))

    with ThreadPoolExecutor(33) as pool:
        threads = [pool.submit(probe_core.probe, only=["counting"]) for _ in range(32)]
        tasks = pool.submit(asyncio.run, main())
        reports = [each.result(60) for each in threads] + tasks.result(60)
    assert len(reports) == 132
    assert all(report is reports[0] for report in reports)
    assert (reports[0].primary, counting()) == (GPU, 1)


@pytest.mark.heavy
def test_those_who_want_a_fresh_report_share_the_next(counting: Callable[[], int]) -> None:
    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(probe_core.probe, only="counting")
        eventually(lambda: counting() == 1)
        late = [pool.submit(probe_core.probe, only="counting", refresh=True) for _ in range(19)]
        reports = [each.result(60) for each in late]
    assert all(report is reports[0] for report in reports)
    assert (reports[0] is first.result(), counting()) == (False, 2)
    assert probe_core.probe(only="counting") is reports[0]


@pytest.mark.heavy
@pytest.mark.parametrize("change", ["register", "unregister"])
def test_registering_detaches_what_runs(
    change: str, counting: Callable[[], int], probers: Probers
) -> None:
    """Who asked before has that report; who asks after does not, nor is it cached."""
    probers.reports("other", gpu(2))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(probe_core.probe, only=["counting", "other"])
        eventually(lambda: counting() == 1)
        if change == "register":
            probe_core.register("other", "fake_other")
        else:
            probe_core.unregister("other")
        after = probe_core.probe(only=["counting", "other"])
        assert first.result(60) is not after
    assert counting() == 2
    assert probe_core.probe(only=["counting", "other"]) is after
    assert (after.device("pci:0000:02:00.0") is not None) == (change == "register")
    probe_core.unregister("other")


@pytest.mark.heavy
def test_calls_with_probers_of_their_own_share_nothing(
    counting: Callable[[], int], probers: Probers
) -> None:
    with ThreadPoolExecutor(2) as pool:
        asks = [pool.submit(probe_core.probe, **probers.arguments) for _ in range(2)]
        assert len({id(each.result(60)) for each in asks}) == 2
    assert counting() == 2


@linux
def test_the_last_task_that_is_cancelled_ends_the_children(
    probers: Probers, tmp_path: Path
) -> None:
    log = tmp_path / "pid"
    probers.add(
        "hangs",
        f"""
        import os, time
        with open({str(log)!r} + "-", "w") as file:
            file.write(str(os.getpid()))
        os.rename({str(log)!r} + "-", {str(log)!r})
        time.sleep(600)
        """,
        deadline_s=600.0,
    )
    probe_core.register("hangs", {"target": "fake_hangs", "deadline_s": 600.0})

    async def main() -> list[bool]:
        tasks = [asyncio.ensure_future(probe_core.probe_async(only="hangs")) for _ in range(2)]
        await asyncio.to_thread(eventually, log.exists)
        await asyncio.to_thread(eventually, lambda: seats() == 2)
        alive = []
        for task in tasks:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            alive.append(os.path.isdir(f"/proc/{log.read_text()}"))
        return alive

    try:
        assert asyncio.run(main()) == [True, False]
    finally:
        probe_core.unregister("hangs")
