"""What a case sets up for a prober, and what a prober may do besides reading."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from probe_core.testing import Case, Machine, ProberContract
from probe_core.testing.checks_hardware import Hardware

Plugin = Callable[..., ProberContract]
UNITS = '        device["units"] = units\n'

EFFECTS = {
    "library": "import ctypes; ctypes.CDLL(None)",
    "process": (
        "import subprocess; tool = subprocess.Popen(['sleep', '9']); tool.kill(); tool.wait()"
    ),
    "device": "open(machine.path('/dev/acme0'), 'r+')",
    "temporary": (
        "import shutil, tempfile; name = tempfile.mkdtemp(); open(name + '/a', 'w'); "
        "shutil.rmtree(name)"
    ),
}


@pytest.mark.heavy
@pytest.mark.parametrize("effect", EFFECTS)
def test_an_effect_is_allowed_where_it_is_declared(
    plugin: Plugin, tmp_path: Path, effect: str
) -> None:
    line = (UNITS, f"{UNITS}    {EFFECTS[effect]}\n")
    contract = plugin(line, may=frozenset({effect}))
    contract.test_it_only_reads(_folder(tmp_path / "first"))
    contract = plugin(line, may=EFFECTS.keys() - {effect})
    with pytest.raises(AssertionError, match=r"only read files, or declare in `may`"):
        contract.test_it_only_reads(_folder(tmp_path / "again"))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import tempfile; tempfile.mkdtemp()", "remove temporary files"),
        ("import os; os.kill(os.getppid(), 0)", "os.kill"),
        ("open('/dev/full', 'w')", "device /dev/full"),
        ("open('/proc/version')", "read past request.machine: /proc/version"),
        ("import os; os.listdir('/sys')", "read past request.machine: /sys"),
    ],
)
def test_what_nothing_allows(plugin: Plugin, tmp_path: Path, line: str, words: str) -> None:
    contract = plugin((UNITS, f"{UNITS}    {line}\n"), may=EFFECTS.keys() - {"device"})
    with pytest.raises(AssertionError, match=words):
        contract.test_it_only_reads(_folder(tmp_path / "machine"))


def test_an_effect_that_there_is_not() -> None:
    with pytest.raises(TypeError, match=r"'network'.* is none of library, process"):
        type("TestWrong", (ProberContract,), {"may": frozenset({"network"})})


LIVE = """
    if not machine.live:
        return not_applicable("nothing to ask")
    import os, libacme
    assert machine.path("/a").startswith(machine.root)
    assert machine.realpath("/a") == "/a"
    return [{"ids": [f"acme:{libacme.NAME}-{os.environ['ACME']}"], "kind": "npu"}]
    names = []
"""


@pytest.mark.heavy
def test_a_live_machine_with_a_fake_library(plugin: Plugin, tmp_path: Path) -> None:
    library = _folder(tmp_path / "site")
    (library / "libacme.py").write_text("NAME = 'card'\n")

    def hardware(self: ProberContract, root: Path) -> Case:
        variables = {"ACME": "7"}
        return Case(Machine(str(root)), live=True, variables=variables, sys_path=[library])

    contract = plugin(
        ('    names = machine.listdir("/sys/class/acme")\n', LIVE),
        manifest={"when": {"any_module": ["libacme"]}},
        hardware=hardware,
    )
    before = dict(os.environ), list(sys.path)
    _, found = contract.found(tmp_path / "machine")
    assert [device["ids"] for device in found.sightings] == [["acme:card-7"]], found.reason
    for check in (name for name in vars(Hardware) if name.startswith("test_")):
        getattr(contract, check)(_folder(tmp_path / check))
    assert (dict(os.environ), list(sys.path)) == before


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
