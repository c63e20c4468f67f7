"""What `package_solver` says of a line is what dnf, zypper or pacman does, where they are here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import package_solver as solver
import pytest
from package_solver import System
from real_managers import NEEDED, Failed, Pacman, Rpms, missing
from test_readiness_managers import LINES, REFUSED, SYSTEMS, Line

Manager = Rpms | Pacman

# One line of a distribution once: families that layer packages, or are alike, have the same.
_BY_COMMAND = {
    (SYSTEMS[line.family], line.state(), command): line
    for line in LINES.values()
    for command in line.commands()
    if command.split()[1] in ("dnf", "zypper", "pacman")
}
CASES = [(line, command) for (_, _, command), line in _BY_COMMAND.items()]


@pytest.fixture(scope="session")
def managers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Manager]:
    """Return what makes the repositories of a described distribution, once."""

    @cache
    def of(name: str) -> Manager:
        folder = tmp_path_factory.mktemp(name)
        known = solver.database(name)
        return Pacman(known, folder) if name == "arch" else Rpms(known, folder)

    return of


@pytest.mark.heavy
@pytest.mark.parametrize(("line", "command"), CASES, ids=lambda value: str(value)[:60])
def test_the_package_manager_does_what_the_solver_says(
    line: Line, command: str, managers: Callable[[str], Manager], tmp_path: Path
) -> None:
    if lacking := missing(command.split()[1]):
        pytest.skip(f"needs {', '.join(lacking)}")
    system = line.system()
    manager = managers(SYSTEMS[line.family])
    found = manager.after(system, command, tmp_path / "root")
    system.run(command)
    expected = {
        name: package.version.removeprefix("0:") for name, package in system.installed.items()
    }
    assert found == expected


_OF_PROGRAMS = [
    (name, state, line.partition(" (")[0], line, reason)
    for name, state, line, reason in REFUSED
    if line.split()[1] in NEEDED
]


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "state", "command", "text", "reason"), _OF_PROGRAMS)
def test_the_package_manager_refuses_what_the_solver_refuses(
    name: str,
    state: str,
    command: str,
    text: str,
    reason: str,
    managers: Callable[[str], Manager],
    tmp_path: Path,
) -> None:
    if lacking := missing(command.split()[1]):
        pytest.skip(f"needs {', '.join(lacking)}")
    system = System(solver.database(name), state, text)
    before = {package.name for package in system.installed.values()}
    try:
        after = managers(name).after(system, command, tmp_path / "root")
    except Failed:
        assert reason != "nothing to do"
    else:
        assert (reason, {*after}) == ("nothing to do", before)
