"""What others put into the lease folder, or do to it, hurts only what they touched."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from lease_node import ROOT, Node, recorded
from test_lease_keeper import first_line, soon
from test_lease_queue import waits

from probe_core.leasing import LeaseError, lease, ranges
from probe_core.leasing.folder import lease_folder
from probe_core.leasing.listing import holdings
from probe_core.leasing.ranges import CLAIMED, UNITS, gaps, slot, try_lock
from probe_core.leasing.records import read_records, sign
from probe_core.pipeline.refresh import refresh

SLEEP = ("--", "sh", "-c", "echo; exec sleep 60")


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["locks", "records"])
@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "file"])
def test_what_others_put_in_the_place_of_a_file_costs_a_sentence(
    name: str, kind: str, node: Node
) -> None:
    node.leases.mkdir(mode=0o700)
    bad = node.leases / name
    {
        "link": lambda: bad.symlink_to("/etc/passwd"),
        "fifo": lambda: os.mkfifo(bad),
        "folder": lambda: bad.mkdir(mode=0o755),
        "file": bad.touch,
    }[kind]()
    is_fine = (name, kind) in (("locks", "file"), ("records", "folder"))
    holder = node.start("exec", "--device", "0", *SLEEP)
    first_line(holder)
    refused = node.run("exec", "--device", "0", "--", "true")
    assert refused.returncode == 3
    both = node.run("exec", "--", "printenv", "CUDA_VISIBLE_DEVICES")
    assert (both.returncode, both.stdout.count("GPU-00000002")) == (0, 1), both.stderr
    note = f"probe: exec {bad} cannot be used and is passed over: "
    assert (note in both.stderr) is not is_fine
    assert [entry["device"] for entry in node.held()] == [
        "pci:0000:01:00.0" if name == "locks" or is_fine else "?"
    ]
    end(holder)


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.mark.heavy
@pytest.mark.parametrize("what", ["locks", "renewed locks", "records", "folder"])
def test_deleting_what_is_in_use_gives_no_second_holder(what: str, node: Node) -> None:
    holder = node.start("exec", "--device", "0", *SLEEP)
    first_line(holder)
    if what == "folder":
        shutil.rmtree(node.leases)
    elif what == "records":
        shutil.rmtree(node.leases / "records")
    else:
        (node.leases / "locks").unlink()
        if what == "renewed locks":
            (node.leases / "locks").touch()
    refused = node.run("exec", "--device", "0", "--", "true")
    assert refused.returncode == 3
    assert node.run("exec", "--device", "0", "--", "true").returncode == 3, "also the next one"
    if what in ("locks", "renewed locks"):
        (entry,) = node.held()
        assert (entry["device"], entry["pid"]) == ("pci:0000:01:00.0", holder.pid)
    else:
        assert len(node.held()) == 1
    end(holder)
    assert soon(lambda: node.run("exec", "--device", "0", "--", "true").returncode == 0)


def delete(folder: Path) -> None:
    """Delete a folder at one moment: a waiter makes its place in the queue there meanwhile."""
    gone = folder.with_name("gone")
    folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def test_a_waiter_survives_the_deletion_of_the_folder(node: Node) -> None:
    holder = node.start("exec", "--device", "0", *SLEEP)
    first_line(holder)
    waiter = node.start("exec", "--device", "0", "--wait", "20", "--", "true")
    assert soon(lambda: waits(node, 1))
    delete(node.leases)
    holder.kill()
    holder.wait()
    assert waiter.wait(timeout=20) == 0
    for process in (holder, waiter):
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_named(
    number: int, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "fcntl", failing(number))
    document = dict(node.document)
    refresh(document, {})
    with pytest.raises(LeaseError) as caught:
        lease(report=document, environ=node.environ)
    assert "is on a file system without locks" in str(caught.value)
    assert "PROBE_LEASES" in str(caught.value)
    assert caught.value.variable == "PROBE_LEASES"


def failing(number: int) -> Callable[[int, int, bytes], None]:
    def command(handle: int, kind: int, argument: bytes) -> None:
        raise OSError(number, os.strerror(number))

    return command


def test_others_errors_of_the_lock_are_not_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lease_folder({"PROBE_LEASES": str(tmp_path)})
    handle = folder.locks()
    monkeypatch.setattr(fcntl, "fcntl", failing(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        try_lock(handle, 0, 1)
    os.close(handle)
    folder.close()


def test_a_locker_of_every_second_byte_costs_a_bounded_time(tmp_path: Path) -> None:
    """And no stack: the gaps between its locks are as many as it likes."""
    folder = lease_folder({"PROBE_LEASES": str(tmp_path)})
    hostile, look = folder.locks(), folder.locks()
    for byte in range(0, 12_000, 2):
        assert try_lock(hostile, byte, 1)
    assert len(list(gaps(look, 0, 12_000))) < 6_000
    for handle in (hostile, look):
        os.close(handle)
    folder.close()


def test_a_look_through_locks_without_end_is_bounded_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 30,000 locks each look takes a millisecond: a refusal took 17 s."""
    folder = lease_folder({"PROBE_LEASES": str(tmp_path)})
    hostile, look = folder.locks(), folder.locks()
    for byte in range(0, 600, 2):
        assert try_lock(hostile, byte, 1)
    now = iter(range(1000))
    monkeypatch.setattr(ranges, "monotonic", lambda: next(now) / 50)
    assert len(list(gaps(look, 0, 600))) < 60
    for handle in (hostile, look):
        os.close(handle)
    folder.close()


