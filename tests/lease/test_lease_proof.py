"""What `leases --kill` signals: what the kernel proves to be under a lease, on nobody's word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from lease_node import ROOT, Node, gpu, recorded
from test_lease_keeper import first_line, keeper_of, lives, soon

from probe_core.leasing import ending, listing
from probe_core.leasing.folder import Folder
from probe_core.leasing.holders import Proof
from probe_core.leasing.ranges import Key
from probe_core.proc import started

FIRST, SECOND = "pci:0000:01:00.0", "pci:0000:02:00.0"
HOLD = f"""
import os, sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests" / "lease")!r}]
from probe_core.leasing.folder import Folder
from probe_core.leasing.ranges import UNITS, slot, try_lock
from probe_core.leasing.records import sign
from lease_node import recorded
folder, share = Folder(sys.argv[1]), bool(sys.argv[2:])
handle = folder.locks()
try_lock(handle, slot("pci:0000:01:00.0"), UNITS, share=share)
if sys.argv[2:] == ["unrecorded"]:
    signature = -1
else:
    signature = sign(folder, recorded(["pci:0000:01:00.0"], share=share))
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "_GRACE_S", 0.3)
    monkeypatch.setattr(ending, "_DEATH_S", 0.3)


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[str]]:
    """A process that has nothing to do with any lease."""
    with subprocess.Popen(["sleep", "60"], text=True) as process:
        yield process
        process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    box = Folder(str(tmp_path))
    yield box
    box.close()


def holding(path: Path, *share: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), *share],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first_line(process) == "held"
    return process


def forged(
    path: Path, pid: int, *, keeper: int | None = None, mark: str = "", device: str = FIRST
) -> Path:
    """Write a record that names another process as a stranger would; return its file."""
    record = recorded([device], ["train.py"], share=False, since=time.time(), mark=mark)
    record.pid, record.started = pid, started(pid)
    record.keeper = keeper
    record.keeper_started = started(keeper) if keeper else None
    (path / "records").mkdir(exist_ok=True)
    file = path / "records" / os.urandom(8).hex()
    file.write_text(record.text())
    return file


