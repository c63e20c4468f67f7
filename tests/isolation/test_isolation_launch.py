"""Starting children works from odd hosts, and says why where it cannot."""

from __future__ import annotations

import errno
import os
import resource
import site
import stat
import sys
import zipfile
from _thread import get_ident
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace

import pytest

from probe_core import proc
from probe_core.isolation import launch, posix
from probe_core.isolation.child import _run_site
from probe_core.isolation.launch import cannot_start, run_probers
from probe_core.isolation.run import Run
from probe_core.isolation.start import ORPHANED
from probe_core.machine import Machine
from probe_core.registry.prober import Prober

Hook = Callable[..., Run]
DEVICE = 'yield {"ids": ["x:1"], "kind": "npu"}'
GOOD = f"@hookimpl\ndef probe_devices(request):\n    {DEVICE}"


def test_an_interpreter_can_be_started() -> None:
    assert cannot_start() is None


@pytest.mark.parametrize(
    ("executable", "frozen", "reason"),
    [
        ("", False, "this Python is embedded and does not know its own executable"),
        (None, False, "this Python is embedded and does not know its own executable"),
        ("/usr/sbin/uwsgi", False, "this Python is embedded in uwsgi, which would start instead"),
        ("/opt/exo/exo", True, "must call probe_core.child_entry() first"),
    ],
)
def test_what_is_no_interpreter_is_not_started(
    monkeypatch: pytest.MonkeyPatch, executable: str | None, frozen: bool, reason: str
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    assert reason in str(cannot_start())


def test_a_declared_frozen_program_starts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(launch, "declared", True)
    assert cannot_start() is None
    assert launch._command() == [sys.executable, launch.CHILD_ARGUMENT]


def test_a_prober_starts_no_probers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(launch.MARK_VARIABLE, "x")
    assert cannot_start() == ("this is itself the process of a prober: probers start no probers")


@pytest.mark.parametrize(
    ("user", "prefix", "writes", "utf8", "flags"),
    [
        (1000, None, True, 0, []),
        (1000, None, False, 0, ["-B"]),
        (1000, "/cache", True, 0, ["-X", "pycache_prefix=/cache"]),
        (1000, "/cache", False, 1, ["-B", "-X", "utf8", "-X", "pycache_prefix=/cache"]),
        (0, None, True, 0, []),
        (0, "/cache", True, 1, ["-B", "-X", "utf8"]),  # root runs no bytecode from there
    ],
)
def test_the_child_s_interpreter_is_the_host_s(
    user: int, prefix: str | None, writes: bool, utf8: int, flags: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(sys, "pycache_prefix", prefix)
    monkeypatch.setattr(sys, "dont_write_bytecode", not writes)
    monkeypatch.setattr(sys, "flags", SimpleNamespace(utf8_mode=utf8))
    program, *options, dash_c, code = launch._command()
    assert (program, options, dash_c) == (sys.executable, ["-I", "-S", *flags], "-c")
    assert str(Path(launch.__file__).parents[2]) in code


def test_root_hands_on_no_folder_that_others_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, mode in (("own", 0o755), ("open", 0o777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    own, everyones = str(tmp_path / "own"), str(tmp_path / "open")
    monkeypatch.setattr(sys, "path", [everyones, own, own, f"{own}/../own", None, 5, "a\0b"])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert launch.import_paths() == [everyones, own]
    if os.getuid() == 0:  # the folders are root's own
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        assert launch.import_paths() == [own]


def test_a_path_of_odd_things_is_handed_on(run_hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = [None, 5, b"/bytes", "", "relative", "\0", "/ü\udcff/日本", "/" + "x" * 5000]
    monkeypatch.setattr(sys, "path", [*odd, *sys.path])
    run = run_hook('yield {"ids": ["x:1"], "kind": "npu", "extra": {"path": sys.path[:4]}}')
    cwd = os.getcwd()
    expected = [cwd, f"{cwd}/relative", "/ü\udcff/日本", "/" + "x" * 4094 + "…"]
    assert run.sightings[0]["extra"]["path"] == expected


def test_a_path_longer_than_an_argument_may_be(
    run_hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path + [f"/bazel/{'x' * 90}/{n}" for n in range(2000)])
    assert run_hook(DEVICE).status == "ok"


def test_a_deleted_working_directory(
    run_hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    monkeypatch.syspath_prepend("")
    (tmp_path / "gone").rmdir()
    assert run_hook(DEVICE).status == "ok"


def test_no_interpreter_where_there_was_one(
    run_hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python3")
    run = run_hook(DEVICE)
    assert run.status == "resource"
    assert "no process could be started" in str(run.reason)
    assert "/nowhere/python3" in str(run.reason)


def test_no_descriptor_left(make_prober: Callable[..., Prober]) -> None:
    """The first probers run, the others say why not; nothing leaks."""
    probers = [make_prober(GOOD, name=f"n{n}") for n in range(4)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used[-1] + 12, hard))
    room = [os.dup(0) for _ in range(used[-1] + 1 - len(used))]  # fill the gaps below
    try:
        runs = run_probers(probers, Machine(), ())
    finally:
        for fd in room:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    statuses = [run.status for run in runs]
    assert statuses[0] == "ok"
    assert statuses[-1] == "resource"
    assert os.strerror(errno.EMFILE) in str(runs[-1].reason)
    assert sorted(int(fd) for fd in os.listdir("/proc/self/fd")) == used


def test_more_probers_than_a_host_can_bear(make_prober: Callable[..., Prober]) -> None:
    prober = make_prober(GOOD)
    old, launch.MAX_CHILDREN = launch.MAX_CHILDREN, 2
    try:
        runs = run_probers([prober] * 3, Machine(), ())
    finally:
        launch.MAX_CHILDREN = old
    assert [run.status for run in runs] == ["ok", "ok", "resource"]
    assert runs[2].reason == "more than 2 probers are selected, and this one comes last"


def test_a_machine_with_an_odd_environment(run_hook: Hook) -> None:
    machine = Machine(environ={"NUMBER": 5, "PATH": Path("/x")})  # type: ignore[dict-item]
    body = 'yield {"ids": ["x:1"], "kind": "npu", "extra": dict(request.machine.environ)}'
    assert run_hook(body, machine=machine).sightings[0]["extra"] == {"NUMBER": "5", "PATH": "/x"}


def test_the_host_is_told_in_order(make_prober: Callable[..., Prober]) -> None:
    heard: list[tuple[str, str, object]] = []

    def observe(event: str, details: object) -> None:
        assert isinstance(details, dict)
        heard.append((event, details["prober"], details["status"]))

    probers = [make_prober(GOOD, name="a"), make_prober("1 / 0", name="b")]
    run_probers(probers, Machine(), (), observe=observe)
    assert [event for event in heard if event[0] == "started"] == [
        ("started", "a", None),
        ("started", "b", None),
    ]
    assert [event for event in heard if event[0] == "finished"] == [
        ("finished", "a", "ok"),
        ("finished", "b", "load_error"),
    ]


def test_the_answers_are_there_while_the_children_end(make_prober: Callable[..., Prober]) -> None:
    ended: list[float] = []
    seen: list[object] = []

    def waiting(now: float, slow: Sequence[Run]) -> None:
        if not slow:  # called at last when all have ended, in another thread
            ended.append(now)

    def answered(runs: list[Run]) -> None:
        seen.append([run.status for run in runs])
        until = monotonic() + 10
        while not ended and monotonic() < until:
            sleep(0.001)
        seen.append(bool(ended))

    probers = [make_prober(GOOD, name="a"), make_prober("1 / 0", name="b")]
    runs = run_probers(probers, Machine(), (), answered=answered, waiting=waiting)
    assert seen == [["ok", "load_error"], True]  # they end although it has not returned
    assert [run.status for run in runs] == ["ok", "load_error"]


def own_children() -> list[int]:
    """Return the processes of which this one is the parent, zombies too."""
    found = ((pid, proc.status(pid)) for pid in proc.processes())
    return [pid for pid, status in found if status and status.parent == os.getpid()]


@pytest.mark.parametrize("portable", [False, True])
def test_the_first_process_starts_before_anybody_knows_its_prober(
    make_prober: Callable[..., Prober], portable: bool
) -> None:
    body = 'yield {"ids": ["x:1"], "kind": "npu", "extra": {"parent": os.getppid()}}'
    prober = make_prober(f"@hookimpl\ndef probe_devices(request):\n    {body}")
    before = own_children()
    started: list[int] = []

    def choose() -> list[Prober]:
        started.extend(pid for pid in own_children() if pid not in before)
        return [prober]

    (run,) = run_probers(choose, Machine(), (), portable=portable)
    supervisors = [sighting["extra"]["parent"] for sighting in run.sightings]
    assert (run.status, len(supervisors)) == ("ok", 1)
    assert started == ([] if portable else supervisors)
    assert own_children() == before


def test_a_process_that_no_prober_takes_is_ended() -> None:
    before, calls = sorted(os.listdir("/proc/self/fd")), []
    assert run_probers(list, Machine(), (), meanwhile=lambda: calls.append(1)) == []
    with pytest.raises(ZeroDivisionError):
        run_probers(lambda: [1 / 0], Machine(), ())  # type: ignore[list-item]
    assert (own_children(), sorted(os.listdir("/proc/self/fd")), calls) == ([], before, [])


def test_a_process_that_waits_ends_with_its_host() -> None:
    child = posix.Child()
    posix.start(child, launch._command(), dict(os.environ))
    assert child.pid is not None
    child.close()  # as the kernel does when the host ends
    assert os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1]) == ORPHANED


def test_what_cannot_be_started_ahead_says_so_at_its_turn(
    make_prober: Callable[..., Prober], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python3")
    (run,) = run_probers(lambda: [make_prober(GOOD)], Machine(), ())
    assert run.status == "resource"
    assert "no process could be started" in str(run.reason)


def test_without_an_answer_of_all_nothing_is_answered(make_prober: Callable[..., Prober]) -> None:
    read_fd, write_fd = os.pipe()
    answers: list[list[Run]] = []
    source = "@hookimpl\ndef probe_devices(request):\n    import time; time.sleep(30)"

    def give_up() -> None:
        os.write(write_fd, b"x")

    probers = [make_prober(source)]
    (run,) = run_probers(
        probers, Machine(), (), wake_fd=read_fd, meanwhile=give_up, answered=answers.append
    )
    os.close(read_fd)
    os.close(write_fd)
    assert (run.status, answers) == (None, [])


def test_a_host_without_path_to_source_uses_a_zip(tmp_path: Path, run_hook: Hook) -> None:
    archive = tmp_path / "app.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x_zipped/__init__.py", "")
        file.writestr("x_zipped/prober.py", f"from probe_core.api import *\n{GOOD}")
    sys.path.insert(0, str(archive))
    try:
        (run,) = run_probers([Prober("z", "x_zipped.prober")], Machine(), ())
    finally:
        sys.path.remove(str(archive))
    assert (run.status, len(run.sightings)) == ("ok", 1)


def test_cancelled_by_a_byte(make_prober: Callable[..., Prober]) -> None:
    hang = make_prober("@hookimpl\ndef probe_devices(request):\n    time.sleep(60)")
    read_fd, write_fd = os.pipe()
    os.write(write_fd, b"x")
    try:
        (run,) = run_probers([hang], Machine(), (), wake_fd=read_fd)
    finally:
        os.close(read_fd)
        os.close(write_fd)
    assert run.status is None


def test_the_bus_is_described_while_the_first_child_starts(run_hook: Hook) -> None:
    """In the thread that started it, so that it costs the time of an interpreter's start."""
    threads: list[int] = []

    def describe() -> list[dict[str, object]]:
        threads.append(get_ident())
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # raises without a child
        return [{"ids": ["x:1"]}]

    body = "yield {'ids': ['x:1'], 'kind': 'npu', 'extra': {'bus': len(request.bus)}}"
    run = run_hook(body, bus=describe)
    assert [sighting["extra"] for sighting in run.sightings] == [{"bus": 1}]
    assert threads != [get_ident()]
    assert len(threads) == 1


def test_a_bus_that_cannot_be_described_leaves_no_child(run_hook: Hook) -> None:
    def fail() -> list[dict[str, object]]:
        raise RuntimeError("no bus")

    run = run_hook("yield {'ids': ['x:1'], 'kind': 'npu'}", bus=fail)
    assert (run.status, run.reason) == ("resource", "no process could be started: no bus")
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_closed_standard_error_is_read_to_its_end_once(
    run_hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = []
    read = os.read

    def counted(fd: int, size: int) -> bytes:
        data = read(fd, size)
        if not data and stat.S_ISFIFO(os.fstat(fd).st_mode):
            ends.append(fd)
        return data

    monkeypatch.setattr(os, "read", counted)
    run = run_hook(
        """
        os.close(1)
        os.close(2)
        time.sleep(0.1)
        yield {"ids": ["x:1"], "kind": "npu"}
        """
    )
    assert run.status == "ok"
    assert len(ends) == len(set(ends))


def test_each_device_arrives_in_the_callers_thread(run_hook: Hook) -> None:
    arrived: list[tuple[int, object]] = []
    body = "for bus in (1, 2, 3):\n        yield {'ids': [f'pci:0000:0{bus}:00.0'], 'kind': 'gpu'}"
    run = run_hook(body, arrived=lambda run, raw: arrived.append((get_ident(), raw)))
    assert run.status == "ok"
    assert [raw for _, raw in arrived] == run.sightings
    assert all(raw is kept for (_, raw), kept in zip(arrived, run.sightings, strict=True))
    assert {thread for thread, _ in arrived} == {get_ident()}


def test_what_else_there_is_to_do_is_done_meanwhile(run_hook: Hook) -> None:
    done: list[int] = []
    assert run_hook(DEVICE, meanwhile=lambda: done.append(1)).status == "ok"
    assert done == [1]


def test_hooks_that_site_sets_up_leave_the_hosts_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a .pth file names a folder that others may write: as root it was left out."""
    monkeypatch.setattr(site, "main", lambda: sys.path.append("/home/someone/src"))
    monkeypatch.setattr(sys, "path", [])
    _run_site(["/usr/lib/python3"])
    assert sys.path == ["/usr/lib/python3"]
