"""What is made of answers that came, came in part, or did not come: of a check and of a set."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from test_doctor_boards import of_vendor, outcome
from trees import Tree

from probe_core.config import journal_file
from probe_core.doctor.baseline import _read
from probe_core.doctor.check import Request
from probe_core.doctor.child import _answer
from probe_core.doctor.examine import _result, _system
from probe_core.doctor.installation import untried_python
from probe_core.doctor.log import _is_empty, _names
from probe_core.doctor.remembered import _file
from probe_core.doctor.remote import Remote, _recalled, _take, _unread
from probe_core.machine import Machine

PASSED = {"code": "a-1", "result": {"status": "passed"}, "ms": 7.0}
FILES = {"/etc/a": "1"}
OWNER = "probe-acme 1.0"


class Kept:
    """A memory of answers."""

    def __init__(self, *answers: object) -> None:
        self.known = answers
        self.kept: list[Any] = []

    def answers(self) -> tuple[object, ...]:
        return self.known

    def keep(self, answers: Any, files: Any) -> None:
        self.kept.append((answers, files))


def run_of(*frames: object, status: str = "ok", reason: str | None = None) -> Any:
    prober = SimpleNamespace(owner=OWNER)
    return SimpleNamespace(prober=prober, sightings=frames, status=status, reason=reason)


SOUND_KEPT = [([{**PASSED, "ms": 0.0}], FILES)]


@pytest.mark.parametrize(
    ("run", "codes", "problems", "kept"),
    [
        (run_of(PASSED, {"files": FILES}), ["a-1"], [], SOUND_KEPT),
        (run_of(PASSED, {"files": FILES}, status="not_applicable"), ["a-1"], [], SOUND_KEPT),
        (run_of(PASSED), ["a-1"], [], []),
        (run_of({"files": FILES}), [], [], [([], FILES)]),
        (run_of(PASSED, 5, {"files": FILES}), ["a-1"], ["a check is no table"], []),
        (run_of(PASSED, {"files": FILES}, status="timeout", reason="it hangs"), ["a-1"],
         ["timeout: it hangs"], []),
        (run_of(status="crash", reason="signal 11"), [], ["crash: signal 11"], []),
    ],
    ids=range(7),
)  # fmt: skip
def test_what_a_set_left_when_it_ended(
    run: Any, codes: list[str], problems: list[str], kept: list[Any]
) -> None:
    remote, memory = Remote(), Kept()
    remote.problems.append(("another", "of before"))
    _take(run, remote, memory)  # type: ignore[arg-type]
    assert [check.code for check in remote.checks] == codes
    assert remote.problems[1:] == [(OWNER, problem) for problem in problems]
    assert memory.kept == kept


def test_a_set_without_a_memory_has_no_files() -> None:
    remote = Remote()
    _take(run_of(PASSED, {"files": FILES}), remote, None)
    assert [check.code for check in remote.checks] == ["a-1"]
    assert [owner for owner, _ in remote.problems] == [OWNER]


@pytest.mark.parametrize(
    ("known", "taken"), [((), []), ((PASSED,), ["a-1"]), ((PASSED, 5), []), ((5,), [])]
)
def test_remembered_answers_are_taken_whole_or_not(
    known: tuple[object, ...], taken: list[str]
) -> None:
    remote = Remote()
    assert _recalled(Kept(*known), OWNER, remote) == bool(taken)  # type: ignore[arg-type]
    assert [check.code for check in remote.checks] == taken


def test_an_environment_that_was_not_read_is_an_error(tmp_path: Path) -> None:
    request = Request(Machine(str(tmp_path)), of_vendor("acme"), environment="/srv/env")
    check = _unread(OWNER, run_of(status="timeout", reason="it hangs"), request)
    assert (check.code, check.needs, check.distribution) == (
        "environment-unreadable",
        ("environment",),
        OWNER,
    )
    result: Any = check.result
    (found,) = result["findings"]
    assert (result["status"], found["severity"], found["evidence"]) == (
        "failed",
        "error",
        "/srv/env",
    )
    assert found["what"] == "the Python environment /srv/env was not read to its end"
    assert found["why"] == f"the checks of {OWNER} ended with timeout: it hangs"


class Raises:
    needs = ()

    def run(self, request: object) -> NoReturn:
        raise LookupError("no such thing")


def test_a_check_that_raises_is_unknown_here_and_in_a_child() -> None:
    check: Any = Raises()
    request: Any = SimpleNamespace(environment=None)
    reason = "the check raised: LookupError: no such thing"
    assert outcome(_result(check, request)) == ("unknown", reason)
    assert outcome(_answer(check, request)["result"]) == ("unknown", reason)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"schema": 1, "ready": []}', True),
        ('{"schema": 2, "ready": []}', False),
        ('{"ready": []}', False),
        ("[1]", False),
        ('"schema"', False),
        ("{", False),
        ("[" * 100_000, False),
    ],
    ids=range(7),
)
def test_which_file_is_a_baseline(text: str, found: bool, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    assert (_read(str(path)) is not None) == found
    assert _read(str(tmp_path / "absent")) is None


def test_a_port_with_a_device_below_it_lost_none(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.file("/sys/bus/pci/devices/0000:80:01.0/class", "0x060400")
    tree.file("/sys/bus/pci/devices/0000:80:02.0/0000:81:00.0/class", "0x030000")
    tree.file("/sys/bus/pci/devices/0000:80:03.0/0000:80:03.0:pcie001/uevent", "")
    request = Request(tree.machine(), of_vendor("acme"))
    line = "pcieport {}: pciehp: Slot(1): Link Down"
    ports = ("0000:80:01.0", "0000:80:02.0", "0000:80:03.0", "0000:80:04.0", "../devices", "")
    expected = [True, False, True, False, False, False]
    assert [_is_empty(request, line.format(port)) for port in ports] == expected


@pytest.mark.parametrize(
    ("line", "port", "answer"),
    [
        ("nvidia 0000:01:00.0: lost", None, True),
        ("NVRM: Xid (PCI:pci:0000:01:00): 79", None, True),
        ("pcieport 0000:00:01.0: down", "0000:00:01.0", True),
        ("pcieport 0000:00:01.0: down", None, False),
        ("nvidia 0000:02:00.0: lost", "0000:00:01.0", False),
    ],
    ids=range(5),
)
def test_which_lines_name_a_place(line: str, port: str | None, answer: bool) -> None:
    assert _names(line, "0000:01:00.0", port) == answer


@pytest.mark.parametrize(
    ("flags", "version", "status"),
    [("", (3, 14), "passed"), ("t", (3, 13), "failed"), ("t", (3, 14), "passed")],
)
def test_a_python_that_was_not_tried(
    flags: str, version: tuple[int, int], status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "abiflags", flags, raising=False)
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    result: Any = untried_python.run(Request(Machine(), of_vendor("acme")))
    assert result["status"] == status
    if status == "failed":
        (found,) = result["findings"]
        assert f"a free-threaded Python {version[0]}.{version[1]}: " in found["what"]


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c"),
        ({"XDG_CACHE_HOME": "c", "HOME": "/h"}, "/h/.cache"),
        ({"HOME": "/h"}, "/h/.cache"),
        ({"HOME": "h"}, None),
        ({}, None),
    ],
    ids=range(5),
)
def test_where_answers_are_remembered(environ: dict[str, str], folder: str | None) -> None:
    entry: Any = SimpleNamespace(owner=OWNER, prober=SimpleNamespace(target="acme"))
    request = Request(Machine(environ=environ), of_vendor("acme"), environment="/srv/env")
    path = _file(entry, request)
    assert path.startswith(f"{folder}/") if folder else path == ""
    assert _file(entry, Request(Machine(environ=environ), of_vendor("acme"))) == ""


@pytest.mark.parametrize(
    ("system", "kernel", "release", "text"),
    [
        ("linux", "6.8.0", "ID=ubuntu\nVERSION_ID=24.04\n", "ubuntu 24.04, linux 6.8.0"),
        ("linux", "6.8.0", "ID=arch\n", "arch, linux 6.8.0"),
        ("linux", None, "ID=arch\n", "arch, linux"),
        ("linux", "6.8.0", None, "linux 6.8.0"),
        ("darwin", "25.1.0", "ID=arch\n", "darwin 25.1.0"),
    ],
    ids=range(5),
)
def test_the_system_in_words(
    system: str, kernel: str | None, release: str | None, text: str, tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    if release is not None:
        tree.file("/etc/os-release", release)
    report = of_vendor("acme") | {"node": {"os": system, "kernel": kernel}}
    assert _system(Request(tree.machine(), report)) == text


def test_a_journal_is_there_or_not(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    request = Request(Machine(environ=environ), of_vendor("acme"))
    assert not request._has_journal()
    path = Path(str(journal_file(environ)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    assert request._has_journal()
    assert not Request(Machine(str(tmp_path), environ), of_vendor("acme"))._has_journal()
