"""Answers that are remembered: given again while nothing they came from changed, and never else."""

from __future__ import annotations

import compileall
import json
import os
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from readiness_nodes import nvidia
from reports import report_of

from probe_core.doctor import remembered
from probe_core.doctor.check import Request
from probe_core.doctor.installed import CheckSet, installed_checks
from probe_core.doctor.remembered import Memory, identities, lasting
from probe_core.doctor.remote import run_installed
from probe_core.machine import Machine

# Counts its runs in a file, which no real check may do.
COUNTING = """
    import os

    class Env:
        code, step, needs, summary = "acme-env", "", ("environment",), "Whether it runs."

        def run(self, request):
            with open(os.path.join(request.environment, "..", "runs"), "a") as file:
                file.write("x")
            request.remember([os.path.join(request.environment, name) for name in ("a", "gone")])
            text = open(os.path.join(request.environment, "a")).read()
            return {"status": "unknown", "findings": [], "reason": f"a is {text}"}

    CHECKS = [Env()]
"""
NEEDS: dict[str, Any] = {"needs": ["environment"], "variables": ["ACME"]}


class Place:
    """A set of checks, an environment, and the folder of what is remembered."""

    def __init__(self, root: Path, manifest: dict[str, Any]) -> None:
        self.site, self.env = root / "site", root / "env"
        for folder in (self.site, self.env):
            folder.mkdir()
        (self.site / "x_counting.py").write_text(dedent(COUNTING))
        text = json.dumps({"schema": 1, "checks": {"counting": manifest}})
        (self.site / "x_counting.check.json").write_text(text)
        info = self.site / "acme_counting-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: acme-counting\nVersion: 1.0\n")
        line = "[probe_core.checks.v1]\ncounting = x_counting\n"
        (info / "entry_points.txt").write_text(line)
        # Else the first run writes the module's bytecode, and what it looked at has changed.
        compileall.compile_dir(self.site, quiet=1)
        self.root = root
        self.machine = nvidia(root / "machine").machine()
        self.report: Any = report_of(self.machine)
        (self.env / "a").write_text("1")

    def write(self, text: str, path: str = "a") -> None:
        (self.env / path).write_text(text)
        self.settle()

    def settle(self) -> None:
        """Wait until what is here is old enough to be trusted: a second, by the file's own time."""
        from time import sleep, time_ns

        newest = max(path.stat().st_ctime_ns for path in self.env.rglob("*"))
        sleep(max(0.0, (newest + 1_050_000_000 - time_ns()) / 1e9))

    def keep(self) -> Memory:
        """Remember an answer that came from nothing that changes."""
        memory = Memory(self.sets()[0], self.request())
        result = {"status": "passed", "findings": [], "reason": None}
        memory.keep([{"code": "acme-env", "result": result}], {str(self.env / "gone"): ""})
        return memory

    def sets(self) -> list[CheckSet]:
        return installed_checks(None, paths=[str(self.site)])

    def request(self, device: str | None = None) -> Request:
        return Request(self.machine, self.report, environment=str(self.env), device=device)

    def ask(self, device: str | None = None) -> str | None:
        """Return the reason that the check gives."""
        remote = run_installed(self.sets(), self.request(device))
        assert remote.problems == []
        (check,) = remote.checks
        assert check.result is not None
        return check.result["reason"]

    @property
    def runs(self) -> int:
        return len((self.root / "runs").read_text())

    def files(self) -> list[Path]:
        return sorted((self.root / "cache" / "probe-core" / "doctor").glob("*.json"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return Place(tmp_path, NEEDS)


@pytest.mark.heavy
def test_the_same_question_starts_no_process(place: Place) -> None:
    place.settle()
    assert [place.ask(), place.ask(), place.ask()] == ["a is 1"] * 3
    assert place.runs == 1
    (file,) = place.files()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.heavy
def test_a_file_that_changes_comes_or_goes_is_looked_at(place: Place) -> None:
    place.settle()
    assert place.ask() == "a is 1"
    before = (place.env / "a").stat()
    place.write("2")  # of equal size, and then of equal time
    os.utime(place.env / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    place.settle()
    assert place.ask() == "a is 2"
    place.write("", "gone")
    assert [place.ask(), place.ask()] == ["a is 2"] * 2
    assert place.runs == 3


@pytest.mark.heavy
def test_a_variable_another_device_and_another_report_are_other_questions(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.settle()
    place.ask()
    monkeypatch.setenv("ACME", "1")
    place.ask()
    assert place.runs == 2
    place.ask(place.report["devices"][0]["id"])
    assert place.runs == 3
    place.report["devices"][0]["driver"] = {"name": "nvidia", "version": "1.0"}
    place.ask()
    assert place.runs == 4
    place.report["devices"][0]["memory"]["free"] = 5
    place.report["timings_ms"] = {"total": 1e9}
    place.ask()
    assert place.runs == 4


def test_what_changes_while_it_is_read_is_not_remembered(place: Place) -> None:
    (place.env / "a").write_text("3")
    assert place.ask() == "a is 3"
    assert place.files() == []


@pytest.mark.heavy
@pytest.mark.parametrize("mistake", ["shared", "garbage", "schema", "answers", "link"])
def test_a_memory_that_is_odd_is_not_used(place: Place, mistake: str) -> None:
    memory = place.keep()
    assert len(memory.answers()) == 1
    (file,) = place.files()
    document = json.loads(file.read_text())
    if mistake == "garbage":
        file.write_text("{" * 5000)
    elif mistake == "schema":
        file.write_text(json.dumps({**document, "schema": 0}))
    elif mistake == "answers":
        file.write_text(json.dumps({**document, "answers": {"code": 5}}))
    elif mistake == "link":
        file.rename(place.root / "other.json")
        file.symlink_to(place.root / "other.json")
    else:
        file.chmod(0o666)
    assert memory.answers() == []


def test_an_answer_that_is_none_is_asked_for_again(place: Place) -> None:
    place.keep()
    (file,) = place.files()
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "answers": [{"code": 5}]}))
    assert place.ask() == "a is 1"


@pytest.mark.heavy
def test_a_set_that_names_no_variables_runs_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    place = Place(tmp_path, {"needs": ["environment"]})
    place.settle()
    assert [place.ask(), place.ask()] == ["a is 1"] * 2
    assert (place.runs, place.files()) == (2, [])


def test_a_folder_of_a_server_is_not_looked_at(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """stat(2) on a dead NFS mount does not return: only a process can be abandoned there."""
    memory = place.keep()
    assert len(memory.answers()) == 1
    table = place.root / "mountinfo"
    table.write_text(f"36 35 0:1 / {place.env} rw - nfs4 host:/home rw\n")
    from probe_core import machine

    read = machine._served_at
    monkeypatch.setattr(machine, "_served_at", lambda path: read(str(table)))
    assert memory.answers() == []
    assert identities([str(place.env / "a")], 1 << 62) is None


def test_the_memory_is_bounded(place: Place) -> None:
    place.keep()
    (file,) = place.files()
    for number in range(40):
        (file.parent / f"{number:08x}.json").write_text("{}")
    place.keep()
    assert len(place.files()) == 32
    assert identities(map(str, range(8000)), 1 << 62) is None


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
def test_what_is_kept_is_the_users_alone(
    variable: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = place.root / "home"
    home.mkdir()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv(variable, str(home))
    folder = home / (".cache" if variable == "HOME" else "") / "probe-core" / "doctor"
    request = Request(Machine(environ=os.environ), place.report, environment=str(place.env))
    memory = Memory(place.sets()[0], request)
    memory.keep([], {str(place.env / "gone"): ""})
    (file,) = folder.iterdir()
    assert [path.stat().st_mode & 0o777 for path in (file, folder)] == [0o600, 0o700]


def test_nothing_is_kept_or_removed_through_a_link(place: Place) -> None:
    """Root with another user's HOME must not write or remove files where that user's links lead."""
    victim = place.root / "victim"
    victim.mkdir()
    for number in range(40):
        (victim / f"{number}.json").write_text("{}")
    (place.root / "cache" / "probe-core").mkdir(parents=True, mode=0o700)
    (place.root / "cache" / "probe-core" / "doctor").symlink_to(victim)
    assert place.keep().answers() == []
    assert len(list(victim.iterdir())) == 40


def test_a_umask_that_lets_the_group_write_changes_nothing(place: Place) -> None:
    before = os.umask(0o002)
    try:
        assert len(place.keep().answers()) == 1
    finally:
        os.umask(before)


def test_the_lasting_part_of_a_report_has_no_figure_that_moves(place: Place) -> None:
    text = json.dumps(lasting(place.report))
    assert "10de" in text
    assert not [word for word in ("free", "usable", "elapsed") if word in text]


HANGING = """
    import time

    class Env:
        code, step, needs, summary = "acme-env", "", ("environment",), "Whether it runs."

        def run(self, request):
            {body}

    CHECKS = [Env()]
"""


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("body", "status", "deadline"),
    [("time.sleep(60)", "timeout", 2), ("import os; os.abort()", "crashed", 60)],
)
def test_an_environment_that_hangs_or_crashes_its_checks_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, status: str, deadline: int
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    place = Place(tmp_path, {**NEEDS, "deadline_s": deadline})
    (place.site / "x_counting.py").write_text(dedent(HANGING).format(body=body))
    (check,) = run_installed(place.sets(), place.request()).checks
    assert check.result is not None
    (finding,) = check.result["findings"]
    assert (finding["code"], finding["severity"]) == ("environment-unreadable", "error")
    assert str(place.env) in finding["what"]
    assert f"ended with {status}" in finding["why"]
    assert place.files() == []


@pytest.mark.parametrize(
    ("mode", "is_read"), [(0o600, True), (0o644, True), (0o620, False), (0o602, False)]
)
def test_what_others_may_write_is_not_believed(tmp_path: Path, mode: int, is_read: bool) -> None:
    path = tmp_path / "answers.json"
    text = json.dumps({"schema": remembered.SCHEMA, "key": "k"})
    path.write_text(text)
    path.chmod(mode)
    assert bool(remembered._load(str(path))) is is_read
    (tmp_path / "link").symlink_to(path)
    assert remembered._load(str(tmp_path / "link")) == {}


def test_a_memory_is_read_to_its_bound_and_of_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    text = json.dumps({"schema": remembered.SCHEMA, "key": "k"})
    for size, is_read in ((remembered.FILE_LIMIT, True), (remembered.FILE_LIMIT + 1, False)):
        path.write_text(text.ljust(size))
        assert bool(remembered._load(str(path))) is is_read
    for other in ('{"schema": 99}', "[]", "", "[" * 100_000):
        path.write_text(other)
        assert remembered._load(str(path)) == {}


def test_files_hold_while_each_is_as_it_was(tmp_path: Path) -> None:
    path, absent = tmp_path / "a", str(tmp_path / "b")
    path.write_text("1")
    changed = path.stat().st_ctime_ns
    later = changed + remembered.SETTLED_NS
    found = identities([str(path), absent], later)
    assert found is not None
    assert (found[absent], remembered._hold(found), remembered._hold({})) == ("", True, False)
    assert identities([str(path)], later - 1) is None
    path.write_text("22")
    assert not remembered._hold(found)
