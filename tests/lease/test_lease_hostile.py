"""What others put into the lease folder, or do to it, hurts only what they touched."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from pathlib import Path

import pytest
from lease_node import Node
from test_lease_keeper import first_line

from probe_core.leasing import LeaseError, lease
from probe_core.leasing.folder import lease_folder
from probe_core.leasing.locks import try_take
from probe_core.pipeline.refresh import refresh

SLEEP = ("--", "sh", "-c", "echo; exec sleep 60")
FIRST = "pci:0000:01:00.0.lock"


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_a_bad_lock_file_spoils_its_own_device_alone(kind: str, node: Node) -> None:
    node.leases.mkdir(mode=0o700)
    bad = node.leases / FIRST
    {
        "link": lambda: bad.symlink_to("/etc/passwd"),
        "fifo": lambda: os.mkfifo(bad),
        "folder": bad.mkdir,
    }[kind]()
    done = node.run("exec", "--", "printenv", "CUDA_VISIBLE_DEVICES")
    assert (done.returncode, done.stdout.count("GPU-00000002")) == (0, 1), done.stderr
    refused = node.run("exec", "--device", "0", "--", "true")
    assert refused.returncode == 3
    assert f"{FIRST} cannot be used" in refused.stderr
    assert node.run("exec", "--gpus", "2", "--wait", "0.1", "--", "true").returncode == 3
    assert node.run("leases", "--json").returncode == 0


@pytest.mark.parametrize("what", ["file", "folder"])
def test_deleting_a_file_or_the_folder_gives_no_second_holder(what: str, node: Node) -> None:
    holder = node.start("exec", "--device", "0", *SLEEP)
    first_line(holder)
    if what == "file":
        (node.leases / FIRST).unlink()
    else:
        shutil.rmtree(node.leases)
    refused = node.run("exec", "--device", "0", "--", "true")
    assert refused.returncode == 3
    assert node.run("exec", "--device", "0", "--", "true").returncode == 3, "also the next one"
    (entry,) = node.held()
    assert entry["pid"] == holder.pid
    holder.kill()
    holder.wait()
    assert holder.stdout is not None
    holder.stdout.close()
    assert node.run("exec", "--device", "0", "--", "true").returncode == 0


def test_a_waiter_survives_the_deletion_of_the_folder(node: Node) -> None:
    holder = node.start("exec", "--device", "0", *SLEEP)
    first_line(holder)
    waiter = node.start("exec", "--device", "0", "--wait", "20", "--", "true")
    while not any(name.startswith(".queue-") for name in os.listdir(node.leases)):
        pass
    shutil.rmtree(node.leases)
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
    def flock(handle: int, mode: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    document = dict(node.document)
    refresh(document, {})
    with pytest.raises(LeaseError) as caught:
        lease(report=document, environ=node.environ)
    assert "is on a file system without locks" in str(caught.value)
    assert "PROBE_LEASES" in str(caught.value)
    assert caught.value.variable == "PROBE_LEASES"


def test_others_errors_of_the_lock_are_not_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lease_folder({"PROBE_LEASES": str(tmp_path)})
    handle = folder.open("x.lock")

    def flock(handle: int, mode: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match="Input/output error"):
        try_take(handle)
    os.close(handle)
    folder.close()
