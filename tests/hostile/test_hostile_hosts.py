"""Every kind of host finds itself as it was: threads, event loops, forks, closed streams, users."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import probe_core
from probe_core import hookimpl

HANG = "@hookimpl\ndef probe_devices(request):\n    yield ONE\n    time.sleep(60)\n"
ROOT = Path(__file__).resolve().parents[2]
SCRIPT_HEAD = f"""
import json, os, sys, time
sys.path[:0] = [sys.argv[1], {str(ROOT)!r}, {str(ROOT / "chipdb/src")!r}]
from probe_core.setting_values import load_config
from probe_core.probing import document
def probe_again(timeout=8.0):
    settings = {{"timeout": timeout, "only": ["bad", "good"]}}
    return document(load_config(settings, {{}})[0], [])
def statuses(report):
    ours = [o for o in report["outcomes"] if o["prober"] in ("bad", "good")]
    return {{o["prober"]: o["status"] for o in ours}}
"""


@pytest.fixture(autouse=True)
def nobody_left(untouched: object) -> None:
    """Every test here is followed by the check for processes."""


@pytest.fixture
def bad(site: Path) -> Path:
    """Return the site in which a hanging plugin lies beside the good one."""
    sys_path_head = "import os, sys, time\nfrom probe_core.api import *\n"
    metadata = site / "probe_bad-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text("[probe_core.probers.v1]\nbad = x_bad\n")
    one = "ONE = {'ids': ['x:1'], 'kind': 'npu'}\n"
    (site / "x_bad.py").write_text(sys_path_head + one + HANG)
    return site


def host(site: Path, script: str, *flags: str, **options: Any) -> str:
    """Run a host of its own and return what it printed; `executable` is another Python."""
    script = SCRIPT_HEAD + textwrap.dedent(script)
    python = options.pop("executable", sys.executable)
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [python, *flags, "-c", script, str(site)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def probe_again(timeout: float = 2.0, **options: Any) -> dict[str, str]:
    report = probe_core.probe(timeout=timeout, only=["bad", "good"], refresh=True, **options)
    return {o.prober: o.status for o in report.outcomes if o.prober in ("bad", "good")}


EXPECTED = {"bad": "timeout", "good": "ok"}


@pytest.mark.heavy
def test_twice_the_same(bad: Path, untouched: Callable[[], Any]) -> None:
    assert probe_again() == EXPECTED  # what is imported lazily is imported now
    modules = set(sys.modules)
    with untouched():
        assert probe_again() == EXPECTED
    assert set(sys.modules) == modules


@pytest.mark.heavy
def test_from_another_thread(
    bad: Path, untouched: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    results: list[dict[str, str]] = []
    with untouched():
        thread = threading.Thread(target=lambda: results.append(probe_again()), name="asking")
        thread.start()
        thread.join(20)
    assert results == [EXPECTED]
    failed = [record for record in caplog.records if "[prober-failed]" in record.getMessage()]
    assert [record.threadName for record in failed] == ["asking"]


@pytest.mark.heavy
def test_from_six_threads_at_once(bad: Path, untouched: Callable[[], Any]) -> None:
    results: list[dict[str, str]] = []
    with untouched():
        threads = [
            threading.Thread(target=lambda: results.append(probe_again(2.0))) for _ in range(6)
        ]
        start = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert time.monotonic() - start < 15
    assert results == [EXPECTED] * 6


@pytest.mark.heavy
def test_inside_a_running_loop(bad: Path, untouched: Callable[[], Any]) -> None:
    async def main() -> dict[str, str]:
        return probe_again()

    with untouched():
        assert asyncio.run(main()) == EXPECTED


@pytest.mark.heavy
def test_awaited_without_blocking_the_loop(bad: Path, untouched: Callable[[], Any]) -> None:
    async def main() -> tuple[object, int]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0.01)
                beats += 1

        beating = asyncio.create_task(beat())
        report = await probe_core.probe_async(timeout=0.5, only=["bad", "good"], refresh=True)
        beating.cancel()
        return {o.prober: o.status for o in report.outcomes}["bad"], beats

    with untouched():
        status, beats = asyncio.run(main())
    assert status == "timeout"
    assert beats > 10


def test_cancelled_while_awaited(bad: Path, untouched: Callable[[], Any]) -> None:
    async def main() -> None:
        waiting = probe_core.probe_async(timeout=30, only=["bad", "good"], refresh=True)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting, 0.3)

    with untouched():
        start = time.monotonic()
        asyncio.run(main())
        assert time.monotonic() - start < 15


class Observer:
    """A host's plugin whose observer raises at one event."""

    def __init__(self, event: str, error: BaseException) -> None:
        self.event = event
        self.error = error

    @hookimpl
    def probe_observe(self, event: str, details: object) -> None:
        if event == self.event:
            raise self.error


@pytest.mark.heavy
@pytest.mark.parametrize("event", ["selected", "started", "finished", "report"])
def test_an_observer_that_raises(bad: Path, untouched: Callable[[], Any], event: str) -> None:
    with untouched():
        report = probe_core.probe(
            timeout=2.0, only=["bad", "good"], hooks=[Observer(event, ValueError("mine"))]
        )
    assert {o.prober: o.status for o in report.outcomes}["good"] == "ok"
    failed = [finding for finding in report.findings if finding.code == "hook-failed"]
    assert failed
    assert failed[0].why == "ValueError: mine"


