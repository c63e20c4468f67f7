"""Checks of a prober's distribution: entry point, manifest, and what the wheel holds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from probe_core.api import API_VERSION
from probe_core.isolation.launch import import_paths
from probe_core.machine import Machine
from probe_core.model.ids import is_prober_name
from probe_core.recording.declared import check_records
from probe_core.registry.prober import RESERVED, Prober
from probe_core.testing.case import Case, prober_of, run_case, watch_case
from probe_core.testing.reading import undeclared


class Declared:
    """What the author declares."""

    name: str
    target: str
    project: Path | None = None
    import_ms: float = 50.0
    may: frozenset[str] = frozenset()
    absent: str = "not_applicable"
    # What `ProberContract` asks for: a machine, or several by a name for people.
    hardware: Callable[[Path], Case]
    broken: Callable[[Path], Mapping[str, Case]]
    lacking: Callable[[Path], Mapping[str, Case]]
    sampled: Callable[[Path], Case]

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
        plain = "use letters, digits, '.', '_', '-', the first no '.' and no '-'"
        assert is_prober_name(self.name), plain
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


# Checks of importing a prober's module: cheap, silent, without effects, with the hook in it.

# The core's child starts so, too: isolated, without site, with the host's path.
_TIMED = """
import sys, time
def delayed():
    # What this process waited for a processor, in ns (the kernel's sched-stats.rst).
    try:
        with open("/proc/self/schedstat") as file:
            return int(file.read().split()[1]) / 1e6
    except (OSError, ValueError, IndexError):
        return 0.0
sys.path[:] = {paths!r}
import probe_core.api
start, before = time.perf_counter(), delayed()
import {module}
print((time.perf_counter() - start) * 1000 - (delayed() - before))
"""


class Importing(Declared):
    """About the module itself."""

    def test_it_can_be_imported_and_called(self, tmp_path: Path) -> None:
        """In the core's own child: no editable path, no user's site."""
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        failed = run.status in ("load_error", "crashed", "protocol")
        assert not failed, f"mend the module: {run.status}: {run.reason}"

    def test_importing_is_cheap(self) -> None:
        """Import a vendor's library inside the hook: most nodes do not need it."""
        code = _TIMED.format(paths=import_paths(), module=self.target.partition(":")[0])
        times = []
        # The first may compile. Waiting for a processor does not count: other programs may be busy.
        for _ in range(4):
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", code],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"it cannot be imported:\n{done.stderr}"
            times.append(float(done.stdout.splitlines()[-1]))
        assert min(times) <= self.import_ms, (
            f"importing takes {min(times):.0f} ms of {self.import_ms:g}: "
            "import what is slow inside the hook, once hardware is found"
        )

    def test_importing_prints_nothing(self) -> None:
        """Output of a child is noise in the report's tail, where errors should be."""
        module = self.target.partition(":")[0]
        code = f"import sys; sys.path[:] = {import_paths()!r}; import {module}"
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
        )
        printed = done.stdout + done.stderr
        assert not printed, f"importing prints {printed[:200]!r}: remove it, or yield a finding"

    def test_it_leaves_the_process_as_it_is(self, tmp_path: Path) -> None:
        """Environment, working directory, umask, signals, threads, streams."""
        _, noted = watch_case(self.prober(), self.empty(tmp_path)[0])
        assert not noted["changed"], f"put back what the call changes: {noted['changed']}"

    def test_it_has_no_effects_without_hardware(self, tmp_path: Path) -> None:
        """Nothing is written, no tool or library is loaded where nothing of its own is."""
        _, noted = watch_case(self.prober(), self.empty(tmp_path)[0])
        actions = effects(noted["events"], frozenset())
        assert not actions, f"look for your hardware among the machine's files first: {actions}"


def check_import(module: str, capfd: Any) -> None:
    """Check that importing a module, which need not be the first time, has no effects."""
    before, threads = (dict(os.environ), os.getcwd()), set(threading.enumerate())
    loaded = sys.modules.pop(module, None)
    try:
        import_module(module)
    finally:
        if loaded is not None:
            sys.modules[module] = loaded
    assert (dict(os.environ), os.getcwd()) == before
    # Those of others may end meanwhile.
    assert not set(threading.enumerate()) - threads, "importing it starts a thread"
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", ""), "importing it prints"


EFFECTS = {
    "library": ("ctypes.dlopen",),
    "process": ("subprocess.Popen", "os.posix_spawn", "os.fork"),
    "device": ("device",),
    "temporary": ("temporary",),
}
"""What a prober may declare in `may`, and the events that it then may cause."""


