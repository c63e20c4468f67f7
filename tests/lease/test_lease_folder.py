"""The lease folder is shared safely: links, pipes and others' files are refused, not followed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from lease_node import ROOT, Node, gpu

from probe_core.leasing import LeaseError, folder, lease
from probe_core.leasing.folder import (
    Folder,
    file_name,
    key_of,
    lease_folder,
    outer_lease,
    outer_lease_value,
)
from probe_core.leasing.listing import leases
from probe_core.leasing.owners import Owner, own_record, read_owners, write_record
from probe_core.pipeline.refresh import refresh
from probe_core.selection import SelectionError


def test_the_named_folder_is_made_for_its_user_alone(tmp_path: Path) -> None:
    found = lease_folder({"PROBE_LEASES": str(tmp_path / "own")})
    found.close()
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o700


def test_a_shared_parent_gives_a_shared_folder_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(folder, "_SHARED", (str(tmp_path / "missing"), str(tmp_path)))
    before = os.umask(0o077)
    try:
        found = lease_folder({})
        handle = found.open("gpu.lock")
    finally:
        os.umask(before)
    assert found.path == f"{tmp_path}/probe-core"
    assert stat.S_IMODE(os.fstat(found.fd).st_mode) == 0o1777
    assert stat.S_IMODE(os.fstat(handle).st_mode) == 0o666
    os.close(handle)
    found.close()


def test_a_parent_not_open_to_all_counts_only_with_the_folder_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setattr(folder, "_SHARED", (str(tmp_path),))
    with pytest.raises(LeaseError, match="no folder for leases"):
        lease_folder({})
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    own = lease_folder({"XDG_RUNTIME_DIR": str(runtime)})
    assert own.path == f"{runtime}/probe-core"
    own.close()
    (tmp_path / "probe-core").mkdir()
    found = lease_folder({"XDG_RUNTIME_DIR": str(runtime)})
    assert found.path == f"{tmp_path}/probe-core"
    found.close()


@pytest.mark.parametrize("value", ["relative/folder", "."])
def test_a_relative_folder_is_refused(value: str) -> None:
    with pytest.raises(LeaseError, match="is no absolute path"):
        lease_folder({"PROBE_LEASES": value})


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(LeaseError, match="cannot be used"):
        lease_folder({"PROBE_LEASES": str(tmp_path / "link")})


def test_links_pipes_and_second_names_in_place_of_a_lock_are_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    box = Folder(str(tmp_path))
    (tmp_path / "a.lock").symlink_to(victim)
    os.link(victim, tmp_path / "b.lock")
    os.mkfifo(tmp_path / "c.lock")
    (tmp_path / "d.lock").mkdir()
    for name in ("a.lock", "b.lock", "c.lock", "d.lock"):
        with pytest.raises(LeaseError, match=f"{name} cannot be used"):
            box.open(name)
    box.close()
    assert victim.read_text() == "precious"


def test_another_inode_under_the_name_is_noticed(tmp_path: Path) -> None:
    box = Folder(str(tmp_path))
    handle = box.open("gpu.lock")
    assert box.same("gpu.lock", handle)
    (tmp_path / "gpu.lock").unlink()
    assert not box.same("gpu.lock", handle)
    os.close(handle)
    box.close()


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("pci:0000:01:00.0", "pci:0000:01:00.0.lock"),
        ("dt:/soc/gpu@fb000000", "dt:%2Fsoc%2Fgpu@fb000000.lock"),
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd.lock"),
        (".door", "%2Edoor.lock"),
        ("a\0b\n%", "a%00b%0A%25.lock"),
    ],
)
def test_lock_files_stay_in_the_folder(key: str, name: str) -> None:
    assert file_name(key) == name


def test_long_keys_are_told_apart() -> None:
    names = {file_name("x" * 500 + end) for end in "ab"}
    assert len(names) == 2
    assert all(len(name) < 200 for name in names)


def test_records_survive_being_written_and_read(tmp_path: Path) -> None:
    handle = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    record = own_record(["sh", "-c", "echo \x1b[31m\n"], share=True, now=1763712000.5)
    write_record(handle, record)
    (read,) = read_owners(handle)
    assert (read.pid, read.uid, read.since) == (os.getpid(), os.getuid(), 1763712000.5)
    assert (read.share, read.alive()) == (True, True)
    assert read.command == "sh -c echo \\x1b[31m\\n"
    os.close(handle)


def test_records_of_others_are_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_bytes(b"pid x\nsince -1\nuid 99999999999999999999\ncommand \x1b]0;evil\x07\xff\n\n")
    handle = os.open(path, os.O_RDWR)
    (read,) = read_owners(handle)
    assert (read.pid, read.since, read.uid, read.alive()) == (None, None, None, None)
    assert read.command.isprintable()
    os.close(handle)


def test_a_reused_process_number_is_told_apart() -> None:
    record = own_record([], share=False, now=0.0)
    assert record.alive() is True
    assert record.started is not None
    record.started += 1
    assert record.alive() is False
    assert Owner().alive() is None


def test_a_partition_locks_its_gpu_in_share() -> None:
    card = gpu(1)
    part = gpu(2, id="uuid:MIG-1", ids=["uuid:MIG-1"], parent=card["id"])
    key = key_of(part, [card, part], {})
    assert (key.own, key.whole) == ("uuid:MIG-1.lock", "pci:0000:01:00.0.lock")
    assert key_of(card, [card, part], {}).whole is None


def test_what_an_outer_lease_gave_is_locked_one_level_deeper() -> None:
    card = gpu(1)
    given = outer_lease_value({}, [card])
    assert given == "1;pci:0000:01:00.0"
    held = outer_lease({"PROBE_LEASE": given})
    assert key_of(card, [card], held).own == "pci:0000:01:00.0+1.lock"
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
        assert "(me)" in str(caught.value)
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


def test_an_unreadable_leftover_is_told_as_unknown(tmp_path: Path) -> None:
    import fcntl

    box = Folder(str(tmp_path))
    handle = box.open(file_name("dt:/soc/npu"))
    fcntl.flock(handle, fcntl.LOCK_EX)
    (entry,) = leases(box)
    assert (entry["device"], entry["state"], entry["pid"]) == ("dt:/soc/npu", "unknown", None)
    os.close(handle)
    assert leases(box) == []
    box.close()


def test_a_listing_takes_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    box = Folder(str(tmp_path))
    holder = box.open(file_name("pci:0000:01:00.0"))
    fcntl.flock(holder, fcntl.LOCK_EX)
    free = box.open(file_name("pci:0000:02:00.0"))
    taken: list[int] = []
    monkeypatch.setattr(fcntl, "flock", lambda handle, mode: taken.append(mode))
    assert [entry["device"] for entry in leases(box)] == ["pci:0000:01:00.0"]
    assert taken == []
    os.close(holder)
    os.close(free)