def locking(file: Path) -> subprocess.Popen[str]:
    """Start a process that locks the file of a record, which makes a lease of it."""
    code = f"{PATH}from probe_core.leasing.ranges import try_lock\n{LOCK}"
    words = [sys.executable, "-c", code, str(file)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first_line(process) == "held"
    return process


PATH = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
LOCK = """
file = open(sys.argv[1], "r+b")
try_lock(file.fileno(), 0, 1)
print("held", flush=True)
sys.stdin.readline()
"""


def only_record(path: Path) -> Path:
    (file,) = (path / "records").iterdir()
    return file


def rewritten(path: Path, pid: int, uid: int | None = None) -> None:
    """Let the record of a lease that lives name another process."""
    file = only_record(path)
    lines = [line for line in file.read_text().splitlines() if not line.startswith("pid ")]
    lines = [line for line in lines if not line.startswith("started ")]
    file.write_text("\n".join([f"pid {pid}", f"started {started(pid)}", *lines]) + "\n")


@pytest.mark.heavy
@pytest.mark.parametrize("role", ["owner", "keeper"])
def test_a_record_that_names_a_stranger_signals_nobody(
    role: str, folder: Folder, tmp_path: Path, bystander: subprocess.Popen[str]
) -> None:
    """Root's tidy-up ended a whole PID namespace by a record that named process 1 as keeper."""
    dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    pid, keeper = (bystander.pid, None) if role == "owner" else (int(dead.stdout), bystander.pid)
    file = forged(tmp_path, pid, keeper=keeper)
    assert listing.holdings(folder) == [], "nobody holds its file"
    with locking(file) as stranger:
        (found,) = listing.holdings(folder)
        assert (found.doc["kept_by"], found.doc["proven"]) == ([stranger.pid], False)
        ending.end(folder, [found])
        assert stranger.wait(timeout=20) == -signal.SIGTERM
    assert bystander.poll() is None


@pytest.mark.heavy
def test_the_holder_is_ended_and_not_whom_the_record_names(
    folder: Folder, tmp_path: Path, bystander: subprocess.Popen[str]
) -> None:
    with holding(tmp_path) as holder:
        rewritten(tmp_path, bystander.pid)
        (found,) = listing.holdings(folder)
        assert (found.doc["state"], found.doc["proven"]) == ("inherited", False)
        assert found.doc["kept_by"] == [holder.pid]
        ending.end(folder, [found])
        assert holder.wait(timeout=20) == -signal.SIGTERM
    assert bystander.poll() is None


def proof(folder: Folder) -> Proof:
    (found,) = listing.holdings(folder)
    return found.proof


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be two users")
def test_another_users_copy_of_a_record_keeps_no_lease_from_being_ended(
    folder: Folder, tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    processes.append(holder := holding(tmp_path))
    own = only_record(tmp_path)
    copy = own.with_name("0")
    copy.write_text(own.read_text())
    os.chown(copy, 70001, 70001)
    processes.append(locking(copy))
    theirs, found = sorted(listing.holdings(folder), key=lambda one: -(one.doc["uid"] or 0))
    told = theirs.doc
    assert (told["uid"], told["pid"], told["proven"]) == (70001, holder.pid, False)
    assert found.proof.members == {holder.pid: 0}
    assert ending.end(folder, [found]) == []
    assert soon(lambda: holder.poll() == -signal.SIGTERM)


def test_an_opener_without_the_lock_is_proven_nothing(folder: Folder, tmp_path: Path) -> None:
    with holding(tmp_path) as holder:
        with open(only_record(tmp_path)), open(tmp_path / "locks"):
            assert proof(folder).members == {holder.pid: os.getuid()}
        holder.communicate("\n")
        assert listing.holdings(folder) == []


@pytest.mark.heavy
def test_of_sharers_one_is_ended_and_not_the_other(folder: Folder, tmp_path: Path) -> None:
    with holding(tmp_path, "share") as one, holding(tmp_path, "share") as two:
        found = {holding.doc["pid"]: holding for holding in listing.holdings(folder)}
        assert set(found) == {one.pid, two.pid}
        assert set(found[one.pid].proof.members) == {one.pid}
        two.communicate("\n")
        one.communicate("\n")


@pytest.mark.heavy
def test_a_lock_without_a_record_is_ended_by_the_devices_name(
    node: Node, processes: list[subprocess.Popen[str]]
) -> None:
    node.leases.mkdir(mode=0o700)
    holder = holding(node.leases, "unrecorded")
    processes.append(holder)
    refused = node.run("exec", "--device", "0", "--", "true")
    assert (refused.returncode, f"{FIRST} by process {holder.pid}" in refused.stderr) == (3, True)
    with closing(Folder(str(node.leases))) as folder:
        (entry,) = listing.obstacles(folder, [Key(gpu(1), FIRST, None)])
        found = listing.holdings(folder, [FIRST])
        assert [holding.doc for holding in found] == [entry]
        assert ending.end(folder, found) == []
    assert holder.wait(timeout=20) == -signal.SIGTERM
    holder.communicate()


def test_the_next_lease_removes_the_record_of_one_that_has_ended(node: Node) -> None:
    node.leases.mkdir(mode=0o700)
    dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    file = forged(node.leases, int(dead.stdout))
    assert node.run("exec", "--device", "0", "--", "true").returncode == 0
    assert not file.exists()


def test_all_leaves_a_lock_without_a_record(
    node: Node, processes: list[subprocess.Popen[str]]
) -> None:
    """Another user may have locked it, and have passed the open file to this user's process."""
    node.leases.mkdir(mode=0o700)
    processes.append(holder := holding(node.leases, "unrecorded"))
    done = node.run("leases", "--kill", "all")
    assert (done.returncode, done.stdout) == (3, "")
    reason = "is not ended: no record says whose it is"
    assert done.stderr == f"probe leases: lock of ? by process {holder.pid} {reason}\n"
    assert holder.poll() is None


@pytest.mark.heavy
def test_the_mark_of_a_running_lease_in_another_record_signals_nobody(
    node: Node, processes: list[subprocess.Popen[str]]
) -> None:
    """The mark is in a file that everybody reads: a record of a stranger with it counts nothing."""
    script = "echo $PROBE_LEASE_ID; exec sleep 60"
    command = node.start("exec", "--device", "0", "--", "sh", "-c", script)
    processes.append(command)
    mark = first_line(command)
    keeper_of(node)
    dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    file = forged(node.leases, int(dead.stdout), mark=mark, device=SECOND)
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)
        assert node.run("exec", "--device", "1", "--", "true").returncode == 0
    node.run("leases", "--kill", SECOND)
    node.run("leases", "--kill")
    if os.geteuid() == 0:
        assert command.poll() is None
        assert node.run("leases", "--kill", FIRST).returncode == 0
        assert command.wait(timeout=20) == -signal.SIGTERM


AS_ANOTHER = HOLD.replace("handle = folder.locks()", "handle = folder.locks(); os.setuid(65534)")


@pytest.mark.heavy
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be another user")
def test_root_ends_another_users_processes_when_told_by_name_and_yes(
    node: Node, processes: list[subprocess.Popen[str]]
) -> None:
    node.leases.mkdir()
    node.leases.chmod(0o777)
    (node.leases / "records").mkdir()
    (node.leases / "records").chmod(0o1777)
    holder = subprocess.Popen(
        [sys.executable, "-c", AS_ANOTHER, str(node.leases)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    processes.append(holder)
    assert first_line(holder) == "held"
    (entry,) = node.held()
    assert (entry["uid"], entry["proven"]) == (65534, True)
    every = node.run("leases", "--kill", "all")
    assert every.returncode == 3
    assert "root ends them by the device's name" in every.stderr
    asked = node.run("leases", "--kill", "pci:0000:01:00.0")
    assert asked.returncode == 3
    assert "--yes ends them, too" in asked.stderr
    assert lives(holder.pid)
    done = node.run("leases", "--kill", "pci:0000:01:00.0", "--yes")
    assert done.returncode == 0, done.stderr
    assert soon(lambda: holder.poll() == -signal.SIGTERM)
    assert holder.stdin is not None
    holder.stdin.close()


MOUNTED = f"""
{PATH}import os
from probe_core.leasing.folder import Folder
from probe_core.leasing.ranges import UNITS, slot, try_lock
folder = Folder(sys.argv[1])
handle = folder.locks()
os.fchown(handle, 70001, 70001)
try_lock(handle, slot("pci:0000:01:00.0"), UNITS)
if sys.argv[2] == "deleted":
    os.unlink(sys.argv[1] + "/locks")
print("held", flush=True)
sys.stdin.readline()
"""


def mounted(path: Path, what: str) -> subprocess.Popen[str]:
    """Lock a file of the same path that lies in a mount of the process's own namespace."""
    script = 'mount -t tmpfs none "$3" && exec "$0" -c "$1" "$3" "$2"'
    unshare = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no namespaces may be made here")
    words = [*unshare, "sh", "-c", script, sys.executable, MOUNTED, what, str(path)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first_line(process) == "held"
    return process


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount, and see another's files")
def test_a_file_of_the_same_path_in_another_mount_is_another_file(
    folder: Folder, tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    """As in a container that does not share the folder, or a user namespace with its own /run."""
    processes += [stranger := mounted(tmp_path, "kept"), holding(tmp_path, "unrecorded")]
    (found,) = listing.holdings(folder, [FIRST])
    assert found.doc["pid"] == processes[1].pid
    assert found.proof.below == {processes[1].pid}
    ending.end(folder, [found])
    assert soon(lambda: processes[1].poll() == -signal.SIGTERM)
    assert stranger.poll() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount, and see another's files")
def test_a_users_deleted_file_of_the_same_path_is_not_taken_for_the_locks(
    folder: Folder, tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    processes.append(mounted(tmp_path, "deleted"))
    assert folder.present_locks() == -1
    handle = folder.locks()
    assert os.fstat(handle).st_ino == (tmp_path / "locks").stat().st_ino
    os.close(handle)
