"""What a probe imports comes in steps that threads, signal handlers and forks may meet anywhere."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import recorded
from fake_probers import gpu
from weights import mostly_heavy

import probe_core
from probe_core import NotPreparedError, background, gate

linux = pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc")

HEAD = """
import json, os, signal, sys, threading, time
import probe_core
moment = float(sys.argv[1])

def threads():
    until = time.monotonic() + 2  # the kernel takes a moment for a thread's end
    while (count := len(os.listdir("/proc/self/task"))) > 1 and time.monotonic() < until:
        time.sleep(0.002)
    return count
"""

FORK = """
host = threading.Thread(target=lambda: probe_core.probe())
host.start()
time.sleep(moment)
pid = os.fork()
if pid == 0:
    signal.alarm(30)
    os._exit(7 if probe_core.probe().primary == "cpu:0" else 9)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
host.join()
"""

HANDLER = """
reports, ended = [], threading.Event()
def handle(*_):
    reports.append(probe_core.probe())
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, max(moment, 1e-5))
reports.append(probe_core.probe())
while len(reports) < 2:
    time.sleep(0.01)
print(reports[0] is reports[1], reports[0].primary, threads())
"""

FINALIZER = """
class Last:
    def __del__(self):
        reports.append(probe_core.probe())
reports = []
def handle(*_):
    Last()
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, max(moment, 1e-5))
reports.append(probe_core.probe())
while len(reports) < 2:
    time.sleep(0.01)
print(reports[0] is reports[1])
"""

MOMENTS = [number / 1000 for number in range(0, 40, 3)]
"""Seconds after the beginning: a first probe takes 30 ms and more."""


ONLY_CPU = {"PROBE_ONLY": "cpu", "PROBE_DISABLE": "bus"}


def host(script: str, *arguments: object, settings: Mapping[str, str] = ONLY_CPU) -> str:
    """Run a host of its own that has imported probe_core; return what it printed."""
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HEAD + script, *map(str, arguments)],
        env={**os.environ, **settings, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


@linux
def test_a_fork_during_the_first_probe_answers() -> None:
    assert host(FORK, 0.01) == "7"


@linux
@pytest.mark.heavy
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_fork_at_any_moment_of_the_first_probe_answers(moment: float) -> None:
    assert host(FORK, moment) == "7"


@linux
@pytest.mark.heavy
def test_forks_answer_on_a_machine_that_is_busy() -> None:
    """A fork between a step's end and its note of that took its copy for one made in the middle."""
    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(partial(host, FORK), [0.01] * 24)) == ["7"] * 24


@linux
def test_a_signal_handler_during_the_first_probe_answers() -> None:
    assert host(HANDLER, 0.01) == "True cpu:0 1"


@linux
@pytest.mark.heavy
@pytest.mark.parametrize("script", [HANDLER, FINALIZER], ids=["handler", "finalizer"])
@pytest.mark.parametrize("moment", [0.0002, 0.0005, *MOMENTS])
def test_a_signal_handler_at_any_moment_of_the_first_probe_answers(
    script: str, moment: float
) -> None:
    assert host(script, moment).startswith("True")


IMPORTS = """
seen = []
class Watch:
    @staticmethod
    def find_spec(name, path=None, target=None):
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code.co_name in ("_import", "_whole"):  # a step, or the gate itself
                return None
            frame = frame.f_back
        seen.append(name)
sys.meta_path.insert(0, Watch)
if moment:
    probe_core.prepare()
report = probe_core.probe(**globals().get("settings", {}))
assert report.devices
print(json.dumps(seen))
"""


@pytest.mark.parametrize("prepared", [False, True])
def test_a_probe_imports_in_steps_alone(prepared: bool) -> None:
    assert json.loads(host(IMPORTS, int(prepared))) == []


