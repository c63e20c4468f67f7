"""The contract kit for checks accepts a sound set and names what a bad one does."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from probe_core.doctor.check import Request, check, failed, finding, not_applicable, passed
from probe_core.doctor.document import ResultDoc
from probe_core.testing import CheckContract, CheckPair, Tree

FIRMWARE = "/sys/class/acme/acme0/firmware"


@check("acme-old", step="driver", needs=(FIRMWARE,))
def old(request: Request) -> ResultDoc:
    """Whether the firmware is old."""
    version = request.machine.read_int(FIRMWARE)
    if version is None:
        return not_applicable("no card")
    if version > 6:
        return passed()
    return failed(finding("acme-old", what="It is old", why="it has 3", fix="`acme-update`"))


MODULE = ModuleType("x_acme_checks")
MODULE.CHECKS = [old]  # type: ignore[attr-defined]


class Kit(CheckContract):
    target = "x_acme_checks"

    def pairs(self, root: Path) -> Mapping[str, CheckPair]:
        before, now = Tree(root / "before"), Tree(root / "now")
        before.file(FIRMWARE, "3")
        now.file(FIRMWARE, "9")
        return {"acme-old": CheckPair(before.machine(), now.machine())}

    def checks(self) -> list[object]:
        return list(MODULE.CHECKS)


@pytest.fixture
def kit(monkeypatch: pytest.MonkeyPatch) -> Kit:
    monkeypatch.setitem(sys.modules, "x_acme_checks", MODULE)
    monkeypatch.setattr(MODULE, "CHECKS", [old])
    return Kit()


WITHOUT_FOLDER = ("test_every_check_declares_itself", "test_the_manifest_lists_its_codes")
TESTS = [name for name in dir(CheckContract) if name.startswith("test_") and "import" not in name]


@pytest.mark.parametrize("name", TESTS)
def test_a_sound_set_passes(name: str, kit: Kit, tmp_path: Path) -> None:
    arguments = () if name in WITHOUT_FOLDER else (tmp_path,)
    getattr(kit, name)(*arguments)


def test_a_manifest_with_other_codes_fails(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "__file__", str(tmp_path / "x_acme_checks.py"), raising=False)
    manifest = tmp_path / "x_acme_checks.check.json"
    manifest.write_text('{"schema": 1, "checks": {"acme": {"codes": ["acme-old"]}}}')
    kit.test_the_manifest_lists_its_codes()
    manifest.write_text('{"schema": 1, "checks": {"acme": {"codes": ["acme-new"]}}}')
    with pytest.raises(AssertionError, match="lists other codes"):
        kit.test_the_manifest_lists_its_codes()


def says(result: ResultDoc, code: str = "acme-old", summary: str = "Whether it is old.") -> object:
    return check(code, summary=summary)(lambda request: result)


def test_a_file_that_a_check_does_not_declare_is_named(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = check("acme-old", needs=("/sys/class/acme/*/serial",), summary="Whether.")(old.run)
    monkeypatch.setattr(MODULE, "CHECKS", [bad])
    with pytest.raises(AssertionError) as caught:
        kit.test_each_declares_what_it_reads(tmp_path)
    assert str(caught.value) == f"add what it reads to the `needs` of check 'acme-old': {FIRMWARE}"


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("test_each_finds_its_cause", says(passed())),
        (
            "test_each_stays_silent_on_the_look_alike",
            says(failed(finding("acme-old", what="a", why="b", fix="c"))),
        ),
        (
            "test_each_answers_on_an_empty_machine",
            says(failed(finding("acme-old", what="a", why="b", fix="c"))),
        ),
        ("test_each_finds_its_cause", says({"status": "failed", "findings": [], "reason": None})),
        ("test_every_check_declares_itself", says(passed(), code="Acme Old")),
        ("test_every_check_declares_itself", says(passed(), summary="")),
    ],
)
def test_a_bad_one_fails(
    name: str, bad: object, kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "CHECKS", [bad])
    arguments = () if name == "test_every_check_declares_itself" else (tmp_path,)
    with pytest.raises(AssertionError):
        getattr(kit, name)(*arguments)
