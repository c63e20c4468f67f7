"""Hosts that interrupt, forbid or lack what a probe uses: a report or one exception, no leak."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile_host import host

import probe_core
from probe_core import background, probing


@pytest.fixture(autouse=True)
def nobody_left(untouched: object) -> None:
    """Every test here is followed by the check for processes."""


@pytest.mark.heavy
def test_a_signal_handler_that_raises_every_two_milliseconds(site: Path) -> None:
    ends, remains = host(
        site,
        """
        class Tick(BaseException): pass
        def handler(*_): raise Tick
        signal.signal(signal.SIGALRM, handler)
        ends = collections.Counter()
        once()
        before = state()
        for number in range(60):
            try:
                try:
                    first = 0.0003 + number % 30 * 0.0011
                    signal.setitimer(signal.ITIMER_REAL, first, 0.002)
                    once()
                    ends["report"] += 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Tick:
                ends["exception"] += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
        # A thread whose lock an exception left locked ends PATIENCE_S later.
        print(json.dumps([sum(ends.values()), left(before, 1500)]))
        """,
    )
    assert (ends, remains) == (60, None)


@pytest.mark.heavy
def test_a_file_whose_reading_is_interrupted(site: Path, tmp_path: Path) -> None:
    """The moment between open(2) and the assignment of its result, hit for certain."""
    (tmp_path / "file").write_text("x")
    ends, remains = host(
        site,
        f"""
        from probe_core.machine import Machine
        from probe_core.machine import read_regular
        def handler(*_): raise KeyError
        signal.signal(signal.SIGALRM, handler)
        before, ends = state(), 0
        path = {str(tmp_path / "file")!r}
        for number in range(4000):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + number % 40 * 5e-7)
                Machine({str(tmp_path)!r}).read("/file")
                read_regular(path, 10)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyError:
                ends += 1
        print(json.dumps([ends, left(before)]))
        """,
    )
    assert ends > 100
    assert remains is None


EVENTS = (
    "os.posix_spawn os.kill os.killpg os.listdir os.scandir open fcntl.fcntl"
    " _thread.start_new_thread resource.prlimit import marshal.loads"
)


@pytest.mark.heavy
@pytest.mark.parametrize("event", EVENTS.split())
def test_an_audit_hook_that_raises(site: Path, event: str) -> None:
    ended, remains = host(
        site,
        f"""
        class Denied(Exception): pass
        active = False
        def hook(event, arguments):
            if active and event == {event!r}:
                raise Denied(event)
        sys.addaudithook(hook)
        once()
        before = state()
        active = True
        ended = collections.Counter()
        for _ in range(3):
            try:
                ended[str(once())] += 1
            except Denied:
                ended["exception"] += 1
        active = False
        print(json.dumps([ended, left(before)]))
        """,
    )
    assert remains is None
    assert sum(ended.values()) == 3


SECCOMP = """
        import ctypes, struct
        libc = ctypes.CDLL(None, use_errno=True)
        # Load the call's number; where it is sched_yield return EPERM, else allow.
        number = {"x86_64": 24, "aarch64": 124}[os.uname().machine]
        program = struct.pack(
            "HBBI" * 4,
            0x20, 0, 0, 0,
            0x15, 0, 1, number,
            0x06, 0, 0, 0x00050001,
            0x06, 0, 0, 0x7FFF0000,
        )
        code = ctypes.create_string_buffer(program, len(program))
        class Filter(ctypes.Structure):
            _fields_ = [("len", ctypes.c_ushort), ("code", ctypes.c_void_p)]
        filter = Filter(4, ctypes.addressof(code))
        assert libc.prctl(38, 1, 0, 0, 0) == 0
        assert libc.prctl(22, 2, ctypes.byref(filter), 0, 0) == 0
        try:
            os.sched_yield()
        except PermissionError:
            pass
        else:
            raise AssertionError("the filter does nothing")
"""


@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="numbers of calls")
def test_a_seccomp_filter_without_sched_yield(site: Path) -> None:
    statuses, remains = host(
        site,
        SECCOMP
        + """
        before = state()
        statuses = once()
        print(json.dumps([statuses, left(before)]))
        """,
    )
    assert (statuses, remains) == (["ok"], None)


def unshared() -> list[str]:
    """Return the command that gives a program an empty /dev; none where that is not allowed."""
    for options in (["-m"], ["-U", "-r", "-m"]):
        command = ["unshare", *options, "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "sh"]
        try:
            done = subprocess.run([*command, "true"], capture_output=True, check=False, timeout=30)
        except OSError:
            return []
        if done.returncode == 0:
            return command
    return []


@pytest.mark.heavy
def test_a_container_without_dev_null(site: Path) -> None:
    command = unshared()
    if not command:
        pytest.skip("no mount namespace may be made here")
    statuses, remains = host(
        site,
        """
        assert not os.path.exists("/dev/null")
        before = state()
        statuses = once()
        print(json.dumps([statuses, left(before)]))
        """,
        *command,
    )
    assert (statuses, remains) == (["ok"], None)


def test_no_room_for_the_thread_of_an_awaited_probe(
    site: Path, untouched: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> Any:
        return await probe_core.probe_async(timeout=8, only=["good"], refresh=True)

    asyncio.run(main())  # what is imported lazily is imported now
    with untouched(), monkeypatch.context() as patch:
        patch.setattr(background, "start_thread", full)
        report = asyncio.run(main())
    assert [o.status for o in report.outcomes if o.prober == "good"] == ["ok"]


def test_no_descriptor_for_an_awaited_probe(
    site: Path, untouched: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        path, getpid = os.path, staticmethod(os.getpid)

        @staticmethod
        def pipe() -> None:
            raise OSError(24, "Too many open files")

    async def main() -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(background, "os", Full)
            return await probe_core.probe_async(timeout=8, only=["good"], refresh=True)

    with untouched():  # only giving up early needs one
        report = asyncio.run(main())
    assert [o.status for o in report.outcomes if o.prober == "good"] == ["ok"]


@pytest.mark.heavy
def test_the_cache_of_reports_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_cache", {})
    for number in range(3 * probing.MAX_CACHED):
        probe_core.probe(only=["bus"], priority={"x": number + 1})
    assert len(probing._cache) == probing.MAX_CACHED
    last = probe_core.probe(only=["bus"], priority={"x": 3 * probing.MAX_CACHED})
    assert probe_core.probe(only=["bus"], priority={"x": 3 * probing.MAX_CACHED}) is last


# A user of this process's alone: the limit counts all processes of a user.
USER = 70_000 + os.getpid() % 10_000
AS_A_USER = ["setpriv", f"--reuid={USER}", "--clear-groups", "--inh-caps=+dac_override"]
AS_A_USER += ["--ambient-caps=+dac_override", "prlimit", "--nproc=3"]


@pytest.mark.heavy
def test_no_room_for_threads_and_supervisors(site: Path) -> None:
    """The limit on processes counts threads: neither host nor child may start any."""
    if subprocess.run([*AS_A_USER, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no other user may be become here")
    statuses, remains = host(
        site,
        """
        before = state()
        print(json.dumps([once(), left(before)]))
        """,
        *AS_A_USER,
    )
    assert (statuses, remains) == (["ok"], None)