@pytest.mark.parametrize("prepared", mostly_heavy([False, True], 2))
def test_with_files_and_hooks_too_it_imports_in_steps_alone(prepared: bool, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("only = ['cpu']\n")
    (tmp_path / "report.json").write_text(json.dumps(probe_core.probe(only="cpu").to_json()))
    calls = [
        f"{{'config': {str(tmp_path / 'settings.toml')!r}}}",
        f"{{'static': {str(tmp_path / 'report.json')!r}}}",
        "{'hooks': [Host()]}",
    ]
    for call in calls:
        found = json.loads(host(f"{A_HOST}settings = {call}\n{IMPORTS}", int(prepared)))
        assert found == [], call


A_HOST = """
class Host:
    @probe_core.hookimpl
    def probe_observe(self, event, details):
        pass
"""


@linux
@pytest.mark.parametrize("prepared", [False, True])
def test_with_a_prober_too_it_imports_in_steps_alone(prepared: bool, tmp_path: Path) -> None:
    source = (
        "from probe_core.api import *\n@hookimpl\ndef probe_devices(request):\n    return DEVICES"
    )
    (tmp_path / "fake_own.py").write_text(f"{source}\nDEVICES = [{gpu()!r}]\n")
    script = (
        f"sys.path.insert(0, {str(tmp_path)!r})\nsettings = {{'probers': {{'own': 'fake_own'}}}}\n"
    )
    found = json.loads(host(script + IMPORTS, int(prepared), settings={"PROBE_ONLY": "own"}))
    assert set(found) <= {"fake_own"}  # looked for, not imported


MACHINES = sorted(path.stem for path in Path(recorded.__file__).parent.glob("*.json"))


@pytest.mark.heavy
@pytest.mark.parametrize("name", MACHINES)
def test_with_devices_too_it_imports_in_steps_alone(name: str, tmp_path: Path) -> None:
    root = recorded.unpack(recorded.read(name), tmp_path)
    script = f"settings = {{'machine': probe_core.Machine({str(root)!r})}}\n"
    assert json.loads(host(script + IMPORTS, 0, settings={})) == []


VARIABLES = {
    "DEV": "NV",
    "GGML_VK_VISIBLE_DEVICES": "0",
    "ONEAPI_DEVICE_SELECTOR": "*:gpu",
    "VK_DRIVER_FILES": "/x/nvidia_icd.json",
}


@pytest.mark.heavy
def test_with_variables_too_it_imports_in_steps_alone(tmp_path: Path) -> None:
    root = recorded.unpack(recorded.read("dgx-h100--8x-nvidia-h100-80gb-hbm3"), tmp_path)
    machine = f"probe_core.Machine({str(root)!r}, {VARIABLES!r})"
    script = f"settings = {{'machine': {machine}}}\n"
    assert json.loads(host(script + IMPORTS, 0, settings={})) == []


def test_prepare_leaves_no_thread_and_is_done_once() -> None:
    script = """
probe_core.prepare()
tasks, before, start = threads(), set(sys.modules), time.monotonic()
probe_core.prepare()
print(tasks, time.monotonic() - start < 0.01, set(sys.modules) == before)
"""
    assert host(script, 0) == "1 True True"


def test_importing_registers_nothing_for_forks() -> None:
    script = "import os, sys\nos.register_at_fork = None\nprint('probe_core.gate' in sys.modules)"
    assert host(script, 0) == "False"


# One step, without a whole probe.


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a module whose import waits; return events: that it has begun, and that it may end."""
    begun, go = threading.Event(), threading.Event()
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "slow_part.py").write_text(
        "import slow_events as e\ne.begun.set()\ne.go.wait(20)\n"
    )
    events = type(sys)("slow_events")
    events.begun, events.go = begun, go  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "slow_events", events)
    monkeypatch.setitem(gate._PARTS, "slow", ("slow_part",))
    yield begun, go
    go.set()
    sys.modules.pop("slow_part", None)
    gate._steps.pop(("slow_part",), None)


def test_a_step_is_taken_once_for_all_threads(slow: Any) -> None:
    begun, go = slow
    threads = [threading.Thread(target=gate.load, args=("slow",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert begun.wait(10)
    assert all(thread.is_alive() for thread in threads)
    go.set()
    for thread in threads:
        thread.join(10)
    assert gate._steps["slow_part",].complete


def test_a_wait_inside_an_import_is_bounded(
    slow: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step may need what that import has half made, and waits for it then."""
    monkeypatch.setattr(gate, "PATIENCE_S", 0.2)
    (tmp_path / "own_import.py").write_text("from probe_core import gate\ngate.load('slow')\n")
    with pytest.raises(NotPreparedError, match=r"call probe_core\.prepare\(\) before that"):
        importlib.import_module("own_import")
    slow[1].set()
    gate.load("slow")
    assert "slow_part" in sys.modules


def test_a_thread_that_probes_imports_itself(slow: Any) -> None:
    """It starts no other, and those who wait for the step do not wait for the thread's end."""
    begun, go = slow
    seen: list[tuple[int, bool]] = []
    probed = threading.Event()

    def probing() -> None:
        background.uninterrupted.add(threading.get_native_id())
        gate.load("slow")
        step = gate._steps["slow_part",]
        seen.append((step.thread, step.complete))
        probed.wait(20)
        background.uninterrupted.discard(threading.get_native_id())

    thread = threading.Thread(target=probing)
    thread.start()
    assert begun.wait(10)
    other = threading.Thread(target=gate.load, args=("slow",))
    other.start()
    go.set()
    other.join(10)
    assert seen == [(thread.native_id, True)]
    assert thread.is_alive()
    assert not other.is_alive()
    probed.set()
    thread.join(10)


def test_a_probe_inside_an_import_is_told_before_others_wait_for_it(
    slow: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PATIENCE_S", 0.2)
    (tmp_path / "asks.py").write_text(
        "from probe_core import gate\ngate.load_inside_import('slow')"
    )
    gate.load_inside_import("slow")  # outside of an import it is not imported yet
    assert "slow_part" not in sys.modules
    with pytest.raises(NotPreparedError):
        importlib.import_module("asks")
    slow[1].set()
    gate.load("slow")


def test_others_wait_as_long_as_an_import_takes(slow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network drive may pause for longer: that is no reason to raise."""
    monkeypatch.setattr(gate, "PATIENCE_S", 0.1)
    threading.Timer(0.5, slow[1].set).start()
    gate.load("slow")
    assert "slow_part" in sys.modules


def test_without_threads_the_caller_imports_and_who_is_above_is_told(
    slow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    class Above:
        """Stands for the handler of a signal that comes during the import."""

        def set(self) -> None:
            with pytest.raises(NotPreparedError):
                gate.load("slow")
            reached.append(True)

    reached: list[bool] = []
    sys.modules["slow_events"].begun = Above()  # type: ignore[attr-defined]
    slow[1].set()
    monkeypatch.setattr(background, "start_thread", full)
    gate.load("slow")
    assert (reached, "slow_part" in sys.modules) == ([True], True)


@linux
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_waits_for_the_step(slow: Any) -> None:
    begun, go = slow
    thread = threading.Thread(target=gate.load, args=("slow",))
    thread.start()
    assert begun.wait(10)
    threading.Timer(0.2, go.set).start()
    pid = os.fork()
    if pid == 0:
        os._exit(7 if go.is_set() and gate._steps["slow_part",].complete else 9)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    thread.join(10)


@linux
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_that_waited_in_vain_makes_a_copy_that_is_told(
    slow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PATIENCE_S", 0.2)
    thread = threading.Thread(target=gate.load, args=("slow",))
    thread.start()
    assert slow[0].wait(10)
    pid = os.fork()
    if pid == 0:  # the lock of the module is copied, and nobody opens it here
        try:
            gate.load("slow")
        except NotPreparedError:
            os._exit(7)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    slow[1].set()
    thread.join(10)


def test_a_fork_in_a_handler_that_met_a_fork_waits_for_nobody() -> None:
    """It waited five seconds for the lock of its own thread, and its copy counted as damaged."""
    forks = gate._Forks()
    forks._before()
    begin = time.monotonic()
    forks._before()
    assert time.monotonic() - begin < gate.PATIENCE_S / 2
    forks._after()
    forks._after()
    with ThreadPoolExecutor(1) as pool:  # of another thread's it is free
        assert pool.submit(forks.lock.acquire, False).result()


def test_what_cannot_be_imported_is_raised_each_time() -> None:
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match=r"probe_core\.nowhere"):
            gate.bring("nowhere")


def test_a_module_that_a_step_imports_may_ask_for_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "asks_more.py").write_text(
        "import sys\nfrom probe_core import gate\n"
        "gate.load('more')\nassert 'this_more' in sys.modules\n"
    )
    (tmp_path / "this_more.py").write_text("")
    monkeypatch.setitem(gate._PARTS, "asks", ("asks_more",))
    monkeypatch.setitem(gate._PARTS, "more", ("this_more",))
    gate.load("asks")
    assert "asks_more" in sys.modules
    for name in ("asks_more", "this_more"):
        sys.modules.pop(name)
        gate._steps.pop((name,), None)


def test_prepare_is_public() -> None:
    assert probe_core.prepare is gate.prepare
    assert issubclass(probe_core.NotPreparedError, RuntimeError)
