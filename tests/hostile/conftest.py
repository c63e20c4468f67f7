"""Install hostile plugins beside a good one, probe, and check that the host is as it was."""

from __future__ import annotations

import locale
import os
import resource
import signal
import sys
import textwrap
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from probe_core.isolation import ending
from probe_core.probing import document
from probe_core.setting_values import load_config

sys.path.insert(0, str(Path(__file__).parent))  # helpers lie beside the tests

HEAD = "import os, sys, time\nfrom probe_core.api import *\nONE = {'ids': ['x:1'], 'kind': 'npu'}\n"
GOOD = "@hookimpl\ndef probe_devices(request):\n    return [{'ids': ['good:1'], 'kind': 'npu'}]\n"
TRACE = "HOSTILE_TEST"
"""A variable that every process started by a test inherits, and that finds what escaped."""


OURS = {"probe_core", "probe_chipdb", "attr", "attrs", "pluggy"}
"""What a probe may import into the host, beside the standard library."""


def install(site: Path, name: str, source: str, head: str = HEAD) -> Path:
    """Write one distribution with one prober in one module; returns the module."""
    metadata = site / f"probe_{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Name: probe-{name}\n")
    (metadata / "entry_points.txt").write_text(f"[probe_core.probers.v1]\n{name} = x_{name}\n")
    module = site / f"x_{name}.py"
    module.write_bytes((head + textwrap.dedent(source)).encode("utf-8", "surrogatepass"))
    return module


def state_of_host() -> dict[str, Any]:
    """Return everything of this process that a probe must leave as it is."""
    umask = os.umask(0)
    os.umask(umask)
    return {
        "environment": {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"},
        "working directory": os.getcwd(),
        "umask": umask,
        "signal handlers": {s: signal.getsignal(s) for s in signal.valid_signals()},
        "signal mask": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "timers": [signal.getitimer(which) for which in (0, 1, 2)],
        "limits": [resource.getrlimit(which) for which in range(10)],
        "descriptors": sorted(os.listdir("/proc/self/fd")),
        "threads": (threading.enumerate(), len(os.listdir("/proc/self/task"))),
        "locale": locale.setlocale(locale.LC_ALL),
        "warnings": list(warnings.filters),
        "streams": (sys.stdin, sys.stdout, sys.stderr, sys.gettrace(), sys.getprofile()),
        "path": (list(sys.path), list(sys.meta_path), list(sys.argv), sys.getrecursionlimit()),
    }


def check_modules(before: dict[str, Any]) -> None:
    """Check that no module was taken away or replaced, and that none came but our own kind."""
    after = dict(sys.modules)
    assert {name: after.get(name) for name in before} == before
    roots = {name.partition(".")[0] for name in after.keys() - before.keys()}
    assert roots <= OURS | sys.stdlib_module_names


def traced(mark: str) -> list[int]:
    """Return the living processes, other than this one, that inherited `mark`."""
    pids = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            environ = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if f"{TRACE}={mark}".encode() in environ and int(name) != os.getpid():
            pids.append(int(name))
    return pids


def settle_threads() -> None:
    """Wait until no thread that has ended is in /proc any more."""
    count, same = len(os.listdir("/proc/self/task")), 0
    for _ in range(500):
        time.sleep(0.002)
        now = len(os.listdir("/proc/self/task"))
        count, same = now, same + 1 if now == count else 0
        if same == 10:
            return


@contextmanager
def unchanged() -> Iterator[None]:
    """Check that the host is afterwards as it was before, also after an exception."""
    settle_threads()
    before = state_of_host()
    modules = dict(sys.modules)
    try:
        yield
    finally:
        check_modules(modules)
        after = state_of_host()
        for _ in range(50):  # a joined thread is in /proc for a moment longer
            if after["threads"] != before["threads"]:
                time.sleep(0.002)
                after = state_of_host()
        for aspect, value in before.items():
            assert after[aspect] == value, aspect


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """Return `unchanged`; check after the test that no process is left."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(TRACE, mark)
    yield unchanged
    for _ in range(1000):  # a supervisor of very many is reaped by a later call, see `_reap_late`
        ending._reap_late()
        if not ending._unreaped:
            break
        time.sleep(0.01)
    with pytest.raises(ChildProcessError):  # neither a child nor a zombie
        os.waitpid(-1, os.WNOHANG)
    assert traced(mark) == []


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder on the path that already holds a good plugin."""
    install(tmp_path, "good", GOOD)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.fixture
def probe_with(
    site: Path, capfd: pytest.CaptureFixture[str], untouched: Callable[[], Any]
) -> Iterator[Callable[..., dict[str, Any]]]:
    """Return a function that installs a plugin `bad` and returns its outcome.

    The outcome also holds the whole report under ``document``. The good plugin beside it must
    have answered, and nothing may have been printed. A second after the deadline is the promise;
    the tests give it five, for the other tests on this computer.
    """

    def probe(source: str, timeout: float = 8.0, **settings: Any) -> dict[str, Any]:
        if source is not None:
            install(site, "bad", source, settings.pop("head", HEAD))
        config, _ = load_config({"timeout": timeout, "only": ["bad", "good"], **settings}, {})
        start = time.monotonic()
        with untouched():
            report = document(config, [])
        assert time.monotonic() - start < timeout + 5.0
        outcomes = {outcome["prober"]: outcome for outcome in report["outcomes"]}
        assert (outcomes["good"]["status"], outcomes["good"]["devices"]) == ("ok", 1)
        assert "good:1" in [device["id"] for device in report["devices"]]
        assert outcomes["bad"]["status"] == "ok" or outcomes["bad"]["reason"]
        return {**outcomes["bad"], "document": report}

    yield probe
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def hostile(probe_with: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return a function that runs the body of a hostile `probe_devices(request)`."""

    def run(body: str, timeout: float = 8.0, **settings: Any) -> dict[str, Any]:
        body = textwrap.indent(textwrap.dedent(body), "    ")
        return probe_with(f"@hookimpl\ndef probe_devices(request):\n{body}", timeout, **settings)

    return run


@pytest.fixture
def check() -> Callable[[dict[str, Any], str, str], None]:
    """Return a function that compares an outcome; alternatives are separated by bars."""

    def compare(outcome: dict[str, Any], status: str, reason: str) -> None:
        assert outcome["status"] in status.split("|"), outcome["reason"]
        assert any(part in (outcome["reason"] or "") for part in reason.split("|"))

    return compare
