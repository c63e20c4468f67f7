"""The contract kit for checks of the doctor: a subclass declares a pair of machines for each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

from probe_core.doctor.check import ENVIRONMENT, Request
from probe_core.doctor.child import checks_of
from probe_core.doctor.remote import checked_answer, checked_result
from probe_core.machine import Machine
from probe_core.machine.surroundings import SIGNS
from probe_core.testing.checks import check_import
from probe_core.testing.reading import JUDGED
from probe_core.testing.stage import Watched

SHARED = (*SIGNS, "/proc/self/cgroup", "/run/systemd/container", "/proc/sys/kernel")
"""What shows a container or WSL: each check may look at it, by way of `request.scene`."""


class CheckPair:
    """For one check a machine that has what it looks for, and a look-alike that has not.

    `environment` are the folders of Python environments for checks that need one; `report` is what
    the report would be, by default one without devices.
    """

    def __init__(
        self,
        broken: Machine,
        healthy: Machine,
        *,
        report: Mapping[str, Any] | None = None,
        environment: tuple[str | None, str | None] = (None, None),
    ) -> None:
        self.broken = broken
        self.healthy = healthy
        self.report = dict(report or {})
        self.environment = environment


_EMPTY = {"devices": [], "findings": [], "outcomes": [], "node": {"os": "linux", "kernel": None}}


class CheckContract:
    """Checks of one set of checks; subclass it as ``TestSomething``.

    `target` is the entry point's ``module`` or ``module:attribute``. `pairs` makes, below a folder,
    a `CheckPair` for the code of every check.
    """

    target: str

    def pairs(self, root: Path) -> Mapping[str, CheckPair]:
        """Make the machines."""
        raise NotImplementedError

    def checks(self) -> list[Any]:
        """Return the checks, imported as the core does."""
        return checks_of(self.target)

    def answer(self, check: Any, machine: Machine, pair: CheckPair, at: int) -> dict[str, Any]:
        """Return a check's answer, as another process would hand it over."""
        report: Any = {**_EMPTY, **pair.report}
        request = Request(machine, report, environment=pair.environment[at])
        result: dict[str, Any] = json.loads(json.dumps(check.run(request)))
        return result

    def test_importing_has_no_effects(self, capfd: Any) -> None:
        check_import(self.target.partition(":")[0], capfd)

    def test_every_check_declares_itself(self) -> None:
        checks = self.checks()
        assert checks, f"{self.target} has no CHECKS"
        codes = [check.code for check in checks]
        assert len(codes) == len(set(codes)), "two checks have one code"
        for check in checks:
            frame = {"code": check.code, "step": check.step, "needs": list(check.needs)}
            described = checked_answer(frame | {"summary": check.summary}, "author")
            assert not isinstance(described, str), described
            assert check.summary, f"{check.code} has no summary"

    def test_the_manifest_lists_its_codes(self) -> None:
        """Completion reads them there, for it imports nothing."""
        codes = {check.code for check in self.checks()}
        for table in _tables(self.target.partition(":")[0]):
            listed = table.get("codes")
            assert listed is None or set(listed) == codes, "check.json lists other codes"

    def test_every_check_has_a_pair(self, tmp_path: Path) -> None:
        assert {check.code for check in self.checks()} == set(self.pairs(tmp_path))

    def test_each_finds_its_cause(self, tmp_path: Path) -> None:
        pairs = self.pairs(tmp_path)
        for check in self.checks():
            pair = pairs[check.code]
            result = checked_result(self.answer(check, pair.broken, pair, 0))
            assert not isinstance(result, str), f"{check.code} {result}"
            assert result["status"] == "failed", f"{check.code}: {result}"

    def test_each_stays_silent_on_the_look_alike(self, tmp_path: Path) -> None:
        pairs = self.pairs(tmp_path)
        for check in self.checks():
            pair = pairs[check.code]
            result = checked_result(self.answer(check, pair.healthy, pair, 1))
            assert not isinstance(result, str), f"{check.code} {result}"
            assert result["status"] != "failed", f"{check.code}: {result}"

    def test_each_answers_on_an_empty_machine(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        machine = Machine(str(tmp_path / "empty"))
        for check in self.checks():
            pair = CheckPair(machine, machine, environment=(str(tmp_path / "empty"), None))
            environment = 0 if ENVIRONMENT in check.needs else 1
            result = checked_result(self.answer(check, machine, pair, environment))
            assert not isinstance(result, str), f"{check.code} {result}"
            assert result["status"] != "failed", f"{check.code} finds something in nothing"

    def test_each_declares_what_it_reads(self, tmp_path: Path) -> None:
        """`probe doctor --list` shows `needs`, and a recording is judged by it."""
        pairs = self.pairs(tmp_path)
        for check in self.checks():
            pair = pairs[check.code]
            for at, machine in enumerate((pair.broken, pair.healthy)):
                watched = Watched(machine)
                self.answer(check, watched, pair, at)
                missing = [path for path in watched.noted if not _is_declared(path, check.needs)]
                needs = f"the `needs` of check {check.code!r}"
                assert not missing, f"add what it reads to {needs}: {', '.join(missing)}"

    def test_no_check_reads_past_the_machine(self, tmp_path: Path) -> None:
        """The same machine twice gives the same answer, whatever this computer is."""
        pairs = self.pairs(tmp_path)
        for check in self.checks():
            pair = pairs[check.code]
            answers = [self.answer(check, pair.broken, pair, 0) for _ in range(2)]
            assert answers[0] == answers[1], f"{check.code} answers differently the second time"


def covers(word: str, path: str) -> bool:
    """Return whether a word of `needs` names a path, a folder above or below it, or its name."""
    if not word.startswith("/"):
        return path.rpartition("/")[2] == word
    patterns = word.replace("#", "*").rstrip("/").split("/")
    # One of the two may end first: a folder stands for what is in it.
    return all(map(fnmatchcase, path.rstrip("/").split("/"), patterns))


def _is_declared(path: str, needs: Sequence[str]) -> bool:
    is_judged = path.startswith(JUDGED) and not path.startswith(SHARED)
    return not is_judged or any(covers(word, path) for word in needs)


def _tables(module: str) -> list[dict[str, Any]]:
    """Return the tables of the manifest beside a module; none where there is none."""
    file = getattr(import_module(module), "__file__", None)
    if file is None:
        return []
    names = (f"{module.rpartition('.')[2]}.check.json", "check.json")
    path = next((p for name in names if (p := Path(file).parent / name).is_file()), None)
    return [] if path is None else list(json.loads(path.read_text("utf-8"))["checks"].values())
