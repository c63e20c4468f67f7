"""Requests for devices as they meet in one folder: what is locked, signed for, given back, left."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lease_node import gpu, recorded

from probe_core import proc
from probe_core.leasing import LeaseError, acquire, ending
from probe_core.leasing.acquire import Acquisition, Leased, _inheritable
from probe_core.leasing.ending import _can_end, _open, _remaining, _send, end
from probe_core.leasing.folder import Folder, lease_folder, present_folder
from probe_core.leasing.holders import Holders, _open_for_writing, remains
from probe_core.leasing.listing import Holding, holdings
from probe_core.leasing.obtain import Room
from probe_core.leasing.queues import Beat
from probe_core.leasing.ranges import UNITS, obstacle, slot, try_lock, unlock
from probe_core.leasing.records import MARK, read_records, rewrite, sign, unsign
from probe_core.selection.request import Request

ONE, TWO = "pci:0000:01:00.0", "pci:0000:02:00.0"
MIB = 1 << 20
PART = gpu(3, id="uuid:MIG-1", ids=["uuid:MIG-1"], parent=ONE)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Folder]:
    with Folder(str(tmp_path)) as folder:
        yield folder


def first(count: int = 1) -> Callable[[Any], Any]:
    return lambda free: list(free[:count]) if len(free) >= count else None


class Requests:
    """Requests in one folder; each has an open file of locks of its own, as each process has."""

    def __init__(self, box: Folder) -> None:
        self.box = box
        self.made: list[Acquisition] = []

    def begin(self, *devices: Any, share: bool = False, reserve: int | None = None) -> Acquisition:
        record = recorded([], ["me"], share=share or reserve is not None)
        record.reserve = reserve
        installed = [gpu(1), gpu(2), PART]
        request = Acquisition(self.box, devices or (gpu(1), gpu(2)), installed, record, {})
        self.made.append(request)
        return request

    def take(self, *devices: Any, count: int = 1, **how: Any) -> Leased | None:
        """Return what a new request gets at once."""
        return self.begin(*devices, **how).attempt(first(count))


@pytest.fixture
def requests(box: Folder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Requests]:
    monkeypatch.setattr(acquire, "_SETTLE_S", 0.0)
    made = Requests(box)
    yield made
    for request in made.made:
        request.close()


def names(leased: Leased | None) -> list[str]:
    return [] if leased is None else [device["id"] for device in leased.devices]


def test_what_is_taken_is_signed_for_and_given_back(requests: Requests, tmp_path: Path) -> None:
    before = round(time.time(), 3)
    leased = requests.take()
    assert leased is not None
    assert names(leased) == [ONE]
    (record,) = read_records(requests.box)
    assert (record.devices, record.wholes, record.living) == ([ONE], [], True)
    assert record.since is not None
    assert before <= record.since <= round(time.time(), 3)
    assert names(requests.take(count=2)) == []
    other = requests.take()
    assert names(other) == [TWO]
    assert requests.begin().shared() == {ONE, TWO}
    leased.put_back()
    assert os.listdir(tmp_path / "records") == [other.record.name] if other else False
    assert requests.begin().shared() == {TWO}
    leased.put_back()  # a second time does nothing
    assert other is not None
    other.release()
    assert (os.listdir(tmp_path / "records"), requests.box.fd) == ([], -1)


@pytest.mark.parametrize(
    ("held", "asked", "gets"),
    [
        ((gpu(1),), (gpu(1),), False),
        ((gpu(1),), (gpu(2),), True),
        ((gpu(1),), (PART,), False),
        ((PART,), (gpu(1),), False),
        ((PART,), (PART,), False),
        ((PART,), (gpu(3, id="uuid:MIG-2", ids=["uuid:MIG-2"], parent=ONE),), True),
    ],
)
def test_a_part_and_its_whole(held: Any, asked: Any, gets: bool, requests: Requests) -> None:
    leased = requests.take(*held)
    assert leased is not None
    found = requests.take(*asked)
    assert (found is not None) is gets
    assert leased.record.wholes == ([ONE] if held == (PART,) else [])


@pytest.mark.parametrize(("held", "asked", "gets"), [(1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 0)])
def test_who_shares_shares_with_those_who_do(
    held: int, asked: int, gets: int, requests: Requests
) -> None:
    assert requests.take(gpu(1), share=bool(held)) is not None
    assert len(names(requests.take(gpu(1), share=bool(asked)))) == gets


def test_a_lease_whose_locks_were_replaced_lives_on(requests: Requests, tmp_path: Path) -> None:
    leased, shared = requests.take(), requests.take(gpu(2), share=True)
    part = requests.take(PART)
    assert (names(leased), names(shared), part) == ([ONE], [TWO], None)
    (tmp_path / "locks").rename(tmp_path / "other")  # no deletion: of that the file is found
    assert names(requests.take()) == []
    assert names(requests.take(PART)) == []
    assert names(requests.take(share=True)) == [TWO]
    assert leased is not None
    leased.put_back()
    assert names(requests.take(PART)) == ["uuid:MIG-1"]


@pytest.mark.parametrize(
    ("amounts", "gets"),
    [
        # 79 GiB are free, of which nobody has reserved any: then the whole counts, 80 GiB.
        ((79 << 30,), [True]),
        (((79 << 30) + 1,), [False]),
        ((1 << 30, 79 << 30), [True, True]),
        ((1 << 30, (79 << 30) + 1), [True, False]),
        ((40 << 30, 20 << 30, 20 << 30, 1), [True, True, True, False]),
        ((1, (80 << 30) - 2 * MIB + 1, 1), [True, True, False]),
        ((1, (80 << 30) - 3 * MIB + 1, 1, 1), [True, True, True, False]),
    ],
)
def test_parts_of_memory_are_reserved(
    amounts: tuple[int, ...], gets: list[bool], requests: Requests
) -> None:
    found = [requests.take(gpu(1), reserve=amount) is not None for amount in amounts]
    assert found == gets
    assert (requests.take(gpu(1)) is None) is any(found)


def test_a_reservation_fills_what_others_gave_back(requests: Requests) -> None:
    parts = [requests.take(gpu(1), reserve=20 << 30) for _ in range(4)]
    for part in (parts[0], parts[2]):
        assert part is not None
        part.put_back()
    assert requests.take(gpu(1), reserve=(40 << 30) + 1) is None
    assert requests.take(gpu(1), reserve=40 << 30) is not None


def test_what_is_lost_to_another_between_look_and_lock(requests: Requests) -> None:
    request = requests.begin()
    looks: list[list[str]] = []

    def choose(free: Any) -> Any:
        looks.append([device["id"] for device in free])
        if len(looks) == 1:
            assert requests.take(gpu(1)) is not None
        return free[:1] or None

    assert names(request.attempt(choose)) == [TWO]
    assert looks == [[ONE, TWO], [TWO]]


def test_an_interrupt_leaves_nothing_locked(
    requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    request = requests.begin()
    monkeypatch.setattr(os, "pwrite", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        request.attempt(first())
    monkeypatch.undo()
    request.close()
    requests.made.clear()
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert holdings(requests.box) == []
    assert os.listdir(f"{requests.box.path}/records") == []


def test_a_wait_has_an_end_and_leaves_its_place(requests: Requests) -> None:
    leased = requests.take(gpu(1))
    waiting = requests.begin(gpu(1))
    begin = time.monotonic()
    assert waiting.wait(first(), begin + 0.05, 1) is None
    assert 0.05 <= time.monotonic() - begin < 5
    next_one = requests.begin(gpu(1))
    assert leased is not None
    leased.put_back()
    # Nobody is ahead any more: at the first look, before the deadline is looked at.
    assert names(next_one.wait(first(), time.monotonic(), 1)) == [ONE]


def test_who_waits_for_several_claims_what_is_free(requests: Requests) -> None:
    assert requests.take(gpu(1)) is not None
    others: list[list[str]] = []

    def choose(free: Any) -> None:
        others.append([device["id"] for device in free])
        others.append(names(found := requests.take(gpu(2))))
        if found is not None:
            found.put_back()
        if len(others) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        requests.begin().wait(choose, time.monotonic() + 60, 2)
    # At its first look nothing was claimed; from then on it alone may have it.
    assert others == [[TWO], [TWO], [TWO], []]
    assert names(requests.take(gpu(2))) == [TWO], "who waits no more claims nothing"


def test_what_settles_is_looked_at_again(
    requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes are locked and nobody is named yet: its owner is just signing, or letting go."""
    monkeypatch.setattr(acquire, "_SETTLE_S", 5.0)
    handle = requests.box.locks()
    assert try_lock(handle, slot(ONE), UNITS)
    looks = 0

    def choose(free: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 3:
            os.close(handle)
        return free[:1] or None

    assert names(requests.begin(gpu(1)).attempt(choose)) == [ONE]
    assert looks == 4
    # Of one that a living process has signed for nobody waits.
    begin = time.monotonic()
    assert requests.take(gpu(1)) is None
    assert time.monotonic() - begin < 2


def test_a_forked_copy_ends_no_lease(requests: Requests) -> None:
    leased = requests.take(gpu(1))
    assert leased is not None
    leased._pid += 1  # as in a child, which has the same files open
    leased.put_back()
    assert leased.files == []
    with Folder(requests.box.path) as again:
        assert [record.devices for record in read_records(again)] == [[ONE]]


def test_who_keeps_a_lease_is_written_into_its_record(requests: Requests) -> None:
    leased = requests.take(gpu(1))
    assert leased is not None
    leased.be_kept_by(os.getppid())
    (record,) = read_records(requests.box)
    assert (record.keeper, record.keeper_started) == (os.getppid(), leased.record.keeper_started)
    assert record.keeper_started is not None


@pytest.mark.parametrize(
    ("limit", "number"), [(1024, 900), (901, 900), (900, 200), (256, 200), (200, 60), (120, 60)]
)
def test_the_numbers_of_files_that_a_command_inherits(limit: int, number: int) -> None:
    handle = os.open("/dev/null", os.O_RDONLY)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        moved = _inheritable(handle)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert (moved >= number, moved < number + 40, os.get_inheritable(moved)) == (True,) * 3
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)
    os.close(moved)


