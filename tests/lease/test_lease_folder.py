"""The lease folder is shared safely: links, pipes and others' files are refused, not followed."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lease_node import ROOT, Node, gpu, recorded

from probe_core.cli import main
from probe_core.leasing import LeaseError, folder, lease, ranges
from probe_core.leasing.folder import Folder, lease_folder
from probe_core.leasing.listing import holdings, obstacles
from probe_core.leasing.ranges import (
    QUEUES,
    SLOT,
    UNITS,
    Key,
    key_of,
    outer_lease,
    outer_lease_value,
    slot,
    try_lock,
)
from probe_core.leasing.records import Record, read_records, sign
from probe_core.pipeline.refresh import refresh
from probe_core.selection import SelectionError


def test_the_named_folder_is_made_for_its_user_alone(tmp_path: Path) -> None:
    found = lease_folder({"PROBE_LEASES": str(tmp_path / "own")})
    found.close()
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o700


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put root's folder and the users' own ones into the test's folder."""
    monkeypatch.setattr(folder, "_SYSTEM", str(tmp_path / "run"))
    monkeypatch.setattr(folder, "_OWN", str(tmp_path / "own-{uid}"))
    return tmp_path


def is_user(monkeypatch: pytest.MonkeyPatch, uid: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_root_makes_the_folder_of_all_users_whatever_the_umask(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_user(monkeypatch, 0)
    before = os.umask(0o077)
    try:
        lease_folder({}).close()
    finally:
        os.umask(before)
    run = places / "run"
    assert (mode_of(run), mode_of(run / "locks"), mode_of(run / "records")) == (
        0o755,
        0o666,
        0o1777,
    )


def test_a_user_takes_roots_folder_only_where_it_is_set_up(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() or 7)
    # As for a user who may not write there: root, who runs the tests, could.
    monkeypatch.setattr(folder.Folder, "_made", refuse)
    run = places / "run"
    assert folder.system_folder() is None
    run.mkdir()
    assert folder.system_folder() is None
    (run / "locks").touch()
    found = lease_folder({})
    assert (found.path, found.is_private) == (str(run), False)
    found.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="systemd-tmpfiles makes files of root's")
def test_tmpfiles_makes_the_folder_of_all_users(places: Path) -> None:
    program = shutil.which("systemd-tmpfiles")
    if program is None:
        pytest.skip("systemd-tmpfiles is not installed")
    conf = ROOT / "packaging" / "operators" / "probe-core.conf"
    subprocess.run([program, "--create", f"--root={places}", str(conf)], check=True)
    run = places / "run" / "probe-core"
    assert (mode_of(run), mode_of(run / "locks"), mode_of(run / "records")) == (
        0o755,
        0o666,
        0o1777,
    )


def refuse(box: Folder, name: str) -> int:
    raise LeaseError("Permission denied")


def test_without_roots_folder_a_user_has_an_own_one(
    places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PROBE_LEASES", raising=False)
    monkeypatch.setattr(folder, "system_folder", lambda: None)
    own = places / f"own-{os.geteuid()}"
    found = lease_folder({})
    assert (found.path, mode_of(own), found.is_private) == (str(own), 0o700, True)
    assert main(["leases"]) == 0
    assert "no device is leased (there is no folder of leases yet)" in capsys.readouterr().err
    os.close(found.locks())
    found.close()
    assert main(["leases"]) == 0
    assert "This folder has this user's leases alone." in capsys.readouterr().err
    own.chmod(0o777)
    with pytest.raises(LeaseError, match=r"others can write it \(mode 777\)"):
        lease_folder({})


def test_an_own_folder_that_another_user_made_is_refused(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "system_folder", lambda: None)
    uid = os.getuid()
    is_user(monkeypatch, uid + 1)
    (places / f"own-{uid + 1}").mkdir()
    with pytest.raises(LeaseError, match=f"cannot be used: it is of user {uid};"):
        lease_folder({})


@pytest.mark.parametrize("value", ["relative/folder", "."])
def test_a_relative_folder_is_refused(value: str) -> None:
    with pytest.raises(LeaseError, match="is no absolute path"):
        lease_folder({"PROBE_LEASES": value})


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(LeaseError, match="cannot be used"):
        lease_folder({"PROBE_LEASES": str(tmp_path / "link")})


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_is_no_plain_file_is_passed_over_and_told(kind: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    box = Folder(str(tmp_path))
    bad = tmp_path / "locks"
    {"link": lambda: bad.symlink_to(victim), "fifo": lambda: os.mkfifo(bad), "folder": bad.mkdir}[
        kind
    ]()
    one, two = box.locks(), box.locks()
    assert (tmp_path / "locks-1").stat().st_ino == os.fstat(one).st_ino == os.fstat(two).st_ino
    (note,) = box.notes
    assert note.startswith(f"{bad} cannot be used and is passed over: ")
    assert victim.read_text() == "precious"
    os.close(one), os.close(two)
    box.close()


def test_a_second_name_of_the_locks_costs_nothing(tmp_path: Path) -> None:
    """Nothing is ever written into it, so a hard link has nothing to win."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.link(victim, tmp_path / "locks")
    box = Folder(str(tmp_path))
    handle = box.locks()
    assert try_lock(handle, slot("pci:0000:01:00.0"), UNITS)
    os.close(handle)
    box.close()
    assert victim.read_text() == "precious"


def test_names_have_slots_of_their_own_within_what_the_kernel_takes() -> None:
    names = [f"pci:0000:{bus:02x}:{slot_:02x}.0" for bus in range(256) for slot_ in range(32)]
    assert len({slot(name) for name in names}) == len(names)
    assert all(slot(name) % SLOT == 0 and slot(name) + SLOT <= QUEUES for name in names)
    assert QUEUES + QUEUES < 1 << 63


def test_records_survive_being_written_and_read(tmp_path: Path) -> None:
    box = Folder(str(tmp_path))
    command = ["sh", "-c", "echo \x1b[31m\n"]
    names = ["pci:0000:01:00.0", "dt:/soc/npu"]
    record = recorded(names, command, share=True, since=1763712000.5, mark="a1")
    record.wholes = ["pci:0000:07:00.0"]
    handle = sign(box, record)
    (read,) = read_records(box)
    assert (read.name, read.pid, read.uid, read.since) == (
        "a1",
        os.getpid(),
        os.getuid(),
        1763712000.5,
    )
    assert (read.share, read.alive(), read.living) == (True, True, True)
    assert (read.devices, read.wholes) == (names, ["pci:0000:07:00.0"])
    assert read.command == "sh -c echo \\x1b[31m\\n"
    path = tmp_path / "records" / "a1"
    assert mode_of(path) == 0o644
    os.close(handle)
    assert [record.living for record in read_records(box)] == [False]
    box.close()


def test_the_folder_of_records_is_there_for_all_that_begin_at_once(tmp_path: Path) -> None:
    """Whoever made it second passed it over: its lease had no record, and no name to end it by."""
    gate = threading.Barrier(8)

    def begin(path: Path) -> list[str]:
        box = Folder(str(path))
        gate.wait()
        os.close(box.records())
        box.close()
        return box.notes

    with ThreadPoolExecutor(8) as pool:
        for number in range(50):
            path = tmp_path / str(number)
            path.mkdir()
            assert list(pool.map(begin, [path] * 8)) == [[]] * 8


def test_records_of_others_are_not_trusted(tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    text = b"pid x\nsince -1\nuid 0\nreserve 99999999999999999999\ncommand \x1b]0;evil\x07\xff\n"
    (records / "a1").write_bytes(text + b"device \x1b[31m\n")
    (records / "b2").symlink_to(records / "a1")
    os.mkfifo(records / "c3")
    (records / "d4").mkdir()
    (records / "e-5").write_bytes(text)
    box = Folder(str(tmp_path))
    (read,) = read_records(box)
    assert (read.name, read.pid, read.since, read.reserve, read.alive()) == (
        "a1",
        None,
        None,
        None,
        None,
    )
    assert (read.uid, read.living) == (os.getuid(), False)
    assert read.command.isprintable()
    assert read.devices[0].isprintable()
    os.link(records / "a1", records / "f6")
    assert read_records(box) == [], "one of another user's may be named as a lease"
    box.close()


def test_a_reused_process_number_is_told_apart() -> None:
    record = recorded([], share=False, since=0.0)
    assert record.alive() is True
    assert record.started is not None
    record.started += 1
    assert record.alive() is False
    assert Record().alive() is None


def test_a_partition_locks_its_gpu_in_share() -> None:
    card = gpu(1)
    part = gpu(2, id="uuid:MIG-1", ids=["uuid:MIG-1"], parent=card["id"])
    key = key_of(part, [card, part], {})
    assert (key.own, key.whole) == ("uuid:MIG-1", "pci:0000:01:00.0")
    assert key_of(card, [card, part], {}).whole is None


def test_what_an_outer_lease_gave_is_locked_one_level_deeper() -> None:
    card = gpu(1)
    given = outer_lease_value({}, [card])
    assert given == "1;pci:0000:01:00.0"
    held = outer_lease({"PROBE_LEASE": given})
    assert key_of(card, [card], held).own == "pci:0000:01:00.0+1"
    assert outer_lease_value({"PROBE_LEASE": given}, [card]) == "2;pci:0000:01:00.0"


@pytest.mark.parametrize("value", ["", ";", "x;pci:1", "-1;pci:1", "1", "0;pci:1", "999;pci:1"])
def test_nonsense_in_the_variable_holds_nothing(value: str) -> None:
    assert outer_lease({"PROBE_LEASE": value}) == {}


def test_the_context_manager_holds_and_gives_back(node: Node) -> None:
    document = dict(node.document)
    refresh(document, {})
    with lease(2, report=document, environ=node.environ, command=["me"]) as held:
        assert held.ids == ["pci:0000:01:00.0", "pci:0000:02:00.0"]
        assert held.environ["CUDA_VISIBLE_DEVICES"].count("GPU-") == 2
        assert "CUDA_VISIBLE_DEVICES" not in os.environ
        with pytest.raises(SelectionError) as caught:
            lease(report=document, environ=node.environ)
        assert caught.value.code == "busy"
        # What a record calls itself is believed where the kernel has it, too.
        program = Path("/proc/self/cmdline").read_bytes().split(b"\0")[0].decode()
        assert f"by process {os.getpid()} ({program} " in str(caught.value)
    with lease(1, report=document, environ=node.environ, wait=True) as again:
        assert again.ids == ["pci:0000:01:00.0"]
    again.release()  # a second time does nothing


def test_no_descriptor_is_left_open(node: Node) -> None:
    document = dict(node.document)
    refresh(document, {})
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with lease(1, report=document, environ=node.environ), pytest.raises(SelectionError):
            lease(2, report=document, environ=node.environ, wait=0.01)
        with pytest.raises(SelectionError):
            lease(3, report=document, environ=node.environ)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_forked_child_does_not_keep_what_was_released(node: Node) -> None:
    document = dict(node.document)
    refresh(document, {})
    code = f"""
import os, sys, json, signal
sys.path.insert(0, {str(ROOT)!r})
from probe_core.leasing import lease
document = json.load(open({str(node.folder / "report.json")!r}))
from probe_core.pipeline.refresh import refresh
refresh(document, {{}})
held = lease(1, report=document, environ=dict(os.environ))
child = os.fork()
if child == 0:
    signal.pause()
held.release()
print(lease(2, report=document, environ=dict(os.environ)).ids)
os.kill(child, signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=node.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['pci:0000:01:00.0', 'pci:0000:02:00.0']"


def held(box: Folder, *names: str) -> int:
    handle = box.locks()
    assert all(try_lock(handle, slot(name), UNITS) for name in names)
    return handle


def test_a_lock_without_a_record_is_told_with_its_holder(tmp_path: Path) -> None:
    box = Folder(str(tmp_path))
    handle = held(box, "dt:/soc/npu")
    (entry,) = [h.doc for h in holdings(box)]
    assert (entry["device"], entry["state"], entry["pid"]) == ("?", "running", os.getpid())
    (named,) = obstacles(box, [Key(gpu(1), "dt:/soc/npu", None)])
    assert (named["device"], named["uid"], named["proven"]) == ("dt:/soc/npu", os.getuid(), True)
    os.close(handle)
    assert holdings(box) == []
    box.close()


def test_who_locks_all_of_the_file_is_told_in_a_bounded_list(tmp_path: Path) -> None:
    box = Folder(str(tmp_path))
    handle = box.locks()
    assert try_lock(handle, 0, 1 << 62)
    assert 1 <= len(holdings(box)) <= 65
    os.close(handle)
    box.close()


def test_a_listing_takes_no_lock_and_makes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Folder(str(tmp_path))
    assert holdings(box) == []
    assert os.listdir(tmp_path) == []
    holder = held(box, "pci:0000:01:00.0")
    taken: list[int] = []
    monkeypatch.setattr(fcntl, "flock", lambda handle, mode: taken.append(mode))
    monkeypatch.setattr(ranges, "_SET", -1)  # no command of fcntl(2)
    assert len(holdings(box)) == 1
    assert taken == []
    os.close(holder)
    box.close()


@pytest.mark.parametrize("uid", [0, 7])
def test_a_look_makes_no_folder(
    uid: int, places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    is_user(monkeypatch, uid)
    monkeypatch.delenv("PROBE_LEASES", raising=False)
    assert main(["leases", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": None, "leases": []}
    assert main(["leases", "--kill", "all"]) == 0
    monkeypatch.setenv("PROBE_LEASES", str(places / "named"))
    assert main(["leases"]) == 0
    assert os.listdir(places) == []


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN])
@pytest.mark.parametrize("way", ["locks", "present_locks"])
def test_a_failure_that_passes_moves_no_lock_to_another_file(
    way: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two files a device would have two holders."""
    folder = Folder(str(tmp_path))
    os.close(folder.locks())
    opens, failures = os.open, [number]

    def failing(path: str, *arguments: int, dir_fd: int | None = None) -> int:
        if path == "locks" and failures:
            raise OSError(failures.pop(), "it passes")
        return opens(path, *arguments, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", failing)
    with pytest.raises(LeaseError, match=r"/locks cannot be used: it passes"):
        getattr(folder, way)()
    os.close(getattr(folder, way)())
    assert (os.listdir(tmp_path), folder.notes) == (["locks"], [])
    folder.close()


def test_the_file_of_locks_has_its_name_when_everybody_can_open_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    links = os.link

    def linking(source: str, name: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        modes.append((name, (tmp_path / source).stat().st_mode & 0o777))
        links(source, name, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "link", linking)
    folder = Folder(str(tmp_path))
    mask = os.umask(0o077)
    try:
        os.close(folder.locks())
    finally:
        os.umask(mask)
    assert modes == [("locks", 0o666)]
    assert os.listdir(tmp_path) == ["locks"]
    folder.close()


@pytest.mark.parametrize(
    ("looks", "now", "over"), [(99, 9.0, False), (100, 5.0, False), (100, 5.1, True)]
)
def test_looks_end_with_their_time_and_not_before_the_hundredth(
    looks: int, now: float, over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "monotonic", lambda: now)
    assert ranges.is_over(looks, 5.0) is over