def test_a_look_on_a_machine_that_stops_for_seconds_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A waiter had no place in the queue, free memory counted as reserved, and records were lost.

    All of that after 0.1 s, or 0.25, of which the process had none of the processor's.
    """
    folder = lease_folder({"PROBE_LEASES": str(tmp_path)})
    signed = [sign(folder, recorded([NAME], share=True)) for _ in range(3)]
    holder, look = folder.locks(), folder.locks()
    assert try_lock(holder, slot(NAME) + 10, 5)
    now = iter(range(0, 10_000, 10))
    monkeypatch.setattr(ranges, "monotonic", lambda: next(now))
    assert list(gaps(look, slot(NAME), 20)) == [
        (slot(NAME), slot(NAME) + 10),
        (slot(NAME) + 15, slot(NAME) + 20),
    ]
    assert len(read_records(folder)) == 3
    assert [h.doc["pid"] for h in holdings(folder)] == [os.getpid()] * 3
    for handle in (*signed, holder, look):
        os.close(handle)
    folder.close()


def test_who_has_many_locks_does_not_hide_behind_them(tmp_path: Path) -> None:
    """The kernel lists them in order, and of a file of 64 KiB the rest was not read."""
    folder = lease_folder({"PROBE_LEASES": str(tmp_path)})
    hostile = folder.locks()
    for byte in range(0, 3000, 2):
        assert try_lock(hostile, byte, 1)
    assert try_lock(hostile, slot(NAME), UNITS)
    entries = {h.doc["device"]: h.doc for h in holdings(folder, [NAME])}
    assert (entries[NAME]["pid"], entries[NAME]["proven"]) == (os.getpid(), True)
    os.close(hostile)
    folder.close()


NAME = "pci:0000:01:00.0"


def test_a_slot_with_many_locks_is_listed_once(tmp_path: Path) -> None:
    """60,000 of them made a listing of 5,000 rows in 26 s."""
    folder = lease_folder({"PROBE_LEASES": str(tmp_path)})
    hostile = folder.locks()
    for name in ("pci:0000:01:00.0", "pci:0000:02:00.0"):
        for byte in range(0, 200, 2):
            assert try_lock(hostile, slot(name) + byte, 1)
    assert try_lock(hostile, slot("pci:0000:03:00.0") + CLAIMED, 1)
    names = [f"pci:0000:0{number}:00.0" for number in (1, 2, 3)]
    assert sorted(h.doc["device"] for h in holdings(folder, names)) == names[:2]
    os.close(hostile)
    folder.close()


def test_a_reader_of_a_record_keeps_no_lease_alive(tmp_path: Path) -> None:
    """Everybody may open it for reading, and lock it so: in the name of who is dead by now."""
    folder = lease_folder({"PROBE_LEASES": str(tmp_path)})
    record = recorded(["pci:0000:01:00.0"], share=False, mark="a1")
    handle = sign(folder, record)
    with open(tmp_path / "records" / "a1", "rb") as reader:
        assert not try_lock(reader.fileno(), 0, 1, share=True)
        os.close(handle)
        assert try_lock(reader.fileno(), 0, 1, share=True)
        assert [record.living for record in read_records(folder)] == [False]
    folder.close()


@pytest.mark.heavy
def test_records_without_end_delay_a_lease_by_a_bounded_time(node: Node) -> None:
    assert node.run("exec", "--", "true").returncode == 0
    for number in range(6000):
        (node.leases / "records" / f"{number:08x}").write_text("device pci:0000:01:00.0\n")
    done = node.run("exec", "--device", "0", "--", "true")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be two users")
def test_one_users_many_records_hide_no_others(tmp_path: Path) -> None:
    folder = lease_folder({"PROBE_LEASES": str(tmp_path)})
    record = recorded(["pci:0000:01:00.0"], share=False, mark="zz")
    handle = sign(folder, record)
    for number in range(600):
        path = tmp_path / "records" / f"{number:08x}"
        path.touch()
        os.chown(path, 70001, 70001)
    found = read_records(folder)
    assert len(found) == 513
    assert [record.name for record in found if record.living] == ["zz"]
    os.close(handle)
    folder.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be two users")
@pytest.mark.parametrize(
    ("names", "records", "read"),
    [(8, 512, 512), (6000, 2, 0), (200, 512, 20)],
    ids=["usual", "huge", "many"],
)
def test_one_users_records_are_read_up_to_a_sum_of_devices(
    names: int, records: int, read: int, tmp_path: Path
) -> None:
    """512 records of 64 KiB delayed a lease by 6 s, and a listing took 45 s and 2 GiB."""
    folder = lease_folder({"PROBE_LEASES": str(tmp_path)})
    record = recorded(["pci:0000:01:00.0"], share=False, mark="zz")
    handle = sign(folder, record)
    text = "".join(f"device d{number}\n" for number in range(names))
    for number in range(records):
        path = tmp_path / "records" / f"{number:08x}"
        path.write_text(text)
        os.chown(path, 70001, 70001)
    found = read_records(folder)
    assert [r.name for r in found if r.uid == 0] == ["zz"]
    assert len([r for r in found if r.uid == 70001]) == read
    os.close(handle)
    folder.close()


@pytest.mark.heavy
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be two users")
def test_memory_that_two_users_reserve_is_added_up_under_hidden_processes(tmp_path: Path) -> None:
    """Neither sees the other's processes, nor its PID namespace: the kernel keeps the sum."""
    node = Node(tmp_path, 1)
    # Not below pytest's own folder, which each run of it closes to other users again.
    with TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o1777)
        reserve_in_turn(node, folder)