@pytest.mark.heavy
@pytest.mark.parametrize("event", ["started", "finished"])
def test_an_observer_that_interrupts(bad: Path, untouched: Callable[[], Any], event: str) -> None:
    observer = Observer(event, KeyboardInterrupt())
    with untouched(), pytest.raises(KeyboardInterrupt):
        probe_core.probe(timeout=2.0, only=["bad", "good"], hooks=[observer])


def test_interrupted(bad: Path, untouched: Callable[[], Any]) -> None:
    with untouched():
        timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
        start = time.monotonic()
        # Started inside: on a busy machine 0.3 s may pass before anything is probed.
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            timer.start()
            probe_again(30)
        assert time.monotonic() - start < 15
        timer.join()


@pytest.mark.heavy
def test_no_path_and_no_environment(bad: Path) -> None:
    script = """
    os.environ.clear()
    print(json.dumps(statuses(probe_again(2))))
    """
    assert json.loads(host(bad, script, "-I", "-S")) == EXPECTED


@pytest.mark.heavy
@pytest.mark.parametrize("flags", [("-I",), ("-S", "-E"), ("-O",), ("-X", "utf8"), ("-W", "error")])
def test_flags_of_the_interpreter(bad: Path, flags: tuple[str, ...]) -> None:
    assert json.loads(host(bad, "print(json.dumps(statuses(probe_again(2))))", *flags)) == EXPECTED


@pytest.mark.heavy
def test_closed_streams(bad: Path) -> None:
    """Descriptors 0, 1 and 2 are free, so the pipes would take them."""
    script = f"""
    os.closerange(0, 3)
    sys.stdin = sys.stdout = sys.stderr = None
    result = statuses(probe_again(2))
    free = []
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            free.append(fd)
    open({str(bad / "result")!r}, "w").write(json.dumps([result, free]))
    """
    host(bad, script)
    assert json.loads((bad / "result").read_text()) == [EXPECTED, [0, 1, 2]]


@pytest.mark.heavy
def test_after_a_fork(bad: Path) -> None:
    script = """
    probe_again(1)
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, json.dumps(statuses(probe_again(2))).encode())
        os._exit(0)
    os.wait()
    print(os.read(read, 4096).decode())
    """
    assert json.loads(host(bad, script)) == EXPECTED


SERVED = """
import json, multiprocessing, sys
from x_served import inner
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[2])
    queue = context.Queue()
    process = context.Process(target=inner, args=(queue,))
    process.start()
    print(json.dumps(queue.get(timeout=20)))
    process.join()
"""


@pytest.mark.heavy
@pytest.mark.parametrize("way", ["forkserver", "spawn"])
def test_in_a_process_of_multiprocessing(bad: Path, way: str) -> None:
    inner = "\ndef inner(queue):\n    queue.put(statuses(probe_again(2)))\n"
    (bad / "x_served.py").write_text(SCRIPT_HEAD + inner)
    (bad / "main.py").write_text(SERVED)
    command = [sys.executable, "-W", "ignore", str(bad / "main.py"), str(bad), way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert json.loads(done.stdout or "null") == EXPECTED, done.stderr


@pytest.mark.heavy
def test_a_main_module_without_a_guard_is_not_run_again(bad: Path) -> None:
    (bad / "main.py").write_text(SCRIPT_HEAD + "print(statuses(probe_again(2)))\n")
    command = [sys.executable, str(bad / "main.py"), str(bad)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == f"{EXPECTED}\n"


@pytest.mark.heavy
@pytest.mark.skipif(os.geteuid() != 0, reason="this test run is already an ordinary user's")
def test_an_ordinary_user_without_a_folder_to_write(bad: Path) -> None:
    python = "/usr/bin/python3"
    version = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info >= (3, 11))"],
        capture_output=True,
        text=True,
        check=False,
    )
    if version.stdout.strip() != "True":
        pytest.skip(f"{python} is no Python 3.11 that every user may start")
    for folder in (bad, *bad.parents):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    script = """
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    os.chdir("/")
    os.environ.update(HOME="/nonexistent", TMPDIR="/nonexistent")
    print(json.dumps([os.geteuid(), statuses(probe_again(2))]))
    """
    assert json.loads(host(bad, script, executable=python)) == [65534, EXPECTED]


@pytest.mark.heavy
def test_a_deleted_working_directory(bad: Path) -> None:
    (bad / "gone").mkdir()
    script = f"""
    os.chdir({str(bad / "gone")!r}); os.rmdir({str(bad / "gone")!r})
    sys.path.insert(0, "")
    print(json.dumps(statuses(probe_again(2))))
    """
    assert json.loads(host(bad, script)) == EXPECTED


@pytest.mark.heavy
def test_a_host_with_its_own_signals_and_limits(bad: Path) -> None:
    script = """
    import resource, signal
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGALRM, signal.SIGIO):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGALRM, signal.SIGIO})
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    result = statuses(probe_again(2))
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    print(json.dumps(result))
    """
    assert json.loads(host(bad, script)) == EXPECTED


def test_a_prober_that_probes_starts_no_endless_chain(bad: Path) -> None:
    (bad / "x_bad.py").write_text(
        "from probe_core.api import *\n@hookimpl\ndef probe_devices(request):\n"
        "    import probe_core\n    report = probe_core.probe(only=['bad'], refresh=True)\n"
        "    raise Unavailable(next(o.reason for o in report.outcomes if o.prober == 'bad'))\n"
    )
    printed = host(
        bad, "print([o['reason'] for o in probe_again()['outcomes'] if o['prober'] == 'bad'])"
    )
    assert printed == "['this is itself the process of a prober: probers start no probers']"
