"""The thread that children are started and ended in: what interrupts its caller stops it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterator

import pytest

from probe_core.isolation import worker as module
from probe_core.isolation.worker import Worker

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def start_thread(call: Callable[[], None]) -> None:
    start_new_thread(call, ())


def refuse_thread(call: Callable[[], None]) -> None:
    raise RuntimeError("can't start new thread")


def until_stopped(worker: Worker) -> None:
    while not worker.stopping:
        time.sleep(0.001)


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """No test here may leave a thread, not even for a moment."""
    tasks = "/proc/self/task"
    if not os.path.exists(tasks):
        yield
        return
    before = set(os.listdir(tasks))  # maybe with the timer of the test before, which is ending
    yield
    assert set(os.listdir(tasks)) <= before


def test_the_work_has_a_thread_and_its_calls_have_the_callers() -> None:
    threads: dict[str, int] = {}

    def work(worker: Worker) -> None:
        threads["work"] = threading.get_ident()
        worker.call(lambda: threads.setdefault("call", threading.get_ident()))
        assert "call" in threads
        worker.post(lambda: threads.setdefault("post", threading.get_ident()))

    Worker(work, start_thread).run()
    own = threading.get_ident()
    assert threads == {"work": threads["work"], "call": own, "post": own}
    assert threads["work"] != own


def test_a_posted_call_runs_beside_the_work() -> None:
    met = threading.Barrier(2, timeout=5)

    def work(worker: Worker) -> None:
        worker.post(met.wait)
        met.wait()

    Worker(work, start_thread).run()


def calls_made() -> list[int]:
    calls: list[int] = []
    Worker(lambda worker: worker.post(lambda: calls.append(1)), start_thread).run()
    return calls


def test_a_call_posted_last_is_made_nevertheless() -> None:
    assert all(calls_made() == [1] for _ in range(300))


def test_what_the_work_raises_comes_out() -> None:
    def work(worker: Worker) -> None:
        raise ValueError("from the work")

    with pytest.raises(ValueError, match="from the work"):
        Worker(work, start_thread).run()


def test_work_that_waits_for_a_call_is_woken_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probe_core.isolation.worker.TICK_S", 600.0)
    with pytest.raises(KeyboardInterrupt):
        Worker(lambda worker: worker.call(interrupt), start_thread).run()


def test_a_call_that_raises_stops_the_work() -> None:
    ended: list[bool] = []

    def work(worker: Worker) -> None:
        worker.call(interrupt)
        ended.append(worker.stopping)

    with pytest.raises(KeyboardInterrupt):
        Worker(work, start_thread).run()
    assert ended == [True]


INTERRUPTED = """
import signal, sys, time
from _thread import start_new_thread
from probe_core.isolation.worker import Worker

class Interrupted(BaseException):
    pass

times, signals, ended = int(sys.argv[1]), [], []

def handle(number, frame):
    signals.append(number)
    if len(signals) == times:
        signal.setitimer(signal.ITIMER_REAL, 0)
    raise Interrupted

def work(worker):
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.0005)  # not before there is work to interrupt
    try:
        while not worker.stopping:
            time.sleep(0.001)
    finally:
        until = time.monotonic() + 1.5  # the caller waits for two seconds
        while len(signals) < times and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(0.1)
        ended.append(True)

signal.signal(signal.SIGALRM, handle)
try:
    Worker(work, lambda call: start_new_thread(call, ())).run()
except Interrupted:
    print("interrupted", ended, len(signals))
"""


@pytest.mark.heavy
@pytest.mark.parametrize("times", [1, 5, 30])
def test_a_handler_that_raises_again_and_again_interrupts_no_ending(times: int) -> None:
    """Each exception comes while the one before is being handled; the ending takes longer.

    In a process of its own: a signal may come while Python drops an exception, which prints the
    handler's own as ignored, and pytest would count that as a failure of whatever test runs.
    """
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(times)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout == f"interrupted [True] {times}\n", done.stderr


def test_without_room_for_a_thread_the_caller_does_it_all() -> None:
    order: list[str] = []

    def work(worker: Worker) -> None:
        worker.call(lambda: order.append("call"))
        worker.post(lambda: order.append("post"))
        order.append("work")
        assert threading.get_ident() == own

    own = threading.get_ident()
    Worker(work, refuse_thread).run()
    assert order == ["call", "post", "work"]


def test_a_thread_that_nothing_interrupts_does_it_all() -> None:
    order: list[str] = []

    def work(worker: Worker) -> None:
        worker.call(lambda: order.append("call"))
        order.append("work")
        assert threading.get_ident() == own

    own = threading.get_ident()
    Worker(work, refuse_thread, in_place=True).run()
    assert order == ["call", "work"]
    with pytest.raises(ValueError, match="from the work"):
        Worker(lambda worker: fail(), interrupt_thread, in_place=True).run()


def fail() -> None:
    raise ValueError("from the work")


def interrupt_thread(call: Callable[[], None]) -> None:
    raise AssertionError("no thread is needed")


def test_without_a_thread_exceptions_come_out_too() -> None:
    with pytest.raises(KeyboardInterrupt):
        Worker(lambda worker: worker.call(interrupt), refuse_thread).run()


def test_interrupted_before_a_thread_was_started() -> None:
    def start(call: Callable[[], None]) -> None:
        raise KeyboardInterrupt

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Worker(until_stopped, start).run()
    # A thread that never was is not waited for: the wait would have no end.
    assert time.monotonic() - begin < 10


def test_interrupted_just_after_a_thread_was_started_that_has_not_begun() -> None:
    late: list[Callable[[], None]] = []
    worked: list[Worker] = []

    def start(call: Callable[[], None]) -> None:
        late.append(call)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Worker(worked.append, start).run()
    late[0]()  # the thread begins now, and finds that nobody waits
    assert worked == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_interrupted_just_after_a_thread_has_begun(error: type[BaseException]) -> None:
    """A handler may raise what else would mean that no thread can be started."""
    ended: list[bool] = []

    def work(worker: Worker) -> None:
        until_stopped(worker)
        ended.append(True)

    def start(call: Callable[[], None]) -> None:
        start_thread(call)
        time.sleep(0.05)
        raise error

    with pytest.raises(error):
        Worker(work, start).run()
    assert ended == [True]


def test_work_that_does_not_stop_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.2)
    hung = threading.Event()
    begin = time.monotonic()

    def work(worker: Worker) -> None:
        worker.post(interrupt)
        hung.wait(10)

    with pytest.raises(KeyboardInterrupt):
        Worker(work, start_thread).run()
    assert 0.15 < time.monotonic() - begin < 8
    hung.set()
    time.sleep(0.1)


FORKED = """
import os, sys, time
from _thread import start_new_thread
from probe_core.isolation.worker import Worker
host = os.getpid()
def work(worker):
    worker.call(os.fork)
    time.sleep(0.2)
Worker(work, lambda call: start_new_thread(call, ())).run()
if os.getpid() != host:
    os._exit(3)  # a copy of the host in which the thread is missing: it must come out, too
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@linux
def test_a_forked_copy_of_the_caller_does_not_wait_for_the_thread() -> None:
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(FORKED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "3\n"
