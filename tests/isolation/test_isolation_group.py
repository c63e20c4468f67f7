"""A group of the prober's own, where a tree of groups was delegated; nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from probe_core.isolation import group, processes

UNIT = "system.slice/job.service"


def files(folder: Path, controllers: str = "cpu memory pids") -> None:
    (folder / "cgroup.subtree_control").write_text(f"{controllers}\n")
    (folder / "cgroup.procs").write_text("")


@pytest.fixture
def delegated(tmp_path: Path) -> Callable[..., str | None]:
    """Return a function that answers as `_delegated` does for a process in job.service/main."""
    root = tmp_path / "cgroup"
    unit = root / UNIT
    (unit / "main").mkdir(parents=True)
    for folder in (root, unit.parent, unit, unit / "main"):
        files(folder)
    try:
        os.setxattr(unit, "user.delegate", b"1")
    except OSError:
        pytest.skip("this file system has no such attributes")

    def answer(path: str = f"/{UNIT}/main", change: Callable[[Path], object] = id) -> str | None:
        change(unit)
        own = tmp_path / "own"
        own.write_text(f"4:memory:/\n0::{path}\n")
        found = group._delegated(str(root), str(own))
        return found and found.removeprefix(f"{root}/")

    return answer


def test_beside_the_own_group_in_a_delegated_unit(delegated: Callable[..., str | None]) -> None:
    assert delegated() == UNIT


CHANGES: dict[str, Callable[[Path], object]] = {
    "not delegated": lambda unit: os.removexattr(unit, "user.delegate"),
    "delegation withdrawn": lambda unit: os.setxattr(unit, "user.delegate", b"0"),
    "memory is not accounted": lambda unit: files(unit, "cpu pids"),
    "no such files": lambda unit: (unit / "cgroup.subtree_control").unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_nowhere_else(delegated: Callable[..., str | None], change: str) -> None:
    assert delegated(change=CHANGES[change]) is None


@pytest.mark.parametrize("path", ["/", "", f"/{UNIT}", "/other", "/../../etc"])
def test_other_places(delegated: Callable[..., str | None], path: str) -> None:
    assert delegated(path) is None


def test_a_slice_is_systemds_own(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    folder = root / "user@1000.service/app.slice"
    (folder / "app.scope").mkdir(parents=True)
    files(folder)
    try:
        os.setxattr(folder.parent, "user.delegate", b"1")
    except OSError:
        pytest.skip("this file system has no such attributes")
    own = tmp_path / "own"
    own.write_text("0::/user@1000.service/app.slice/app.scope\n")
    assert group._delegated(str(root), str(own)) is None


def test_what_is_set(tmp_path: Path) -> None:
    names = ("memory.max", "memory.oom.group", "pids.max", "cgroup.procs")
    for name in names:
        (tmp_path / name).touch()
    group._confine(str(tmp_path), 4321)
    limit = str(processes.memory_limit())
    assert [(tmp_path / name).read_text() for name in names] == [
        limit, "1", str(processes.MAX_PROCESSES), "4321"
    ]  # fmt: skip
    (tmp_path / "pids.max").unlink()
    group._confine(str(tmp_path), 4321)


def test_a_group_that_cannot_limit_is_removed(
    delegated: Callable[..., str | None], tmp_path: Path
) -> None:
    assert delegated() == UNIT
    unit = tmp_path / "cgroup" / UNIT
    (unit / "probe-core-999999999").mkdir()  # of a supervisor that was killed
    (unit / f"probe-core-{os.getppid()}").mkdir()
    assert group.make(4321, str(tmp_path / "cgroup"), str(tmp_path / "own")) is None
    assert [p.name for p in unit.glob("probe-core-*")] == [f"probe-core-{os.getppid()}"]
