"""Checks of a prober's distribution: entry point, manifest, and what the wheel holds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from probe_core.api import API_VERSION
from probe_core.machine import Machine
from probe_core.recording.declared import check_records
from probe_core.registry.discover import RESERVED
from probe_core.registry.prober import Prober
from probe_core.testing.case import Case, prober_of

__all__ = ["Declared", "Packaging"]


class Declared:
    """What the author declares."""

    name: str
    target: str
    project: Path | None = None
    import_ms: float = 50.0
    may: frozenset[str] = frozenset()
    absent: str = "not_applicable"

    def prober(self) -> Prober:
        """Return the prober with its manifest applied."""
        return prober_of(self.name, self.target)

    def manifest(self) -> tuple[Path | None, dict[str, Any]]:
        """Return the manifest's path, and its table for this prober."""
        for path in self.prober().files:
            if path.endswith("prober.json"):
                text = Path(path).read_text(encoding="utf-8")
                return Path(path), json.loads(text)["probers"].get(self.name, {})
        return None, {}

    def empty(self, root: Path, environ: dict[str, str] | None = None) -> list[Case]:
        """Return empty machines of every system that the preconditions let it run on."""
        when = self.prober().when
        systems = {name for condition in when for name in condition.get("os", ())}
        everywhere = not when or any("os" not in condition for condition in when)
        machines = [Machine(str(root), environ, system, arch) for system, arch in SYSTEMS]
        return [Case(machine, []) for machine in machines if everywhere or machine.os in systems]


# The systems that the project builds for, and RISC-V for what nobody thought of.
SYSTEMS = (
    ("linux", "x86_64"),
    ("linux", "aarch64"),
    ("darwin", "arm64"),
    ("windows", "AMD64"),
    ("linux", "riscv64"),
)


class Packaging(Declared):
    """About the distribution."""

    def test_its_name_can_be_used(self) -> None:
        """Users write it in settings, separated by commas."""
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", self.name), (
            "use letters, digits, '.', '_', '-'"
        )
        assert self.name.lower() not in RESERVED, "the name is reserved by the core"

    def test_its_module_is_found_without_importing(self) -> None:
        """Discovery looks for files; a module made at run time has no manifest."""
        assert self.prober().files, f"{self.target} is nowhere on the path"

    def test_it_has_a_manifest(self) -> None:
        """Without one, every node starts a process for it."""
        assert self.manifest()[0] is not None, "there is no prober.json beside the module"

    def test_its_manifest_has_no_mistake(self) -> None:
        """The core would use a default, and tell every user."""
        prober = self.prober()
        problems = [mistake.reason for mistake in prober.problems]
        problems += check_records(prober.records or {})[1]
        assert not problems, f"correct prober.json: {problems}"

    def test_its_manifest_says_what_it_is(self) -> None:
        """`probe plugins list` shows it."""
        assert self.manifest()[1].get("summary", "").strip(), "give it a summary"

    def test_its_manifest_names_an_api_there_is(self) -> None:
        """The oldest that it works with."""
        declared = [int(part) for part in self.manifest()[1].get("api", "0.0").split(".")]
        newest = [int(part) for part in API_VERSION.split(".")]
        assert [1, 0] <= declared <= newest, f'name an "api" from 1.0 to {API_VERSION}'

    def test_its_deadline_is_bearable(self) -> None:
        """A host waits as long when the driver hangs."""
        # A judgement: nvmlInit of many GPUs without persistence takes up to 30 s (aks-gpu#105).
        assert self.prober().deadline_s <= 30, "no host waits longer at its start"

    def test_its_manifest_says_whether_it_opens_devices(self) -> None:
        """What opens device nodes runs only for users who ask for it."""
        consistent = self.prober().active or "device" not in self.may
        assert consistent, 'who may open devices says "active": true in its manifest'

    def test_its_project_declares_the_entry_point(self) -> None:
        """And depends on the core."""
        if self.project is None:
            return
        project = tomllib.loads((self.project / "pyproject.toml").read_text())["project"]
        entries = project.get("entry-points", {}).get("probe_core.probers.v1", {})
        entry = f"the entry point {self.name!r} is {entries.get(self.name)!r}"
        assert entries.get(self.name) == self.target, f"{entry} and should be {self.target!r}"
        needed = [re.split(r"[^A-Za-z0-9._-]", line)[0] for line in project["dependencies"]]
        assert "probe-core" in needed, "name probe-core among the dependencies"

    def test_its_wheel_holds_all_it_needs(self, tmp_path: Path) -> None:
        """Some build tools leave data files out, and everything still works in the checkout."""
        if self.project is None:
            return
        names = _wheel(self.project, tmp_path)
        module = self.target.partition(":")[0].replace(".", "/")
        assert {f"{module}.py", f"{module}/__init__.py"} & names, "the module is not in the wheel"
        path, _ = self.manifest()
        if path is not None:
            assert any(name.endswith(path.name) for name in names), "the manifest is not in it"
        entries = any(name.endswith("entry_points.txt") for name in names)
        assert entries, "the wheel declares no entry point"
        assert any(name.endswith("py.typed") for name in names), "py.typed is not in the wheel"


def _wheel(project: Path, folder: Path) -> set[str]:
    """Build the project's wheel without isolation or network; returns the names in it."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    hatch = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    backend = tomllib.loads((project / "pyproject.toml").read_text())["build-system"]
    plain = backend["build-backend"] == "hatchling.build"
    done = subprocess.run(
        hatch if plain else [*command, "-w", str(folder), "."],
        cwd=project,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"the wheel cannot be built:\n{done.stderr[-2000:]}"
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())
