"""The kit's own rules, one by one: what it notes, what it calls empty, declared or a prober."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from trees import Tree

from probe_core import Machine
from probe_core.recording.declared import check_records
from probe_core.testing import ExporterContract, export_contract
from probe_core.testing.check_contract import _is_declared, covers
from probe_core.testing.checks_hardware import _empty, _ids, _shapes, _some, contents
from probe_core.testing.reading import Coverage, _can_be_declared, _declaration
from probe_core.testing.scaffold import _manifest, _oldest_core, _problem, _vendor_problem
from probe_core.testing.spy import MAX_EVENTS, Notes, _is_child, _paths
from probe_core.testing.target import BadTarget, _name, _split, prober_at

# What the spy notes of the interpreter's audit events.


def notes_of(machine: Machine, *events: tuple[str, tuple[Any, ...]]) -> list[tuple[str, str]]:
    notes = Notes(machine)
    notes.listening = True
    for event, arguments in events:
        notes.hear(event, arguments)
    return notes.events


READ, WRITE = os.O_RDONLY, os.O_RDWR
TEMPORARY = os.path.realpath(tempfile.gettempdir()) + "/"


@pytest.mark.parametrize(
    ("event", "arguments", "noted"),
    [
        ("open", ("/tree/dev/acme0", "r", READ), ("device", "/dev/acme0")),
        ("open", ("/dev/acme0", "r", READ), ("device", "/dev/acme0")),
        ("open", ("/dev/null", "r", READ), None),
        ("open", ("/tree/dev/shm/a", "w", WRITE), None),
        ("open", ("/home/a", "w", WRITE), ("write", "/home/a")),
        ("open", (b"/home/a", "w", os.O_CREAT), ("write", "/home/a")),
        ("open", (f"{TEMPORARY}a", "w", WRITE), ("temporary", f"{TEMPORARY}a")),
        ("open", ("/home/a.pyc", "w", WRITE), None),
        ("open", ("/home/__pycache__/a", "w", WRITE), None),
        ("open", (5, "w", WRITE), None),
        ("open", ("/home/a", "r", READ), None),
        ("open", ("/tree/proc/version", "r", None), None),
        ("open", ("/proc/version", "r", READ), ("read past request.machine:", "/proc/version")),
        ("open", ("/proc/self/status", "r", READ), None),
        ("os.listdir", ("/sys",), ("read past request.machine:", "/sys")),
        ("os.listdir", ("/system",), None),
        ("os.scandir", (None,), None),
        ("os.mkdir", (f"{TEMPORARY}a", 0o700, -1), ("temporary", f"('{TEMPORARY}a', 448, -1)")),
        ("os.rename", (f"{TEMPORARY}a", "/b"), ("os.rename", f"('{TEMPORARY}a', '/b')")),
        ("os.chmod", (f"{TEMPORARY}a", 1, 2), ("os.chmod", f"('{TEMPORARY}a', 1, 2)")),
        ("os.kill", (1, 0), ("os.kill", "(1, 0)")),
        ("import", ("a",), None),
    ],
)
def test_what_is_noted(
    event: str, arguments: tuple[Any, ...], noted: tuple[str, str] | None
) -> None:
    found = notes_of(Machine("/tree/"), (event, arguments))
    assert found == ([noted] if noted else [])


def test_notes_are_bounded_and_of_the_prober_alone() -> None:
    notes = Notes(Machine("/root"))
    notes.hear("os.chmod", ("a",))
    assert notes.events == []
    notes.listening = True
    for _ in range(MAX_EVENTS + 1):
        notes.hear("os.chmod", ("x" * 300,))
    assert [len(text) for _, text in notes.events] == [200] * 40


def test_this_computer_may_be_read_where_it_is_the_machine() -> None:
    assert notes_of(Machine(), ("os.listdir", ("/sys",))) == []


def test_devices_that_are_announced() -> None:
    notes = Notes(Machine("/root"))
    for kind, device in (
        ("touching", "a:1"),
        ("touching", 5),
        ("asking", [("a:1", "x"), ("a:2", "x")]),
        ("asking", "a:3"),
        ("later", "a:4"),
    ):
        notes.announced(kind, device)
    assert notes.touched == ["a:1", "int", "a:2"]


def test_paths_below_an_open_folder(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert _paths(("a", b"b", folder)) == [f"{tmp_path}/a", f"{tmp_path}/b"]
    finally:
        os.close(folder)
    assert _paths(("a", 0o700, -1)) == ["a"]
    assert _paths(("a", 1 << 30)) == ["/a"]
    assert not _is_child(os.getppid())


# What a device's values, a run's files and a check's needs are held against.


def test_values_that_stand_for_nothing() -> None:
    assert _empty({"a": None, "b": {"c": "", "d": 0}, "extra": None}) == [".a", ".b.c"]
    assert _empty({"memory": {"total": 0, "free": 0}, "units": 0, "name": "x"}) == [
        ".memory.total",
        ".units",
    ]
    assert _empty({"cores": 1, "bandwidth": 0}) == [".bandwidth"]


def test_ids_and_what_is_reported_of_other_devices() -> None:
    assert _ids({"ids": ["a", 5]}) == ["a"]
    assert _ids({"ids": "a"}) == _ids({}) == []
    sightings = [
        {"ids": ["a:1", "b:1"], "name": "x"},
        {"ids": ["a:2"], "parent": "b:1"},
        {"ids": ["a:3"], "parent": "a:4"},
    ]
    run: Any = type("Run", (), {"sightings": sightings})
    assert _shapes(run, "a:1") == {("a:3", "ids"), ("a:3", "parent")}


def test_files_that_are_named(tmp_path: Path) -> None:
    files = [tmp_path / name for name in "abcdef"]
    assert _some(files[:5]) == "a, b, c, d, e"
    assert _some(files) == "a, b, c, d, e …"
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/a").touch()
    (tmp_path / "b").mkdir()
    (tmp_path / "b/c").write_text("x")
    assert contents(tmp_path) == {"b": None, "b/c": b"x"}


@pytest.mark.parametrize(
    ("word", "path", "is_covered"),
    [
        ("/etc/cdi", "/etc/cdi", True),
        ("/etc/cdi/", "/etc/cdi/a.json", True),
        ("/etc/cdi/a", "/etc", True),
        ("/etc/cdi", "/etc/cd", False),
        ("/proc/#/comm", "/proc/7/comm", True),
        ("/sys/*/a", "/sys/x/b", False),
        ("cpuset.cpus", "/sys/fs/cgroup/x/cpuset.cpus", True),
        ("cpuset", "/sys/fs/cgroup/cpuset/x", False),
    ],
)
def test_what_a_word_of_needs_covers(word: str, path: str, is_covered: bool) -> None:
    assert covers(word, path) is is_covered
    assert _is_declared(path, ["report", word]) is is_covered
    assert _is_declared("/home/a", [])


# What a recording would hold, and what is to be written where it does not.


def test_what_declares_a_path(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.pci("0000:01:00.0", "1ac0:0001")
    tree.node("/acme", "acme,one")
    tree.platform("acme", "/acme")
    coverage = Coverage(tree.machine(), [])
    for path, words in (
        ("/dev/acme0", '"nodes": ["/dev/acme0"]'),
        ("/sys/fs/cgroup/a/acme.max", '"cgroup": ["acme.max"]'),
        ("/sys/fs/cgroup/acme", '"files": ["/sys/fs/cgroup/acme"]'),
        (
            "/sys/bus/pci/devices/0000:01:00.0/hot",
            '"pci": [{"pci_vendor": ["1ac0"], "files": ["hot"]}]',
        ),
        ("/sys/devices/platform/acme/a/b", '"platform": [{"files": ["a/b"]}]'),
        ("/sys/class/acme", '"files": ["/sys/class/acme"]'),
        ("/usr/lib/libacme.so.1", '"answers": true'),
        ("/home/a", '"answers": true'),
    ):
        assert _declaration(path, coverage) == words
        assert _can_be_declared(path) is ("answers" not in words), path


def test_what_a_recording_holds(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.pci("0000:01:00.0", "1ac0:0001", hot="1", cold="1")
    tree.file("/sys/class/acme/a", "1")
    records = {
        "files": ["/sys/class/acme/#"],
        "nodes": ["/dev/acme#"],
        "cgroup": ["acme.max"],
        "pci": [{"pci_vendor": ["1ac0"], "files": ["hot"]}],
    }
    declared, mistakes = check_records(records)
    assert mistakes == []
    coverage = Coverage(tree.machine(), [declared])
    device = "/sys/bus/pci/devices/0000:01:00.0"
    for path, is_held in (
        ("/sys/class/acme/7", True),  # declared, and not here
        ("/sys/class/acme/a", False),
        ("/dev/acme0", True),
        ("/dev/other", False),
        (f"{device}/hot", True),
        (f"{device}/cold", False),
        ("/sys/bus/pci/devices/0000:09:00.0/hot", True),  # of a device that is not here
        ("/sys/bus/pci/devices/0000:09:00.0/cold", False),
        ("/sys/bus/pci", True),
        ("/sys/fs/cgroup/a/acme.max", True),
        ("/sys/fs/cgroup/a/acme.min", False),
        ("/sys/fs/cgroup/acme", True),
        ("/sys/fs/cgroup", True),
    ):
        assert coverage.holds(path) is is_held, path


# What an author names, and what is written for one.


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("a.b", ("a.b", "")),
        ("a.b:c.d", ("a.b", "c.d")),
        ("C:\\a.py", ("C:\\a.py", "")),
        ("a:", ("a:", "")),
        ("a:b-c", ("a:b-c", "")),
    ],
)
def test_an_attribute_behind_a_target(target: str, parts: tuple[str, str]) -> None:
    assert _split(target) == parts


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("acme_prober", "acme"),
        ("prober_acme", "acme"),
        ("probe_acme_x.prober", "acme-x"),
        ("probe_acme.gpu", "gpu"),
        ("prober", "prober"),
    ],
)
def test_the_name_that_a_module_suggests(module: str, name: str) -> None:
    assert _name(module) == name


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("none.py", "no such file"),
        (".", "it is a folder; name a file in it"),
        ("class.py", "a prober is a module: name the file like acme_prober.py"),
        ("a-b.py", "a prober is a module"),
        ("a.txt", "a prober is a module"),
        ("sys.py", "the module 'sys' is Python's or loaded already; rename it"),
        ("json.py", "the module 'json' is Python's or loaded already"),
        ("cpu.py", "cpu: the core keeps the name 'cpu' for itself; rename the prober"),
    ],
)
def test_files_that_are_no_probers(
    path: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("class.py", "a-b.py", "a.txt", "sys.py", "json.py", "cpu.py"):
        (tmp_path / name).touch()
    with pytest.raises(BadTarget) as raised:
        prober_at(f"{tmp_path}/{path}")
    assert sentence in str(raised.value)


def test_a_file_in_a_package_is_named_by_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = tmp_path / "probe_acmex/inner"
    folder.mkdir(parents=True)
    for path in (folder / "prober.py", folder / "__init__.py", folder.parent / "__init__.py"):
        path.touch()
    prober = prober_at(f"{folder}/prober.py:Prober")
    assert (prober.name, prober.target) == ("inner", "probe_acmex.inner.prober:Prober")
    assert sys.path[0] == str(tmp_path)
    package = prober_at(str(folder / "__init__.py"))
    assert (package.name, package.target) == ("inner", "probe_acmex.inner")


@pytest.mark.parametrize(
    ("kind", "priority", "records"),
    [
        (
            "sysfs",
            400,
            {"pci": {"pci_vendor": ["1ac0"], "files": ["product_name", "memory_bytes"]}},
        ),
        ("ctypes", 500, {"answers": True}),
        ("command", 500, {}),
    ],
)
def test_the_manifest_of_a_new_plugin(kind: str, priority: int, records: dict[str, Any]) -> None:
    names = {"vendor": "1ac0", "title": "Acme", "reads": "what it reads"}
    assert _manifest("acme", kind, names) == {
        "schema": 1,
        "probers": {
            "acme": {
                "summary": "Acme devices: what it reads",
                "api": "1.0",
                "priority": priority,
                "deadline_s": 3.0,
                "active": False,
                "when": {"os": ["linux"], "pci_vendor": ["1ac0"]},
                "records": records,
            }
        },
    }


def test_what_a_new_plugin_may_be_called_and_asks_for() -> None:
    assert [_oldest_core(version) for version in ("0.9.0", "1.2.3", "0.9.0b1")] == [
        "0.9",
        "1.2",
        "0.9.0b1",
    ]
    assert [_problem(name) for name in ("a", "a" * 40, "a-9")] == [None] * 3
    assert [_vendor_problem(vendor) for vendor in ("10de", "1AC0")] == [None, None]


# What an exporter must not do.


class Exporter(ExporterContract):
    """One whose text a test decides, and whose module it names."""

    name = "acme"
    target = "acme_exporter:export"
    text: Any = "count=0\n"

    def export(self, report: Any) -> str:
        return self.text(report) if callable(self.text) else self.text  # type: ignore[no-any-return]

    def count(self, text: str) -> int:
        return int(text.partition("count=")[2].partition("\n")[0])


def grown(report: Any) -> str:
    report["devices"].append("x")
    return "count=0\n"


@pytest.mark.parametrize(
    ("check", "text", "words"),
    [
        ("every_node_gives_text", 5, "none: int is no text"),
        ("every_node_gives_text", "a", "none: the last line has no end"),
        ("every_node_gives_text", "\ud800\n", "surrogates not allowed"),
        ("unknown_is_absent", "a=None\n", "none: None stands for an unknown value"),
        ("unknown_is_absent", "a=inf\n", "inf stands for an unknown value"),
        ("no_identity_is_told", "GPU-00000000\n", "none: a UUID"),
        ("the_report_is_not_changed", grown, "none: the format changed the report"),
        ("what_is_blocked_is_not_offered", "count=1\n", "it offers {'none': 1}"),
    ],
)
def test_a_bad_exporter_fails(
    check: str, text: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_contract, "NODES", {"none": []})
    good, bad = Exporter(), Exporter()
    bad.text = text
    getattr(good, f"test_{check}")()
    with pytest.raises((AssertionError, UnicodeEncodeError), match=words):
        getattr(bad, f"test_{check}")()


def test_identities_are_told_by_who_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_contract, "NODES", {"none": []})
    exporter = Exporter()
    exporter.text, exporter.identities = "GPU-00000000\n", True
    exporter.test_no_identity_is_told()


def test_an_exporter_whose_import_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "acme_exporter.py"
    module.write_text("def export(report): return ''\n")
    Exporter().test_importing_has_no_effects(capfd)
    with pytest.raises(AssertionError, match=r"exporter\.json is missing beside acme_exporter"):
        Exporter().test_its_manifest_has_a_summary()
    module.write_text("print('hello')\n")
    with pytest.raises(AssertionError):
        Exporter().test_importing_has_no_effects(capfd)
