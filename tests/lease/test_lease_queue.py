"""Waiting: in the order of arrival, past whoever is dead or stopped, never longer than asked."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from lease_node import Node
from test_lease_keeper import SLACK_S, first_line, soon

from probe_core.leasing import queues, ranges
from probe_core.leasing.folder import Folder
from probe_core.leasing.queues import Claims, Place
from probe_core.leasing.ranges import QUEUES, SLOT, gaps, slot, unlock

SLEEP = ("--", "sh", "-c", "echo; exec sleep 60")
PRINT = ("--", "sh", "-c", "echo; exec sleep 60")


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.send_signal(signal.SIGCONT)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


CLAIM = QUEUES + slot("the claim")


def waits(node: Node, count: int) -> bool:
    """Return whether so many places are held: a byte of each waiter."""
    path = node.leases / "locks"
    places = held(path, QUEUES, CLAIM - QUEUES) + held(path, CLAIM + SLOT, QUEUES)
    return places >= count


def claims(node: Node) -> bool:
    return held(node.leases / "locks", CLAIM, 1) == 1


def held(path: Path, start: int, length: int) -> int:
    """Return how many bytes are locked, without the last of a slot, which beats."""
    with open(path, "r+b") as file:
        ends = [(start, start), *gaps(file.fileno(), start, length), (start + length, 0)]
    runs = [(end, begin) for (_, end), (begin, _) in pairwise(ends)]
    return sum(end - begin - (end % SLOT == 0) for begin, end in runs if end > begin)


def is_due(place: Place, is_free: bool = False) -> bool:
    return place.is_due(lambda: is_free)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    folder = Folder(str(tmp_path))
    yield folder
    folder.close()


def test_places_are_taken_in_order_and_left(folder: Folder) -> None:
    handles = [folder.locks() for _ in range(3)]
    one, two, three = (Place(handle, "q") for handle in handles)
    assert [is_due(place) for place in (one, two, three)] == [True, False, False]
    unlock(handles[1])
    assert not is_due(three)
    unlock(handles[0])
    assert is_due(three)
    for handle in handles:
        os.close(handle)


def test_queues_are_apart(folder: Folder) -> None:
    handles = [folder.locks() for _ in range(2)]
    assert [is_due(Place(handles[0], "q")), is_due(Place(handles[1], "r"))] == [True, True]
    for handle in handles:
        os.close(handle)


def test_a_dead_one_is_passed(folder: Folder) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            Place(folder.locks(), "q")
            os.write(write, b"1")
            signal.pause()
        finally:
            os._exit(1)
    assert os.read(read, 1) == b"1"
    handle = folder.locks()
    place = Place(handle, "q")
    assert not is_due(place)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert is_due(place)
    for number in (handle, read, write):
        os.close(number)


@pytest.mark.parametrize("hostile", [False, True], ids=["a place", "all places"])
def test_who_leaves_what_is_free_is_passed_by_the_clock_of_who_looks(
    hostile: bool, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second of it in a row: one who lives takes it at once. Nothing of the other's counts."""
    now = 100.0
    monkeypatch.setattr(queues, "monotonic", lambda: now)
    one, two = folder.locks(), folder.locks()
    if hostile:
        assert ranges.try_lock(one, QUEUES, 0)
    else:
        Place(one, "q")
    place = Place(two, "q")
    for is_free in (False, True, True, False, True):
        assert not is_due(place, is_free)
        now += 0.6
    assert not is_due(place, True)
    now += 0.6
    assert is_due(place, True)
    for handle in (one, two):
        os.close(handle)


def test_who_needs_several_is_not_passed_while_it_beats(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another queue's head has the claim, and one device is free for all to see."""
    now = 100.0
    monkeypatch.setattr(queues, "monotonic", lambda: now)
    one, two = folder.locks(), folder.locks()
    first, place = Place(one, "q"), Place(two, "q")
    for _ in range(150):
        now += 0.02
        first.beat.renew()
        assert not is_due(place, True)
    for _ in range(60):
        now += 0.02
        is_due(place, True)
    assert is_due(place, True), "it is stopped"
    for handle in (one, two):
        os.close(handle)


def test_who_is_not_first_seldom_looks_at_devices(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at all records by each of two hundred waiters, fifty times a second, fills a core."""
    now, looks = 100.0, []
    monkeypatch.setattr(queues, "monotonic", lambda: now)
    one, two = folder.locks(), folder.locks()
    Place(one, "q")
    place = Place(two, "q")
    for _ in range(100):
        now += 0.02
        assert not place.is_due(lambda: bool(looks.append(1)))
    assert 15 <= len(looks) <= 21
    for handle in (one, two):
        os.close(handle)


def test_one_claims_at_a_time_and_fades_when_it_is_stopped(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(queues, "monotonic", lambda: now)
    handles = [folder.locks() for _ in range(3)]
    one, two, look = map(Claims, handles)
    one.make(["x", "y"])
    two.make(["z"])
    assert [look.hold(name) for name in "xyz"] == [True, True, False]
    assert not one.hold("x"), "its own"
    one.make(["y"])
    assert [look.hold(name) for name in "xyz"] == [False, True, False]
    now += 0.2
    assert look.hold("y")
    now += 0.2
    assert not look.hold("y")
    unlock(handles[0])
    two.make(["z"])
    now += 0.06
    two.make(["z"])
    assert [look.hold(name) for name in "xyz"] == [False, False, True]
    for handle in handles:
        os.close(handle)


@pytest.mark.heavy
def test_a_stopped_waiter_keeps_nobody_from_what_comes_free(
    node: Node, running: list[subprocess.Popen[str]]
) -> None:
    holder = node.start("exec", "--device", "0,1", *SLEEP)
    running.append(holder)
    first_line(holder)
    stopped = node.start("exec", "--gpus", "2", "--wait", *SLEEP)
    running.append(stopped)
    assert soon(lambda: waits(node, 1))
    stopped.send_signal(signal.SIGSTOP)
    behind = node.start("exec", "--gpus", "2", "--wait", "20", "--", "true")
    running.append(behind)
    assert soon(lambda: waits(node, 2))
    holder.kill()
    assert behind.wait(timeout=20) == 0
    assert node.run("exec", "--gpus", "2", "--wait", "10", "--", "true").returncode == 0


@pytest.mark.heavy
def test_a_request_for_several_is_not_passed_over(
    node: Node, running: list[subprocess.Popen[str]]
) -> None:
    holder = node.start("exec", "--device", "0", *SLEEP)
    running.append(holder)
    first_line(holder)
    both = node.start("exec", "--gpus", "2", "--wait", *PRINT)
    running.append(both)
    assert soon(lambda: claims(node))
    late = node.run("exec", "--gpus", "1", "--", "true")
    assert late.returncode == 3, "the free device is claimed"
    holder.kill()
    first_line(both)
    assert len(node.held()) == 2


@pytest.mark.heavy
def test_waiting_is_bounded_whatever_others_lock(
    node: Node, running: list[subprocess.Popen[str]]
) -> None:
    holder = node.start("exec", "--device", "0", *SLEEP)
    running.append(holder)
    first_line(holder)
    with open(node.leases / "locks", "r+b") as file:
        assert ranges.try_lock(file.fileno(), QUEUES, 0)
        begin = time.monotonic()
        done = node.run("exec", "--device", "0", "--wait", "0.2", "--", "true")
        assert (done.returncode, time.monotonic() - begin < SLACK_S) == (3, True)
        assert node.run("exec", "--device", "1", "--wait", "30", "--", "true").returncode == 0
