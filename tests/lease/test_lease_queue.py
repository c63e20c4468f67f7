"""Waiting: in the order of arrival, past whoever is dead or stopped, never longer than asked."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lease_node import Node
from test_lease_keeper import first_line, soon

from probe_core.leasing.folder import Folder
from probe_core.leasing.locks import Door
from probe_core.leasing.queues import Place, claimed

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


def waits(node: Node, count: int) -> bool:
    names = os.listdir(node.leases)
    return len([name for name in names if name.startswith(".queue-")]) >= count


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    folder = Folder(str(tmp_path))
    yield folder
    folder.close()


def test_places_are_taken_in_order_and_left(folder: Folder, tmp_path: Path) -> None:
    one, two, three = (Place(folder, "q") for _ in range(3))
    assert [place.first() for place in (one, two, three)] == [True, False, False]
    two.leave()
    assert not three.first()
    one.leave()
    assert three.first()
    three.leave()
    assert os.listdir(tmp_path) == []


def test_a_dead_one_is_passed_and_its_place_removed(folder: Folder, tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        Place(folder, "q")
        os._exit(0)
    os.waitpid(pid, 0)
    place = Place(folder, "q")
    assert soon(place.first)
    assert len(os.listdir(tmp_path)) == 1
    place.leave()


def test_a_stopped_one_is_passed(folder: Folder, tmp_path: Path) -> None:
    one, two = Place(folder, "q"), Place(folder, "q")
    assert not two.first()
    (name, _) = sorted(os.listdir(tmp_path))
    past = time.time() - 2
    os.utime(tmp_path / name, (past, past))
    assert two.first()
    one.leave()
    two.leave()


def test_the_earliest_claim_counts_and_fades(folder: Folder, tmp_path: Path) -> None:
    one, two, three = Place(folder, "a"), Place(folder, "b"), Place(folder, "c")
    two.claim(["x.lock", "y.lock"])
    three.claim(["z.lock"])
    assert claimed(folder) == {"x.lock", "y.lock"}
    assert claimed(folder, one.arrival) == set()
    assert claimed(folder, three.arrival) == {"x.lock", "y.lock"}
    (name,) = [name for name in os.listdir(tmp_path) if name == f".claim-{two.arrival}"]
    past = time.time() - 2
    os.utime(tmp_path / name, (past, past))
    assert claimed(folder) == {"z.lock"}
    for place in (one, two, three):
        place.leave()
    assert claimed(folder) == set()


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


def test_a_request_for_several_is_not_passed_over(
    node: Node, running: list[subprocess.Popen[str]]
) -> None:
    holder = node.start("exec", "--device", "0", *SLEEP)
    running.append(holder)
    first_line(holder)
    both = node.start("exec", "--gpus", "2", "--wait", *PRINT)
    running.append(both)
    assert soon(lambda: any(n.startswith(".claim-") for n in os.listdir(node.leases)))
    late = node.run("exec", "--gpus", "1", "--", "true")
    assert late.returncode == 3, "the free device is claimed"
    holder.kill()
    first_line(both)
    assert len(node.held()) == 2


@pytest.mark.heavy
def test_a_held_door_delays_but_does_not_block(node: Node) -> None:
    assert node.run("exec", "--", "true").returncode == 0
    with open(node.leases / ".door", "r+") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        past = time.time() - 2
        os.utime(door.fileno(), (past, past))
        assert node.run("exec", "--", "true").returncode == 0
        assert node.run("exec", "--gpus", "2", "--wait", "1", "--", "true").returncode == 0
        assert node.held() == []


def test_waiting_is_bounded_with_a_held_door_too(
    node: Node, running: list[subprocess.Popen[str]]
) -> None:
    holder = node.start("exec", "--device", "0", *SLEEP)
    running.append(holder)
    first_line(holder)
    with open(node.leases / ".door", "r+") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        begin = time.monotonic()
        done = node.run("exec", "--device", "0", "--wait", "0.2", "--", "true")
        assert (done.returncode, time.monotonic() - begin < 10) == (3, True)


def test_a_door_that_is_no_file_is_left_out(node: Node) -> None:
    node.leases.mkdir(mode=0o700)
    os.mkfifo(node.leases / ".door")
    assert node.run("exec", "--gpus", "2", "--", "true").returncode == 0
    assert node.run("leases").returncode == 0


def test_a_door_is_passed_once_its_holder_is_stale(folder: Folder, tmp_path: Path) -> None:
    one, two = Door(folder), Door(folder)
    assert one.take()
    past = time.time() - 2
    os.utime(tmp_path / ".door", (past, past))
    begin = time.monotonic()
    assert not two.take()
    assert not two.take()
    assert time.monotonic() - begin < 2
    one.drop()
    assert two.take()
    one.close()
    two.close()
