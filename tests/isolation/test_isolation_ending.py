"""Whatever a child does, it is gone afterwards with all that it started, and the host is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from probe_core.isolation import ending, processes
from probe_core.isolation.launch import run_probers
from probe_core.isolation.run import Run
from probe_core.isolation.start import FILE_SIZE_LIMIT
from probe_core.machine import Machine
from probe_core.registry.prober import Prober

Hook = Callable[..., Run]
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test of this file may leave a child, a zombie, a descriptor or a marked process."""
    before = descriptors()
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert descriptors() == before


def pid_in(path: Path) -> int:
    return int(path.read_text())


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_deadline_covers_import_and_call(make_prober: Callable[..., Prober]) -> None:
    # A second: on a busy machine a child has not come to its sleep in less.
    slow = make_prober("time.sleep(60)", name="importing", deadline_s=1.0)
    stuck = make_prober(
        "@hookimpl\ndef probe_devices(request):\n    time.sleep(60)", name="calling", deadline_s=1.0
    )
    start = time.monotonic()
    first, second = run_probers([slow, stuck], Machine(), ())
    assert time.monotonic() - start < 10.0
    assert first.status == second.status == "timeout"
    assert str(first.reason).startswith("importing its module took longer than 1 s (at File")
    assert str(second.reason).startswith("its call took longer than 1 s (at File")
    assert "x_calling.py" in str(second.reason)


@pytest.mark.heavy
def test_what_was_seen_before_the_deadline_is_kept(run_hook: Hook) -> None:
    run = run_hook('yield {"ids": ["x:1"], "kind": "npu"}\ntime.sleep(60)', deadline_s=3.0)
    assert (run.status, run.partial, len(run.sightings)) == ("timeout", True, 1)


@pytest.mark.heavy
def test_six_answer_while_two_hang(make_prober: Callable[..., Prober]) -> None:
    good = "@hookimpl\ndef probe_devices(request):\n    return [{'ids': ['x:1'], 'kind': 'npu'}]"
    hang = "@hookimpl\ndef probe_devices(request):\n    time.sleep(60)"
    probers = [make_prober(good, name=f"good{n}", deadline_s=20.0) for n in range(6)]
    probers[2:2] = [make_prober(hang, name=f"hang{n}", deadline_s=1.0) for n in range(2)]
    start = time.monotonic()
    runs = run_probers(probers, Machine(), ())
    assert time.monotonic() - start < 10.0
    assert [run.status for run in runs] == ["ok"] * 2 + ["timeout"] * 2 + ["ok"] * 4


def test_garbage_is_collected_and_not_looked_for_in_imports(run_hook: Hook) -> None:
    run = run_hook(
        "import gc\n"
        'yield {"ids": ["x:1"], "kind": "npu",'
        ' "extra": {"enabled": gc.isenabled(), "spared": gc.get_freeze_count() > 1000}}'
    )
    assert run.sightings[0]["extra"] == {"enabled": True, "spared": True}


def test_the_tail_of_standard_error_is_kept(run_hook: Hook) -> None:
    run = run_hook('print("out"); os.write(1, b"raw\\n"); sys.stderr.write("err\\n"); 1 / 0')
    assert run.status == "call_error"
    tail = run.stderr_tail()
    assert "raw" in tail
    assert "err" in tail
    assert tail[-1] == "ZeroDivisionError: division by zero"


FORK = """
started = os.fork()
if started == 0:
    {escape}
    open({path!r}, "w").write(str(os.getpid()))
    time.sleep(60)
while not (os.path.exists({path!r}) and open({path!r}).read()):
    time.sleep(0.005)
{end}
"""
ESCAPES = {
    "stays": "pass",
    "leaves-the-group": "os.setpgid(0, 0)",
    "leaves-the-session": "os.setsid()",
    "daemonises": "os.setsid(); os.fork() and os._exit(0); os.closerange(0, 4096)",
    "ignores-signals": "import signal; [signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]",
    "clears-its-environment": "os.environ.clear(); os.setsid()",
    "leaves-all-behind": (
        "os.setsid(); os.fork() and os._exit(0)\n"
        "    code = 'import os, sys, time; open(sys.argv[1], \"w\").write(str(os.getpid()));'\n"
        "    code += 'os.setsid(); time.sleep(60)'\n"
        "    os.fork() and os._exit(0)\n"
        "    os.execve(sys.executable, [sys.executable, '-I', '-S', '-c', code, {path!r}], {{}})"
    ),
}
ENDS = {
    "hangs": "time.sleep(60)",
    "dies": "os.abort()",
    "succeeds": 'return not_applicable("none")',
}


@linux
@pytest.mark.heavy
@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("end", ENDS)
def test_what_a_prober_started_goes_with_it(
    run_hook: Hook, tmp_path: Path, escape: str, end: str
) -> None:
    path = tmp_path / "pid"
    escape_code = ESCAPES[escape].format(path=str(path))
    body = FORK.format(escape=escape_code, path=str(path), end=ENDS[end])
    # Time enough for a busy machine to fork and write before the deadline cuts in.
    run = run_hook(body, deadline_s=2.5 if end == "hangs" else 20.0)
    assert run.status == {"succeeds": "not_applicable", "hangs": "timeout", "dies": "crashed"}[end]
    assert has_ended(pid_in(path))


