"""The control group of a lease: who is left when front, keeper and environment are gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lease_node import Node

from probe_core.leasing import scope
from probe_core.leasing.owners import Owner, read_owners, write_record
from probe_core.leasing.scope import ROOTS, enter, is_name, members, tidy

MARK = "0123456789abcdef"
SLACK_S = 10.0


def soon(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + SLACK_S
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.01)
    return True


class Faked:
    """A tree of groups made of files, with this process in /job.service/main."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "cgroup"
        self.group = self.root / "job.service/main"
        self.group.mkdir(parents=True)
        self.own = folder / "own"
        self.own.write_text("4:memory:/\n0::/job.service/main\n")
        for place in (self.root, self.group.parent, self.group):
            (place / "cgroup.procs").write_text("")
            (place / "cgroup.subtree_control").write_text("\n")
        try:
            os.setxattr(self.group.parent, "user.delegate", b"1")
        except OSError:
            pytest.skip("this file system has no such attributes")

    def enter(self) -> scope.Scope | None:
        return enter(MARK, (str(self.root),), str(self.own))


@pytest.fixture
def faked(tmp_path: Path) -> Faked:
    return Faked(tmp_path)


def test_below_the_own_group_of_a_delegated_unit(
    faked: Faked, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[str, int]] = []
    monkeypatch.setattr(scope, "write", lambda path, value: written.append((path, value)))
    entered = faked.enter()
    assert entered is not None
    assert entered.name == f"/job.service/main/probe-lease-{MARK}"
    folder = faked.group / f"probe-lease-{MARK}"
    entered.leave()
    assert written == [
        (f"{folder}/cgroup.procs", os.getpid()),
        (f"{faked.group}/cgroup.procs", os.getpid()),
    ]
    entered.remove()
    assert not folder.exists()


