"""The supervisor of a prober: what becomes of both when one of them is hurt, or cannot be made."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from probe_core.isolation.launch import run_probers
from probe_core.isolation.run import Run
from probe_core.isolation.start import ORPHANED
from probe_core.machine import Machine
from probe_core.registry.prober import Prober

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="there are supervisors on Linux alone"
)
Hook = Callable[..., Run]
DEVICE = '{"ids": ["x:1"], "kind": "npu"}'


@pytest.fixture
def pids(tmp_path: Path) -> Callable[[], list[int]]:
    """Read the process ids that a prober wrote: its supervisor's and its own."""
    return lambda: [int(pid) for pid in (tmp_path / "pids").read_text().split()]


def noting(tmp_path: Path, then: str) -> str:
    place = str(tmp_path / "pids")
    # Where no supervisor could be made, its place is the test's own.
    check = "assert 'isolation.start' in open(f'/proc/{os.getppid()}/cmdline').read()\n"
    return f"{check}open({place!r}, 'w').write(f'{{os.getppid()}} {{os.getpid()}}')\n{then}"


def has_ended(pid: int) -> bool:
    """A zombie is for whoever inherits orphans on this machine to reap."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("by", ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"])
def test_a_killed_supervisor_takes_its_prober_along(
    run_hook: Hook, tmp_path: Path, pids: Callable[[], list[int]], by: str
) -> None:
    then = f"import signal\nos.kill(os.getppid(), signal.{by})\nyield {DEVICE}\ntime.sleep(60)"
    run = run_hook(noting(tmp_path, then), deadline_s=20.0)
    assert run.status == "crashed"
    assert run.still_there == []
    assert all(map(has_ended, pids()))


@pytest.mark.parametrize("killed", ["before", "after"])
def test_a_prober_ends_whenever_its_supervisor_is_killed(killed: str) -> None:
    """The supervisor's end of the pipe closes with it: before the prober listens, or after."""
    code = f"""
import os, time
from probe_core.isolation.confine import die_with_supervisor
alive, supervisor = os.pipe()
if {killed == "before"}:
    os.close(supervisor)
die_with_supervisor(alive)
assert os.getpgid(0) == os.getpid()
print("listens", flush=True)
os.close(supervisor)
time.sleep(60)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    expected = {"before": (ORPHANED, ""), "after": (-signal.SIGKILL, "listens\n")}
    assert (done.returncode, done.stdout) == expected[killed], done.stderr


@pytest.mark.heavy
@pytest.mark.parametrize("then", ["time.sleep(60)", "return [DEVICE]"])
def test_a_stopped_supervisor_goes_on(
    run_hook: Hook, tmp_path: Path, pids: Callable[[], list[int]], then: str
) -> None:
    stop = f"import signal\nos.kill(os.getppid(), signal.SIGSTOP)\n{then.replace('DEVICE', DEVICE)}"
    run = run_hook(noting(tmp_path, stop), deadline_s=1.0)
    assert run.status == ("timeout" if "sleep" in then else "ok")
    assert run.still_there == []
    assert all(map(has_ended, pids()))


@pytest.fixture
def started_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Have children start with a line of Python, as on another kernel or another build."""

    def start(line: str) -> None:
        fake = tmp_path / "python3"
        script = f'for last; do :; done\nexec {sys.executable} -I -S -c "{line}\n$last"\n'
        fake.write_text(f"#!/bin/sh\n{script}")
        fake.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(fake))

    return start


NO_FORK = (
    "import os\ndef fork(): raise BlockingIOError(11, 'no room')\nos.fork, fork = fork, os.fork"
)


def test_without_room_for_a_supervisor_the_prober_runs(
    run_source: Hook, started_with: Callable[[str], None], tmp_path: Path
) -> None:
    started_with(NO_FORK)
    run = run_source(
        "import os, signal\nfrom probe_core.api import *\n@hookimpl\ndef probe_devices(request):\n"
        "    term = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL\n"
        "    leads = os.getsid(0) == os.getpid()\n"
        "    first = open('/proc/self/oom_score_adj').read().strip()\n"
        f"    return [{DEVICE[:-1]}, 'extra': {{'leads': leads, 'term': term, 'first': first}}}}]"
    )
    assert run.status == "ok", run.stderr_tail()
    assert run.sightings[0]["extra"] == {"leads": True, "term": True, "first": "1000"}


@pytest.mark.heavy
def test_without_a_supervisor_a_hanging_prober_is_killed(
    run_hook: Hook, started_with: Callable[[str], None], tmp_path: Path
) -> None:
    started_with(NO_FORK)
    place = str(tmp_path / "pid")
    body = f"""
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open({place!r}, "w").write(str(os.getpid()))
    time.sleep(60)
    """
    run = run_hook(body, deadline_s=2.0)
    assert (run.status, run.still_there) == ("timeout", [])
    assert has_ended(int(Path(place).read_text()))


@pytest.mark.heavy
@pytest.mark.parametrize(
    "line", ["import sys; sys.modules['_ctypes'] = None", "import os; del os.pidfd_open"]
)
@pytest.mark.parametrize("then", ["return [DEVICE]", "os._exit(3)", "os.abort()", "time.sleep(60)"])
def test_older_kernels_and_smaller_builds(
    run_hook: Hook, started_with: Callable[[str], None], line: str, then: str
) -> None:
    started_with(line)
    run = run_hook(then.replace("DEVICE", DEVICE), deadline_s=2.0 if "sleep" in then else 20.0)
    ends = {"return [DEVICE]": "ok", "time.sleep(60)": "timeout"}
    assert run.status == ends.get(then, "crashed")
    if then == "os._exit(3)":
        assert run.reason == "it exited with status 3 before it had answered"
    if then == "os.abort()":
        assert str(run.reason).startswith("it was killed by SIGABRT before it had answered")


def test_orphans_that_end_early_are_no_trouble(run_hook: Hook) -> None:
    run = run_hook(
        "for _ in range(20):\n"
        "    if os.fork() == 0:\n        os.fork() or time.sleep(0.01)\n        os._exit(0)\n"
        f"time.sleep(0.1)\nreturn [{DEVICE}]"
    )
    assert run.status == "ok"


@pytest.mark.heavy
def test_many_at_once(make_prober: Callable[..., Prober]) -> None:
    body = "@hookimpl\ndef probe_devices(request):\n    os.fork()\n    time.sleep(60)"
    probers = [make_prober(body, name=f"many{n}", deadline_s=1.5) for n in range(12)]
    assert {(run.status, len(run.still_there)) for run in run_probers(probers, Machine(), ())} == {
        ("timeout", 0)
    }