def effects(events: list[list[str]], may: frozenset[str]) -> list[str]:
    """Return the events that the prober did not declare, as text."""
    allowed = {event for kind in may for event in EFFECTS[kind]}
    return [f"{event} {argument}" for event, argument in events if event not in allowed]


# Checks on machines that have none of a prober's hardware: the case on most nodes.

_ABSENT = ("not_applicable", "unavailable")


class Empty(Declared):
    """About nodes without the hardware."""

    def test_without_hardware_it_is_not_applicable(self, tmp_path: Path) -> None:
        """Also when its preconditions are wrong or missing, and it runs all the same."""
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        answer = f"it answered {run.status} ({run.reason}) with {len(run.sightings)} devices"
        right = run.status == self.absent and not run.sightings
        assert right, f"{answer}; without its hardware it is {self.absent}"

    def test_it_says_why_not(self, tmp_path: Path) -> None:
        """People read it in `probe plugins why-not`."""
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        reason = run.reason and run.reason != "it found no devices"
        assert reason, "return not_applicable(reason), and not an empty list"

    def test_without_hardware_it_prints_nothing(self, tmp_path: Path) -> None:
        """A log line per node and start is too much."""
        run, _ = watch_case(self.prober(), self.empty(tmp_path)[0])
        printed = run.stderr_tail()
        assert not printed, f"print nothing; what a person should know is the reason: {printed}"

    def test_without_hardware_it_takes_little_time(self, tmp_path: Path) -> None:
        """Half of the deadline on a test machine leaves room on a busy node."""
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        seconds, deadline_s = run.ended - run.started, self.prober().deadline_s
        assert seconds <= deadline_s / 2, f"it took {seconds:.2f} s of its deadline, {deadline_s} s"

    def test_it_bears_every_system(self, tmp_path: Path) -> None:
        """A recorded machine may be of any system and architecture."""
        for case in self.empty(tmp_path):
            run = run_case(self.prober(), case)
            where = f"{case.machine.os} on {case.machine.arch}"
            assert run.status in _ABSENT, f"on {where} it is {run.status}: {run.reason}"

    def test_it_reads_the_machine_and_not_this_one(self, tmp_path: Path) -> None:
        """An empty folder that stands for / has no devices, whatever this computer has."""
        run = run_case(self.prober(), Case(self.empty(tmp_path)[0].machine))
        ids = [sighting.get("ids") for sighting in run.sightings]
        assert not ids, f"read files through request.machine; it found {ids} in an empty folder"

    def test_what_it_looks_for_is_declared(self, tmp_path: Path) -> None:
        """Where there is nothing it reads what it goes by: a recording needs that first."""
        missing = undeclared(self.prober(), self.empty(tmp_path)[0])
        assert not missing, "\n".join(missing)

    def test_it_bears_an_empty_environment(self, tmp_path: Path) -> None:
        """No HOME, no PATH: how services start."""
        run = run_case(self.prober(), self.empty(tmp_path, {})[0])
        answer = f"without any variable it is {run.status}: {run.reason}"
        assert run.status == self.absent, f"{answer}; use request.machine.environ.get(NAME)"

    def test_it_bears_files_where_folders_should_be(self, tmp_path: Path) -> None:
        """Containers mount odd things over /sys and /proc."""
        for name in ("sys", "proc", "dev"):
            (tmp_path / name).write_text("a file\n")
        run = run_case(self.prober(), self.empty(tmp_path)[0])
        answer = f"where /sys is a file it is {run.status}: {run.reason}"
        assert run.status in _ABSENT, f"{answer}; machine.listdir bears it"


class Lacking(Declared):
    """About machines that might have the hardware, and have none."""

    def test_where_there_is_none_it_is_not_applicable(self, tmp_path: Path) -> None:
        """A driver without a device is no failure, and none of the user's concern."""
        for description, case in self.lacking(tmp_path).items():
            run = run_case(self.prober(), case)
            answer = f"{description}: it answered {run.status} ({run.reason})"
            right = run.status == "not_applicable" and not run.sightings
            assert right, f"{answer}; say not_applicable(reason)"

    def test_where_there_is_none_it_does_no_more_than_it_may(self, tmp_path: Path) -> None:
        """Most nodes with a driver's package have no such device."""
        for description, case in self.lacking(tmp_path).items():
            run, noted = watch_case(self.prober(), case)
            traces = effects(noted["events"], self.may) + run.stderr_tail()
            assert not traces, (
                f"{description}: look for hardware among files, print nothing: {traces}"
            )

    def test_what_it_reads_where_there_is_none_is_declared(self, tmp_path: Path) -> None:
        """So that a recording shows why there is none."""
        for description, case in self.lacking(tmp_path).items():
            missing = undeclared(self.prober(), case)
            assert not missing, f"{description}: " + "\n".join(missing)
