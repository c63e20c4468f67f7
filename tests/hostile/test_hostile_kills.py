"""The parent interrupted or killed at any moment: no child is left, and no descriptor."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAST = "from probe_core.api import *\n@hookimpl\ndef probe_devices(request):\n    return []\n"
HANG = "import time\n" + FAST.replace("return []", "time.sleep(60)")
HEAD = f"""
import json, os, random, signal, sys, time
sys.path[:0] = [sys.argv[1], {str(ROOT)!r}, {str(ROOT / "chipdb/src")!r}]
from probe_core.isolation.launch import run_probers
from probe_core.machine import Machine
from probe_core.registry.prober import Prober
PROBERS = [Prober("fast", "x_fast"), Prober("hang", "x_hang"), Prober("other", "x_fast")]
for prober in PROBERS:
    prober.deadline_s = 4.0
"""


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path, untouched: Callable[[], Any]) -> None:
    (tmp_path / "x_fast.py").write_text(FAST)
    (tmp_path / "x_hang.py").write_text(HANG)


INTERRUPT = """
class Stop(BaseException): ...
def stop(*_):
    global signals
    signals += 1
    if signals == most:
        signal.setitimer(signal.ITIMER_REAL, 0)
    raise Stop
signal.signal(signal.SIGALRM, stop)
random.seed(int(sys.argv[2]))
# A few signals, the later ones while the children are being ended, more often than not; or many so
# close together that they also come while the one before is being caught.
most = int(sys.argv[3])
spacing = (0.0005, 0.01) if most < 7 else (0.00003, 0.0004)
before = sorted(os.listdir("/proc/self/fd"))
stopped = children = leaked = 0
for _ in range(60):
    signals = 0
    after, again = random.uniform(0.0002, 0.05), random.uniform(*spacing)
    try:
        signal.setitimer(signal.ITIMER_REAL, after, again)
        run_probers(PROBERS, Machine(), ())
    except Stop:
        stopped += 1
    while True:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            break
        except Stop:
            pass
    leaked += sorted(os.listdir("/proc/self/fd")) != before
    try:
        os.waitpid(-1, os.WNOHANG)
        children += 1
    except ChildProcessError:
        pass
print(json.dumps([stopped, children, leaked]))
"""


@pytest.mark.heavy
@pytest.mark.parametrize("most", [3, 7, 30])
@pytest.mark.parametrize("seed", range(2))
def test_interrupted_at_any_moment_again_and_again(tmp_path: Path, seed: int, most: int) -> None:
    """After none of sixty interrupted runs is there a child, a zombie or a descriptor."""
    command = [sys.executable, "-c", HEAD + INTERRUPT, str(tmp_path), str(seed), str(most)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    stopped, children, leaked = json.loads(done.stdout)
    assert stopped > 30
    assert (children, leaked) == (0, 0)


FOREVER = "while True: run_probers(PROBERS, Machine(), ())\n"


def default_signals() -> None:
    """Undo what nohup does to all that it starts: before Python's own start, which may be late."""
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def escaped(mark: str) -> list[str]:
    """Return the processes that inherited `mark`.

    Two looks: a process of the first may end just after it has started another, which was not in
    the list. While a process becomes another program its environment reads as empty.
    """
    return look_for(mark) or look_for(mark)


def look_for(mark: str) -> list[str]:
    processes = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            for _ in range(20):
                if environ := Path(f"/proc/{name}/environ").read_bytes():
                    break
                os.readlink(f"/proc/{name}/exe")  # a zombie and a thread of the kernel have none
                time.sleep(0.001)
            if mark.encode() in environ:
                processes.append(Path(f"/proc/{name}/cmdline").read_text())
        except OSError:
            continue
    return processes


@pytest.mark.heavy
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV])
def test_the_parent_killed_at_any_moment(tmp_path: Path, how: signal.Signals) -> None:
    mark = f"HOSTILE_KILL={tmp_path}"
    environ = {**os.environ, "HOSTILE_KILL": str(tmp_path)}
    random.seed(how)
    for _ in range(12):
        command = [sys.executable, "-c", HEAD + FOREVER, str(tmp_path)]
        null = subprocess.DEVNULL
        with subprocess.Popen(
            command, env=environ, stderr=null, preexec_fn=default_signals
        ) as parent:
            time.sleep(random.uniform(0.03, 0.12))
            parent.send_signal(how)
            try:
                parent.wait(10)
            finally:
                parent.kill()  # or leaving this block waits for ever
        limit = time.monotonic() + 20
        while (remaining := escaped(mark)) and time.monotonic() < limit:
            time.sleep(0.01)
        assert remaining == []


