"""The contract, on registries that regedit could export, read by a stand-in for winreg."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from probe_core.testing import Case, Machine, ProberContract

FOLDER = Path(__file__).parent


@pytest.mark.heavy
class TestWindows(ProberContract):
    name = "windows"
    target = "probe_windows.prober"
    project = FOLDER.parent

    def hardware(self, root: Path) -> Case:
        return self.case(root, "desktop-amd")

    def broken(self, root: Path) -> Mapping[str, Case]:
        return {
            "no driver of its vendor": self.case(root, "desktop-with-the-basic-driver"),
            "no registry": Case(Machine(str(root), os="windows"), live=True),
        }

    def lacking(self, root: Path) -> Mapping[str, Case]:
        empty = "Windows Registry Editor Version 5.00\n\n[HKEY_LOCAL_MACHINE\\SYSTEM]\n"
        case = self.case(root, "")
        case.variables["STANDIN_REG"] = str(root / "empty.reg")
        (root / "empty.reg").write_text(empty)
        return {"no display adapter": case}

    def case(self, root: Path, export: str) -> Case:
        variables = {"STANDIN_REG": str(FOLDER / "exports" / f"{export}.reg")}
        machine = Machine(str(root), os="windows")
        return Case(machine, live=True, variables=variables, sys_path=[FOLDER / "standin"])

    def test_all_that_is_there_is_found(self, tmp_path: Path) -> None:
        assert len(self.found(tmp_path)[1].sightings) == 2
