"""Memory and processes of a prober are those of all that it started."""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.isolation import processes, shared
from probe_core.isolation.processes import MARK_VARIABLE
from probe_core.isolation.run import Run

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
Hook = Callable[..., Run]
ROOT = Path(__file__).resolve().parents[2]

HELPERS = """
    def fill(mib):
        kept = bytearray(mib << 20)
        for at in range(0, len(kept), 4096):
            kept[at] = 1
        return kept
"""


@pytest.mark.heavy
@linux
@pytest.mark.parametrize("portable", [False, True])
def test_memory_of_all_processes_counts(
    run_hook: Hook, monkeypatch: pytest.MonkeyPatch, portable: bool
) -> None:
    monkeypatch.setattr(processes, "MEMORY_LIMIT", 200 << 20)
    run = run_hook(
        HELPERS
        + """
    yield {"ids": ["x:1"], "kind": "npu"}
    for _ in range(4):
        if os.fork() == 0:
            kept = fill(80)
            time.sleep(60)
    time.sleep(60)
    """,
        portable=portable,
    )
    assert (run.status, run.partial) == ("resource", True)
    assert run.reason is not None
    assert run.reason.startswith("it used more than 0.195 GiB of memory in ")


@linux
def test_what_left_the_session_counts_too(run_hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MEMORY_LIMIT", 100 << 20)
    run = run_hook(
        HELPERS
        + """
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        kept = fill(200)
        time.sleep(60)
    os.wait()
    time.sleep(60)
    """
    )
    assert run.status == "resource"
    assert run.reason == "it used more than 0.0977 GiB of memory in 2 processes"


@pytest.mark.heavy
@linux
def test_memory_that_processes_share_counts_once(
    run_hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MEMORY_LIMIT", 250 << 20)
    run = run_hook(
        HELPERS
        + """
    kept = fill(100)
    for _ in range(5):
        if os.fork() == 0:
            time.sleep(60)
    time.sleep(0.6)
    yield {"ids": ["x:1"], "kind": "npu"}
    """
    )
    assert (run.status, run.reason) == ("ok", None)


@linux
def test_processes_are_counted(run_hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MAX_PROCESSES", 20)
    run = run_hook(
        """
    yield {"ids": ["x:1"], "kind": "npu"}
    for _ in range(30):
        if os.fork() == 0:
            time.sleep(60)
    time.sleep(60)
    """
    )
    assert (run.status, run.reason) == ("resource", "it started more than 20 processes")


@linux
def test_a_look_is_followed_by_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where process numbers wrapped, a look reads all of /proc."""
    times = iter([0.0, 0.2, 0.3, 2.1, 2.2, 2.3])
    looks = []
    monkeypatch.setattr(processes, "excess", lambda *_, with_files: looks.append(with_files))

    class Child:
        pid = 1
        run = Run.__new__(Run)

    Child.run.status = None
    Child.run.pid = None
    watch = processes.Watch()
    watch.check([Child()], lambda: next(times))  # type: ignore[list-item]  # from 0.0 to 0.2
    watch.check([Child()], lambda: next(times))  # type: ignore[list-item]  # at 0.3: too early
    watch.check([Child()], lambda: next(times))  # type: ignore[list-item]  # at 2.1: too early
    assert looks == [True]
    watch.check([Child()], lambda: next(times))  # type: ignore[list-item]  # from 2.2
    assert looks == [True, True]


@linux
def test_open_files_are_looked_at_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 0.0, 0.1, 0.1, 0.9, 0.9, 1.0, 1.0])
    looks = []
    monkeypatch.setattr(processes, "excess", lambda *_, with_files: looks.append(with_files))

    class Child:
        pid = 1
        run = Run.__new__(Run)

    Child.run.status = None
    Child.run.pid = None
    watch = processes.Watch()
    for _ in range(4):  # at 0.0, 0.1, 0.9 and 1.0
        watch.check([Child()], lambda: next(times))  # type: ignore[list-item]
    assert looks == [True, False, False, True]


@linux
@pytest.mark.parametrize(("pid", "status"), [(None, None), (1, "ok"), (None, "ok")])
def test_what_has_not_begun_or_is_over_is_not_looked_at(
    pid: int | None, status: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    monkeypatch.setattr(processes, "excess", lambda *_, with_files: looks.append(with_files))
    run = Run.__new__(Run)
    run.status, run.pid = status, None
    child: Any = SimpleNamespace(pid=pid, run=run)
    processes.Watch().check([child], time.monotonic)
    assert looks == []


WRITTEN = """
    def written(file, mib):
        for _ in range(mib):
            os.write(file, bytes(1 << 20))
"""
UNSEEN = {
    "a memfd": "file = os.memfd_create('kept')",
    "a file without a name": ("file = os.open('/dev/shm', os.O_TMPFILE | os.O_RDWR)"),
    "one that was unlinked": (
        "path = f'/dev/shm/probe-{os.getpid()}';"
        " file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR); os.unlink(path)"
    ),
}


@pytest.mark.heavy
@linux
@pytest.mark.parametrize("name", UNSEEN)
def test_memory_that_is_written_to_and_not_mapped_counts(
    name: str, run_hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No figure of the process has it: neither statm nor smaps."""
    monkeypatch.setattr(processes, "MEMORY_LIMIT", 150 << 20)
    run = run_hook(
        f"""{WRITTEN}
    yield {{"ids": ["x:1"], "kind": "npu"}}
    {UNSEEN[name]}
    written(file, 200)
    time.sleep(60)
    """
    )
    assert (run.status, run.partial) == ("resource", True)
    assert run.reason == "it used more than 0.146 GiB of memory"


FOREIGN = """
import ctypes, os, sys
from probe_core.isolation.shared import allocated
libc = ctypes.CDLL(None)
folder = b"/dev/shm/probe-%d" % os.getpid()
NEWUSER, NEWNS, PRIVATE = 0x10000000, 0x20000, 0x44000
if libc.unshare(NEWNS) and libc.unshare(NEWUSER | NEWNS):
    sys.exit("skip")
libc.mount(b"none", b"/", None, PRIVATE, None)
os.mkdir(folder)
try:
    if libc.mount(b"none", folder, b"tmpfs", 0, None):
        sys.exit("skip")
    files = [os.memfd_create("x"), os.open(folder + b"/x", os.O_CREAT | os.O_RDWR)]
    os.unlink(folder + b"/x")
    for file in files:
        os.write(file, bytes(1 << 20))
    print(list(allocated([os.getpid()]).values()))
    os.close(files[1])
    libc.umount(folder)
finally:
    os.rmdir(folder)
"""


@linux
def test_a_file_of_another_mount_is_not_looked_at() -> None:
    """Its server may never answer, as that of a mount below /dev/shm of a plugin's own."""
    done = subprocess.run([sys.executable, "-c", FOREIGN], capture_output=True, text=True)
    if done.stderr == "skip\n":
        pytest.skip("no file system may be mounted here")
    assert (done.stdout, done.stderr) == ("[1048576]\n", "")


@linux
def test_what_is_mapped_of_a_file_counts_for_each_that_maps_it() -> None:
    page = mmap.PAGESIZE
    numbers, memories, files = [], [], []
    for _ in range(2):
        numbers.append(os.memfd_create("probe-test"))
        os.ftruncate(numbers[-1], 8 * page)
        memories.append(mmap.mmap(numbers[-1], 8 * page))
        found = os.stat(numbers[-1])
        files.append((found.st_dev, found.st_ino))
    gone = subprocess.Popen(["true"])
    gone.wait()
    try:
        memories[0][: 8 * page] = bytes(8 * page)
        memories[1][: 2 * page] = bytes(2 * page)
        pids = [os.getpid(), gone.pid]
        assert shared.mapped(pids, files) == {files[0]: 8 * page, files[1]: 2 * page}
        assert shared.mapped(pids * 2, files[1:]) == {files[1]: 4 * page}
        sizes = shared.allocated(pids)
        assert [sizes[file] for file in files] == [8 * page, 2 * page]
    finally:
        for number, memory in zip(numbers, memories, strict=True):
            memory.close()
            os.close(number)


@linux
def test_a_file_in_memory_that_has_a_name_is_nobody_s() -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(bytes(4096))
        file.flush()
        found = os.fstat(file.fileno())
        assert (found.st_dev, found.st_ino) not in shared.allocated([os.getpid()])
        with open(f"{file.name}.own", "xb") as own:
            os.unlink(own.name)
            own.write(bytes(4096))
            own.flush()
            found = os.fstat(own.fileno())
            assert shared.allocated([os.getpid()])[found.st_dev, found.st_ino] == 4096


@pytest.mark.heavy
@linux
def test_a_memfd_that_is_mapped_and_passed_on_counts_once(
    run_hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As drivers' libraries share memory with processes of their own."""
    monkeypatch.setattr(processes, "MEMORY_LIMIT", 250 << 20)
    run = run_hook(
        f"""{WRITTEN}
    import mmap
    file = os.memfd_create('shared')
    written(file, 150)
    kept = mmap.mmap(file, 150 << 20)
    for at in range(0, 150 << 20, 4096):
        kept[at] = 1
    for _ in range(3):
        if os.fork() == 0:
            copy = mmap.mmap(file, 150 << 20)
            total = sum(copy[at] for at in range(0, 150 << 20, 4096))
            time.sleep(60)
    time.sleep(1.6)
    yield {{"ids": ["x:1"], "kind": "npu"}}
    """
    )
    assert (run.status, run.reason) == ("ok", None)


@linux
def test_a_daemon_is_known_by_its_mark_alone() -> None:
    """A child is over; what has its mark goes, and what has another's or none stays."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    sleep, variable = [sys.executable, "-c", "import time; time.sleep(60)"], MARK_VARIABLE
    mark = f"{os.getpid()}-marked"  # of no test that runs beside this one
    environs = [{variable: mark}, {variable: f"{mark}-not"}, {"OTHER": mark}]
    daemons = [subprocess.Popen(sleep, env=e, start_new_session=True) for e in environs]
    try:
        deadline = time.monotonic() + 10
        left = processes.end_leftovers({ended.pid: mark}, deadline, time.monotonic)
        assert left == {}
        daemons[0].wait(10)
        assert [daemon.poll() is None for daemon in daemons] == [False, True, True]
    finally:
        for daemon in daemons:
            daemon.kill()
            daemon.wait()


@linux
def test_a_child_of_which_something_stays_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # In one write: the text and the newline of `print` come apart, with the copy's text between.
    fork = "import os, time; pid = os.fork(); pid and os.write(1, b'%d' % pid); time.sleep(60)"
    child = subprocess.Popen(
        [sys.executable, "-c", fork], start_new_session=True, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        grandchild = int(os.read(child.stdout.fileno(), 20))
        times = iter([0.0, 1.0])
        with monkeypatch.context() as patch:
            patch.setattr(processes.os, "kill", lambda pid, number: None)  # as one in D state
            remaining = processes.end_leftovers({child.pid: "mark"}, 0.5, lambda: next(times))
        assert remaining == {grandchild: child.pid}
        os.kill(grandchild, 0)  # it was there
    finally:
        os.killpg(child.pid, 9)
        child.communicate()
    deadline = time.monotonic() + 10
    assert processes.end_leftovers({child.pid: "mark"}, deadline, time.monotonic) == {}


@pytest.fixture
def group() -> Iterator[Path]:
    """Return a control group of 400 MiB that a test may fill."""
    for folder, limit in (
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        ("/sys/fs/cgroup", "memory.max"),
    ):
        path = Path(folder) / f"probe-core-test-{os.getpid()}"
        try:
            path.mkdir()
        except OSError:
            continue
        try:
            (path / limit).write_text(str(400 << 20))
            yield path
            return
        except OSError:
            continue
        finally:
            path.rmdir()
    pytest.skip("no control group may be made here")


@pytest.mark.heavy
@linux
def test_half_of_the_control_group_is_the_limit(group: Path, tmp_path: Path) -> None:
    source = """
        from probe_core.api import *
        @hookimpl
        def probe_devices(request):
            import time
            kept = b"x" * (300 << 20)
            time.sleep(60)
        """
    (tmp_path / "x_big.py").write_text(textwrap.dedent(source))
    script = f"""
        import json, os, sys
        open({str(group / "cgroup.procs")!r}, "w").write(str(os.getpid()))
        sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]
        from probe_core.isolation.launch import run_probers
        from probe_core.machine import Machine
        from probe_core.registry.prober import Prober
        prober = Prober("big", "x_big")
        prober.deadline_s = 10
        run, = run_probers([prober], Machine(), ())
        print(json.dumps([run.status, run.reason]))
        """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["resource", "it used more than 0.195 GiB of memory"]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


@linux
def test_a_process_lives_in_its_session_until_it_ends(sleeper: subprocess.Popen[bytes]) -> None:
    pid = sleeper.pid
    assert processes.lives(pid, pid)
    assert not processes.lives(pid, os.getsid(0))
    assert processes._outlives(pid)
    assert not processes.is_stuck(pid)
    sleeper.kill()
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # a zombie
    assert not processes.lives(pid, pid)
    assert not processes._outlives(pid)
    sleeper.wait()
    assert not processes.lives(pid, pid)
    assert not processes._outlives(pid)
    assert not processes.is_stuck(pid)


@linux
def test_what_is_left_of_a_session_is_of_its_tree() -> None:
    # The first is init's child once the second has ended, and of this session still.
    orphan = "(sleep 60 & echo $!); echo; exec sleep 60"
    with subprocess.Popen(
        ["sh", "-c", orphan], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as leader:
        assert leader.stdout is not None
        left, _ = int(leader.stdout.readline()), leader.stdout.readline()
        try:
            assert processes._tree(leader.pid) == {leader.pid, left}
        finally:
            os.killpg(leader.pid, signal.SIGKILL)


@linux
def test_processes_made_after_another(sleeper: subprocess.Popen[bytes]) -> None:
    assert sleeper.pid in processes.younger_than(sleeper.pid - 1)
    assert sleeper.pid not in processes.younger_than(sleeper.pid)
    all_of_them = processes.younger_than(1 << 40)  # the numbers wrapped
    assert sleeper.pid in all_of_them
    assert os.getpid() not in all_of_them


@linux
def test_what_was_killed_is_reaped(sleeper: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while processes.lives(sleeper.pid, sleeper.pid) and time.monotonic() < deadline:
        processes._end(sleeper.pid)
    processes._end(sleeper.pid)  # which is over
    with pytest.raises(ChildProcessError):
        os.waitpid(sleeper.pid, 0)


@linux
def test_too_much_is_measured_of_the_prober_with_what_it_started(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, other = sleeper.pid, 1 << 30
    assert processes.excess(pid, pid, 1 << 40) is None
    assert processes.excess(pid, pid, 1 << 10) == "it used more than 9.54e-07 GiB of memory"
    assert processes.excess(pid, other, 0) is None  # it is a supervisor, whose own counts not
    monkeypatch.setattr(processes, "MAX_PROCESSES", 1)
    assert processes.excess(pid, pid, 1 << 40) is None
    monkeypatch.setattr(processes, "MAX_PROCESSES", 0)
    assert processes.excess(pid, pid, 1 << 40) == "it started more than 0 processes"


@pytest.mark.parametrize(
    ("pages", "limit"),
    [(1 << 18, 1 << 29), (1 << 21, 4 << 30), (1 << 30, 4 << 30), (None, 4 << 30)],
)
def test_a_prober_may_take_half_of_a_small_machine(
    pages: int | None, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sysconf(name: str) -> int:
        if pages is None:
            raise ValueError(name)
        return pages

    monkeypatch.setattr(processes, "_PAGE", 4096)
    monkeypatch.setattr(os, "sysconf", sysconf)
    assert processes._machine_limit() == limit
