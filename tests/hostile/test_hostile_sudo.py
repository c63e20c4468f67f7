"""Under sudo with the user's HOME nothing of root's is left below it, and it is said."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from command import environment, probe

from probe_core.commands.measured import save_measured
from probe_core.doctor.remembered import Memory
from probe_core.machine.writing import make_own_folder

USER = 54_321
"""A user that nobody is."""

REPORT: Any = {"node": {"id": "n"}, "devices": []}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("needs root")
    folder = tmp_path / "user"
    folder.mkdir()
    os.chown(folder, USER, USER)
    return folder


def test_root_saves_no_state_in_a_users_home(home: Path) -> None:
    done = probe("doctor", "--save", env=environment(HOME=str(home)))
    assert done.returncode == 1
    assert " ".join(done.stderr.split()[-30:]).endswith(
        f"doctor: {home}/.local/state/probe-core/doctor-baseline.json: root keeps nothing below"
        f" {home}, which belongs to the user {USER}; name another folder in XDG_STATE_HOME"
    )
    assert list(home.iterdir()) == []


def test_root_saves_its_state_in_its_own_home(tmp_path: Path, home: Path) -> None:
    own = tmp_path / "root"
    own.mkdir()
    done = probe("doctor", "--save", env=environment(HOME=str(own)))
    assert (own / ".local/state/probe-core/doctor-baseline.json").is_file(), done.stderr
    named = probe("doctor", "--save", env=environment(HOME=str(home), XDG_STATE_HOME=str(own)))
    assert (own / "probe-core/doctor-baseline.json").is_file(), named.stderr
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("below", [".local", ".local/state", ".local/state/probe-core"])
def test_what_an_earlier_sudo_left_makes_the_home_no_roots(home: Path, below: str) -> None:
    (home / below).mkdir(parents=True)
    folder = str(home / ".local/state/probe-core")
    with pytest.raises(PermissionError, match=f"root keeps nothing below {home}, which belongs"):
        make_own_folder(folder, str(home))


def test_a_users_folder_in_roots_home_is_the_users(tmp_path: Path, home: Path) -> None:
    (tmp_path / ".local").mkdir()
    os.chown(tmp_path / ".local", USER, USER)
    with pytest.raises(PermissionError, match=rf"below {tmp_path}/\.local, which belongs"):
        make_own_folder(f"{tmp_path}/.local/state/probe-core", str(tmp_path))
    assert list((tmp_path / ".local").iterdir()) == []


def test_a_home_that_is_not_there_is_made_where_root_may(tmp_path: Path, home: Path) -> None:
    make_own_folder(f"{tmp_path}/new/.local/state", f"{tmp_path}/new")
    assert (tmp_path / "new/.local/state").is_dir()
    with pytest.raises(PermissionError, match=f"root keeps nothing below {home}, "):
        make_own_folder(f"{home}/new/.local/state", f"{home}/new")
    assert list(home.iterdir()) == []


def test_folders_above_a_home_are_nobodys_question(tmp_path: Path, home: Path) -> None:
    """In a user namespace they show as another user's, and the home as root's."""
    own = home / "root"
    own.mkdir()
    make_own_folder(f"{own}/.local/state", str(own))
    assert (own / ".local/state").is_dir()


def test_measured_figures_are_no_exception(home: Path) -> None:
    with pytest.raises(PermissionError, match=f"root keeps nothing below {home}, "):
        save_measured({"HOME": str(home)}, REPORT, {})
    assert list(home.iterdir()) == []


def test_remembered_answers_are_no_exception(home: Path) -> None:
    memory = Memory.__new__(Memory)
    memory._path, memory._key = f"{home}/.cache/probe-core/doctor/0.json", "key"
    memory.keep([], {})
    assert list(home.iterdir()) == []


def test_a_user_is_asked_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: USER)
    make_own_folder(f"{home}/.local/state", str(home))
    assert (home / ".local/state").is_dir()