@linux
def test_a_tool_it_started_goes_with_it(run_hook: Hook, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    body = f"""
    import subprocess
    tool = subprocess.Popen(["sleep", "60"], start_new_session=True)
    open({str(path)!r}, "w").write(str(tool.pid))
    return []
    """
    assert run_hook(body).status == "not_applicable"
    assert has_ended(pid_in(path))


@linux
def test_a_host_that_inherits_orphans_keeps_no_zombie(tmp_path: Path) -> None:
    """Process 1 of a container becomes the parent of what a prober left: made here by prctl."""
    (tmp_path / "x_daemon.py").write_text(
        "import os, time\nfrom probe_core.api import *\n@hookimpl\ndef probe_devices(request):\n"
        "    if os.fork() == 0:\n        os.setsid()\n        os.fork()\n        time.sleep(60)\n"
        "    time.sleep(0.1)\n    return []\n"
    )
    host = """
    import ctypes, os, sys
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    sys.path.insert(0, sys.argv[1])
    from probe_core.isolation.launch import run_probers
    from probe_core.machine import Machine
    from probe_core.registry.prober import Prober
    run, = run_probers([Prober("d", "x_daemon")], Machine(), ())
    try:
        print(run.status, "left", os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        print(run.status, "nobody left")
    """
    command = [sys.executable, "-c", textwrap.dedent(host), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "not_applicable nobody left\n"


UNKILLABLE = """
import ctypes, os, sys, time
sys.path.insert(0, sys.argv[1])
from probe_core.isolation import ending
from probe_core.isolation.launch import run_probers
from probe_core.machine import Machine
from probe_core.registry.prober import Prober

NEWUSER, NEWPID = 0x10000000, 0x20000000
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(NEWPID) and libc.unshare(NEWUSER | NEWPID):
    sys.exit("cannot: " + os.strerror(ctypes.get_errno()))

zombie = []
def keep_a_zombie():
    while not os.path.exists(sys.argv[1] + "/ready"):
        time.sleep(0.005)
    zombie.append(os.posix_spawn("/bin/true", ["true"], os.environ))

prober = Prober("stuck", "x_stuck")
prober.deadline_s = 0.6
start = time.monotonic()
run, = run_probers([prober], Machine(), (), meanwhile=keep_a_zombie)
took = time.monotonic() - start
print(run.status, bool(run.still_there), run.stuck, len(run.sightings), took < 10.0)
print(len(ending._unreaped), os.waitid(os.P_PID, *ending._unreaped, os.WEXITED | os.WNOHANG))
os.waitpid(zombie[0], 0)
while ending._unreaped:
    run_probers([], Machine(), ())
    time.sleep(0.01)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("reaped in the end")
"""


@pytest.mark.heavy
@linux
def test_a_child_that_cannot_be_killed_is_abandoned_and_reaped_later(tmp_path: Path) -> None:
    """A real one: process 1 of a PID namespace cannot end while a zombie in it is not reaped.

    It is not stuck in the kernel (D state): no finding says so, and it may be started again.
    """
    (tmp_path / "x_stuck.py").write_text(
        "import time\nfrom probe_core.api import *\n@hookimpl\ndef probe_devices(request):\n"
        "    yield {'ids': ['x:1'], 'kind': 'npu'}\n"
        f"    open({str(tmp_path / 'ready')!r}, 'w').close()\n    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", UNKILLABLE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.stderr.startswith("cannot: "):
        pytest.skip(f"no PID namespace can be made here: {done.stderr[8:].strip()}")
    assert done.stdout == "timeout True False 1 True\n1 None\nreaped in the end\n", done.stderr


def test_a_host_that_reaps_everything_is_survived(run_hook: Hook) -> None:
    old = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps for the host
    try:
        run = run_hook('yield {"ids": ["x:1"], "kind": "npu"}\nos._exit(5)')
    finally:
        signal.signal(signal.SIGCHLD, old)
    assert (run.status, len(run.sightings)) == ("crashed", 1)


def test_a_host_with_default_sigpipe_is_not_killed(
    run_source: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child dies before it has read a request larger than a pipe."""
    bus = [{"extra": "x" * 100_000} for _ in range(10)]
    (tmp_path / "python3").write_text("#!/bin/sh\nsleep 0.1\nexit 3\n")
    (tmp_path / "python3").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    old = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        run = run_source("", bus=bus)
    finally:
        signal.signal(signal.SIGPIPE, old)
    assert run.reason == "it exited with status 3 before it could start"


@linux
def test_memory_is_watched(run_hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MEMORY_LIMIT", 100 << 20)
    run = run_hook('yield {"ids": ["x:1"], "kind": "npu"}\nx = b"x" * (300 << 20)\ntime.sleep(60)')
    assert (run.status, run.reason) == ("resource", "it used more than 0.0977 GiB of memory")
    assert run.partial


@linux
def test_the_kernel_would_take_the_child_first(run_hook: Hook) -> None:
    run = run_hook(
        'yield {"ids": ["x:1"], "kind": "npu", "name": open("/proc/self/oom_score_adj").read()}'
    )
    assert run.sightings[0]["name"].strip() == "1000"


@linux
@pytest.mark.parametrize("portable", [False, True])
def test_a_prober_has_no_terminal_no_input_and_no_core_file(run_hook: Hook, portable: bool) -> None:
    run = run_hook(
        """
        import resource
        try:
            os.open("/dev/tty", os.O_RDWR)
            tty = "a terminal"
        except OSError:
            tty = "none"
        both = (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE)
        limits = [resource.getrlimit(what) for what in both]
        leads = os.getpgid(0) == os.getpid() and os.getsid(0) == os.getppid()
        yield {"ids": ["x:1"], "kind": "npu", "extra": {"tty": tty, "input": sys.stdin.read(),
               "limits": limits, "leads": leads}}
        """,
        portable=portable,
    )
    assert run.sightings[0]["extra"] == {
        "tty": "none",
        "input": "",
        "limits": [[0, 0], [FILE_SIZE_LIMIT, FILE_SIZE_LIMIT]],
        "leads": True,
    }


def test_reap_bound_is_the_documented_one() -> None:
    assert ending.REAP_S == 0.5