def test_below_these_numbers_a_file_keeps_its_own() -> None:
    handle = os.open("/dev/null", os.O_RDONLY)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (60, before[1]))
    try:
        assert _inheritable(handle) == handle
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert os.get_inheritable(handle)
    os.close(handle)


# The folder.


def test_a_folder_that_is_deleted_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "own"
    path.mkdir(mode=0o750)
    with Folder(str(path)) as box:
        path.rmdir()
        handle = box.locks()
        assert (path / "locks").stat().st_ino == os.fstat(handle).st_ino
        assert stat.S_IMODE(path.stat().st_mode) == 0o750
        assert os.listdir(path) == ["locks"]
        os.close(handle)


def test_of_two_that_make_the_locks_one_is_first(box: Folder, tmp_path: Path) -> None:
    made = box._made("locks")
    assert (box._made("locks"), os.listdir(tmp_path)) == (-1, ["locks"])
    handle = box.locks()
    assert os.fstat(handle).st_ino == os.fstat(made).st_ino
    os.close(made), os.close(handle)


def failing(number: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links(
    number: int, box: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(number))
    os.close(box.locks())
    assert os.listdir(tmp_path) == ["locks"]
    assert stat.S_IMODE((tmp_path / "locks").stat().st_mode) == 0o666


def test_a_full_disk_is_named(box: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "link", failing(errno.ENOSPC))
    with pytest.raises(LeaseError) as raised:
        box.locks()
    assert str(raised.value) == (
        f"the lease folder {tmp_path}/locks cannot be used: No space left on device;"
        " name another one in PROBE_LEASES"
    )
    assert (os.listdir(tmp_path), sorted(os.listdir("/proc/self/fd"))) == ([], before)


def test_locks_that_others_delete_for_ever(box: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[None] = []

    def fail(*_: object, **__: object) -> None:
        tries.append(None)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(LeaseError, match="locks cannot be used: somebody deletes it again and"):
        box.locks()
    assert len(tries) == 10


def test_deleted_locks_that_are_in_use_still_count(box: Folder, tmp_path: Path) -> None:
    os.close(box.locks())
    held = box.locks()
    assert try_lock(held, slot(ONE), UNITS)
    (tmp_path / "locks").unlink()
    again = box.locks()
    assert (os.fstat(again).st_ino, os.listdir(tmp_path)) == (os.fstat(held).st_ino, [])
    assert obstacle(again, slot(ONE), UNITS) is not None
    os.close(held), os.close(again)
    fresh = box.locks()
    assert os.listdir(tmp_path) == ["locks"]
    os.close(fresh)


@pytest.mark.parametrize(
    ("mode", "uid", "of_folder", "may_be"),
    [
        (stat.S_IFREG, 0, 0o700, True),
        (stat.S_IFREG, os.geteuid(), 0o700, True),
        (stat.S_IFREG, os.geteuid() + 7, 0o700, False),
        (stat.S_IFREG, os.geteuid() + 7, 0o720, True),
        (stat.S_IFREG, os.geteuid() + 7, 0o702, True),
        (stat.S_IFREG, os.geteuid() + 7, 0o755, False),
        (stat.S_IFIFO, 0, 0o702, False),
    ],
)
def test_whose_deleted_file_may_have_lain_here(
    mode: int, uid: int, of_folder: int, may_be: bool, box: Folder, tmp_path: Path
) -> None:
    tmp_path.chmod(of_folder)
    assert box._may_be_of_it(os.stat_result((mode | 0o666, 1, 1, 1, uid, 0, 0, 0, 0, 0))) is may_be


def test_records_that_can_have_no_folder_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("")
    record = recorded([ONE])
    with Folder(str(tmp_path)) as box:
        assert [box.records(), sign(box, record), box.records(create=False)] == [-1, -1, -1]
        assert read_records(box) == []
        place = f"{tmp_path}/records"
        told = f"{place} cannot be used and is passed over: Not a directory; remove it"
        assert box.notes == [told]
    gone = tmp_path / "gone"
    gone.mkdir()
    with Folder(str(gone)) as box:
        gone.rmdir()
        assert [box.records(create=False), box.records()] == [-1, -1]
        reason = "No such file or directory"
        assert box.notes == [f"{gone}/records cannot be used and is passed over: {reason}"]


def test_a_record_that_cannot_be_written_is_told(
    box: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "rename", failing(errno.ENOSPC))
    assert sign(box, recorded([ONE])) == -1
    reason = "has no record of this lease: No space left on device"
    assert box.notes == [f"{tmp_path}/records {reason}"]
    assert (os.listdir(tmp_path / "records"), sorted(os.listdir("/proc/self/fd"))) == ([], before)


def test_a_record_that_is_gone_is_unsigned(box: Folder, tmp_path: Path) -> None:
    record = recorded([ONE])
    handle = sign(box, record)
    path = tmp_path / "records" / record.name
    path.rename(tmp_path / "moved")
    unsign(str(path), handle)
    with (tmp_path / "moved").open("r+b") as file:
        assert obstacle(file.fileno(), 0, 1) is None
    os.close(handle)


def test_a_folder_whose_parent_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none" / "own"
    with pytest.raises(LeaseError) as raised:
        lease_folder({"PROBE_LEASES": str(path)})
    assert str(raised.value) == (
        f"the lease folder {path} cannot be used: it cannot be made: No such file or directory;"
        " name another one in PROBE_LEASES"
    )
    assert present_folder({"PROBE_LEASES": str(path)}) is None
    path.mkdir(parents=True)
    found = present_folder({"PROBE_LEASES": str(path)})
    assert found is not None
    assert (found.path, os.listdir(path), found.present_locks()) == (str(path), [], -1)
    found.close()


def test_the_guard_of_a_folder_is_shared_and_never_waits(box: Folder, tmp_path: Path) -> None:
    def is_free(mode: int) -> bool:
        other = os.open(tmp_path, os.O_RDONLY)
        try:
            fcntl.flock(other, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(other)
        return True

    box.guard()
    assert (is_free(fcntl.LOCK_SH), is_free(fcntl.LOCK_EX)) == (True, False)
    box.close()
    cleaner = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(cleaner, fcntl.LOCK_EX)
    with Folder(str(tmp_path)) as again:
        again.guard()
    os.close(cleaner)
    assert is_free(fcntl.LOCK_EX)


# Beats, holders and ends.


def test_a_beat_is_renewed_when_it_is_due(box: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("probe_core.leasing.queues.monotonic", lambda: now)
    own, other = box.locks(), box.locks()
    beat, look = Beat(own, 7), Beat(other, 7)
    seen = []
    for seconds in (0.0, 0.04, 0.02, 0.05, 0.03, 0.02):
        now += seconds
        beat.renew()
        seen.append(look.has_changed())
    assert seen == [True, False, True, True, False, True]
    unlock(own)
    os.close(own), os.close(other)


def test_files_that_are_open_for_writing(tmp_path: Path) -> None:
    found = []
    for mode in ("r+b", "rb", "ab"):
        path = tmp_path / mode.strip("+")
        path.write_bytes(b"")
        with path.open(mode) as file:
            status = os.fstat(file.fileno())
            found.append((status.st_dev, status.st_ino) in set(_open_for_writing()))
    assert found == [True, False, False]


def test_what_remains_is_found_by_the_mark_of_a_dead_lease(box: Folder) -> None:
    """A lease within a lease has both marks; of living ones, and of other users', nothing is."""
    child = subprocess.Popen(
        ["/bin/sleep", "60"], env={MARK: "outer,inner", "X": "PROBE_LEASE_MARK=other"}
    )
    try:
        records = {name: recorded([ONE], mark=name) for name in ("outer", "inner", "other", "x")}
        for record in records.values():
            record.uid, record.living = os.geteuid(), False
        deadline = time.monotonic() + 20
        while not any(remains([records["outer"]]).values()) and time.monotonic() < deadline:
            time.sleep(0.005)  # it has not become the program yet
        records["x"].mark = ""
        found = remains([*records.values()])
        assert found == {"outer": [child.pid], "inner": [child.pid], "other": [], "x": []}
        assert dict(Holders(box).prove(records["inner"]).members) == {child.pid: os.geteuid()}
        records["outer"].living, records["inner"].uid = True, os.geteuid() + 1
        assert remains([records["outer"], records["inner"]]) == {}
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize(
    ("below", "members", "can_end"),
    [
        ({5}, {5: 1}, True),
        ({5}, {5: 2}, False),
        ({5, 6}, {5: 2, 6: 1}, True),
        ({5}, {}, True),  # its keeper alone: it ends by itself
        (set(), {}, False),
    ],
)
def test_what_ends_by_a_signal_of_this_user(
    below: set[int], members: dict[int, int], can_end: bool
) -> None:
    proof: Any = SimpleNamespace(below=below, members=members)
    assert _can_end(proof, {1}) is can_end


def test_which_leases_are_left(box: Folder) -> None:
    """Of what was ended: the same lease, or a lock without a record on the same device."""
    handle = box.locks()
    assert try_lock(handle, slot(ONE), UNITS)
    assert try_lock(handle, slot(TWO), UNITS)
    left = {h.doc["device"]: h for h in holdings(box, {ONE, TWO})}
    assert set(left) == {ONE, TWO}
    (found,) = _remaining(box, [left[ONE]])
    assert found.identity == left[ONE].identity
    record = recorded([ONE])
    signature = sign(box, record)
    read = read_records(box)[0]
    ended = Holding(ONE, read, Holders(box).prove(read))
    assert [h.doc["device"] for h in _remaining(box, [ended])] == [ONE]
    other = recorded([TWO])
    other.uid = os.geteuid()
    gone = Holding(TWO, other, ended.proof)
    assert [(h.doc["device"], h.doc["since"]) for h in _remaining(box, [gone])] == [(TWO, None)]
    os.close(signature), os.close(handle)
    assert _remaining(box, [ended, gone]) == []


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_a_process_is_signalled_by_its_handle(
    has_pidfd: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_pidfd and (not hasattr(os, "pidfd_open") or sys.platform != "linux"):
        pytest.skip("this system has no pidfds")

    def opened(handles: dict[int, int]) -> dict[int, int]:
        with monkeypatch.context() as patch:  # not longer: Python 3.15's `wait` uses one as well
            if not has_pidfd:  # macOS, Linux before 5.3
                patch.delattr(os, "pidfd_open", raising=False)
            _open({child.pid}, handles)
        return handles

    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        try:
            handle = opened({})[child.pid]
            assert (handle == -child.pid, handle >= 0) == (not has_pidfd, has_pidfd)
            assert opened({child.pid: handle}) == {child.pid: handle}, "it has one"
            _send(handle, signal.SIGTERM)
            assert child.wait(20) == -signal.SIGTERM
            _send(handle, signal.SIGKILL)  # it has ended
        finally:
            child.kill()
    if has_pidfd:
        os.close(handle)
        assert opened({}) == {}


@pytest.fixture
def child() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(*files: int, script: str = "", **environ: str) -> subprocess.Popen[bytes]:
        """Start a process that inherits files; it runs when this returns."""
        command = ["/bin/sh", "-c", f"{script}echo; exec sleep 60"]
        process = subprocess.Popen(command, pass_fds=files, env=environ, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.read(1) == b"\n"
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def inherited(box: Folder, child: Callable[..., subprocess.Popen[bytes]], script: str = "") -> Any:
    """Return a process that alone keeps the lease of this one, and the lease."""
    handle = sign(box, recorded([ONE]))
    process = child(handle, script=script)
    os.close(handle)
    (holding,) = holdings(box)
    return process, holding


@pytest.mark.parametrize(
    ("script", "number"), [("", signal.SIGTERM), ("trap '' TERM;", signal.SIGKILL)]
)
def test_what_keeps_a_lease_is_ended(
    script: str, number: int, box: Folder, child: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "_GRACE_S", 0.2)
    process, holding = inherited(box, child, script)
    before = sorted(os.listdir("/proc/self/fd"))
    assert (holding.doc["kept_by"], holding.proof.members) == (
        [] if holding.doc["state"] == "running" else [process.pid],
        {process.pid: os.getuid()},
    )
    reaper = threading.Thread(target=process.wait)
    reaper.start()
    assert end(box, [holding]) == []
    reaper.join(20)
    assert process.returncode == -number
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_processes_of_other_users_are_not_signalled(
    box: Folder, child: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "_SETTLED_S", 0.05)
    process, holding = inherited(box, child)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 7)
    (left,) = end(box, [holding])
    assert (left.identity, process.poll()) == (holding.identity, None)
    reaper = threading.Thread(target=process.wait)
    reaper.start()
    assert end(box, [holding], others=[own]) == []
    reaper.join(20)
    assert process.returncode == -signal.SIGTERM


@pytest.mark.parametrize(
    ("keeper", "started", "members"),
    [(True, 0, False), (True, 1, True), (False, 0, True)],
    ids=["its keeper", "a number that was reused", "no keeper"],
)
def test_who_keeps_a_lease_is_not_signalled(
    keeper: bool, started: int, members: bool, box: Folder, child: Any
) -> None:
    record = recorded([ONE])
    handle = sign(box, record)
    process = child(handle)
    if keeper:
        record.keeper, record.keeper_started = process.pid, proc.started(process.pid)
        assert record.keeper_started is not None
        record.keeper_started += started
    rewrite(handle, record)
    os.close(handle)
    (read,) = read_records(box)
    proof = Holders(box).prove(read)
    assert (proof.below, [*proof.members]) == ({process.pid}, [process.pid] * members)


def test_what_a_killed_owner_left_keeps_its_device(
    requests: Requests, child: Any, tmp_path: Path
) -> None:
    record = recorded([ONE], mark="left1")
    os.close(sign(requests.box, record))  # killed: nobody locks it any more
    process = child(**{MARK: "left1"})
    assert requests.take(gpu(1)) is None
    assert os.listdir(tmp_path / "records") == ["left1"]
    process.kill()
    process.wait()
    assert names(leased := requests.take(gpu(1))) == [ONE]
    assert leased is not None
    assert os.listdir(tmp_path / "records") == [leased.record.name]


OWN = os.getpid()


@pytest.mark.parametrize(
    ("pid", "alive", "below", "members", "expected"),
    [
        # The kernel proves it: what it says of the command counts.
        (OWN, True, {OWN}, {}, ("running", True, [])),
        # Its processes are hidden from here, and it runs: nobody says otherwise.
        (OWN, True, set(), {}, ("running", False, [])),
        # What a record says of a process that holds nothing, while others do, is no evidence.
        (OWN, True, {7}, {7: 0, 5: 0}, ("inherited", False, [5, 7])),
        (OWN, False, {7}, {7: 0}, ("inherited", False, [7])),
        (OWN, False, set(), {}, ("unknown", False, [])),
        (OWN, None, {7}, {7: 0}, ("unknown", False, [7])),
        (1 << 30, True, set(), {}, ("unknown", False, [])),  # of another user, or of nobody
        (None, None, set(), {}, ("unknown", False, [])),
    ],
    ids=range(8),
)
def test_the_state_of_a_lease(
    pid: int | None, alive: bool | None, below: set[int], members: dict[int, int],
    expected: tuple[str, bool, list[int]], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    record = recorded([ONE], ["said"])
    record.pid, record.uid, record.reserve = pid, os.getuid(), 5
    monkeypatch.setattr(record, "alive", lambda: alive)
    proof: Any = SimpleNamespace(below=below, members=members)
    doc = Holding(ONE, record, proof).doc
    assert (doc["state"], doc["proven"], doc["kept_by"]) == expected
    assert (doc["command"] == "said") is (not expected[1])
    assert (doc["device"], doc["since"], doc["share"], doc["reserve"]) == (ONE, 1.0, False, 5)


@pytest.mark.parametrize(
    ("memory", "least", "lacks"),
    [
        ({"free": 4}, 4, False), ({"free": 3}, 4, True), ({"free": 3}, None, False),
        ({"free": None, "usable": None, "total": None}, 1, True),
    ],
)  # fmt: skip
def test_which_devices_lack_the_memory(memory: Any, least: int | None, lacks: bool) -> None:
    before, device = gpu(1, processes=0), gpu(1, processes=0)
    device["memory"] |= memory
    room = Room(Request(1, memory=least, avoids=False), [before], set())
    report: Any = {"devices": [device]}
    assert room.limited is (least is not None)
    assert room.lacking([before], report) == ({ONE} if lacks else set())
    # One that the fresh report does not name counts as it was.
    assert room.lacking([before], {"devices": []}) == set()