DAEMON = """
import os, time
from probe_core.api import *
@hookimpl
def probe_devices(request):
    if os.fork() == 0:
        os.setsid()
        os.fork() and os._exit(0)
        os.execve("/bin/sleep", ["sleep", request.machine.environ["HOSTILE_TAG"]], {})
    time.sleep(60)
"""


@pytest.mark.heavy
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_parent_killed_leaves_no_daemon(tmp_path: Path, how: signal.Signals) -> None:
    """One that left its group and session, and has no mark: its supervisor finds it."""
    (tmp_path / "x_hang.py").write_text(DAEMON)
    random.seed(how)
    for patient in [True, False] * 4:
        tag = f"60.{random.getrandbits(60)}"
        environ = {**os.environ, "HOSTILE_TAG": tag}
        command = [sys.executable, "-c", HEAD + FOREVER, str(tmp_path)]
        with subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL) as parent:
            limit = time.monotonic() + (20.0 if patient else random.uniform(0.05, 0.2))
            while not (seen := running(f"sleep\0{tag}\0")) and time.monotonic() < limit:
                time.sleep(0.005)
            assert seen or not patient
            parent.send_signal(how)
            parent.wait(10)
        limit = time.monotonic() + 20
        while (
            remaining := [*running(f"sleep\0{tag}\0"), *escaped(tag)]
        ) and time.monotonic() < limit:
            time.sleep(0.01)
        assert remaining == []


def running(command: str) -> list[str]:
    """Return the processes with this command line."""
    processes = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if Path(f"/proc/{name}/cmdline").read_text() == command:
                processes.append(name)
        except OSError:
            continue
    return processes


@pytest.mark.heavy
def test_a_child_whose_parent_cannot_tell_it_ends_by_its_alarm(tmp_path: Path) -> None:
    """A copy of the host made by fork holds the pipe open, so the child never sees its end."""
    script = HEAD + (
        "PROBERS[1].deadline_s = 0.5\n"
        "def fork():\n    if os.fork() == 0:\n        time.sleep(3); os._exit(0)\n"
        "    os.kill(os.getpid(), 9)\n"
        "run_probers(PROBERS[1:2], Machine(), (), meanwhile=fork)\n"
    )
    environ = {**os.environ, "HOSTILE_KILL": str(tmp_path)}
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], env=environ, check=False)
    assert done.returncode == -9
    mark = f"HOSTILE_KILL={tmp_path}"
    while any("isolation.start" in line for line in escaped(mark)):
        assert time.monotonic() - start < 2.8
        time.sleep(0.02)
    while escaped(mark):
        assert time.monotonic() - start < 5.0
        time.sleep(0.05)


@pytest.mark.parametrize("times", [1, 3, 20])
def test_ctrl_c_at_the_command_line(tmp_path: Path, times: int) -> None:
    metadata = tmp_path / "probe_hang-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text("[probe_core.probers.v1]\nhang = x_hang\n")
    (tmp_path / "x_hang.py").write_text("import time\ntime.sleep(60)\n")
    path = [str(tmp_path), str(ROOT), str(ROOT / "chipdb/src")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "HOSTILE_KILL": str(tmp_path)}
    command = [sys.executable, "-m", "probe_core", "--timeout", "30", "--only", "hang"]
    with subprocess.Popen(command, env=environ, stdout=-1, stderr=-1, text=True) as parent:
        while not any("isolation.start" in line for line in escaped(f"HOSTILE_KILL={tmp_path}")):
            assert parent.poll() is None
            time.sleep(0.01)
        for _ in range(times):
            parent.send_signal(signal.SIGINT)
            time.sleep(0.005)
        try:
            out, err = parent.communicate(timeout=15)  # of the 30 that the plugin has
        except subprocess.TimeoutExpired:
            # CPython loses an interrupt that comes in a callback of its own (of a weak reference,
            # as each import has), and says so: "Exception ignored ". The next counts.
            parent.send_signal(signal.SIGINT)
            out, err = parent.communicate(timeout=10)
            assert "Exception ignored " in err
    assert (parent.returncode, out) == (130, "")
    assert "Traceback" not in err.partition("Exception ignored ")[0]
    assert escaped(f"HOSTILE_KILL={tmp_path}") == []


@pytest.mark.heavy
def test_a_host_that_was_stopped_for_a_while_still_hears_the_answers(tmp_path: Path) -> None:
    script = HEAD + (
        "PROBERS[0].deadline_s = 1.0\n"
        "run, = run_probers(PROBERS[:1], Machine(), (),"
        " meanwhile=lambda: (print('started', flush=True), os.kill(os.getpid(), 19)))\n"
        "print(run.status)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=-1, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "started\n"
        time.sleep(1.2)
        parent.send_signal(signal.SIGCONT)
        assert parent.communicate(timeout=5)[0] == "not_applicable\n"