CHANGES: dict[str, Callable[[Faked], object]] = {
    "not delegated": lambda it: os.removexattr(it.group.parent, "user.delegate"),
    "controllers are enabled": lambda it: (it.group / "cgroup.subtree_control").write_text("cpu\n"),
    "no such group": lambda it: it.own.write_text("0::/elsewhere\n"),
    "version 1 alone": lambda it: it.own.write_text("4:memory:/\n"),
    "the root": lambda it: it.own.write_text("0::/\n"),
    "outside of the namespace": lambda it: it.own.write_text("0::/../job.service/main\n"),
    "no version 2": lambda it: (it.root / "cgroup.procs").unlink(),
    "the kernel refuses": lambda it: (it.group / f"probe-lease-{MARK}").mkdir(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_nowhere_else(faked: Faked, change: str) -> None:
    CHANGES[change](faked)
    before = sorted(faked.root.rglob("*"))
    assert faked.enter() is None
    assert sorted(faked.root.rglob("*")) == before


def test_groups_of_killed_keepers_are_removed_and_no_others(faked: Faked) -> None:
    stale, fresh, used = (faked.group / f"probe-lease-{name}" for name in ("a", "b", "c"))
    other = faked.group / "other"
    for folder in (stale, fresh, used, other):
        folder.mkdir()
    (used / "cgroup.procs").write_text("1\n")  # as rmdir(2) refuses a group with processes
    for folder in (stale, used, other):
        os.utime(folder, (0, 0))
    tidy((str(faked.root),), str(faked.own))
    assert [folder.exists() for folder in (stale, fresh, used, other)] == [False, True, True, True]


def test_members_are_those_of_inner_groups_too(tmp_path: Path) -> None:
    inner = tmp_path / "x/inner"
    inner.mkdir(parents=True)
    (inner.parent / "cgroup.procs").write_text("12\n13\n")
    (inner / "cgroup.procs").write_text("0\n14\n")  # 0: of another PID namespace
    assert members("/x", (str(tmp_path),)) == [12, 13, 14]
    assert members("/gone", (str(tmp_path),)) == []


NAMES = {
    f"/a/probe-lease-{MARK}": True,
    "/a/probe-lease-other": False,
    f"a/probe-lease-{MARK}": False,
    f"/a/../probe-lease-{MARK}": False,
    f"/a\n/probe-lease-{MARK}": False,
    "/": False,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_record_names_no_group_but_its_leases_own(name: str, tmp_path: Path) -> None:
    assert is_name(name, MARK) is NAMES[name]
    owner = Owner()
    owner.mark, owner.group = MARK, name
    handle = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        write_record(handle, owner)
        (read,) = read_owners(handle)[:1]
    finally:
        os.close(handle)
    assert read.group == (name if NAMES[name] else "")


@pytest.fixture
def delegated() -> Iterator[Path]:
    """Return a real group, marked as systemd marks those that it delegates."""
    folder = _made()
    if folder is None:
        pytest.skip("no control group may be made here")
    yield folder
    assert soon(lambda: (folder / "cgroup.events").read_text().startswith("populated 0"))
    for inner in folder.iterdir():
        if inner.is_dir():
            inner.rmdir()
    folder.rmdir()


def _made() -> Path | None:
    for root in ROOTS:
        folder = Path(root) / f"probe-test-{os.getpid()}"
        try:
            os.stat(f"{root}/cgroup.controllers")
            folder.mkdir()
            os.setxattr(folder, "user.delegate", b"1")
            return folder
        except OSError:
            continue
    return None


INTO = """
import os, sys
open(sys.argv[1], "w").write(str(os.getpid()))
os.execvp(sys.argv[2], sys.argv[2:])
"""
LEFT_BEHIND = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(3, 2000)
        os.write(1, b"%d" % os.getpid())
        os.execve("/bin/sleep", ["sleep", "60"], {})
    os._exit(0)
os.wait()
time.sleep(60)
"""


def keeper_of(node: Node) -> int:
    file = node.leases / "pci:0000:01:00.0.lock"
    assert soon(lambda: file.exists() and "keeper " in file.read_text())
    (line,) = [line for line in file.read_text().splitlines() if line.startswith("keeper ")]
    return int(line.split()[1])


@pytest.mark.heavy
def test_a_worker_without_environment_keeps_the_device_when_all_above_are_killed(
    node: Node, delegated: Path
) -> None:
    words = node.command("exec", "--device", "0", "--", sys.executable, "-c", LEFT_BEHIND)
    command = subprocess.Popen(
        [sys.executable, "-c", INTO, str(delegated / "cgroup.procs"), *words],
        env=node.environ,
        stdout=subprocess.PIPE,
    )
    assert command.stdout is not None
    worker = int(os.read(command.stdout.fileno(), 20))
    try:
        assert soon(lambda: b"\0" not in Path(f"/proc/{worker}/environ").read_bytes())
        (group,) = [path for path in delegated.iterdir() if path.is_dir()]
        keeper = keeper_of(node)
        inside = {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
        assert worker in inside
        assert not inside & {keeper, command.pid}
        launcher = next(pid for pid in inside if pid != worker)
        for pid in (keeper, command.pid, launcher):
            os.kill(pid, signal.SIGKILL)
        command.wait()
        refused = node.run("exec", "--device", "0", "--", "true")
        assert refused.returncode == 3
        (entry,) = node.held()
        assert (entry["state"], entry["kept_by"]) == ("inherited", [worker])
        assert node.run("leases", "--kill").returncode == 0
        assert node.run("exec", "--device", "0", "--", "true").returncode == 0
    finally:
        command.kill()
        command.wait()
        command.stdout.close()
        try:
            os.kill(worker, signal.SIGKILL)
        except ProcessLookupError:
            pass


def test_the_group_is_gone_when_the_lease_ends(node: Node, delegated: Path) -> None:
    words = node.command("exec", "--device", "0", "--", "cat", "/proc/self/cgroup")
    done = subprocess.run(
        [sys.executable, "-c", INTO, str(delegated / "cgroup.procs"), *words],
        env=node.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"/{delegated.name}/probe-lease-" in done.stdout
    assert soon(lambda: not [path for path in delegated.iterdir() if path.is_dir()])