def reserve_in_turn(node: Node, folder: Path) -> None:
    document = {**node.document}
    document["findings"] = []
    report = json.dumps(document)
    unshare = ["unshare", "--mount", "--pid", "--fork", "--propagation", "private"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no namespaces may be made here")
    reads = ["setpriv", "--reuid=70001", "--clear-groups", sys.executable, "-c"]
    code = RESERVE.format(root=str(ROOT))
    importing = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import probe_core.leasing"
    if subprocess.run([*reads, importing], check=False, capture_output=True).returncode:
        pytest.skip("other users may not read this checkout, or its interpreter")
    hide = 'mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=$0 --clear-groups "$@"'
    running = []
    for uid, amount, answer in ((70001, 50, "held"), (70002, 50, "busy"), (70002, 20, "held")):
        words = [*unshare, "sh", "-c", hide, str(uid), sys.executable, "-c", code, f"{amount}GiB"]
        process = subprocess.Popen(
            words,
            env={"PATH": os.environ["PATH"], "PROBE_LEASES": str(folder), "REPORT": report},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert first_line(process) == answer
    for process in running:
        process.communicate("\n")


RESERVE = """
import json, os, sys
sys.path.insert(0, {root!r})
from probe_core.leasing import SelectionError, lease
from probe_core.pipeline.refresh import refresh
document = json.loads(os.environ["REPORT"])
refresh(document, {{}})
try:
    held = lease(1, reserve=sys.argv[1], report=document)
except SelectionError as error:
    print(error.code, flush=True)
else:
    print("held", flush=True)
    sys.stdin.readline()
"""
